"""The client's own ledger: what its data has given away, across all tasks and boards.

A charge is written and synced before the update it pays for is made, so a crash can only
overstate what was spent. The ledger is one SQLite file that only its owner can read. One file is for
one subject and its table: rows that are added and certified again spend the same budget.

Rules, in the same words in ``docs/privacy.md``:

1. A charge is named by board, task, bundle and iteration; there is one for each.
2. Only the turn that made a charge can take it back.
"""

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anofel.disk.private_database import PrivateDatabase
from anofel.disk.state_files import decode_state
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import GenesisHash, TaskId
from anofel.privacy.accounting import Composition, epsilon
from anofel.privacy.events import Event, event_from_json, event_to_json
from anofel.privacy.plan import Plan
from anofel.tasks.task import RELATIONS

_SCHEMA = """
CREATE TABLE IF NOT EXISTS charge (
    board BLOB NOT NULL, task BLOB NOT NULL, bundle INTEGER NOT NULL, iteration INTEGER NOT NULL,
    turn TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, zero_out TEXT NOT NULL, replace_one TEXT NOT NULL,
    released INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (board, task, bundle, iteration)
) STRICT;
PRAGMA user_version = 2;
"""
_VERSION = 2


class FloorNotMet(AnofelError):
    """A task offers less protection than the client demands."""

    code = "floor-not-met"


class BudgetExceeded(AnofelError):
    """Taking part would exceed what the client allows for its dataset."""

    code = "budget-exceeded"


class AlreadyCharged(AnofelError):
    """An update of this iteration was made before, by another turn."""

    code = "already-charged"


@dataclass(frozen=True, kw_only=True)
class Occasion:
    """What a charge is for, on which board (1)."""

    board: GenesisHash
    """The hash of its genesis."""
    task: TaskId
    """The task's name on the board; a document that is announced twice has two."""
    bundle: int
    iteration: int


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One line of the ledger."""

    occasion: Occasion
    released: bool
    """Whether it counts; False once it was taken back."""


@dataclass(frozen=True, kw_only=True)
class Floors:
    """What a client demands before it takes part; its own words, whatever the owner says (D-22)."""

    max_epsilon: float
    """The most ε its dataset may ever give away, over all tasks, under `relation`."""
    unit: str = "client"
    """What ε is about. A task that protects clients also protects records; not the other way round."""
    delta: float = 1e-5
    relation: str = "zero-out"
    min_clients: int = 2
    min_anonymity_set: int = 2
    max_colluders: int | None = None
    """How many of a sum's clients the client reckons with as the owner's own; None: all others."""

    def honest(self, plan: Plan) -> int:
        """Give h as this client sees it: how many clients surely add their noise, itself included.

        The owner's number counts where it is the more cautious one. Raises FloorNotMet.
        """
        spec = plan.spec
        if self.max_colluders is None:
            return 1  # its own noise is all that it can be sure of
        honest = spec.min_clients - max(self.max_colluders, spec.max_colluders)
        if honest < 2:
            raise FloorNotMet(
                f"The task releases sums of {spec.min_clients} clients, and this client reckons with "
                f"{self.max_colluders} colluders among them; two honest ones must be left."
            )
        return honest

    def check_task(self, plan: Plan, anonymity_set: int) -> None:
        """Refuse a task below the floors. Raises FloorNotMet."""
        spec = plan.spec
        if spec.unit == "paper":
            raise FloorNotMet("The task uses the paper's noise, whose ε is unproven; the client refuses it.")
        if self.unit == "client" and spec.unit != "client":
            raise FloorNotMet("The task protects single records only; this client demands the unit 'client'.")
        if spec.min_clients < self.min_clients:
            raise FloorNotMet(
                f"The task releases sums of {spec.min_clients} clients; "
                f"this client demands {self.min_clients}."
            )
        if anonymity_set < self.min_anonymity_set:
            raise FloorNotMet(
                f"The anonymity set holds {anonymity_set} clients; "
                f"this client demands {self.min_anonymity_set}."
            )
        one = self.epsilon(plan, 1)
        if one > self.max_epsilon:
            raise FloorNotMet(
                f"A single iteration costs ε = {one:.3f} ({self.relation}) {self._belief(plan)}; "
                f"this client allows {self.max_epsilon:g}."
            )

    def epsilon(self, plan: Plan, releases: int) -> float:
        """ε by the client's own numbers: its relation, its δ, and the colluders it reckons with."""
        return epsilon([(plan.event(self.relation, self.honest(plan)), releases)], self.delta)

    def _belief(self, plan: Plan) -> str:
        colluders = plan.spec.min_clients - self.honest(plan)
        hint = " (say --max-colluders if you know better)" if self.max_colluders is None else ""
        return f"if {colluders} of {plan.spec.min_clients} clients collude{hint}"

    def check_total(self, plan: Plan) -> None:
        """Refuse a task that costs too much if every planned iteration is released. Raises FloorNotMet."""
        total = self.epsilon(plan, plan.spec.max_releases)
        if total > self.max_epsilon:
            raise FloorNotMet(
                f"All {plan.spec.max_releases} iterations cost ε = {total:.3f} ({self.relation}) "
                f"{self._belief(plan)}; this client allows {self.max_epsilon:g}."
            )


