"""What a blob store refuses, by name."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anofel.errors import AnofelError, InvalidInput, VerificationError


class BlobError(AnofelError):
    """The blob store cannot do what was asked."""

    code = "blob-store"


class BlobTooLarge(BlobError):
    """A blob is longer than this store ever takes."""

    code = "blob-too-large"


class BlobStoreFull(BlobError):
    """There is no room now; pruning or a larger disk would make some."""

    code = "blob-store-full"


class BlobStoreUnwritable(BlobError):
    """The directory cannot be used: read-only, not ours, or in use by another process."""

    code = "blob-store-unwritable"


class BlobHashMismatch(BlobError, VerificationError):
    """The bytes are not those that were declared."""

    code = "blob-hash-mismatch"


class BlobLengthMismatch(BlobError, VerificationError):
    """There are more or fewer bytes than were declared."""

    code = "blob-length-mismatch"


class BlobUnknown(BlobError):
    """The store does not hold this blob: it never came, or its time is over."""

    code = "blob-unknown"


class InvalidRange(BlobError, InvalidInput):
    """A range does not lie within its blob."""

    code = "blob-range"


_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """Turn what the operating system and SQLite say about the disk into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise BlobStoreFull(f"The disk of {directory} is full.") from error
        raise BlobStoreUnwritable(f"{directory} cannot be used: {error.strerror or error}.") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise BlobStoreFull(f"The disk of {directory} is full.") from error
        raise BlobStoreUnwritable(f"The index of {directory} cannot be used: {error}.") from error
