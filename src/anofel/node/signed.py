"""What a node has promised, in a file of its own: so that a damaged database is never taken for the truth.

SQLite takes a write-ahead log that is damaged in the middle for one that ends there, without a word. A node
that went on from there would sign a second block of the same height.

1. The height and hash of the last signed block are on the disk, in this file, before anybody sees the block.
2. The number and names of the postings accepted since are there before their authors get an answer.
3. A node starts only if its database holds all of that.
4. A start notes all that its database holds, before the node accepts or signs anything.

The file has two slots that are written in turns, each with a counter and a checksum: a crash while one is
written leaves the other.
"""

import hashlib
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from anofel.ids import BlockHash, GenesisHash, PostingId
from anofel.messages.postings import posting_id
from anofel.storage.blocks import FILE, BlockStore, StoreError, explained

SIGNED: Final = "signed.bin"
SLOT_BYTES: Final = 4096
"""A slot has a sector of the disk for itself."""
_LAYOUT: Final = struct.Struct("<8sQQ32sQ32s")
_MAGIC: Final = b"anofel/1"
_CHECKSUM_BYTES: Final = 32


class HistoryLost(StoreError):
    """The database lacks a block that this node signed; going on would fork the board."""

    code = "history-lost"


class PostingsLost(StoreError):
    """The database lacks a posting that this node accepted."""

    code = "postings-lost"


class SignedLost(StoreError):
    """The file that says what this node signed last is missing or damaged."""

    code = "signed-lost"


@dataclass(frozen=True, slots=True)
class Promised:
    """The last signed block, and how many postings were accepted since, under one digest."""

    height: int
    hash: BlockHash
    accepted: int = 0
    digest: bytes = bytes(32)

    def accept(self, names: Iterable[PostingId]) -> Self:
        """Return this with more accepted postings."""
        accepted, digest = self.accepted, self.digest
        for name in names:
            accepted, digest = accepted + 1, hashlib.sha256(digest + name).digest()
        return type(self)(self.height, self.hash, accepted, digest)


def new_file(genesis_hash: GenesisHash) -> bytes:
    """Return the file of a board without blocks."""
    return _slot(0, Promised(0, BlockHash(genesis_hash))).ljust(2 * SLOT_BYTES, b"\0")


class SignedFile:
    """The file of one node, held open; writes are on the disk when they return."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the file. Raises ``SignedLost``, ``StoreError``."""
        self._path = path
        with explained(path.parent):
            try:
                mode = os.O_RDONLY if read_only else os.O_RDWR
                self._file = os.open(path, mode)
            except FileNotFoundError:
                raise SignedLost(f"{path} is missing.") from None
            data = os.pread(self._file, 2 * SLOT_BYTES + 1, 0)
        found = [slot for slot in map(_read, (data[:SLOT_BYTES], data[SLOT_BYTES:])) if slot is not None]
        if not found or len(data) != 2 * SLOT_BYTES:  # what was cut off may have been the newer slot
            os.close(self._file)
            raise SignedLost(f"{path} is damaged.")
        self._counter, self.promised = max(found, key=lambda slot: slot[0])

    @classmethod
    def make(cls, path: Path, promised: Promised) -> Self:
        """Make the file anew. Raises ``StoreError``."""
        with explained(path.parent):
            path.unlink(missing_ok=True)
            path.write_bytes(_slot(0, promised).ljust(2 * SLOT_BYTES, b"\0"))
            made = cls(path)
            os.fsync(made._file)
            return made

    def close(self) -> None:
        """Let go of the file; harmless when that was done."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def write(self, promised: Promised) -> None:
        """Keep what is promised from now on. Raises ``StoreError``."""
        counter = self._counter + 1
        with explained(self._path.parent):
            os.pwrite(self._file, _slot(counter, promised), counter % 2 * SLOT_BYTES)
            os.fdatasync(self._file)
        self._counter, self.promised = counter, promised

    def check(self, store: BlockStore) -> None:
        """Refuse a database that lacks something (rule 3). Raises ``HistoryLost``, ``PostingsLost``."""
        promised, last, file = self.promised, store.height, self._path
        header = store.header(promised.height)
        tip = store.genesis.hash if promised.height == 0 else header and header.hash(store.genesis.hash)
        if last < promised.height or tip != promised.hash:
            raise HistoryLost(
                f"This node signed block {promised.height} ({promised.hash.hex()[:16]}…), and "
                f"{store.directory} does not hold it: its blocks end at {last} or are others. Going on would "
                f"fork the board. Put a board.sqlite with that block there, from a copy or a client's view."
            )
        since = _since(store, promised.height)[: promised.accepted]
        if Promised(promised.height, promised.hash).accept(since) != promised:
            raise PostingsLost(
                f"{store.directory} lacks some of the {promised.accepted} postings that this node accepted "
                f"after block {promised.height}. Put a copy of board.sqlite with them there. If there is "
                f"none, remove {file} and start with --last-signed {last}; their authors have to post again."
            )


def check_before_opening(directory: Path) -> None:
    """Check a directory by reading alone: opening the database for writing drops what it cannot use.

    Raises ``StoreError``. A missing or damaged file is left to whoever opens it.
    """
    try:
        signed = SignedFile(directory / SIGNED, read_only=True)
    except SignedLost:
        return
    try:
        if (directory / FILE).exists():
            store = BlockStore(directory, read_only=True)
            try:
                signed.check(store)
            finally:
                store.close()
        elif signed.promised.height > 0:
            raise HistoryLost(
                f"This node signed block {signed.promised.height}, and {directory / FILE} is missing. "
                f"Going on would fork the board. Put a board.sqlite with that block there, from a copy or a "
                f"client's view."
            )
    finally:
        signed.close()


def promised_by(store: BlockStore) -> Promised:
    """Return what a database promises if nothing is missing in it."""
    height = store.height
    header = store.header(height)
    tip = BlockHash(store.genesis.hash) if header is None else header.hash(store.genesis.hash)
    return Promised(height, tip).accept(_since(store, height))


def _since(store: BlockStore, height: int) -> list[PostingId]:
    block = store.block(height + 1)
    return [posting_id(data) for data in (store.pending() if block is None else block.postings)]


def _slot(counter: int, promised: Promised) -> bytes:
    fields = (promised.height, promised.hash, promised.accepted, promised.digest)
    content = _LAYOUT.pack(_MAGIC, counter, *fields)
    return content + hashlib.sha256(content).digest()


def _read(slot: bytes) -> tuple[int, Promised] | None:
    content, checksum = slot[: _LAYOUT.size], slot[_LAYOUT.size : _LAYOUT.size + _CHECKSUM_BYTES]
    if hashlib.sha256(content).digest() != checksum:
        return None
    magic, counter, *fields = _LAYOUT.unpack(content)
    return (counter, Promised(*fields)) if magic == _MAGIC else None