class Ledger:
    """The charges of one subject's table."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises ``InvalidInput``."""
        self._database = PrivateDatabase(path, _SCHEMA, version=_VERSION)

    def charge(
        self, turn: str, occasion: Occasion, *, plan: Plan, floors: Floors, anonymity_set: int
    ) -> float:
        """Charge one iteration before its update is made, in the name of a turn; gives the new ε.

        An iteration is charged once: a second update of it would leak more, so a retry resends the stored
        bytes. Raises FloorNotMet, AlreadyCharged or BudgetExceeded, and then nothing is charged.
        """
        floors.check_task(plan, anonymity_set)
        honest = floors.honest(plan)
        with self._database.transaction() as connection:
            if connection.execute(
                "SELECT 1 FROM charge WHERE board = ? AND task = ? AND bundle = ? AND iteration = ?",
                (occasion.board, occasion.task, occasion.bundle, occasion.iteration),
            ).fetchone():
                raise AlreadyCharged(f"An update of iteration {occasion.iteration} was already made.")  # (1)
            spent = _composition(connection, floors.relation, floors.unit)
            total = epsilon([*spent, (plan.event(floors.relation, honest), 1)], floors.delta)
            if total > floors.max_epsilon:
                raise BudgetExceeded(
                    f"Taking part would bring this data to ε = {total:.3f} ({floors.relation}, "
                    f"δ = {floors.delta:g}) over all tasks, above the {floors.max_epsilon:g} it allows."
                )
            events = [json.dumps(event_to_json(plan.event(relation, honest))) for relation in RELATIONS]
            connection.execute(
                "INSERT INTO charge (board, task, bundle, iteration, turn, unit, zero_out, replace_one)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    occasion.board,
                    occasion.task,
                    occasion.bundle,
                    occasion.iteration,
                    turn,
                    plan.spec.unit,
                    *events,
                ),
            )
        return total

    def holds(self, turn: str) -> bool:
        """Whether a turn made a charge, taken back or not."""
        with self._database.connect() as connection:
            return connection.execute("SELECT 1 FROM charge WHERE turn = ?", (turn,)).fetchone() is not None

    def refund(self, turn: str) -> None:
        """Take back the charge that a turn made, if it made one; the update is never made again (2).

        Security: call it only when the board shows that nothing of the update can be decrypted: too few
        clients, or a failure before the count was open; or when the iteration is over and nothing of the
        update ever left the machine.
        """
        with self._database.connect() as connection:
            connection.execute("UPDATE charge SET released = 0 WHERE turn = ?", (turn,))

    def spent(self, *, delta: float, relation: str = "zero-out", unit: str = "client") -> float:
        """Compute ε of everything this data took part in."""
        with self._database.connect() as connection:
            return epsilon(_composition(connection, relation, unit), delta)

    def charges(self) -> list[Charge]:
        """List the charges in the order they were made."""
        with self._database.connect() as connection:
            rows = connection.execute(
                "SELECT board, task, bundle, iteration, released FROM charge ORDER BY rowid"
            ).fetchall()
        return [
            Charge(
                occasion=Occasion(board=board, task=task, bundle=bundle, iteration=iteration),
                released=bool(released),
            )
            for board, task, bundle, iteration, released in rows
        ]


def _composition(connection: sqlite3.Connection, relation: str, unit: str) -> Composition:
    weaker = connection.execute("SELECT 1 FROM charge WHERE released = 1 AND unit = 'record'").fetchone()
    if unit == "client" and weaker is not None:
        raise BudgetExceeded(
            "This data took part in a task that protects single records only, "
            "so no ε is known for the data as a whole."
        )
    column = {"zero-out": "zero_out", "replace": "replace_one"}.get(relation)
    if column is None:
        raise InvalidInput(f"There is no relation '{relation}'.")
    rows = connection.execute(
        f"SELECT {column}, COUNT(*) FROM charge WHERE released = 1 GROUP BY {column}"  # noqa: S608
    ).fetchall()
    composition: list[tuple[Event, int]] = [
        (event_from_json(decode_state(text, dict[str, Any], "An event of the ledger")), int(count))
        for text, count in rows
    ]
    return composition
