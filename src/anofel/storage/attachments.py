"""Blobs of a party in a directory of its own, for verification (``anofel.board.attachments``)."""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.disk.files import replace_file
from anofel.ids import BlobHash

log = logging.getLogger("anofel.storage")


class DirectoryAttachments:
    """Blobs in a directory, as a node keeps them; what is not there may be fetched."""

    def __init__(self, directory: Path, fetch: Callable[[BlobHash, Path], None] | None = None) -> None:
        """``fetch`` writes a blob to a path, whole and checked, or raises ``AttachmentMissing``."""
        self._directory = directory
        self._fetch = fetch

    def path(self, sha256: BlobHash) -> Path:
        """Return where a blob is, or would be."""
        name = sha256.hex()
        return self._directory / name[:2] / name[2:4] / name

    def add(self, data: bytes) -> BlobHash:
        """Keep a blob, whole or not at all, and return its name."""
        name = BlobHash(hashlib.sha256(data).digest())
        path = self.path(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        return name

    def remove(self, sha256: BlobHash) -> None:
        """Forget a blob."""
        self.path(sha256).unlink(missing_ok=True)

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob; what is not there, or was damaged there, is fetched where that is possible.

        Raises ``AttachmentMissing`` and ``DamagedBlob``.
        """
        if self._fetch is None:
            return self._read(sha256)
        try:
            return self._read(sha256)
        except DamagedBlob as error:
            log.warning("%s It is fetched again.", error)
        except AttachmentMissing:
            self.path(sha256).parent.mkdir(parents=True, exist_ok=True)
        self._fetch(sha256, self.path(sha256))
        return self._read(sha256)

    def _read(self, sha256: BlobHash) -> bytes:
        try:
            data = self.path(sha256).read_bytes()
        except FileNotFoundError:
            raise AttachmentMissing(sha256) from None
        if hashlib.sha256(data).digest() != sha256:
            raise DamagedBlob(sha256)
        return data
