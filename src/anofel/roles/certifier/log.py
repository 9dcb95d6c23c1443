"""A certifier's private log: for whom a nonce was drawn, and what was signed for which key (D-02).

One SQLite file that only its owner can read. What is signed is written and synced before it leaves.
Rules, numbered as in ``docs/certifier.md``:

4. A nonce is good for one request, which comes within 30 days; so is the token of an invitation good for
   30 days.
5. A dataset digest d is certified for one master key.
6. A subject has one master key.
13. A subject has no more certificates of a dataset type than the policy allows; one, if it says nothing.
    Every certified dataset counts as a client of its own, so parts of one table would be many.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anofel.disk.private_database import PrivateDatabase
from anofel.errors import AnofelError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS nonce (
    nonce BLOB PRIMARY KEY, subject TEXT NOT NULL, dt INTEGER NOT NULL, drawn_at INTEGER NOT NULL,
    request BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS issued (
    d BLOB PRIMARY KEY, mpk BLOB NOT NULL, dt INTEGER NOT NULL, subject TEXT NOT NULL,
    certifier BLOB NOT NULL, rows INTEGER NOT NULL, issued_at INTEGER NOT NULL, certificate BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS invitation (
    token_hash BLOB PRIMARY KEY, subject TEXT NOT NULL, dt INTEGER NOT NULL, invited_at INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
"""


EXPIRY_SECONDS: Final = 30 * 86_400
"""How long a nonce waits for its request, and how long a token may ask: long enough for files by mail."""


class CertificationRefused(AnofelError):
    """The certifier does not sign. ``code`` says why."""

    code = "certification-refused"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Issued:
    """One line of the log."""

    d: bytes
    mpk: bytes
    dt: int
    subject: str
    certifier: bytes
    rows: int
    issued_at: int
    certificate: bytes

    def __repr__(self) -> str:
        return f"Issued({self.subject!r}, type {self.dt}, <redacted>)"


@dataclass(frozen=True)
class Drawn:
    """For whom and for what a nonce was drawn."""

    subject: str
    dt: int


class CertifierLog:
    """The log in one file."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises ``InvalidInput``."""
        self._database = PrivateDatabase(path, _SCHEMA)

    # Nonces

    def add_nonce(self, nonce: bytes, drawn: Drawn, *, time: int) -> None:
        """Remember a nonce; those that expired unused long ago are forgotten."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM nonce WHERE request IS NULL AND drawn_at < ?", (time - 2 * EXPIRY_SECONDS,)
            )
            connection.execute(
                "INSERT INTO nonce (nonce, subject, dt, drawn_at) VALUES (?, ?, ?, ?)",
                (nonce, drawn.subject, drawn.dt, time),
            )

    def drawn_for(self, nonce: bytes, request: bytes, *, time: int) -> Drawn:
        """Say whose nonce it is; one that another request used, or that is too old, is refused (4)."""
        with self._database.connect() as connection:
            row = connection.execute(
                "SELECT subject, dt, request, drawn_at FROM nonce WHERE nonce = ?", (nonce,)
            ).fetchone()
        if row is None:
            raise CertificationRefused("nonce-unknown", "The request's nonce is not one of this certifier.")
        if row[2] is not None and row[2] != request:
            raise CertificationRefused("nonce-used", "The request's nonce was used for another request.")
        if row[2] is None and time - row[3] > EXPIRY_SECONDS:
            raise CertificationRefused("nonce-expired", "The request's nonce is too old; ask for a new one.")
        return Drawn(str(row[0]), int(row[1]))

    # Invitations

    def add_invitation(self, token_hash: bytes, drawn: Drawn, *, time: int) -> None:
        """Remember whom a token was given to; the token itself is not kept."""
        with self._database.connect() as connection:
            connection.execute(
                "INSERT INTO invitation VALUES (?, ?, ?, ?)", (token_hash, drawn.subject, drawn.dt, time)
            )

    def invited(self, token_hash: bytes, *, time: int) -> Drawn:
        """Say to whom a token was given, if it is not too old (4). Raises ``CertificationRefused``."""
        with self._database.connect() as connection:
            row = connection.execute(
                "SELECT subject, dt, invited_at FROM invitation WHERE token_hash = ?", (token_hash,)
            ).fetchone()
        if row is None:
            raise CertificationRefused("not-invited", "The token is not one of this certifier.")
        if time - row[2] > EXPIRY_SECONDS:
            raise CertificationRefused("invitation-expired", "The invitation is too old; ask for a new one.")
        return Drawn(str(row[0]), int(row[1]))

    # Certificates

    def find(self, d: bytes, mpk: bytes, dt: int, subject: str, *, most: int) -> Issued | None:
        """Return what was signed for the same four, or None; refuse what rules 5, 6 and 13 forbid.

        ``most`` is how many certificates of the type the policy allows to a subject.
        """
        with self._database.connect() as connection:
            return _find(connection, d, mpk, dt, subject, most)

    def add(self, issued: Issued, *, nonce: bytes, request: bytes, most: int) -> Issued:
        """Write down a signature and spend its nonce, together; the first one for the same four stays."""
        with self._database.transaction() as connection:
            found = _find(connection, issued.d, issued.mpk, issued.dt, issued.subject, most)
            if found is None:
                connection.execute(
                    "INSERT INTO issued VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        issued.d,
                        issued.mpk,
                        issued.dt,
                        issued.subject,
                        issued.certifier,
                        issued.rows,
                        issued.issued_at,
                        issued.certificate,
                    ),
                )
            spent = connection.execute(
                "UPDATE nonce SET request = ? WHERE nonce = ? AND (request IS NULL OR request = ?)",
                (request, nonce, request),
            ).rowcount
            if spent != 1:
                raise CertificationRefused("nonce-used", "The request's nonce was used for another request.")
        return found or issued

    def counts(self) -> dict[str, int]:
        """Count certificates, subjects and nonces that no request used yet."""
        with self._database.connect() as connection:
            issued, subjects = connection.execute(
                "SELECT COUNT(*), COUNT(DISTINCT subject) FROM issued"
            ).fetchone()
            (waiting,) = connection.execute("SELECT COUNT(*) FROM nonce WHERE request IS NULL").fetchone()
        return {"certificates": int(issued), "subjects": int(subjects), "open_nonces": int(waiting)}


def _find(
    connection: sqlite3.Connection, d: bytes, mpk: bytes, dt: int, subject: str, most: int
) -> Issued | None:
    row = connection.execute(
        "SELECT d, mpk, dt, subject, certifier, rows, issued_at, certificate FROM issued WHERE d = ?", (d,)
    ).fetchone()
    found = None if row is None else Issued(*row)
    if found is not None and found.mpk != mpk:
        raise CertificationRefused(
            "dataset-certified", "This dataset was certified for another master key; it gets no second one."
        )
    if found is not None and (found.subject != subject or found.dt != dt):
        raise CertificationRefused(
            "dataset-certified", "This dataset was certified for another subject or as another type."
        )
    other = connection.execute(
        "SELECT 1 FROM issued WHERE subject = ? AND mpk != ?", (subject, mpk)
    ).fetchone()
    if other is not None:
        raise CertificationRefused(
            "subject-has-key", "This subject was certified for another master key; it gets no second one."
        )
    (there,) = connection.execute(
        "SELECT COUNT(*) FROM issued WHERE subject = ? AND dt = ?", (subject, dt)
    ).fetchone()
    if found is None and there >= most:  # (13)
        raise CertificationRefused(
            "subject-certified",
            f"This subject has {there} certificates of dataset type {dt}, and the policy allows {most} "
            "(max_certificates).",
        )
    return found
