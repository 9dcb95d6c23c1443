"""What a client in header mode keeps: verified headers, names of postings, leaves, and the last outline.

All of it is public. One SQLite file in the directory of the view; what belongs together is written together.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from anofel.ids import PostingId
from anofel.messages import Block
from anofel.storage.blocks import StoreError

FILE: Final = "headers.sqlite"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS header (height INTEGER PRIMARY KEY, block BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS name (id BLOB PRIMARY KEY, height INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS part (name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS leaf (epoch INTEGER NOT NULL, first INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (epoch, first)) STRICT;
CREATE TABLE IF NOT EXISTS at (one INTEGER PRIMARY KEY CHECK (one = 1), height INTEGER NOT NULL) STRICT;
PRAGMA user_version = 1;
"""


class HeaderStore:
    """The file of one view."""

    def __init__(self, directory: Path) -> None:
        """Open or make the file. Raises ``StoreError``."""
        self._path = directory / FILE
        with self._explained():
            self._connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=10
            )
            self._connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + _SCHEMA)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def delete(self) -> None:
        """Delete the file, which is closed."""
        for path in self._path.parent.glob(f"{FILE}*"):
            path.unlink(missing_ok=True)

    def damaged(self, why: str) -> StoreError:
        """Say that the file cannot be gone on with, and what to do."""
        return StoreError(f"{self._path} is damaged. {why} Remove it: everything in it is fetched again.")

    @property
    def height(self) -> int:
        """The block of the outline that is kept; 0 before the first."""
        rows = self._rows("SELECT height FROM at")
        return int(rows[0][0]) if rows else 0

    @property
    def last(self) -> Block | None:
        """The newest header that something vouches for."""
        rows = self._rows("SELECT block FROM header ORDER BY height DESC LIMIT 1")
        return Block.from_bytes(rows[0][0]) if rows else None

    def block(self, height: int) -> Block | None:
        """Return a header with what vouches for it; the names of its postings are in their place."""
        rows = self._rows("SELECT block FROM header WHERE height = ?", height)
        return Block.from_bytes(rows[0][0]) if rows else None

    def kept(self, height: int) -> Block:
        """Return a header that was kept. Raises ``StoreError`` if it is gone."""
        block = self.block(height)
        if block is None:
            raise self.damaged(f"The header of block {height} was kept and is not there.")
        return block

    def parts(self) -> dict[str, bytes]:
        """Return the outline that is kept."""
        return dict(self._rows("SELECT name, data FROM part"))

    def leaves(self) -> dict[int, bytes]:
        """Return the leaves of the client trees that are kept, by epoch."""
        found: dict[int, bytes] = {}
        for epoch, data in self._rows("SELECT epoch, data FROM leaf ORDER BY epoch, first"):
            found[epoch] = found.get(epoch, b"") + data
        return found

    def holds(self, name: PostingId, last: int) -> bool:
        """Whether one of the blocks that are kept, up to ``last``, has a posting of this name."""
        return bool(self._rows("SELECT 1 FROM name WHERE id = ? AND height <= ?", name, last))

    def keep_headers(self, blocks: Iterable[Block]) -> None:
        """Keep verified headers with the names of their postings."""
        with self._transaction() as connection:
            for block in blocks:
                height = block.header.height
                connection.execute("INSERT OR REPLACE INTO header VALUES (?, ?)", (height, block.to_bytes()))
                connection.executemany(
                    "INSERT OR IGNORE INTO name VALUES (?, ?)", [(name, height) for name in block.postings]
                )

    def keep_boundaries(self, blocks: Iterable[Block]) -> None:
        """Keep signed headers that announce other validators, without names of postings."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO header VALUES (?, ?)",
                [(block.header.height, block.to_bytes()) for block in blocks],
            )

    def drop_last(self) -> None:
        """Forget the newest header, for which nothing vouched after all."""
        with self._transaction() as connection:
            ((height,),) = connection.execute("SELECT max(height) FROM header").fetchall()
            connection.execute("DELETE FROM header WHERE height = ?", (height,))
            connection.execute("DELETE FROM name WHERE height = ?", (height,))

    def keep_outline(
        self,
        height: int,
        parts: Mapping[str, bytes],
        leaves: Iterable[tuple[int, int, bytes]],
        *,
        oldest: int,
    ) -> None:
        """Keep the outline of a block and new leaves (epoch, first place, bytes).

        Names of blocks before ``oldest`` are dropped.
        """
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO part VALUES (?, ?)", parts.items())
            connection.executemany("INSERT OR REPLACE INTO leaf VALUES (?, ?, ?)", leaves)
            connection.execute("INSERT OR REPLACE INTO at VALUES (1, ?)", (height,))
            connection.execute("DELETE FROM name WHERE height < ?", (oldest,))

    def drop_epochs(self, kept: Iterable[int]) -> None:
        """Forget the leaves of other epochs."""
        known = {epoch for (epoch,) in self._rows("SELECT DISTINCT epoch FROM leaf")}
        with self._transaction() as connection:
            for epoch in known - set(kept):
                connection.execute("DELETE FROM leaf WHERE epoch = ?", (epoch,))

    # SQLite

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._explained(), closing(self._connection.execute(query, values)) as found:
            return found.fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be used: {error}.") from error
