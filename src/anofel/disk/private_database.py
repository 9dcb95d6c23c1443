"""A SQLite file that only its owner can read, and whose commits survive a crash."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anofel.errors import InvalidInput

_WAIT_SECONDS = 30


class PrivateDatabase:
    """One file; every use has its own connection, so several processes may share it."""

    def __init__(self, path: Path, schema: str, *, version: int = 1) -> None:
        """Open or make the file; ``schema`` sets ``user_version``. Raises ``InvalidInput``."""
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with self.connect() as connection:
                found = connection.execute("PRAGMA user_version").fetchone()[0]
                if found not in (0, version):
                    raise InvalidInput(f"'{path}' was written by another version of anofel ({found}).")
                connection.executescript(schema)
        except (OSError, sqlite3.DatabaseError) as error:
            raise InvalidInput(f"'{path}' cannot be used: {error}.") from None

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that commits each statement to disk."""
        connection = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give a connection whose statements are committed together or not at all."""
        with self.connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
