"""What every node serves, whoever makes the blocks: the last one, streams that wait for more, health."""

import asyncio
import logging
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final, TypeVar

from anofel.board.state import State
from anofel.board.tickets import TicketFacts, TicketRefused, UploadTickets
from anofel.errors import AnofelError
from anofel.ids import BlobHash, BlockHash
from anofel.messages import Blob, Genesis
from anofel.node.board_node import AcceptedPosting, BoardNode, committee_keys
from anofel.node.reader import BlockReader
from anofel.proofs.statements import SubmissionVerifier
from anofel.serving.rare_log import RareLog

STALE_INTERVALS: Final = 5
"""After so many intervals without a block the node calls itself unhealthy."""
STALE_SECONDS: Final = 10.0
BLOB_CHECK_SECONDS: Final = 600.0
BLOB_CHECK_BYTES: Final = 1 << 30
"""How often the keys of committees are read and hashed."""
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
    hash: BlockHash
    time: int


class BoardService:
    """Serves a node: ``start``, ``post`` and ``wait_for_block`` on the event loop, ``stop`` at the end."""

    node: BoardNode

    def __init__(self, node: BoardNode) -> None:
        self.node = node
        self.reader = BlockReader(node.files.directory)
        self.interval = node.genesis.interval_ms / 1000
        self.failed: AnofelError | None = None
        self._tickets = UploadTickets(
            node.genesis.hash,
            node.genesis.roots,
            lambda: SubmissionVerifier.from_bytes(node.files.keys["submission"], threads=1),
        )
        self._facts: tuple[int, TicketFacts] | None = None
        """What tickets are checked against, and the height of its block."""
        self.closing = asyncio.Event()
        """Set when the server stops, so that streams end."""
        self._sealed = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._rare = RareLog(log)
        self.unreadable_keys: set[BlobHash] = set()
        """Key files of committees in use that are missing or damaged on the disk."""
        self.unreadable: set[BlobHash] = set()
        """Those, and what else is kept for ever and was found so."""
        self._last_block = time.monotonic()
        self.tip = self._tip_of(node.height)

    def _tip_of(self, height: int) -> LastBlock:
        genesis, header = self.node.genesis, self.reader.header(height)
        return LastBlock(height, header.hash(genesis.hash), header.time) if header else _before(genesis)

    def start(self) -> None:
        """Begin to work."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Finish what is under way, refuse what waits, and close the directory."""
        raise NotImplementedError

    async def post(self, data: bytes) -> AcceptedPosting:
        """Offer a posting. Raises ``Rejected``, ``Unverifiable``, ``Busy``, ``NodeFailed``."""
        raise NotImplementedError

    async def own_receipt(self, blob: Blob, expires: int) -> Blob:
        """Return a blob that is here up to a height with this node's receipt."""
        return self.node.with_receipt(blob, expires)  # one signature: no thread has to be free

    async def honours(self, ticket: str, sha256: BlobHash, length: int) -> bool:
        """Whether an upload comes with a good ticket; without one it is taken as a stranger's."""
        if not ticket:
            return False
        height = self.tip.height
        if self._facts is None or self._facts[0] != height:
            self._facts = height, await self.read(TicketFacts.of)
        try:
            data = urlsafe_b64decode(ticket)
            await asyncio.to_thread(self._tickets.check, data, self._facts[1], sha256, length)
        except (TicketRefused, ValueError) as error:
            self._rare.warn("ticket", f"A ticket was not honoured: {error}")
            return False
        return True

    async def receipts(self, blob: Blob, expires: int, ticket: str = "") -> Blob:  # noqa: ARG002
        """Return a blob that is here up to a height with the receipts of a quorum. Raises ``Busy``.

        A ticket is shown to the other holders too.
        """
        return await self.own_receipt(blob, expires)

    def _refuse_waiting(self, why: AnofelError) -> None:
        """Tell everybody who waits for an answer that there will be none."""
        raise NotImplementedError

    async def read(self, call: Callable[[State], Result]) -> Result:
        """Let a thread that may read the state do so."""
        raise NotImplementedError

    def _spawn(self, *works: Callable[[], Coroutine[None, None, None]]) -> None:
        self._last_block = time.monotonic()
        self._tasks += [asyncio.create_task(self._guard(work())) for work in works]

    async def _cancel(self) -> None:
        await self.close_streams()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _show(self, height: int) -> None:
        """Show a block that is kept and vouched for."""
        self._last_block = time.monotonic()
        self.tip = self._tip_of(height)
        async with self._sealed:
            self._sealed.notify_all()

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

    @property
    def is_healthy(self) -> bool:
        """Whether blocks still come."""
        age = time.monotonic() - self._last_block
        return self.failed is None and age < max(STALE_SECONDS, STALE_INTERVALS * self.interval)

    async def _check_blobs(self) -> None:
        """Read now and then what must be there: a rotten key would stop its committee unnoticed.

        The keys of committees in use are read every time; of everything that is kept for ever, messages of
        key generation, models and shares among it, the next part.
        """
        last = b""
        while True:
            keys = await self.read(committee_keys)
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


def _before(genesis: Genesis) -> LastBlock:
    return LastBlock(0, BlockHash(genesis.hash), genesis.time)
