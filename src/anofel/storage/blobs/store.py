"""Blobs, each named by its SHA-256: an index in a directory, and their bytes there or in object storage.

    with store.begin(sha256, length, expires=height) as upload:
        for chunk in chunks:
            upload.write(chunk)
        upload.finish()

``finish`` returns when the blob is kept and will survive a power failure, so a receipt may be signed then.
``docs/blobs.md`` says how a crash at any point is repaired. One process owns a directory.
"""

import contextlib
import errno
import hashlib
import logging
import secrets
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from anofel.disk.files import replace_file
from anofel.errors import InvalidInput
from anofel.ids import BlobHash
from anofel.storage.blobs.errors import (
    BlobError,
    BlobHashMismatch,
    BlobLengthMismatch,
    BlobStoreFull,
    BlobStoreUnwritable,
    BlobTooLarge,
    BlobUnknown,
    InvalidRange,
    disk_errors,
)
from anofel.storage.blobs.files import HERE, BlobFiles, DirectoryFiles, PlaceUnreachable
from anofel.storage.blobs.index import NAMED, TICKETED, UNNAMED, BlobIndex, Entry
from anofel.storage.blobs.streams import BlobReader, Upload

DIGEST_BYTES: Final = 32
MAX_HEIGHT: Final = (1 << 63) - 1
_UPLOADS: Final = "uploads"
KEPT_IN: Final = "kept-in"
"""The file that says where the bytes are, unless they are beside it."""

log = logging.getLogger("anofel.storage")


@dataclass(frozen=True)
class Usage:
    """What a store holds, in bytes."""

    kept: int
    """Blobs, wherever they are."""
    unreferenced: int
    """Those of them that no posting refers to yet."""
    uploading: int
    """What has arrived of the uploads under way."""


