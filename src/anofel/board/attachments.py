"""Blobs as verification reads them: by hash, from wherever this party keeps them."""

import hashlib
from collections.abc import Mapping
from typing import Protocol

from anofel.errors import AnofelError, VerificationError
from anofel.ids import BlobHash


class AttachmentMissing(AnofelError):
    """A blob that verification needs is not here."""

    code = "attachment-missing"

    def __init__(self, sha256: BlobHash, how: str = "is not here") -> None:
        super().__init__(f"The blob {sha256.hex()} is needed to verify the board, and {how}.")
        self.sha256 = sha256


class DamagedBlob(VerificationError):
    """A stored blob no longer has the hash that names it."""

    code = "damaged-blob"

    def __init__(self, sha256: BlobHash, how: str = "is damaged on disk") -> None:
        super().__init__(f"The blob {sha256.hex()} {how}.")
        self.sha256 = sha256


class Attachments(Protocol):
    """Where blobs come from."""

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob's bytes; their hash is the name. Raises ``AttachmentMissing``."""
        ...


class MemoryAttachments:
    """Blobs in memory: for tests, simulations and small tools."""

    def __init__(self, blobs: Mapping[BlobHash, bytes] | None = None) -> None:
        self._blobs = dict(blobs or {})

    def add(self, data: bytes) -> BlobHash:
        """Keep a blob and return its name."""
        name = BlobHash(hashlib.sha256(data).digest())
        self._blobs[name] = data
        return name

    def remove(self, sha256: BlobHash) -> None:
        """Forget a blob."""
        self._blobs.pop(sha256, None)

    def items(self) -> list[tuple[BlobHash, bytes]]:
        """Return every blob with its name."""
        return list(self._blobs.items())

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob."""
        try:
            return self._blobs[sha256]
        except KeyError:
            raise AttachmentMissing(sha256) from None
