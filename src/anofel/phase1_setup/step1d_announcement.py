"""Step 1.d — a model owner announces a task and posts the model that opens an iteration (AnoFel §4.3.2)."""

from anofel.ids import KeyId, TaskId
from anofel.messages import Blob, EndIteration, EndTask, Model, PrivacyLedger, RejectModel, TaskAnnouncement
from anofel.privacy.accounting import micro_epsilon
from anofel.privacy.plan import Plan
from anofel.tasks.task import Task


def announce(task: Task, *, key_id: KeyId, early_end: bool = False) -> TaskAnnouncement:
    """Announce a task for a committee. Raises ``InvalidInput`` if no client could train it."""
    Plan.of(task)
    return TaskAnnouncement(document=task.to_bytes(), key_id=key_id, early_end=early_end)


def post_model(task_id: TaskId, iteration: int, model: Blob) -> Model:
    """Post the model that opens an iteration."""
    return Model(task=task_id, iteration=iteration, model=model)


def reject_model(task_id: TaskId, iteration: int) -> RejectModel:
    """Reject the model that the sum of an iteration makes; the former one opens the next."""
    return RejectModel(task=task_id, iteration=iteration)


def end_iteration(task_id: TaskId, iteration: int) -> EndIteration:
    """Ask for the end of an iteration; it takes all owners of the bundle."""
    return EndIteration(task=task_id, iteration=iteration)


def end_task(task_id: TaskId) -> EndTask:
    """End a task."""
    return EndTask(task=task_id)


def ledger_entry(task: Task, task_id: TaskId, releases: int) -> PrivacyLedger:
    """State ε after a number of releases."""
    plan = Plan.of(task)
    return PrivacyLedger(
        task=task_id,
        releases=releases,
        zero_out=micro_epsilon(plan.epsilon(releases, "zero-out")),
        replace=micro_epsilon(plan.epsilon(releases, "replace")),
    )
