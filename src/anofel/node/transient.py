"""What the machine refuses now and may grant in a moment: descriptors, memory, a file that is busy."""

import sqlite3
from typing import Final

from anofel.serving.connections import TRANSIENT

_SQLITE: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN}
)
_PRIMARY: Final = 0xFF
"""The part of a code of SQLite that says what kind of error it is."""


def is_transient(error: BaseException) -> bool:
    """Whether an error, or what it was made of, may be gone when the same is tried again."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, MemoryError) or (isinstance(found, OSError) and found.errno in TRANSIENT):
            return True
        if isinstance(found, sqlite3.Error) and getattr(found, "sqlite_errorcode", 0) & _PRIMARY in _SQLITE:
            return True
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return False
