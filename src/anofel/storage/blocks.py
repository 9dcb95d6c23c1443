"""Blocks on disk: one SQLite file that only grows (WAL, synchronous FULL).

A node, a light client and an audit use the same file. Accepted postings that no block holds yet are
*pending*: a node writes them here before it answers, so that a crash loses none. One transaction moves
them into their block. Triggers refuse to change or delete what a block holds.

Under CometBFT a validator learns what vouches for a block after it decided the block. Until its seal is
kept too, a block is *filled*, and readers do not see it.
"""

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from anofel.board.engines import covers_roots
from anofel.disk.portable import LockHeld, release_lock, take_lock
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import PostingId
from anofel.messages import Block, Genesis, Header, Posting, Seal, Vote
from anofel.messages.postings import posting_id

FILE = "board.sqlite"
LOCK = "board.lock"
GENESIS = "genesis.bin"

_SCHEMA = """
CREATE TABLE genesis (data BLOB NOT NULL) STRICT;
CREATE TABLE block (height INTEGER PRIMARY KEY, hash BLOB NOT NULL, header BLOB NOT NULL) STRICT;
CREATE TABLE vote (height INTEGER NOT NULL, place INTEGER NOT NULL, vote BLOB NOT NULL,
    PRIMARY KEY (height, place)) STRICT, WITHOUT ROWID;
CREATE TABLE seal (height INTEGER PRIMARY KEY, seal BLOB NOT NULL) STRICT;
CREATE TABLE posting (height INTEGER NOT NULL, place INTEGER NOT NULL, id BLOB NOT NULL UNIQUE,
    data BLOB NOT NULL, PRIMARY KEY (height, place)) STRICT;
CREATE TABLE pending (place INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, data BLOB NOT NULL,
    time INTEGER NOT NULL) STRICT;
CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), height INTEGER NOT NULL, data BLOB NOT NULL)
    STRICT;
PRAGMA user_version = 1;
"""
_APPEND_ONLY = ("genesis", "block", "vote", "seal", "posting")


class StoreError(AnofelError):
    """The board's directory cannot be used; the message says why."""

    code = "store-error"


