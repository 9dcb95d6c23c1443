"""Where the bytes of blobs are: a directory, or object storage (``anofel.storage.blobs.s3``).

The index beside them says which blobs there are (``anofel.storage.blobs.index``). Whatever a place cannot do
is an ``OSError``; ``PlaceUnreachable`` is one that may be gone in a moment.
"""

import contextlib
import errno
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.disk.portable import sync_directory
from anofel.ids import BlobHash

HERE: Final = "this directory"


class PlaceUnreachable(OSError):
    """Where blobs are kept does not answer, or refuses; nothing is known of any blob."""

    def __init__(self, sentence: str) -> None:
        super().__init__(errno.EAGAIN, sentence)


class Readable(Protocol):
    """Bytes on their way out."""

    def read(self, size: int, /) -> bytes:
        """Return some of the next bytes, at most so many; none when they are over. Raises ``OSError``."""
        ...

    def close(self) -> None:
        """Let go of them."""
        ...


class BlobFiles(Protocol):
    """What a blob store asks of the place where bytes are.

    Nobody keeps, replaces and removes one blob at the same time; everything else happens in any thread.
    """

    name: str
    """What the place is called in a sentence."""
    is_remote: bool
    """Whether removing takes so long that nobody should wait for it."""

    def keep(self, sha256: BlobHash, whole: Path) -> None:
        """Keep a blob whose bytes are whole in a file, and on the disk; the file goes.

        It returns when the blob survives a power failure.
        """
        ...

    def replace(self, sha256: BlobHash, sound: Path) -> None:
        """Put checked bytes in place of damaged ones; their file goes."""
        ...

    def open(self, sha256: BlobHash, start: int, length: int) -> Readable:
        """Open a range of a blob. Raises ``FileNotFoundError``."""
        ...

    def read(self, sha256: BlobHash) -> bytes:
        """Return all bytes of a blob, unchecked. Raises ``FileNotFoundError``."""
        ...

    def digest(self, sha256: BlobHash) -> bytes:
        """Return the hash of a blob's bytes as they are now. Raises ``FileNotFoundError``."""
        ...

    def remove(self, names: Sequence[BlobHash]) -> None:
        """Remove blobs, whether they are there or not."""
        ...


class DirectoryFiles:
    """Blobs as files of a directory, ``ab/cd/<hash>``."""

    is_remote = False

    def __init__(self, directory: Path) -> None:
        self.name, self._directory = HERE, directory

    def path(self, sha256: BlobHash) -> Path:
        """Return where a blob is, or would be; nobody else may change it."""
        name = sha256.hex()
        return self._directory / name[:2] / name[2:4] / name

    def keep(self, sha256: BlobHash, whole: Path) -> None:
        """Give a file its name, and flush the directories above it."""
        target = self.path(sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        whole.replace(target)
        for directory in (target.parent, target.parent.parent, self._directory):
            sync_directory(directory)

    def replace(self, sha256: BlobHash, sound: Path) -> None:
        """Put checked bytes in place of damaged ones."""
        self.keep(sha256, sound)

    def open(self, sha256: BlobHash, start: int, length: int) -> Readable:  # noqa: ARG002
        """Open a range. It stays readable when the blob is removed."""
        file = self.path(sha256).open("rb")
        file.seek(start)
        return file

    def read(self, sha256: BlobHash) -> bytes:
        """Return all bytes of a blob, unchecked."""
        return self.path(sha256).read_bytes()

    def digest(self, sha256: BlobHash) -> bytes:
        """Return the hash of a file."""
        with self.path(sha256).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()

    def remove(self, names: Sequence[BlobHash]) -> None:
        """Remove files and the directories that they leave empty."""
        for sha256 in names:
            path = self.path(sha256)
            path.unlink(missing_ok=True)
            for directory in (path.parent, path.parent.parent):
                with contextlib.suppress(OSError):  # another blob is there, or nothing ever was
                    directory.rmdir()


class StoredAttachments:
    """A node's blobs as verification reads them (``anofel.board.attachments``), also while the node runs."""

    def __init__(self, files: BlobFiles) -> None:
        self._files = files

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob whose hash is its name. Raises ``AttachmentMissing`` and ``DamagedBlob``."""
        try:
            data = self._files.read(sha256)
        except FileNotFoundError:
            raise AttachmentMissing(sha256) from None
        except PlaceUnreachable as error:
            raise AttachmentMissing(sha256, f"cannot be had now: {error.strerror}") from error
        if hashlib.sha256(data).digest() != sha256:
            raise DamagedBlob(sha256, "is damaged" if self._files.is_remote else "is damaged on disk")
        return data
