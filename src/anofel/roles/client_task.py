"""The task that a client trains: found on the board, and checked before anything relies on it.

What must hold, numbered as in ``docs/client.md``:

1. Every number of the posting follows from the task's document: length, bound, limits, types, rule.
2. The task's schema is the one that the client's data was certified with.
3. The task counts the client's dataset type.
"""

from dataclasses import dataclass

from anofel.board.state import Bundle, State, TaskState
from anofel.errors import AnofelError
from anofel.phase2_training.announce_task import announce
from anofel.primitives import DatasetType
from anofel.privacy.plan import Plan
from anofel.studies.schema import Schema, schema_digest
from anofel.task import Task


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
    announced = posted.task
    task = Task.from_bytes(announced.document)
    plan = Plan.of(task)
    if plan.value_bound != announced.bound:  # (1)
        raise TaskRefused(
            f"Task '{task.name}' states the bound {announced.bound}, its document gives {plan.value_bound}."
        )
    if announce(task, key_id=announced.key_id, early_end=announced.early_end) != announced:
        raise TaskRefused(f"Task '{task.name}' states numbers that do not follow from its document.")
    if schema_digest(task.schema) != schema_digest(schema):  # (2)
        raise TaskRefused(f"Task '{task.name}' needs data of another schema.")
    if announced.types is not None and dt.number not in announced.types:  # (3)
        raise TaskRefused(f"Task '{task.name}' does not count dataset type {dt.number}.")
    return CheckedTask(posted, task, plan)


def find_task(state: State, wanted: str, schema: Schema, dt: DatasetType) -> CheckedTask:
    """Find the task to train: by name, by the beginning of its id, or the only one that fits.

    Raises ``NoTask``, ``TaskRefused``.
    """
    live = [task for task in state.tasks.values() if not task.ended]
    if wanted:
        named = [task for task in live if _is_named(task, wanted)]
        if len(named) > 1:
            raise NoTask(f"{len(named)} tasks are called '{wanted}'; give the id of one.")
        if not named:
            raise NoTask(f"No task called '{wanted}' is on the board, or it has ended.")
        return check_task(named[0], schema, dt)
    fitting = []
    for task in live:
        try:
            fitting.append(check_task(task, schema, dt))
        except AnofelError:
            continue
    if not fitting:
        raise NoTask("No task on the board fits this client's data.")
    if len(fitting) > 1:
        names = ", ".join(f"'{task.name}'" for task in fitting)
        raise NoTask(f"{len(fitting)} tasks fit this client's data ({names}); choose one.")
    return fitting[0]


def _is_named(task: TaskState, wanted: str) -> bool:
    if len(wanted) >= 8 and task.task_id.hex().startswith(wanted.lower()):
        return True
    try:
        return Task.from_bytes(task.task.document).name == wanted
    except AnofelError:
        return False
