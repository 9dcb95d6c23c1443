"""Blobs as verification reads them: by hash, from wherever this party keeps them."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from anofel.errors import AnofelError, VerificationError
from anofel.files import replace_file


class AttachmentMissing(AnofelError):
    """A blob that verification needs is not here."""

    code = "attachment-missing"

    def __init__(self, sha256: bytes) -> None:
        super().__init__(f"The blob {sha256.hex()} is needed to verify the board, and is not here.")
        self.sha256 = sha256


class DamagedBlob(VerificationError):
    """A stored blob no longer has the hash that names it."""

    code = "damaged-blob"


class Attachments(Protocol):
    """Where blobs come from."""

    def read(self, sha256: bytes) -> bytes:
        """Return a blob's bytes; their hash is the name. Raises ``AttachmentMissing``."""
        ...


class MemoryAttachments:
    """Blobs in memory: for tests, simulations and small tools."""

    def __init__(self, blobs: Mapping[bytes, bytes] | None = None) -> None:
        self._blobs = dict(blobs or {})

    def add(self, data: bytes) -> bytes:
        """Keep a blob and return its name."""
        name = hashlib.sha256(data).digest()
        self._blobs[name] = data
        return name

    def remove(self, sha256: bytes) -> None:
        """Forget a blob."""
        self._blobs.pop(sha256, None)

    def items(self) -> list[tuple[bytes, bytes]]:
        """Return every blob with its name."""
        return list(self._blobs.items())

    def read(self, sha256: bytes) -> bytes:
        """Return a blob."""
        try:
            return self._blobs[sha256]
        except KeyError:
            raise AttachmentMissing(sha256) from None


class DirectoryAttachments:
    """Blobs in a directory, as a node keeps them; what is not there may be fetched."""

    def __init__(self, directory: Path, fetch: Callable[[bytes, Path], None] | None = None) -> None:
        """``fetch`` writes a blob to a path, whole and checked, or raises ``AttachmentMissing``."""
        self._directory = directory
        self._fetch = fetch

    def path(self, sha256: bytes) -> Path:
        """Return where a blob is, or would be."""
        name = sha256.hex()
        return self._directory / name[:2] / name[2:4] / name

    def add(self, data: bytes) -> bytes:
        """Keep a blob, whole or not at all, and return its name."""
        name = hashlib.sha256(data).digest()
        path = self.path(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        return name

    def remove(self, sha256: bytes) -> None:
        """Forget a blob."""
        self.path(sha256).unlink(missing_ok=True)

    def read(self, sha256: bytes) -> bytes:
        """Return a blob. Raises ``AttachmentMissing`` and ``DamagedBlob``."""
        path = self.path(sha256)
        if self._fetch is not None and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fetch(sha256, path)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise AttachmentMissing(sha256) from None
        if hashlib.sha256(data).digest() != sha256:
            raise DamagedBlob(f"The blob {sha256.hex()} is damaged on disk.")
        return data
