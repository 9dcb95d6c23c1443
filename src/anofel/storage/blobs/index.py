"""The index of a blob store: one SQLite file that says which blobs are there and for how long.

A change to the files is announced here before and confirmed after it, so that a crash in between can be
repaired: a row in ``upload`` means that a temporary file, or a blob without a row, may be there; a blob
that is ``REMOVING`` means that its file may be there.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anofel.disk.portable import LockHeld, release_lock, take_lock
from anofel.ids import BlobHash
from anofel.storage.blobs.errors import BlobStoreUnwritable

INDEX_FILE: Final = "index.sqlite"
LOCK_FILE: Final = "lock"
PRESENT, REMOVING = 0, 1
UNNAMED, NAMED, TICKETED = 0, 1, 2
"""Whether a posting names a blob; if none does yet, whether a ticket came with it. The column ``pinned``."""
MAX_NAMES: Final = 10_000
"""Of blobs, in one answer."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS blob (
    sha256 BLOB PRIMARY KEY, length INTEGER NOT NULL, state INTEGER NOT NULL,
    keep_until INTEGER, pinned INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS expiry ON blob (state, keep_until);
CREATE TABLE IF NOT EXISTS owed (sha256 BLOB PRIMARY KEY, keep_until INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS upload (name TEXT PRIMARY KEY, sha256 BLOB NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;
"""


@dataclass(frozen=True)
class Entry:
    """What the index knows of a blob."""

    length: int
    keep_until: int | None
    """The last height at which it is kept; None means for ever."""
    standing: int
    """``UNNAMED``, ``NAMED`` or ``TICKETED``."""
    present: bool

    @property
    def pinned(self) -> bool:
        """Whether a posting names it."""
        return self.standing == NAMED


def stored_bytes(directory: Path) -> int:
    """Say how many bytes the index of a directory knows of, also while a process owns it."""
    if not (directory / INDEX_FILE).exists():
        return 0
    with contextlib.closing(
        sqlite3.connect(f"{(directory / INDEX_FILE).resolve().as_uri()}?mode=ro", uri=True)
    ) as found:
        return int(found.execute("SELECT coalesce(sum(length), 0) FROM blob WHERE state = 0").fetchone()[0])


class BlobIndex:
    """The rows and their sums. The caller holds a lock; one process at a time opens a directory."""

    def __init__(self, directory: Path) -> None:
        try:
            self._lock = take_lock(directory / LOCK_FILE)
        except LockHeld:
            raise BlobStoreUnwritable(f"{directory} is in use by another process.") from None
        try:
            self._connection = sqlite3.connect(
                directory / INDEX_FILE, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            release_lock(self._lock)
            raise

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_SCHEMA)
        kept, unnamed, ticketed = self._connection.execute(
            "SELECT coalesce(sum(length), 0), coalesce(sum(length) FILTER (WHERE pinned = ?), 0),"
            " coalesce(sum(length) FILTER (WHERE pinned = ?), 0) FROM blob WHERE state = ?",
            (UNNAMED, TICKETED, PRESENT),
        ).fetchone()
        self.kept: int = kept
        self._unnamed: dict[int, int] = {UNNAMED: unnamed, TICKETED: ticketed, NAMED: 0}
        """Bytes that no posting names yet."""
        self._arriving = {UNNAMED: 0, TICKETED: 0, NAMED: 0}

    @property
    def unreferenced(self) -> int:
        """Bytes of blobs that no posting names yet."""
        return self._unnamed[UNNAMED] + self._unnamed[TICKETED]

    @property
    def uploading(self) -> int:
        """Bytes that arrived of uploads under way."""
        return sum(self._arriving.values())

    @property
    def of_strangers(self) -> int:
        """Bytes that came without a ticket and that no posting names, those under way included."""
        return self._unnamed[UNNAMED] + self._arriving[UNNAMED]

    def close(self) -> None:
        """Write everything into one file and let others open the directory."""
        self._connection.close()
        with contextlib.suppress(OSError):
            release_lock(self._lock)
        self._lock = -1

    def find(self, sha256: BlobHash) -> Entry | None:
        """Look a blob up."""
        row = self._connection.execute(
            "SELECT length, keep_until, pinned, state FROM blob WHERE sha256 = ?", (sha256,)
        ).fetchone()
        return None if row is None else Entry(row[0], row[1], row[2], row[3] == PRESENT)

    def kept_for_ever(self, after: bytes, num_bytes: int) -> list[BlobHash]:
        """Name blobs that are never pruned, in order, after a name: so many bytes of them, one at least."""
        names: list[BlobHash] = []
        with contextlib.closing(
            self._connection.execute(
                "SELECT sha256, length FROM blob"
                " WHERE sha256 > ? AND state = ? AND keep_until IS NULL ORDER BY sha256",
                (after, PRESENT),
            )
        ) as rows:
            for sha256, length in rows:
                names.append(sha256)
                num_bytes -= length
                if num_bytes <= 0 or len(names) == MAX_NAMES:
                    break
        return names

    def start_upload(self, name: str, sha256: BlobHash) -> None:
        """Announce a temporary file."""
        with self._transaction():
            self._connection.execute("INSERT INTO upload VALUES (?, ?)", (name, sha256))

    def reserve(self, num_bytes: int, standing: int) -> None:
        """Count bytes of an upload that arrived."""
        self._arriving[standing] += num_bytes

    def finish_upload(
        self, name: str, sha256: BlobHash, length: int, keep_until: int | None, came: int, standing: int
    ) -> None:
        """Confirm a blob whose file has its name, and that it is owed no more.

        ``came``: how its bytes were counted while they arrived. ``standing``: how it stands now.
        """
        with self._transaction():
            self._connection.execute(
                "INSERT INTO blob VALUES (?, ?, ?, ?, ?) ON CONFLICT (sha256) DO UPDATE SET"
                " length = excluded.length, state = excluded.state,"
                " keep_until = excluded.keep_until, pinned = excluded.pinned",
                (sha256, length, PRESENT, keep_until, standing),
            )
            self._connection.execute("DELETE FROM upload WHERE name = ?", (name,))
            self._connection.execute("DELETE FROM owed WHERE sha256 = ?", (sha256,))
        self._arriving[came] -= length
        self.kept += length
        self._count(standing, length)

    def owe(self, promised: Mapping[BlobHash, int | None]) -> None:
        """Note what must be kept and is not there, and how long."""
        with self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO owed VALUES (?, ?)", promised.items())

    def owed(self) -> dict[BlobHash, int | None]:
        """Return what is owed, and how long."""
        return dict(self._connection.execute("SELECT sha256, keep_until FROM owed").fetchall())

    def _count(self, standing: int, num_bytes: int) -> None:
        if standing != NAMED:
            self._unnamed[standing] += num_bytes

    def drop_upload(self, name: str, arrived: int, came: int, *, is_gone: bool = True) -> None:
        """Free the bytes of an upload; the row goes if its file is gone.

        On a full disk the row may stay until the next start; it reserves nothing.
        """
        self._arriving[came] -= arrived
        if not is_gone:
            return
        with contextlib.suppress(sqlite3.Error), self._transaction():
            self._connection.execute("DELETE FROM upload WHERE name = ?", (name,))

    def extend(self, sha256: BlobHash, keep_until: int | None) -> None:
        """Set how long a present blob is kept."""
        with self._transaction():
            self._connection.execute("UPDATE blob SET keep_until = ? WHERE sha256 = ?", (keep_until, sha256))

    def pin(self, kept: Mapping[BlobHash, int | None]) -> None:
        """Note that postings refer to present blobs, and how long each is kept."""
        entries = [self.find(sha256) for sha256 in kept]
        with self._transaction():
            self._connection.executemany(
                "UPDATE blob SET keep_until = ?, pinned = 1 WHERE sha256 = ?",
                [(keep_until, sha256) for sha256, keep_until in kept.items()],
            )
        for entry in entries:
            if entry is not None:
                self._count(entry.standing, -entry.length)

    def start_removal(self, height: int) -> int:
        """Announce that every blob kept up to a lower height goes; returns how many."""
        with self._transaction():
            rows = self._connection.execute(
                "UPDATE blob SET state = ? WHERE state = ? AND keep_until < ?"
                " RETURNING sha256, length, pinned",
                (REMOVING, PRESENT, height),
            ).fetchall()
            self._connection.execute("DELETE FROM owed WHERE keep_until < ?", (height,))
        self.kept -= sum(length for _, length, _ in rows)
        for _, length, standing in rows:
            self._count(standing, -length)
        return len(rows)

    def finish_removal(self, names: Sequence[BlobHash]) -> None:
        """Confirm that files are gone, and forget them."""
        with self._transaction():
            self._connection.executemany(
                "DELETE FROM blob WHERE sha256 = ? AND state = ?", [(name, REMOVING) for name in names]
            )

    def unfinished_removals(self) -> list[BlobHash]:
        """Blobs whose files may still be there."""
        return self._digests("SELECT sha256 FROM blob WHERE state = 1")

    def names(self) -> list[BlobHash]:
        """Name every blob that is there."""
        return self._digests("SELECT sha256 FROM blob WHERE state = 0")

    def unfinished_uploads(self) -> list[BlobHash]:
        """Blobs whose files may be there although no row says so."""
        return self._digests(
            "SELECT DISTINCT sha256 FROM upload WHERE sha256 NOT IN (SELECT sha256 FROM blob WHERE state = 0)"
        )

    def forget_uploads(self) -> None:
        """Confirm that no temporary file is there."""
        with self._transaction():
            self._connection.execute("DELETE FROM upload")

    def _digests(self, query: str) -> list[BlobHash]:
        return [sha256 for (sha256,) in self._connection.execute(query)]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
