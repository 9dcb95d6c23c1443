"""Requests and the clock around an embedded node.

The event loop only moves bytes. One worker thread admits and seals, so that the node never sees two things
at once. Postings that arrive within a few milliseconds are admitted together: one batch of proofs, one
flush to the disk.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from anofel.errors import AnofelError
from anofel.ids import BlobHash
from anofel.node.embedded import AcceptedPosting, EmbeddedNode, Verdict
from anofel.node.reader import BlockReader
from anofel.node.transient import is_transient
from anofel.serving.rare_log import RareLog

BATCH_SECONDS: Final = 0.004
"""How long a posting waits for company."""
MAX_BATCH: Final = 64
"""Bounds how long a batch can keep the next block waiting."""
MAX_WAITING_BYTES: Final = 64 << 20
MAX_WAITING: Final = 4096
STALE_INTERVALS: Final = 5
"""After so many intervals without a block the node calls itself unhealthy."""
STALE_SECONDS: Final = 10.0
BLOB_CHECK_SECONDS: Final = 600.0
BLOB_CHECK_BYTES: Final = 1 << 30
"""How often the keys of committees are read and hashed."""
RETRY_SECONDS: Final = 1.0
"""How long the node waits when the machine has no descriptors or memory left."""

log = logging.getLogger("anofel.node")
Result = TypeVar("Result")


class Busy(AnofelError):
    """The node cannot take more now; trying again later helps."""

    code = "busy"


class NodeFailed(AnofelError):
    """The node stopped because it cannot keep its promises any more; the message says why."""

    code = "node-failed"
    exit_code = 4


@dataclass(frozen=True, slots=True)
class LastBlock:
    """The last block, as requests see it."""

    height: int
    hash: bytes
    time: int


class NodeService:
    """Runs a node: ``start``, ``post`` and ``wait_for_block`` on the event loop, ``stop`` at the end."""

    def __init__(self, node: EmbeddedNode) -> None:
        self.node = node
        self.reader = BlockReader(node.files.directory)
        self.interval = node.genesis.interval_ms / 1000
        self.failed: AnofelError | None = None
        self.closing = asyncio.Event()
        """Set when the server stops, so that streams end."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="anofel-node")
        self._waiting: deque[tuple[bytes, asyncio.Future[Verdict]]] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._sealed = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._rare = RareLog(log)
        self.unreadable_keys: set[BlobHash] = set()
        """Key files of committees in use that are missing or damaged on the disk."""
        self.unreadable: set[BlobHash] = set()
        """Those, and what else is kept for ever and was found so."""
        self._must_recover = False
        """Whether the state in memory may be ahead of the disk."""
        self._last_block = time.monotonic()
        self.tip = LastBlock(node.state.height - 1, node.state.tip, self._time_of_tip())

    def _time_of_tip(self) -> int:
        header = self.reader.header(self.node.state.height - 1)
        return header.time if header else self.node.genesis.time

    # Life

    def start(self) -> None:
        """Begin to admit and to seal."""
        self._last_block = time.monotonic()
        for work in (self._admit_batches, self._seal_blocks, self._check_blobs):
            self._tasks.append(asyncio.create_task(self._guard(work())))

    async def stop(self) -> None:
        """Finish what the worker does, refuse what waits, and close the directory."""
        await self.close_streams()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._refuse_waiting(Busy("The node is stopping."))
        ending = self.node.close if self.failed is None else self.node.abandon
        self.reader.close()  # first: the last to close moves everything into the main file
        try:
            await asyncio.get_running_loop().run_in_executor(self._worker, ending)
        finally:
            self._worker.shutdown(wait=True)

    async def close_streams(self) -> None:
        """Let everybody who waits for a block go."""
        self.closing.set()
        async with self._sealed:
            self._sealed.notify_all()

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:
            if not isinstance(error, AnofelError):
                log.exception("The node met an error that it does not know.")
            self.failed = NodeFailed(f"The node stopped: {error}")
            self._refuse_waiting(self.failed)
            await self.close_streams()

    async def read(self, call: Callable[[EmbeddedNode], Result]) -> Result:
        """Let the worker read something of the node between two things that it does. It changes nothing."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, call, self.node)

    async def _work(self, call: Callable[[], Result]) -> Result:
        """Let the worker do something; what the machine refuses for a moment is tried again."""

        def attempt() -> Result:
            if self._must_recover:
                self.node.recover()
                self._must_recover = False
            return call()

        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._worker, attempt)
            except Exception as error:
                if not is_transient(error):
                    raise
                self._must_recover = True
                self._rare.warn("transient", f"The node waits and tries again: {error}")
            await asyncio.sleep(RETRY_SECONDS)

    def _refuse_waiting(self, why: AnofelError) -> None:
        while self._waiting:
            _, answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(why)

    @property
    def is_healthy(self) -> bool:
        """Whether blocks still come."""
        age = time.monotonic() - self._last_block
        return self.failed is None and age < max(STALE_SECONDS, STALE_INTERVALS * self.interval)

    # Postings

    async def post(self, data: bytes) -> AcceptedPosting:
        """Offer a posting. Raises ``Rejected``, ``Unverifiable``, ``Busy``, ``NodeFailed``."""
        if self.failed is not None:
            raise self.failed
        if self.closing.is_set():
            raise Busy("The node is stopping.")
        if len(self._waiting) >= MAX_WAITING or self._waiting_bytes + len(data) > MAX_WAITING_BYTES:
            raise Busy("Too many postings wait for admission.")
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.append((data, answer))
        self._waiting_bytes += len(data)
        self._arrived.set()
        verdict = await answer
        if not isinstance(verdict, AcceptedPosting):
            raise verdict
        return verdict

    async def _admit_batches(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(BATCH_SECONDS)
            batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
            self._waiting_bytes -= sum(len(data) for data, _ in batch)
            if not self._waiting:
                self._arrived.clear()
            try:
                offered = [data for data, _ in batch]
                verdicts = await self._work(partial(self.node.admit, offered))
            except BaseException:
                self._waiting.extendleft(reversed(batch))  # whoever ends this loop answers them
                raise
            for (_, answer), verdict in zip(batch, verdicts, strict=True):
                if not answer.done():
                    answer.set_result(verdict)

    # Blocks

    async def _seal_blocks(self) -> None:
        """One block per interval, also when it is empty, never early."""
        due = time.monotonic() + self.interval
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            header = await self._work(self.node.seal)
            self._last_block = time.monotonic()
            due = self._last_block + self.interval
            self.tip = LastBlock(header.height, header.hash(self.node.genesis.hash), header.time)
            async with self._sealed:
                self._sealed.notify_all()

    async def _check_blobs(self) -> None:
        """Read now and then what must be there: a rotten key would stop its committee unnoticed.

        The keys of committees in use are read every time; of everything that is kept for ever, messages of
        key generation, models and shares among it, the next part.
        """
        last = b""
        while True:
            keys = await self._work(self.node.committee_keys)
            part = await asyncio.to_thread(self._next_kept, last)
            last = part[-1] if part else b""
            for name in {*keys, *part, *self.unreadable}:
                readable = await asyncio.to_thread(self.node.is_readable, name)
                (self.unreadable.discard if readable else self.unreadable.add)(name)
            self.unreadable_keys = self.unreadable & keys
            if self.unreadable:
                self._rare.warn("blobs", f"{len(self.unreadable)} blobs of the board cannot be read.")
            await asyncio.sleep(BLOB_CHECK_SECONDS)

    def _next_kept(self, last: bytes) -> list[BlobHash]:
        kept = self.node.blobs.kept_for_ever
        return kept(last, BLOB_CHECK_BYTES) or kept(b"", BLOB_CHECK_BYTES)

    async def wait_for_block(self, height: int, timeout: float) -> bool:
        """Wait until a block is there or the time is over or the node stops; say whether it is there."""
        try:
            async with asyncio.timeout(timeout), self._sealed:
                await self._sealed.wait_for(lambda: self.tip.height >= height or self.closing.is_set())
        except TimeoutError:
            pass
        return self.tip.height >= height
