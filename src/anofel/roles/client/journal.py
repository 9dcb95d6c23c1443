"""What a client decided in each iteration, so that a restart decides nothing twice.

One SQLite file that only its owner can read. It holds no tag, nullifier or key of a posting.
"""

from dataclasses import dataclass
from pathlib import Path

from anofel.disk.private_database import PrivateDatabase
from anofel.ids import TaskId

_SCHEMA = """
CREATE TABLE IF NOT EXISTS turn (
    bundle INTEGER NOT NULL, iteration INTEGER NOT NULL, task BLOB NOT NULL, cover INTEGER NOT NULL,
    charge TEXT NOT NULL, post_at INTEGER NOT NULL,
    skipped TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
    accepted INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (bundle, iteration)
) STRICT;
CREATE TABLE IF NOT EXISTS first_post (
    epoch INTEGER NOT NULL, bundle INTEGER NOT NULL, iteration INTEGER NOT NULL, PRIMARY KEY (epoch, bundle)
) STRICT;
CREATE TABLE IF NOT EXISTS sending (
    bundle INTEGER NOT NULL, iteration INTEGER NOT NULL, PRIMARY KEY (bundle, iteration)
) STRICT;
CREATE TABLE IF NOT EXISTS choice (wanted TEXT PRIMARY KEY, task BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS departure (left_at INTEGER NOT NULL) STRICT;
PRAGMA user_version = 2;
"""
_VERSION = 2
_COLUMNS = "bundle, iteration, task, cover, charge, post_at, skipped, reason, accepted, outcome"


@dataclass(frozen=True)
class Turn:
    """One iteration as the client met it."""

    bundle: int
    iteration: int
    task: TaskId
    cover: bool
    charge: str
    """The name of this turn in the ledger, drawn once."""
    post_at: int
    """The height after which the post is sent; drawn once."""
    skipped: str = ""
    """A code if the client does not post, else empty."""
    reason: str = ""
    accepted: bool = False
    outcome: str = ""
    """What became of the iteration for the client's task; empty while it runs."""


class Journal:
    """The turns of one client."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises ``InvalidInput``."""
        self._database = PrivateDatabase(path, _SCHEMA, version=_VERSION)

    def chosen_task(self, wanted: str) -> bytes | None:
        """Return the task that a name of the settings stood for when it was first looked up."""
        with self._database.connect() as connection:
            row = connection.execute("SELECT task FROM choice WHERE wanted = ?", (wanted,)).fetchone()
        return None if row is None else bytes(row[0])

    def choose_task(self, wanted: str, task: TaskId) -> None:
        """Keep what a name stands for: a later task of the same name is another one."""
        with self._database.connect() as connection:
            connection.execute("INSERT OR IGNORE INTO choice VALUES (?, ?)", (wanted, task))

    def first_iteration(self, epoch: int, bundle: int, drawn: int) -> int:
        """Return the iteration of the first post in a bundle; ``drawn`` is kept if none was before."""
        with self._database.connect() as connection:
            connection.execute("INSERT OR IGNORE INTO first_post VALUES (?, ?, ?)", (epoch, bundle, drawn))
            row = connection.execute(
                "SELECT iteration FROM first_post WHERE epoch = ? AND bundle = ?", (epoch, bundle)
            ).fetchone()
        return int(row[0])

    def begin(self, turn: Turn) -> Turn:
        """Keep what was drawn for an iteration; the first one stays."""
        with self._database.connect() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO turn"
                " (bundle, iteration, task, cover, charge, post_at, skipped, reason)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    turn.bundle,
                    turn.iteration,
                    turn.task,
                    turn.cover,
                    turn.charge,
                    turn.post_at,
                    turn.skipped,
                    turn.reason,
                ),
            )
        return self.find(turn.bundle, turn.iteration) or turn

    def find(self, bundle: int, iteration: int) -> Turn | None:
        """Return an iteration's turn."""
        with self._database.connect() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM turn WHERE bundle = ? AND iteration = ?",  # noqa: S608
                (bundle, iteration),
            ).fetchone()
        return None if row is None else _turn(row)

    def skip(self, turn: Turn, code: str, reason: str) -> None:
        """Do not post in this iteration."""
        self._update(turn, "skipped = ?, reason = ?", code, reason)

    def excuse(self, turn: Turn, reason: str) -> None:
        """Keep why the post holds the zero update; for the client's own eyes."""
        self._update(turn, "reason = ?", reason)

    def move(self, turn: Turn, post_at: int) -> None:
        """Post at another time: the drawn one passed while nobody was there."""
        self._update(turn, "post_at = ?", post_at)

    def begin_sending(self, turn: Turn) -> None:
        """From now on bytes of the submission may have left this machine."""
        with self._database.connect() as connection:
            connection.execute("INSERT OR IGNORE INTO sending VALUES (?, ?)", (turn.bundle, turn.iteration))

    def may_be_sent(self, turn: Turn) -> bool:
        """Whether bytes of the submission may have left this machine."""
        with self._database.connect() as connection:
            found = connection.execute(
                "SELECT 1 FROM sending WHERE bundle = ? AND iteration = ?", (turn.bundle, turn.iteration)
            ).fetchone()
        return turn.accepted or found is not None

    def accept(self, turn: Turn) -> None:
        """The board shows the post."""
        self._update(turn, "accepted = 1")

    def finish(self, turn: Turn, outcome: str) -> None:
        """The iteration is over; when the client posted is forgotten."""
        self._update(turn, "outcome = ?, post_at = 0", outcome)

    def _update(self, turn: Turn, what: str, *values: object) -> None:
        with self._database.connect() as connection:
            connection.execute(
                f"UPDATE turn SET {what} WHERE bundle = ? AND iteration = ?",  # noqa: S608
                (*values, turn.bundle, turn.iteration),
            )

    def unfinished(self) -> list[Turn]:
        """Return the turns whose iteration is not over."""
        return [turn for turn in self.turns() if not turn.outcome]

    def turns(self) -> list[Turn]:
        """Return all turns in order."""
        with self._database.connect() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM turn ORDER BY rowid").fetchall()  # noqa: S608
        return [_turn(row) for row in rows]

    @property
    def has_left(self) -> bool:
        """Whether the client has left."""
        with self._database.connect() as connection:
            return connection.execute("SELECT 1 FROM departure").fetchone() is not None

    def leave(self) -> None:
        """The client takes part no longer."""
        with self._database.connect() as connection:
            connection.execute("INSERT INTO departure VALUES (unixepoch())")


def _turn(row: tuple[object, ...]) -> Turn:
    bundle, iteration, task, cover, charge, post_at, skipped, reason, accepted, outcome = row
    return Turn(
        int(bundle),  # type: ignore[call-overload]
        int(iteration),  # type: ignore[call-overload]
        bytes(task),  # type: ignore[call-overload]
        bool(cover),
        str(charge),
        int(post_at),  # type: ignore[call-overload]
        str(skipped),
        str(reason),
        bool(accepted),
        str(outcome),
    )
