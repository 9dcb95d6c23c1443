"""The task that a client trains: found on the board, and checked before anything relies on it.

What must hold, numbered as in ``docs/client.md``:

1. Every number of the task follows from its document and its size class; the client's own copy of the board
   derives them.
2. The task's schema is the one that the client's data was certified with.
3. The task counts the client's dataset type.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from anofel.board.seat import Seat
from anofel.board.state import Bundle, Progress, State, TaskState
from anofel.errors import AnofelError
from anofel.primitives import DatasetType
from anofel.privacy.plan import Plan
from anofel.tasks.schema import Schema, schema_digest
from anofel.tasks.task import Task

MIN_ID_DIGITS: Final = 16
"""Fewer digits of an id could be found by trying; words of so many are never a name."""


class TaskRefused(AnofelError):
    """The client does not take part in a task; the message says why."""

    code = "task-refused"


class NoTask(AnofelError):
    """There is no task for this client."""

    code = "no-task"


@dataclass(frozen=True)
class CheckedTask:
    """A task that the client may train."""

    posted: TaskState
    task: Task
    plan: Plan

    @property
    def name(self) -> str:
        """The task's own name."""
        return self.task.name

    def bundle(self, state: State) -> Bundle | None:
        """Return the bundle that holds the task, once there is one."""
        number = state.tasks[self.posted.task_id].bundle
        return None if number is None else state.bundles[number]


def check_task(posted: TaskState, schema: Schema, dt: DatasetType) -> CheckedTask:
    """Check a posted task. Raises ``TaskRefused``, ``InvalidInput``."""
    task, types = Task.from_bytes(posted.announcement.document), posted.facts.types  # (1)
    plan = Plan.of(task)
    if schema_digest(task.schema) != schema_digest(schema):  # (2)
        raise TaskRefused(f"Task '{task.name}' needs data of another schema.")
    if types is not None and dt.number not in types:  # (3)
        raise TaskRefused(f"Task '{task.name}' does not count dataset type {dt.number}.")
    return CheckedTask(posted, task, plan)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which tasks a client trains: one by name or id, or those of one owner; nothing by itself."""

    task: str = ""
    """A task's name or the beginning of its id; from the first turn on it means the task of that turn."""
    owner: str = ""
    """The beginning of an owner's subject in hex: without a task, any that fits, in the order announced."""


def find_task(
    state: State, wanted: Wanted, chosen: bytes | None, schema: Schema, dt: DatasetType
) -> CheckedTask:
    """Find the task to train; ``chosen`` is the one that the wanted name stood for before, if any.

    Raises ``NoTask``, ``TaskRefused``.
    """
    if not wanted.task and not wanted.owner:
        raise NoTask(
            "none was named; give the name or id of a task (task = … in role.toml), or whose tasks to train "
            "(owner = …)"
        )
    live = [
        task
        for task in state.tasks.values()
        if is_live(state, task) and task.owner.hex().startswith(wanted.owner.lower())
    ]
    if wanted.task:
        return check_task(_named(live, wanted.task, chosen), schema, dt)
    for task in live:
        with suppress(AnofelError):
            return check_task(task, schema, dt)
    raise NoTask(f"no task of the owner {wanted.owner[:16]}… fits this client's data")


def is_live(state: State, task: TaskState) -> bool:
    """Whether a client may train a task: it has not ended, or its last iteration is still open.

    An owner that ends its task while posts come in would otherwise show which of the later ones are not its.
    """
    if not task.ended:
        return True
    seat = Seat.find(state, task.task_id)
    return seat is not None and seat.is_open and seat.position.progress is Progress.COLLECTING


def _named(live: list[TaskState], wanted: str, chosen: bytes | None) -> TaskState:
    if chosen is not None:
        found = [task for task in live if task.task_id == chosen]
        if not found:
            raise NoTask(f"the task that was first known as '{wanted}' has ended; name another")
        return found[0]
    named = [task for task in live if _is_named(task, wanted)]
    if len(named) > 1:
        ids = ", ".join(f"{task.task_id.hex()[:16]}…" for task in named)
        raise NoTask(f"{len(named)} tasks are called '{wanted}'; give the id of one ({ids})")
    if not named:
        raise NoTask(f"no task called '{wanted}' is on the board, or it has ended")
    return named[0]


def _is_named(task: TaskState, wanted: str) -> bool:
    if len(wanted) >= MIN_ID_DIGITS and set(wanted.lower()) <= set("0123456789abcdef"):
        return task.task_id.hex().startswith(wanted.lower())  # or a task of that name would pass for it
    return task.facts.name == wanted
