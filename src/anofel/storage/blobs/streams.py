"""A blob on its way in or out, in pieces."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, Self

from anofel.ids import BlobHash
from anofel.storage.blobs.errors import BlobError, BlobHashMismatch, BlobLengthMismatch, disk_errors
from anofel.storage.blobs.files import Readable

CHUNK_BYTES: Final = 1 << 20
"""No more of a blob than this is in memory."""


class Upload:
    """One blob on its way in. Used as a context manager, it is aborted unless it was finished."""

    def __init__(
        self,
        sha256: BlobHash,
        length: int,
        expires: int,
        temporary: Path | None,
        reserve: Callable[[int, int], None],
        admit: Callable[["Upload"], None],
        drop: Callable[["Upload"], None],
        *,
        standing: int,
    ) -> None:
        self.sha256 = sha256
        self.length = length
        self.expires = expires
        self.temporary = temporary
        self.present = temporary is None
        """Whether the store has the blob; bytes that still come are then ignored."""
        self.standing = standing
        """Whether a posting names the blob, or a ticket came with it (``index``)."""
        self._open = temporary is not None
        self._reserve, self._admit, self._drop = reserve, admit, drop
        self._file: BinaryIO | None = None
        self.received = 0
        """Bytes that arrived; room is reserved for no more than these."""
        self.is_complete = False
        """Whether all of them came; before that nothing has the blob's name."""
        self._hash = hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        """Take the next bytes. Raises BlobLengthMismatch as soon as there are too many, and BlobStoreFull."""
        if self.present:
            return
        with self._aborting() as file:
            if self.received + len(chunk) > self.length:
                raise BlobLengthMismatch(f"More bytes were sent than the {self.length} that were declared.")
            self._reserve(len(chunk), self.standing)
            self.received += len(chunk)
            self._hash.update(chunk)
            file.write(chunk)

    def finish(self) -> None:
        """Keep the blob. Raises BlobLengthMismatch, BlobHashMismatch.

        1. As many bytes came as were declared.
        2. They hash to what was declared.
        3. The file and its name are on the disk before the index says so.
        """
        if self.present:
            return
        with self._aborting() as file:
            if self.received != self.length:  # (1)
                raise BlobLengthMismatch(
                    f"{self.received} bytes were sent instead of the {self.length} that were declared."
                )
            if self._hash.digest() != self.sha256:  # (2)
                raise BlobHashMismatch(f"The bytes that were sent do not hash to {self.sha256.hex()}.")
            file.flush()
            os.fsync(file.fileno())
            file.close()
            self.is_complete = True
            self._admit(self)  # (3)
            self.present, self._open = True, False

    def abort(self) -> None:
        """Forget the upload and remove its temporary file; harmless when it is over."""
        if not self._open:
            return
        self._open = False
        if self._file is not None:
            with suppress(OSError):  # what cannot be flushed is about to be removed
                self._file.close()
        self._drop(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.abort()

    @contextmanager
    def _aborting(self) -> Iterator[BinaryIO]:
        """Give the temporary file; on any error the upload is over."""
        if not self._open or self.temporary is None:
            raise BlobError("This upload is over.")
        try:
            with disk_errors(self.temporary.parent.parent):
                if self._file is None:
                    self._file = self.temporary.open("xb")
                yield self._file
        except BaseException:
            self.abort()
            raise


class BlobReader:
    """A range of a blob, read in pieces of at most 1 MiB. Close it, or use it as a context manager."""

    def __init__(self, file: Readable, length: int) -> None:
        self.length = length
        """How many bytes it gives."""
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        left = self.length
        while left:
            piece = self._file.read(min(left, CHUNK_BYTES))
            if not piece:
                raise BlobLengthMismatch(
                    "The file of the blob is shorter than the blob; the disk is damaged."
                )
            left -= len(piece)
            yield piece

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