class BlockStore:
    """The blocks of one board in one directory, held by one process at a time."""

    def __init__(self, directory: Path, genesis: Genesis | None = None, *, read_only: bool = False) -> None:
        """Open a board's directory; with a genesis, make it if it is new.

        Raises ``StoreError``: unreadable, held by another process, or of another board. Reading only needs
        no lock, so an audit can run beside a node.
        """
        self.directory = directory
        self._lock: int | None = None
        with explained(directory):
            if read_only:
                self._read_only()
                return
            if genesis is not None:
                directory.mkdir(parents=True, exist_ok=True)
            elif not (directory / FILE).exists():
                raise StoreError(f"{directory} holds no board.")
            self._lock = _lock_of(directory / LOCK)
            try:
                self._open(genesis)
            except BaseException:
                release_lock(self._lock)
                self._lock = None
                raise

    def _open(self, genesis: Genesis | None) -> None:
        self._connection = sqlite3.connect(
            self.directory / FILE, isolation_level=None, check_same_thread=False, timeout=10
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        if genesis is not None and not self._rows("SELECT 1 FROM sqlite_master"):
            self._create(genesis)
        self._read_genesis()
        if genesis is not None and genesis != self.genesis:
            raise StoreError(
                f"{self.directory} holds the board {self.genesis.hash.hex()[:16]}…, "
                f"not the board {genesis.hash.hex()[:16]}…."
            )

    def _read_genesis(self) -> None:
        try:
            ((found,),) = self._rows("SELECT data FROM genesis")
            self.genesis = Genesis.from_bytes(found)
        except (ValueError, StoreError):
            raise StoreError(f"{self.directory / FILE} is not a board's file.") from None

    def _read_only(self) -> None:
        if not (self.directory / FILE).exists():
            raise StoreError(f"{self.directory} holds no board.")
        uri = f"{(self.directory / FILE).absolute().as_uri()}?mode=ro"
        self._connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=10, check_same_thread=False
        )
        self._read_genesis()

    def _create(self, genesis: Genesis) -> None:
        with self._transaction() as connection:
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            for table in _APPEND_ONLY:
                for action in ("UPDATE", "DELETE"):
                    connection.execute(
                        f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} "
                        f"BEGIN SELECT RAISE(ABORT, 'a board only grows'); END"
                    )
            connection.execute("INSERT INTO genesis VALUES (?)", (genesis.to_bytes(),))

    def close(self) -> None:
        """Let go of the directory."""
        self._connection.close()
        if self._lock is not None:
            release_lock(self._lock)
            self._lock = None

    # Pending postings

    def add_pending(self, postings: list[Posting], time: int) -> None:
        """Keep accepted postings durably, in their order, with the time of the block they wait for.

        Certificates were verified at that time. A restart begins the block with it again, so that what was
        accepted stays acceptable.
        """
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO pending (id, data, time) VALUES (?, ?, ?)",
                [(posting.id, posting.data, time) for posting in postings],
            )

    def pending(self) -> list[bytes]:
        """Return the pending postings in their order."""
        return [data for (data,) in self._rows("SELECT data FROM pending ORDER BY place")]

    def pending_time(self) -> int | None:
        """Return the time of the block that the pending postings wait for."""
        ((time,),) = self._rows("SELECT max(time) FROM pending")
        return None if time is None else int(time)

    def height_of(self, posting_id: PostingId) -> int | None:
        """Return the height of an accepted posting, by its name; None if there is none.

        A client that resends gets the same answer.
        """
        if self._rows("SELECT 1 FROM pending WHERE id = ?", posting_id):
            return self.height + 1
        rows = self._rows("SELECT height FROM posting WHERE id = ?", posting_id)
        return int(rows[0][0]) if rows else None

    def place_of(self, posting_id: PostingId) -> tuple[int, int] | None:
        """Return height and place of a posting that a block holds."""
        rows = self._rows("SELECT height, place FROM posting WHERE id = ?", posting_id)
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    # Blocks

    def append(self, block: Block, snapshot: bytes | None = None) -> None:
        """Add a block, clear what was pending and keep a new snapshot, all or nothing."""
        self.append_all([block], snapshot)

    def append_all(self, blocks: Sequence[Block], snapshot: bytes | None = None) -> None:
        """Add blocks as one, with a snapshot of the state after the last; the disk is waited for once."""
        if not blocks:
            return
        with self._transaction() as connection:
            for block in blocks:
                self._insert(connection, block)
            connection.execute("DELETE FROM pending")
            if snapshot is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?)", (blocks[-1].header.height, snapshot)
                )

    def _insert(self, connection: sqlite3.Connection, block: Block) -> None:
        header = block.header
        connection.execute(
            "INSERT INTO block VALUES (?, ?, ?)",
            (header.height, header.hash(self.genesis.hash), header.to_bytes()),
        )
        connection.executemany(
            "INSERT INTO vote VALUES (?, ?, ?)",
            [(header.height, place, vote.to_bytes()) for place, vote in enumerate(block.commit)],
        )
        if block.seal is not None:
            connection.execute("INSERT INTO seal VALUES (?, ?)", (header.height, block.seal.to_bytes()))
        connection.executemany(
            "INSERT INTO posting VALUES (?, ?, ?, ?)",
            [(header.height, place, posting_id(data), data) for place, data in enumerate(block.postings)],
        )

    def add_seal(self, height: int, seal: Seal) -> None:
        """Keep what vouches for a block that is filled; seals come in the order of heights."""
        if height != self.height + 1:
            raise StoreError(f"{self.directory}: the seal of block {height} does not follow the last one.")
        with self._transaction() as connection:
            connection.execute("INSERT INTO seal VALUES (?, ?)", (height, seal.to_bytes()))

    @property
    def filled(self) -> int:
        """The last block, whether or not its seal is here; 0 before the first."""
        ((height,),) = self._rows("SELECT coalesce(max(height), 0) FROM block")
        return int(height)

    def postings(self, height: int) -> tuple[bytes, ...]:
        """Return the postings of a block, whether or not its seal is here."""
        rows = self._rows("SELECT data FROM posting WHERE height = ? ORDER BY place", height)
        return tuple(data for (data,) in rows)

    def names(self, height: int) -> tuple[bytes, ...]:
        """Return the names of a block's postings, in their order."""
        rows = self._rows("SELECT id FROM posting WHERE height = ? ORDER BY place", height)
        return tuple(name for (name,) in rows)

    def posting(self, height: int, place: int) -> bytes | None:
        """Return the posting at a place of a block."""
        rows = self._rows("SELECT data FROM posting WHERE height = ? AND place = ?", height, place)
        return rows[0][0] if rows else None

    def keep_snapshot(self, height: int, data: bytes) -> None:
        """Keep a snapshot of the state after a block that is stored."""
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?)", (height, data))

    @property
    def height(self) -> int:
        """The last block that something vouches for; 0 before the first."""
        if covers_roots(self.genesis):
            return self.filled
        ((height,),) = self._rows("SELECT coalesce(max(height), 0) FROM seal")
        return int(height)

    def header(self, height: int) -> Header | None:
        """Return a header."""
        rows = self._rows("SELECT header FROM block WHERE height = ?", height)
        return Header.from_bytes(rows[0][0]) if rows else None

    def block(self, height: int) -> Block | None:
        """Return a block."""
        signed = self.signed_header(height)
        return None if signed is None else replace(signed, postings=self.postings(height))

    def signed_header(self, height: int) -> Block | None:
        """Return a block without its postings, which are not read: what vouches for its header is there."""
        header = self.header(height)
        if header is None:
            return None
        votes = self._rows("SELECT vote FROM vote WHERE height = ? ORDER BY place", height)
        commit = tuple(Vote.from_bytes(vote) for (vote,) in votes)
        if covers_roots(self.genesis):
            return Block(header=header, commit=commit, postings=())
        seals = self._rows("SELECT seal FROM seal WHERE height = ?", height)
        if not seals:
            return None
        return Block(header=header, commit=commit, seal=Seal.from_bytes(seals[0][0]), postings=())

    def blocks(self, first: int) -> Iterator[Block]:
        """Return the blocks from a height on."""
        height = first
        while (block := self.block(height)) is not None:
            yield block
            height += 1

    def check_names(self, height: int) -> None:
        """Check the names that a block and its postings are stored under. Raises ``StoreError``."""
        for name, encoded in self._rows("SELECT hash, header FROM block WHERE height = ?", height):
            if Header.from_bytes(encoded).hash(self.genesis.hash) != name:
                raise StoreError(f"Block {height} is stored under a hash that is not its own.")
        for place, name, data in self._rows(
            "SELECT place, id, data FROM posting WHERE height = ? ORDER BY place", height
        ):
            if Posting.from_bytes(data).id != name:
                raise StoreError(f"Posting {place} of block {height} is stored under another name.")

    def snapshot(self) -> tuple[int, bytes] | None:
        """Return the last snapshot with its height."""
        rows = self._rows("SELECT height, data FROM snapshot")
        return (int(rows[0][0]), rows[0][1]) if rows else None

    # SQLite

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with explained(self.directory):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with explained(self.directory):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself gives up on a full disk
                    self._connection.execute("ROLLBACK")
                raise


def write_genesis(directory: Path, genesis: Genesis) -> None:
    """Write a genesis file, as operators hand it to everybody."""
    (directory / GENESIS).write_bytes(genesis.to_bytes())


def read_genesis(path: Path) -> Genesis:
    """Read a genesis file. Raises ``InvalidInput``."""
    try:
        return Genesis.from_bytes(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"The genesis file {path} cannot be read: {error.strerror or error}.") from None


def _lock_of(path: Path) -> int:
    try:
        return take_lock(path)
    except LockHeld:
        raise StoreError(f"Another process is using {path.parent}.") from None


@contextmanager
def explained(directory: Path) -> Iterator[None]:
    """Turn what the operating system and SQLite say about a board's directory into one sentence."""
    try:
        yield
    except (OSError, sqlite3.DatabaseError) as error:
        if _is_full(error):
            raise StoreError(f"The disk of {directory} is full.") from error
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"{directory} cannot be used: {reason}.") from error


def _is_full(error: OSError | sqlite3.DatabaseError) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