class BlobStore:
    """Content-addressed blobs with a cap on all bytes and one on those that no posting refers to yet.

    ``max_bytes`` bounds everything, uploads under way included. ``pending_bytes`` bounds uploads and
    unreferenced blobs, so whoever uploads what nobody posts cannot crowd out what was posted.
    ``reserved_bytes`` of those are for uploads with a ticket, whose scarcity the caller checks.
    ``min_free_bytes`` of the disk are left free by uploads. Only bytes that arrived count: whoever declares
    many takes nobody's room. ``files``: where the bytes are; in the directory, unless something else is said.
    """

    def __init__(
        self,
        directory: Path,
        max_bytes: int,
        pending_bytes: int,
        min_free_bytes: int = 0,
        reserved_bytes: int = 0,
        files: BlobFiles | None = None,
    ) -> None:
        self.directory = directory
        self.reserved_bytes = reserved_bytes
        self.max_bytes = max_bytes
        self.pending_bytes = pending_bytes
        self.min_free_bytes = min_free_bytes
        self.files: BlobFiles = files or DirectoryFiles(directory)
        self._lock = threading.RLock()
        """Of the index. Nobody does anything with files under it, since they may be far away."""
        self._busy: set[BlobHash] = set()
        self._free = threading.Condition()
        self._remover = ThreadPoolExecutor(1, "anofel-remove") if self.files.is_remote else None
        self._removing: Future[None] | None = None
        with disk_errors(directory):
            (directory / _UPLOADS).mkdir(parents=True, exist_ok=True)
            self._index = BlobIndex(directory)
            try:
                self._recover()
                self._settle()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the directory; uploads under way are repaired like after a crash."""
        if self._remover is not None:
            self._remover.shutdown(cancel_futures=True)
        with self._lock:
            self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def begin(
        self, sha256: BlobHash, length: int, *, expires: int, named: bool = False, ticketed: bool = False
    ) -> Upload:
        """Start an upload of exactly these bytes, kept at least up to the height ``expires``.

        ``named``: a posting names the blob, so no cap keeps it out; only a full disk does. ``ticketed``:
        a ticket came with it, so it may take what is reserved.
        Raises BlobTooLarge or BlobStoreFull before any byte is taken. If the blob is there already, it is
        kept up to ``expires`` too, and the upload has nothing left to do (``upload.present``).
        """
        _check_digest(sha256)
        _check_height(expires)
        if length < 0:
            raise InvalidInput("A blob has no negative length.")
        with self._lock, disk_errors(self.directory):
            temporary: Path | None = None
            standing = NAMED if named else TICKETED if ticketed else UNNAMED
            if not self._extend_if_present(sha256, length, expires, named=named):
                if not named:
                    self._refuse_over_caps(length, standing)
                temporary = self.directory / _UPLOADS / secrets.token_hex(16)
                self._index.start_upload(temporary.name, sha256)
        return Upload(
            sha256, length, expires, temporary, self._reserve, self._admit, self._drop, standing=standing
        )

    def contains(self, sha256: BlobHash) -> bool:
        """Whether the blob can be read now."""
        with self._lock:
            entry = self._index.find(sha256)
            return entry is not None and entry.present

    def length(self, sha256: BlobHash) -> int:
        """Return a blob's length. Raises BlobUnknown."""
        return self._entry(sha256).length

    def open_range(self, sha256: BlobHash, start: int = 0, end: int | None = None) -> BlobReader:
        """Open the bytes from ``start`` up to, not including, ``end``.

        Raises BlobUnknown, InvalidRange. The range stays readable when the blob is pruned
        meanwhile. The bytes are not hashed again: who fetches a blob checks it.
        """
        length = self._entry(sha256).length
        stop = length if end is None else end
        if not 0 <= start <= stop <= length:
            raise InvalidRange(f"Bytes {start} to {stop} do not lie within the {length} bytes of the blob.")
        with disk_errors(self.directory):
            return self._open(sha256, start, stop - start)

    def _open(self, sha256: BlobHash, start: int, length: int) -> BlobReader:
        try:
            return BlobReader(self.files.open(sha256, start, length), length)
        except FileNotFoundError:
            self._entry(sha256)  # it may have been pruned since
            raise

    def read(self, sha256: BlobHash) -> bytes:
        """Return a whole blob, checked against its hash. Raises BlobUnknown, BlobHashMismatch."""
        with self.open_range(sha256) as reader:
            data = b"".join(reader)
        if hashlib.sha256(data).digest() != sha256:
            where = self.files.name if self.files.is_remote else f"on the disk of {self.directory}"
            raise BlobHashMismatch(f"The blob {sha256.hex()} is damaged {where}.")
        return data

    def is_sound(self, sha256: BlobHash) -> bool:
        """Whether the blob is here with the bytes that its name says. Raises ``OSError`` if none can say."""
        try:
            self._entry(sha256)
            return self.files.digest(sha256) == sha256
        except (BlobUnknown, FileNotFoundError):
            return False
        except OSError as error:
            if error.errno == errno.EIO:
                return False
            raise

    def restore(self, sha256: BlobHash, sound: Path) -> None:
        """Put checked bytes, which are taken from where they are, in place of damaged ones."""
        with disk_errors(self.directory), self._alone([sha256]):
            self.files.replace(sha256, sound)

    def pin(self, sha256: BlobHash, until_height: int | None) -> None:
        """Keep a blob that a posting refers to, up to a height or for ever (None).

        What was promised before is never shortened. Raises BlobUnknown.
        """
        self.pin_all([(sha256, until_height)])

    def pin_all(self, pins: Iterable[tuple[BlobHash, int | None]]) -> None:
        """Keep many blobs, all or none, with one flush to the disk."""
        with self._lock, disk_errors(self.directory):
            changed: dict[BlobHash, int | None] = {}
            for sha256, until_height in pins:
                if until_height is not None:
                    _check_height(until_height)
                entry = self._entry(sha256)
                keep = _later(changed.get(sha256, entry.keep_until), until_height)
                if keep != entry.keep_until or not entry.pinned:
                    changed[sha256] = keep
            if changed:
                self._index.pin(changed)

    def promise_all(self, pins: Iterable[tuple[BlobHash, int | None]]) -> list[BlobHash]:
        """Keep blobs that postings refer to. What is not here is owed, and kept as long when it comes.

        Returns what is owed now and was not before.
        """
        with self._lock, disk_errors(self.directory):
            known, owed, here = self._index.owed(), dict[BlobHash, int | None](), []
            for sha256, until_height in pins:
                if self.contains(sha256):
                    here.append((sha256, until_height))
                else:
                    kept = owed.get(sha256, known.get(sha256, until_height))
                    owed[sha256] = _later(kept, until_height)
            self.pin_all(here)
            if owed:
                self._index.owe(owed)
            return [sha256 for sha256 in owed if sha256 not in known]

    def owed(self) -> list[BlobHash]:
        """Name what was promised and is not here."""
        with self._lock, disk_errors(self.directory):
            return list(self._index.owed())

    def kept_for_ever(self, after: bytes, num_bytes: int) -> list[BlobHash]:
        """Name the next blobs that are never pruned, about so many bytes of them, in the order of names."""
        with self._lock, disk_errors(self.directory):
            return self._index.kept_for_ever(after, num_bytes)

    def prune(self, height: int) -> int:
        """Remove every blob whose last height lies below ``height``; returns how many.

        None of them is given any more. What is far away is removed by a thread, and tried again with the next
        block where that fails.
        """
        with disk_errors(self.directory):
            with self._lock:
                count = self._index.start_removal(height)
            if self._remover is None:
                self._finish_removals()
            elif self._removing is None or self._removing.done():
                self._removing = self._remover.submit(self._finish_removals_later)
        return count

    def usage(self) -> Usage:
        """Say how many bytes are kept."""
        with self._lock:
            return Usage(self._index.kept, self._index.unreferenced, self._index.uploading)

    def _entry(self, sha256: BlobHash) -> Entry:
        _check_digest(sha256)
        with self._lock:
            entry = self._index.find(sha256)
        if entry is None or not entry.present:
            raise BlobUnknown(f"There is no blob {sha256.hex()}.")
        return entry

    def _extend_if_present(self, sha256: BlobHash, length: int, expires: int, *, named: bool) -> bool:
        entry = self._index.find(sha256)
        if entry is None or not entry.present:
            return False
        if entry.length != length:
            raise BlobLengthMismatch(f"The blob {sha256.hex()} has {entry.length} bytes, not {length}.")
        keep = _later(entry.keep_until, expires)
        if named and not entry.pinned:
            self._index.pin({sha256: keep})
        elif keep != entry.keep_until:
            self._index.extend(sha256, keep)
        return True

    def _refuse_over_caps(self, length: int, standing: int) -> None:
        of_strangers = max(0, self.pending_bytes - self.reserved_bytes)
        most = min(self.max_bytes, self.pending_bytes if standing == TICKETED else of_strangers)
        if length > most:
            raise BlobTooLarge(f"The blob has {length} bytes; this store takes {most}.")
        is_over = self._index.uploading + self._index.unreferenced + length > self.pending_bytes
        if standing == UNNAMED:
            is_over = is_over or self._index.of_strangers + length > of_strangers
        if is_over:
            raise BlobStoreFull("Too many bytes are uploaded that no posting refers to yet; try again later.")
        if self._index.kept + self._index.uploading + length > self.max_bytes:
            raise BlobStoreFull(f"The store has no room for {length} more bytes.")
        if self.min_free_bytes and shutil.disk_usage(self.directory).free - length < self.min_free_bytes:
            raise BlobStoreFull(f"The disk of {self.directory} is nearly full.")

    def _reserve(self, num_bytes: int, standing: int) -> None:
        """Take room for bytes that arrived; others may have taken it since the upload began."""
        with self._lock:
            if standing != NAMED:
                self._refuse_over_caps(num_bytes, standing)
            self._index.reserve(num_bytes, standing)

    @contextlib.contextmanager
    def _alone(self, names: Collection[BlobHash]) -> Iterator[None]:
        """Let nobody else keep, replace or remove these blobs meanwhile."""
        with self._free:
            self._free.wait_for(lambda: self._busy.isdisjoint(names))
            self._busy.update(names)
        try:
            yield
        finally:
            with self._free:
                self._busy.difference_update(names)
                self._free.notify_all()

    def _admit(self, upload: Upload) -> None:
        """Give a complete and synced temporary file its name, then its place in the index."""
        temporary = _of(upload)
        with self._alone([upload.sha256]):
            is_new = not self._extended(upload)
            if is_new:
                self.files.keep(upload.sha256, temporary)
                with self._lock:
                    owed = self._index.owed()
                    keep = _later(upload.expires, owed.get(upload.sha256, 0))
                    standing = NAMED if upload.sha256 in owed else upload.standing
                    self._index.finish_upload(
                        temporary.name, upload.sha256, upload.length, keep, upload.standing, standing
                    )
        if not is_new:
            self._drop(upload)

    def _extended(self, upload: Upload) -> bool:
        with self._lock:
            is_named = upload.standing == NAMED
            return self._extend_if_present(upload.sha256, upload.length, upload.expires, named=is_named)

    def _drop(self, upload: Upload) -> None:
        """Remove what an upload left, also a file that has its name but no place in the index."""
        temporary = _of(upload)
        with disk_errors(self.directory), self._alone([upload.sha256]):
            temporary.unlink(missing_ok=True)
            is_gone = True
            if upload.is_complete and not self.contains(upload.sha256):
                try:
                    self.files.remove([upload.sha256])
                except PlaceUnreachable:
                    is_gone = False  # the next start removes it
            with self._lock:
                self._index.drop_upload(temporary.name, upload.received, upload.standing, is_gone=is_gone)

    def _finish_removals(self) -> None:
        with self._lock:
            removals = self._index.unfinished_removals()
        if not removals:
            return
        with self._alone(removals):
            with self._lock:  # one that came again meanwhile stays
                gone = [sha256 for sha256 in removals if not self.contains(sha256)]
            self.files.remove(gone)
            with self._lock:
                self._index.finish_removal(gone)

    def _finish_removals_later(self) -> None:
        try:
            with disk_errors(self.directory):
                self._finish_removals()
        except BlobError as error:
            log.warning("Blobs whose time is over are removed later: %s", error)

    def _recover(self) -> None:
        """Repair what a crash left: uploads are dropped, removals completed."""
        if leftovers := self._index.unfinished_uploads():
            self.files.remove(leftovers)
        for leftover in (self.directory / _UPLOADS).iterdir():
            leftover.unlink()
        self._index.forget_uploads()
        self._finish_removals()

    def _settle(self) -> None:
        """Move blobs from the directory to the place that was named since, and note that place.

        Raises ``BlobStoreUnwritable`` if they are at another one.
        """
        before = kept_in(self.directory)
        if before not in (HERE, self.files.name):
            raise BlobStoreUnwritable(
                f"The blobs of {self.directory} are kept in {before}, and not in {self.files.name}."
            )
        if not self.files.is_remote:
            return
        replace_file(self.directory / KEPT_IN, f"{self.files.name}\n".encode())
        own, moved = DirectoryFiles(self.directory), 0
        for sha256 in self._index.names():  # a start that was killed left some
            if own.path(sha256).exists():
                self.files.keep(sha256, own.path(sha256))
                own.remove([sha256])
                moved += 1
        if moved:
            log.warning("%d blobs were moved from %s to %s.", moved, self.directory, self.files.name)


def kept_in(directory: Path) -> str:
    """Say where the bytes are that the index of a directory is of."""
    note = directory / KEPT_IN
    return note.read_text().strip() if note.exists() else HERE


def _of(upload: Upload) -> Path:
    if upload.temporary is None:
        raise BlobError("This upload has no file.")
    return upload.temporary


def _later(one: int | None, other: int | None) -> int | None:
    """Return the later of two last heights; None is for ever."""
    return None if one is None or other is None else max(one, other)


def _check_digest(sha256: BlobHash) -> None:
    if len(sha256) != DIGEST_BYTES:
        raise InvalidInput(f"A blob is named by {DIGEST_BYTES} bytes, not {len(sha256)}.")


def _check_height(height: int) -> None:
    if not 0 <= height <= MAX_HEIGHT:
        raise InvalidInput(f"{height} is no height.")
