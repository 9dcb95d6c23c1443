"""Blobs between the holders of a board: sent to a quorum when they come, fetched where they are missing.

1. Who stores a blob at any node gets receipts of a quorum of holders, or nothing.
2. A holder that lacks a blob that a posting names asks the others for it, in a random order, until it comes.
3. A blob is taken from whoever has it, since its name is its hash.
"""

import logging
import random
import secrets
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from anofel.board.attachments import AttachmentMissing
from anofel.errors import AnofelError, InvalidSignature, PeerUnreachable, VerificationError
from anofel.ids import BlobHash
from anofel.messages import Blob, Genesis, Receipt, receipt_bytes
from anofel.network.transport import OCTETS, Refused, Transport
from anofel.node.replicated.network import Network
from anofel.pki.certificates import Identity, Purpose, verify_chain
from anofel.storage.blobs.errors import BlobError
from anofel.storage.blobs.store import BlobStore

PATIENCE_SECONDS: Final = 60.0
"""How long one holder is given for one blob."""
SILENCE_SECONDS: Final = 10.0
NOT_THERE: Final = frozenset({"blob-unknown", "blob-pruned"})
_THREADS: Final = 4
_PIECE: Final = 1 << 20

log = logging.getLogger("anofel.node")


class Holders:
    """The other storage holders of a board, as one of them reaches them; threads share it."""

    def __init__(self, genesis: Genesis, network: Network, own: int, store: BlobStore, largest: int) -> None:
        """``own``: which holder of genesis this node is. ``largest``: the longest blob a posting names."""
        self._genesis, self._store, self._largest = genesis, store, largest
        self._transports = {
            number: Transport(neighbour.url, timeout=SILENCE_SECONDS, patience=PATIENCE_SECONDS, attempts=2)
            for number, neighbour in enumerate(network.validator)
            if number != own
        }
        self._identities: dict[int, Identity] = {}
        self._workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="anofel-blobs")
        self._fetching: dict[BlobHash, Future[None]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Begin nothing new; what is under way ends by itself."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    # Sending

    def spread(self, blob: Blob) -> Blob:
        """Send a blob that is here to others until a quorum keeps it; return it with their receipts.

        Those who fail are passed over. There may be too few receipts in the end.
        """
        numbers = list(self._transports)
        random.SystemRandom().shuffle(numbers)
        asked = [self._workers.submit(self._send, number, blob) for number in numbers]
        receipts = list(blob.receipts)
        for answer in asked:
            if len(receipts) >= self._genesis.quorum:
                break  # the others go on and keep it too
            receipt = answer.result()
            if receipt is not None:
                receipts.append(receipt)
        return replace(blob, receipts=tuple(receipts))

    def _send(self, number: int, blob: Blob) -> Receipt | None:
        def read(answer: bytes) -> Receipt:
            (receipt,) = Blob.from_bytes(answer).receipts
            signed = receipt_bytes(self._genesis.hash, blob.sha256, blob.length, receipt.expires)
            if receipt.holder != number:
                raise VerificationError("The receipt is of another holder.")
            try:
                self._identity(number).verify(signed, receipt.signature)
            except InvalidSignature as error:
                raise VerificationError(str(error)) from None
            return receipt

        path = f"/v1/blobs/{blob.sha256.hex()}?keep=here"
        try:
            return self._transports[number].ask(
                "PUT", path, read, body=self._store.path(blob.sha256), content_type=OCTETS, codes=None
            )
        except (AnofelError, ValueError, OSError) as error:
            log.warning("Holder %d did not take a blob: %s", number, error)
            return None

    def _identity(self, number: int) -> Identity:
        if number not in self._identities:
            chain = self._genesis.holders[number]
            self._identities[number] = verify_chain(
                chain, self._genesis.roots, Purpose.STORAGE, self._genesis.time
            )
        return self._identities[number]

    # Fetching

    def fetch(self, sha256: BlobHash, expires: int) -> "Future[None]":
        """Begin to fetch a blob, to keep it up to a height at least, unless that is under way."""
        with self._lock:
            running = self._fetching.get(sha256)
            if running is not None:
                return running
            running = self._fetching[sha256] = self._workers.submit(self._fetch, sha256, expires)
        running.add_done_callback(lambda _done: self._forget(sha256))  # at once, if it is done by now
        return running

    def _forget(self, sha256: BlobHash) -> None:
        with self._lock:
            self._fetching.pop(sha256, None)

    def _fetch(self, sha256: BlobHash, expires: int) -> None:
        """Fetch a blob from any holder. Raises ``AttachmentMissing``."""
        if self._store.contains(sha256):
            return
        numbers = list(self._transports)
        random.SystemRandom().shuffle(numbers)
        path = self._store.directory / f".fetched-{secrets.token_hex(8)}"
        for number in numbers:
            try:
                self._transports[number].download(
                    f"/v1/blobs/{sha256.hex()}",
                    path,
                    max_bytes=self._largest,
                    sha256=sha256,
                    codes=NOT_THERE,
                )
                self._keep(sha256, path, expires)
                return
            except (Refused, PeerUnreachable, BlobError) as error:
                log.warning("Holder %d did not give a blob: %s", number, error)
            finally:
                path.unlink(missing_ok=True)
        raise AttachmentMissing(sha256)

    def _keep(self, sha256: BlobHash, path: Path, expires: int) -> None:
        upload = self._store.begin(sha256, path.stat().st_size, expires=expires)
        try:
            with path.open("rb") as file:
                while not upload.present and (piece := file.read(_PIECE)):
                    upload.write(piece)
            upload.finish()
        finally:
            upload.abort()
