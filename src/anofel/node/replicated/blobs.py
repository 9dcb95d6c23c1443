"""Blobs on several holders: spread to a quorum when they are uploaded, fetched when they are missing.

1. Who stores a blob at any node gets receipts of a quorum of holders, or nothing.
2. A holder that lacks a blob that a posting names asks the others for it until it comes: first those who
   signed for it, then the rest, each in a random order.
3. A blob is taken from whoever has it, since its name is its hash.
4. Each other holder has threads of its own, some for sending and some for fetching. One that is dead, slow or
   full keeps nobody waiting who asks another.
5. What a posting names is kept whatever the caps for uploads say.
"""

import asyncio
import logging
import random
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar
from urllib.parse import quote

from anofel.board.attachments import AttachmentMissing
from anofel.board.validators import Era, Eras
from anofel.errors import AnofelError, InvalidSignature, VerificationError
from anofel.ids import BlobHash
from anofel.messages import Blob, Genesis, Receipt, receipt_bytes
from anofel.network.transport import OCTETS, Pieces, Transport
from anofel.node.replicated.network import Network, present
from anofel.pki.certificates import Identity, Purpose, last_second, verify_chain
from anofel.storage.blobs.store import BlobStore

PATIENCE_SECONDS: Final = 300.0
"""How long one holder is given for one blob, however it drips."""
SILENCE_SECONDS: Final = 10.0
HEDGE_SECONDS: Final = 2.0
"""After this long the next holder is asked for a blob too."""
NOT_THERE: Final = frozenset({"blob-unknown", "blob-pruned"})
THREADS: Final = 2
"""Of each kind for each holder."""
MOST_WAITING: Final = 64
"""Blobs that wait to be sent to one holder; one more passes it over."""
_PIECE: Final = 1 << 20

T = TypeVar("T")
log = logging.getLogger("anofel.node")


