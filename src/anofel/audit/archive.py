"""A board in one file: what ``anofel board export`` writes, and ``anofel audit`` and the verifier page read.

::

    16 bytes               ``anofel.archive.1``
    parts                  u8 kind, u32 length, content

==== ===============================================================================================
kind content
==== ===============================================================================================
1    the canonical bytes of genesis
2    the verification key of registrations
3    the verification key of submissions
4    the canonical bytes of a block; blocks stand in their order
5    a blob, behind its SHA-256
0    the last part: how many blocks and how many blobs there are, u64 each
==== ===============================================================================================

Numbers are little-endian. Nothing in an archive is believed: whoever reads it checks it like a node's
answers.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.errors import InvalidInput, MalformedMessage
from anofel.ids import BlobHash
from anofel.messages import Block, Posting
from anofel.storage.blobs.retention import blobs_of, kept_for_ever

MAGIC: Final = b"anofel.archive.1"
END, GENESIS, REGISTRATION, SUBMISSION, BLOCK, BLOB = range(6)
MAX_SMALL: Final = 1 << 26
"""No genesis, key or block is longer."""
_HEAD: Final = struct.Struct("<BI")
_COUNTS: Final = struct.Struct("<QQ")
_NAME_BYTES: Final = 32


class DamagedArchive(InvalidInput):
    """A file is not an archive of a board, or not a whole one."""

    code = "damaged-archive"


@dataclass(frozen=True)
class Written:
    """What an export wrote."""

    blocks: int
    blobs: int
    missing: int
    """Blobs that postings name and that are not there: payloads are pruned in time."""


def write_archive(
    out: BinaryIO,
    *,
    genesis: bytes,
    registration: bytes,
    submission: bytes,
    blocks: Iterator[Block],
    attachments: Attachments,
    payloads: bool = True,
    on_block: Callable[[int], None] = lambda _height: None,
) -> Written:
    """Write a board; blobs that are missing or damaged are left out, and whoever checks it names them."""
    out.write(MAGIC)
    for kind, data in ((GENESIS, genesis), (REGISTRATION, registration), (SUBMISSION, submission)):
        _part(out, kind, data)
    names: dict[BlobHash, None] = {}
    count = 0
    for block in blocks:
        _part(out, BLOCK, block.to_bytes())
        for data in block.postings:
            names.update(dict.fromkeys(_blobs(data, payloads=payloads)))
        count += 1
        on_block(count)
    there = 0
    for name in names:
        try:
            content = attachments.read(name)
        except (AttachmentMissing, DamagedBlob):
            continue
        _part(out, BLOB, name + content)
        there += 1
    _part(out, END, _COUNTS.pack(count, there))
    return Written(count, there, len(names) - there)


def _blobs(data: bytes, *, payloads: bool) -> list[BlobHash]:
    try:
        body = Posting.from_bytes(data).body
    except MalformedMessage:  # whoever checks the archive says so
        return []
    return [blob.sha256 for blob in (blobs_of(body) if payloads else kept_for_ever(body))]


def _part(out: BinaryIO, kind: int, data: bytes) -> None:
    out.write(_HEAD.pack(kind, len(data)))
    out.write(data)


@dataclass
class Archive:
    """An archive that is read; nothing of it was checked but its form."""

    path: Path
    _file: BinaryIO
    _single: dict[int, bytes] = field(default_factory=dict)
    _blocks: list[tuple[int, int]] = field(default_factory=list)
    _blobs: dict[BlobHash, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> "Archive":
        """Open a file. Raises ``DamagedArchive``."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise DamagedArchive(f"{path} cannot be read: {error.strerror or error}.") from None
        archive = cls(path, file)
        try:
            archive._index(os.fstat(file.fileno()).st_size)
        except BaseException:
            file.close()
            raise
        return archive

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether a file begins like an archive."""
        try:
            with path.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False

    def _index(self, size: int) -> None:
        if self._file.read(len(MAGIC)) != MAGIC:
            raise DamagedArchive(f"{self.path} is no archive of a board; anofel board export writes one.")
        while True:
            kind, length = _HEAD.unpack(self._take(_HEAD.size))
            at = self._file.tell()
            if at + length > size:
                raise self._cut()
            if kind == END:
                if (
                    self._take(length) != _COUNTS.pack(len(self._blocks), len(self._blobs))
                    or at + length != size
                ):
                    raise DamagedArchive(f"The archive {self.path} is damaged: its end does not fit.")
                break
            if kind == BLOCK:
                self._blocks.append((at, length))
            elif kind == BLOB and length >= _NAME_BYTES:
                self._blobs[BlobHash(self._take(_NAME_BYTES))] = (at + _NAME_BYTES, length - _NAME_BYTES)
            elif kind in (GENESIS, REGISTRATION, SUBMISSION) and length <= MAX_SMALL:
                self._single[kind] = self._take(length)
            else:
                raise DamagedArchive(f"The archive {self.path} is damaged: it has an unknown part.")
            self._file.seek(at + length)
        if len(self._single) < SUBMISSION:
            raise DamagedArchive(f"The archive {self.path} is damaged: it lacks the genesis or a key.")

    def _take(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise self._cut()
        return data

    def _cut(self) -> DamagedArchive:
        return DamagedArchive(f"The archive {self.path} is cut short.")

    @property
    def genesis(self) -> bytes:
        """The bytes of genesis."""
        return self._single[GENESIS]

    @property
    def registration(self) -> bytes:
        """The key that checks registrations."""
        return self._single[REGISTRATION]

    @property
    def submission(self) -> bytes:
        """The key that checks submissions."""
        return self._single[SUBMISSION]

    @property
    def height(self) -> int:
        """How many blocks there are."""
        return len(self._blocks)

    def names(self) -> list[BlobHash]:
        """Return the names of the blobs, as they stand there."""
        return list(self._blobs)

    def blocks(self) -> Iterator[bytes]:
        """Return the bytes of every block."""
        for place in self._blocks:
            yield self._at(place)

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob (``Attachments``). Raises ``AttachmentMissing``, ``DamagedBlob``."""
        place = self._blobs.get(sha256)
        if place is None:
            raise AttachmentMissing(sha256)
        data = self._at(place)
        if hashlib.sha256(data).digest() != sha256:
            raise DamagedBlob(sha256, "is damaged in the archive")
        return data

    def _at(self, place: tuple[int, int]) -> bytes:
        self._file.seek(place[0])
        return self._take(place[1])

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
