"""Requests around a validator: postings go to the engine, blobs to a quorum, blocks out with their seal."""

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from anofel.board.chain import InvalidBlock, verify_signed
from anofel.board.rule import RULES, Rejected
from anofel.board.state import State
from anofel.errors import AnofelError
from anofel.messages import Blob, Block
from anofel.messages.postings import posting_id
from anofel.node.board_node import AcceptedPosting
from anofel.node.board_service import BoardService, Busy
from anofel.node.embedded import Unverifiable
from anofel.node.replicated.abci import AbciServer
from anofel.node.replicated.engine import (
    HOME,
    OFFERS,
    EngineAnswer,
    EngineKeys,
    EngineProcess,
    EngineRpc,
    Taken,
    write_home,
)
from anofel.node.replicated.node import LATER, OWED_SECONDS, RefusalNote, ReplicatedNode
from anofel.primitives import MessageSecret

Result = TypeVar("Result")
POST_SECONDS: Final = 60.0
"""How long a posting's author waits at most for a verification that takes long."""
SEAL_PAUSE: Final = 0.05
WARN_SECONDS: Final = 10.0


class ReplicatedService(BoardService):
    """Runs a validator and its engine."""

    node: ReplicatedNode

    def __init__(self, node: ReplicatedNode, engine: Path, transport_key: MessageSecret) -> None:
        """``engine``: the program, which was checked. ``transport_key``: what names it among engines."""
        super().__init__(node)
        self._sockets = Path(tempfile.mkdtemp(prefix="anofel-"))  # a socket's path has 108 bytes at most
        home = node.files.directory / HOME
        keys = EngineKeys(node.files.validator, transport_key)
        write_home(home, node.genesis, node.network.listen, node.peers, keys, self._sockets)
        self.abci = AbciServer(node, node.genesis.rules, self._on_failure)
        self.engine = EngineProcess(engine, home, self._sockets / "rpc")
        self.rpc = EngineRpc(self._sockets / "rpc")
        self._looks = ThreadPoolExecutor(1, thread_name_prefix="anofel-looks")
        self._offers = ThreadPoolExecutor(OFFERS, thread_name_prefix="anofel-offers")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._decided = asyncio.Event()
        node.on_block = lambda _height: self._soon(self._decided.set)
        node.on_verified = lambda posting: self._soon(lambda: self._offer_again(posting))
        self._again: set[asyncio.Task[Any]] = set()

    # Life

    def start(self) -> None:
        """Begin to serve the engine, and run it."""
        self._loop = asyncio.get_running_loop()
        self._spawn(self._run_engine, self._seal_blocks, self._check_blobs, self._fetch_owed)

    async def stop(self) -> None:
        """Stop the engine, finish what the threads do, and close the directory."""
        self.node.stop_waiting()
        await self._cancel()
        await self.abci.stop()
        await asyncio.to_thread(self.rpc.close)
        self.reader.close()
        for threads in (self._looks, self._offers):
            threads.shutdown(wait=False, cancel_futures=True)
        try:
            await asyncio.to_thread(self.node.close if self.failed is None else self.node.abandon)
        finally:
            shutil.rmtree(self._sockets, ignore_errors=True)

    async def _run_engine(self) -> None:
        await self.abci.start(self._sockets / "abci")
        await self.engine.keep_running()

    def _on_failure(self, error: Exception) -> None:
        """End the node: its state machine met something that it cannot go on from."""

        async def fail() -> None:
            raise error

        task = asyncio.ensure_future(self._guard(fail()))
        self._again.add(task)
        task.add_done_callback(self._again.discard)

    def _soon(self, call: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _refuse_waiting(self, why: AnofelError) -> None:
        """Nobody waits here: an answer comes from the engine, or not at all."""

    async def read(self, call: Callable[[State], Result]) -> Result:
        """Read a fork of the state in a thread that no question of the engine waits for."""
        loop = asyncio.get_running_loop()
        state = await loop.run_in_executor(self.abci.rounds, self.node.fork_state)
        return await loop.run_in_executor(self._looks, call, state)

    # Postings

    async def post(self, data: bytes) -> AcceptedPosting:
        """Offer a posting to the engine, which shows it to the other validators.

        Raises ``Rejected``, ``Unverifiable``, ``Busy``, ``NodeFailed``.
        """
        name, end = posting_id(data), time.monotonic() + POST_SECONDS
        while True:
            if self.failed is not None:
                raise self.failed
            if self.closing.is_set():
                raise Busy("The node is stopping.")
            height = await asyncio.to_thread(self.reader.height_of, name)
            if height is not None and height <= self.tip.height:
                return AcceptedPosting(name, height, again=True)
            try:
                taken = await self._offer(data)
            except EngineAnswer as error:
                raise Busy(f"The posting could not be offered: {error}") from None
            if (taken is None and self.node.may_wait(data)) or (taken is not None and taken.code == 0):
                return AcceptedPosting(name, None, again=taken is None)
            if taken is not None and taken.code != LATER:
                raise _refusal(taken.data)  # else the engine has it, or it is being checked at this moment
            running = self.node.verification_of(data)
            if time.monotonic() > end:
                raise Unverifiable("The posting could not be verified in time; send it again.")
            if running is None:
                await asyncio.sleep(SEAL_PAUSE)
            else:
                await asyncio.wait([asyncio.wrap_future(running)], timeout=end - time.monotonic())

    async def _offer(self, posting: bytes) -> Taken | None:
        return await asyncio.get_running_loop().run_in_executor(self._offers, self.rpc.offer, posting)

    def _offer_again(self, posting: bytes) -> None:
        """Offer a posting that others sent, now that it is verified."""

        async def offer() -> None:
            try:
                await self._offer(posting)
            except EngineAnswer as error:
                self._rare.warn("offer", f"A posting that was verified could not be offered: {error}")

        task = asyncio.ensure_future(offer())
        self._again.add(task)
        task.add_done_callback(self._again.discard)

    # Blocks

    async def _seal_blocks(self) -> None:
        """Show each block when it is known what vouches for it."""
        warned = time.monotonic()
        while True:
            height = self.tip.height + 1
            if height > await asyncio.to_thread(lambda: self.node.store.filled):
                self._decided.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._decided.wait(), self.interval)
                continue
            try:
                await asyncio.to_thread(self._seal, height)
            except (EngineAnswer, InvalidBlock) as error:
                if time.monotonic() - warned > WARN_SECONDS:
                    warned = time.monotonic()
                    self._rare.warn("seal", f"Block {height} has no seal yet: {error}")
                await asyncio.sleep(SEAL_PAUSE)
                continue
            await self._show(height)

    def _seal(self, height: int) -> None:
        """Ask the engine what vouches for a block, check it and keep it."""
        store = self.node.store
        eras = self.node.state.validators.eras
        seal, header = self.rpc.seal(height, eras.at(height).validators), store.header(height)
        assert header is not None
        block = Block(header=header, commit=(), seal=seal, postings=store.postings(height))
        verify_signed(self.node.genesis, eras, block)
        store.add_seal(height, seal)

    # Blobs

    async def _fetch_owed(self) -> None:
        """Ask again and again for what decided blocks name and is not here."""
        while True:
            owed = await asyncio.to_thread(self.node.fetch_owed)
            if owed:
                self._rare.warn("owed", f"{owed} blobs of decided blocks are not here yet.")
            await asyncio.sleep(OWED_SECONDS)

    async def receipts(self, blob: Blob, expires: int, ticket: str = "") -> Blob:
        """Return a blob that is here with the receipts of a quorum. Raises ``Busy``."""
        own = await self.own_receipt(blob, expires)
        quorum = self.node.state.validators.quorum_at(self.node.state.height + 1)
        found = await self.node.holders.spread(own, quorum, ticket)
        if len(found.receipts) < quorum:
            raise Busy(f"Only {len(found.receipts)} of {quorum} storage holders answer; try again.")
        return found


def _refusal(data: bytes) -> AnofelError:
    try:
        refusal = msgspec.json.decode(data, type=RefusalNote)
        return Rejected(RULES[refusal.code], refusal.detail, refusal.culprit)
    except (msgspec.MsgspecError, KeyError):
        return Unverifiable("The posting could not be verified now.")