class _Lane:
    """A few threads that work for one holder. They end with the process, whatever they wait for."""

    def __init__(self, name: str, most: int | None = None) -> None:
        self._name, self._most = name, most
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._number, self._lock, self._closed = 0, threading.Lock(), False
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], T]) -> "Future[T] | None":
        """Begin something as soon as a thread is free; None if too much waits, or nothing begins any more."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed or (self._most is not None and self._number >= self._most):
                return None
            self._number += 1
            if len(self._threads) < THREADS:
                self._threads.append(threading.Thread(target=self._run, name=self._name, daemon=True))
                self._threads[-1].start()
        self._waiting.put((work, future))
        return future

    def close(self) -> None:
        """Begin nothing new."""
        with self._lock:
            self._closed = True
        for _ in range(THREADS):
            self._waiting.put(None)

    def _run(self) -> None:
        while (found := self._waiting.get()) is not None:
            work, future = found
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # the future tells whoever waits
                    future.set_exception(error)
            with self._lock:
                self._number -= 1


class _Holder:
    """Another holder, with threads of its own (rule 4)."""

    def __init__(self, number: int, url: str, chain: tuple[bytes, ...]) -> None:
        self.number, self.url, self.chain = number, url, chain
        self.identity: Identity | None = None
        self.transport = Transport(url, timeout=SILENCE_SECONDS, patience=PATIENCE_SECONDS, attempts=2)
        self.sends = _Lane(f"anofel-send-{number}", MOST_WAITING)
        self.fetches = _Lane(f"anofel-fetch-{number}")


class Holders:
    """The other storage holders of a board, as one of them reaches them; threads share it."""

    def __init__(self, genesis: Genesis, network: Network, own: int, store: BlobStore, largest: int) -> None:
        """``own``: which holder of genesis this node is. ``largest``: the longest blob a posting names."""
        self._genesis, self._store, self._largest = genesis, store, largest
        self._network, self._own = network, own
        self._holders: dict[int, _Holder] = {}
        self._fetching: dict[BlobHash, Future[None]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self.meet(Eras.of(genesis).last)

    def meet(self, era: Era) -> None:
        """From now on send to and fetch from the holders of an era."""
        neighbours = present(self._network, era, self._own)
        known, met = self._holders, dict[int, _Holder]()
        for number, neighbour in neighbours.items():
            old, chain = known.get(number), era.holders[number]
            is_same = old is not None and (old.url, old.chain) == (neighbour.url, chain)
            met[number] = old if old is not None and is_same else _Holder(number, neighbour.url, chain)
        self._holders = met
        for number, holder in known.items():
            if met.get(number) is not holder:
                holder.sends.close()
                holder.fetches.close()

    def close(self) -> None:
        """Begin nothing new; what is under way ends by itself."""
        self._closed = True
        for holder in self._holders.values():
            holder.sends.close()
            holder.fetches.close()

    # Sending

    async def spread(self, blob: Blob, quorum: int, ticket: str = "") -> Blob:
        """Send a blob that is here to others until a quorum keeps it; return it with their receipts (rule 1).

        Those who fail are passed over; each is shown the ticket that came with it. There may be too few
        receipts in the end. No thread waits meanwhile.
        """
        asked = {
            asyncio.wrap_future(sent)
            for holder in map(self._holders.get, _shuffled(self._holders))
            if holder and (sent := holder.sends.submit(partial(self._send, holder, blob, ticket)))
        }
        receipts = list(blob.receipts)
        while asked and len(receipts) < quorum:  # the others go on then, and keep it too
            done, asked = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            receipts += [receipt for answer in done if (receipt := answer.result()) is not None]
        return replace(blob, receipts=tuple(receipts))

    def _send(self, holder: _Holder, blob: Blob, ticket: str) -> Receipt | None:
        def read(answer: bytes) -> Receipt:
            (receipt,) = Blob.from_bytes(answer).receipts
            signed = receipt_bytes(self._genesis.hash, blob.sha256, blob.length, receipt.expires)
            if receipt.holder != holder.number:
                raise VerificationError("The receipt is of another holder.")
            try:
                self._identity(holder).verify(signed, receipt.signature)
            except InvalidSignature as error:
                raise VerificationError(str(error)) from None
            return receipt

        path = f"/v1/blobs/{blob.sha256.hex()}?keep=here" + (f"&ticket={quote(ticket)}" if ticket else "")
        try:
            return holder.transport.ask(
                "PUT",
                path,
                read,
                body=Pieces(blob.length, partial(self._store.open_range, blob.sha256)),
                content_type=OCTETS,
                codes=None,
            )
        except (AnofelError, ValueError, OSError) as error:
            log.warning("Holder %d did not take a blob: %s", holder.number, error)
            return None

    def _valid_at(self, chain: tuple[bytes, ...]) -> int:
        """A time at which a holder's certificates hold; whether they still do, each block's rules say."""
        return self._genesis.time if chain in self._genesis.holders else last_second(chain[0])

    def _identity(self, holder: _Holder) -> Identity:
        if holder.identity is None:
            holder.identity = verify_chain(
                holder.chain, self._genesis.roots, Purpose.STORAGE, self._valid_at(holder.chain)
            )
        return holder.identity

    # Fetching

    def fetch(self, sha256: BlobHash, expires: int, signers: Sequence[int] = ()) -> "Future[None]":
        """Begin to fetch a blob that a posting names, to keep it up to a height at least.

        It is fetched anew if the bytes here are damaged. Nothing begins if that is under way. The future
        fails with ``AttachmentMissing`` when nobody gave it.
        """
        with self._lock:
            running = self._fetching.get(sha256)
            if running is not None:
                return running
            running = self._fetching[sha256] = Future()
        running.add_done_callback(lambda _done: self._forget(sha256))
        first = [number for number in _shuffled(signers) if number in self._holders]
        order = [*first, *(number for number in _shuffled(self._holders) if number not in first)]
        _Fetch(running, order, lambda number: self._ask(number, sha256, expires), sha256).next()
        return running

    def _forget(self, sha256: BlobHash) -> None:
        with self._lock:
            self._fetching.pop(sha256, None)

    def _ask(self, number: int, sha256: BlobHash, expires: int) -> "Future[None]":
        holder = self._holders.get(number)
        work = holder and holder.fetches.submit(partial(self._get, holder, sha256, expires))
        if work:
            return work
        gone: Future[None] = Future()  # it left the board meanwhile
        gone.set_exception(AttachmentMissing(sha256))
        return gone

    def _get(self, holder: _Holder, sha256: BlobHash, expires: int) -> None:
        """Fetch a blob from a holder. Raises ``AnofelError``, ``OSError``."""
        if self._closed or self._store.is_sound(sha256):
            return
        path = self._store.directory / f".fetched-{secrets.token_hex(8)}"
        try:
            holder.transport.download(
                f"/v1/blobs/{sha256.hex()}", path, max_bytes=self._largest, sha256=sha256, codes=NOT_THERE
            )
            self._keep(sha256, path, expires)
        finally:
            path.unlink(missing_ok=True)

    def _keep(self, sha256: BlobHash, path: Path, expires: int) -> None:
        with self._store.begin(sha256, path.stat().st_size, expires=expires, named=True) as upload:
            if upload.present:
                if not self._store.is_sound(sha256):
                    self._store.restore(sha256, path)
                return
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    upload.write(piece)
            upload.finish()


class _Fetch:
    """One blob on its way from whoever gives it first."""

    def __init__(
        self,
        result: "Future[None]",
        order: Sequence[int],
        ask: Callable[[int], "Future[None]"],
        sha256: BlobHash,
    ) -> None:
        self._result, self._left, self._ask, self._sha256 = result, list(order), ask, sha256
        self._asked, self._lock = 0, threading.Lock()

    def next(self) -> None:
        """Ask the next holder, and one more after a while; fail when all have failed."""
        with self._lock:
            if self._result.done():
                return
            if not self._left:
                if self._asked == 0:
                    self._result.set_exception(AttachmentMissing(self._sha256))
                return
            number = self._left.pop(0)
            self._asked += 1
        if self._left:
            hedge = threading.Timer(HEDGE_SECONDS, self.next)
            hedge.daemon = True
            hedge.start()
            self._result.add_done_callback(lambda _done: hedge.cancel())
        self._ask(number).add_done_callback(lambda done: self._hear(number, done))

    def _hear(self, number: int, done: "Future[None]") -> None:
        error = done.exception()
        with self._lock:
            self._asked -= 1
            if error is None and not self._result.done():
                self._result.set_result(None)
        if error is not None:
            log.warning("Holder %d did not give a blob: %s", number, error)
            self.next()


def _shuffled(numbers: "Sequence[int] | dict[int, _Holder]") -> list[int]:
    found = list(numbers)
    random.SystemRandom().shuffle(found)
    return found
