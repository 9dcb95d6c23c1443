"""The client's own ledger: what each of its datasets has given away, across all tasks.

A charge is written and synced before the update it pays for is drawn, so a crash can only
overstate what was spent. The ledger is one SQLite file that only its owner can read.
"""

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from anofel.errors import AnofelError, InvalidInput
from anofel.privacy.accounting import Composition, epsilon
from anofel.privacy.events import Event, event_from_json, event_to_json
from anofel.privacy.plan import Plan
from anofel.private_database import PrivateDatabase
from anofel.task import RELATIONS

_SCHEMA = """
CREATE TABLE IF NOT EXISTS charge (
    dataset TEXT NOT NULL, task TEXT NOT NULL, iteration INTEGER NOT NULL, unit TEXT NOT NULL,
    zero_out TEXT NOT NULL, replace_one TEXT NOT NULL, released INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (dataset, task, iteration)
) STRICT;
PRAGMA user_version = 1;
"""


class FloorNotMet(AnofelError):
    """A task offers less protection than the client demands."""

    code = "floor-not-met"


class BudgetExceeded(AnofelError):
    """Taking part would exceed what the client allows for its dataset."""

    code = "budget-exceeded"


class AlreadyCharged(AnofelError):
    """An update of this iteration was drawn before."""

    code = "already-charged"


@dataclass(frozen=True, kw_only=True)
class Floors:
    """What a client demands before it takes part."""

    max_epsilon: float
    """The most ε its dataset may ever give away, over all tasks, under `relation`."""
    unit: str = "client"
    """What ε is about. A task that protects clients also protects records; not the other way round."""
    delta: float = 1e-5
    relation: str = "zero-out"
    min_clients: int = 2
    min_anonymity_set: int = 2

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
        one = self._epsilon(plan, 1)
        if one > self.max_epsilon:
            raise FloorNotMet(
                f"A single iteration costs ε = {one:.3f} ({self.relation}); "
                f"this client allows {self.max_epsilon:g}."
            )

    def _epsilon(self, plan: Plan, releases: int) -> float:
        """ε at the client's own δ, which may be smaller than the task's."""
        return epsilon([(plan.event(self.relation), releases)], self.delta)

    def check_total(self, plan: Plan) -> None:
        """Refuse a task that costs too much if every planned iteration is released. Raises FloorNotMet."""
        total = self._epsilon(plan, plan.spec.max_releases)
        if total > self.max_epsilon:
            raise FloorNotMet(
                f"All {plan.spec.max_releases} iterations cost ε = {total:.3f} ({self.relation}); "
                f"this client allows {self.max_epsilon:g}."
            )


class Ledger:
    """The charges of one client, by dataset (its digest in hex), task (its digest in hex) and iteration."""

    def __init__(self, path: Path) -> None:
        self._database = PrivateDatabase(path, _SCHEMA)

    def charge(
        self,
        *,
        dataset: str,
        task: str,
        iteration: int,
        plan: Plan,
        floors: Floors,
        anonymity_set: int,
    ) -> float:
        """Charge one iteration before its update is drawn; gives the dataset's new ε.

        An iteration is charged once: a second update of it would leak more, so a retry resends the stored
        bytes. Raises FloorNotMet, AlreadyCharged or BudgetExceeded, and then nothing is charged.
        """
        floors.check_task(plan, anonymity_set)
        with self._database.transaction() as connection:
            if connection.execute(
                "SELECT 1 FROM charge WHERE dataset = ? AND task = ? AND iteration = ?",
                (dataset, task, iteration),
            ).fetchone():
                raise AlreadyCharged(
                    f"An update of iteration {iteration} was already drawn; resend it, or skip the iteration."
                )
            spent = _composition(connection, dataset, floors.relation, floors.unit)
            total = epsilon([*spent, (plan.event(floors.relation), 1)], floors.delta)
            if total > floors.max_epsilon:
                raise BudgetExceeded(
                    f"Taking part would bring this dataset to ε = {total:.3f} ({floors.relation}, "
                    f"δ = {floors.delta:g}) over all tasks, above the {floors.max_epsilon:g} it allows."
                )
            events = [json.dumps(event_to_json(plan.event(relation))) for relation in RELATIONS]
            connection.execute(
                "INSERT INTO charge (dataset, task, iteration, unit, zero_out, replace_one)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (dataset, task, iteration, plan.spec.unit, *events),
            )
        return total

    def refund(self, *, dataset: str, task: str, iteration: int) -> None:
        """Take back a charge for what was never and can never be released; the update is never drawn again.

        Security: call it only once the board shows that fewer than t sum shares were posted in time (TooFew
        or Failed), or when the iteration is over and nothing of the update ever left the machine.
        """
        with self._database.connect() as connection:
            changed = connection.execute(
                "UPDATE charge SET released = 0 WHERE dataset = ? AND task = ? AND iteration = ?",
                (dataset, task, iteration),
            ).rowcount
        if not changed:
            raise InvalidInput(f"Iteration {iteration} of this task was never charged to this dataset.")

    def spent(self, dataset: str, *, delta: float, relation: str = "zero-out", unit: str = "client") -> float:
        """Compute ε of everything this dataset took part in."""
        with self._database.connect() as connection:
            return epsilon(_composition(connection, dataset, relation, unit), delta)

    def charges(self, dataset: str) -> list[tuple[str, int, bool]]:
        """List task, iteration and whether it counts, in the order they were charged."""
        with self._database.connect() as connection:
            rows = connection.execute(
                "SELECT task, iteration, released FROM charge WHERE dataset = ? ORDER BY rowid", (dataset,)
            ).fetchall()
        return [(str(task), int(iteration), bool(released)) for task, iteration, released in rows]


def _composition(connection: sqlite3.Connection, dataset: str, relation: str, unit: str) -> Composition:
    weaker = connection.execute(
        "SELECT 1 FROM charge WHERE dataset = ? AND released = 1 AND unit = 'record'", (dataset,)
    ).fetchone()
    if unit == "client" and weaker is not None:
        raise BudgetExceeded(
            "This dataset took part in a task that protects single records only, "
            "so no ε is known for the dataset as a whole."
        )
    column = {"zero-out": "zero_out", "replace": "replace_one"}.get(relation)
    if column is None:
        raise InvalidInput(f"There is no relation '{relation}'.")
    rows = connection.execute(
        f"SELECT {column}, COUNT(*) FROM charge WHERE dataset = ? AND released = 1 GROUP BY {column}",  # noqa: S608
        (dataset,),
    ).fetchall()
    composition: list[tuple[Event, int]] = [
        (event_from_json(json.loads(text)), int(count)) for text, count in rows
    ]
    return composition
