"""Requests and the clock around an embedded node.

The event loop only moves bytes. One worker thread admits and seals, so that the node never sees two things
at once. Postings that arrive within a few milliseconds are admitted together: one batch of proofs, one
flush to the disk.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from anofel.board.state import State
from anofel.errors import AnofelError
from anofel.node.board_node import AcceptedPosting
from anofel.node.board_service import BoardService, Busy
from anofel.node.embedded import Admitted, EmbeddedNode
from anofel.node.transient import is_transient

BATCH_SECONDS: Final = 0.004
"""How long a posting waits for company."""
MAX_BATCH: Final = 64
"""Bounds how long a batch can keep the next block waiting."""
MAX_WAITING_BYTES: Final = 64 << 20
MAX_WAITING: Final = 4096
RETRY_SECONDS: Final = 1.0
"""How long the node waits when the machine has no descriptors or memory left."""

log = logging.getLogger("anofel.node")
Result = TypeVar("Result")


class NodeService(BoardService):
    """Runs an embedded node."""

    node: EmbeddedNode

    def __init__(self, node: EmbeddedNode) -> None:
        super().__init__(node)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="anofel-node")
        self._waiting: deque[tuple[bytes, asyncio.Future[Admitted]]] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._must_recover = False
        """Whether the state in memory may be ahead of the disk."""

    # Life

    def start(self) -> None:
        """Begin to admit and to seal."""
        self._spawn(self._admit_batches, self._seal_blocks, self._check_blobs)

    async def stop(self) -> None:
        """Finish what the worker does, refuse what waits, and close the directory."""
        await self._cancel()
        self._refuse_waiting(Busy("The node is stopping."))
        ending = self.node.close if self.failed is None else self.node.abandon
        self.reader.close()  # first: the last to close moves everything into the main file
        try:
            await asyncio.get_running_loop().run_in_executor(self._worker, ending)
        finally:
            self._worker.shutdown(wait=True)

    async def read(self, call: Callable[[State], Result]) -> Result:
        """Let the worker read the state between two things that it does."""
        return await self._work(lambda: call(self.node.state))

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

    # Postings

    async def post(self, data: bytes) -> AcceptedPosting:
        """Offer a posting. Raises ``Rejected``, ``Unverifiable``, ``Busy``, ``NodeFailed``."""
        if self.failed is not None:
            raise self.failed
        if self.closing.is_set():
            raise Busy("The node is stopping.")
        if len(self._waiting) >= MAX_WAITING or self._waiting_bytes + len(data) > MAX_WAITING_BYTES:
            raise Busy("Too many postings wait for admission.")
        answer: asyncio.Future[Admitted] = asyncio.get_running_loop().create_future()
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
            await self._show(header.height)
            due = self._last_block + self.interval
