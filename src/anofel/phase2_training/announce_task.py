"""Step 1.d — a model owner announces a task and posts the model that opens an iteration (AnoFel §4.3.2)."""

from anofel.board.rules.tasks import INTEGER_MEAN, OWNER_RULE
from anofel.messages import Blob, EndIteration, EndTask, Model, PrivacyLedger, Rule, Task
from anofel.privacy.accounting import micro_epsilon
from anofel.privacy.plan import Plan
from anofel.task import Task as TaskFile


def announce(task: TaskFile, *, key_id: bytes, early_end: bool = False) -> Task:
    """Announce a task for a committee; every number follows from the task file."""
    plan, privacy, rule = Plan.of(task), task.privacy, task.rule
    return Task(
        document=task.to_bytes(),
        key_id=key_id,
        length=plan.dimension,
        bound=plan.value_bound,
        max_posts=privacy.max_posts,
        min_clients=privacy.min_clients,
        max_colluders=privacy.max_colluders,
        max_releases=privacy.max_releases,
        types=(task.dataset_type,) if task.dataset_type else None,
        rule=Rule(
            kind=INTEGER_MEAN if rule.kind == "integer-mean" else OWNER_RULE,
            lr_num=rule.lr_num,
            lr_den=rule.lr_den,
            momentum=rule.momentum,
        ),
        early_end=early_end,
    )


def post_model(task_id: bytes, iteration: int, model: Blob) -> Model:
    """Post the model that opens an iteration."""
    return Model(task=task_id, iteration=iteration, model=model)


def end_iteration(task_id: bytes, iteration: int) -> EndIteration:
    """Ask for the end of an iteration; it takes all owners of the bundle."""
    return EndIteration(task=task_id, iteration=iteration)


def end_task(task_id: bytes) -> EndTask:
    """End a task."""
    return EndTask(task=task_id)


def ledger_entry(task: TaskFile, task_id: bytes, releases: int) -> PrivacyLedger:
    """State ε after a number of releases."""
    plan = Plan.of(task)
    return PrivacyLedger(
        task=task_id,
        releases=releases,
        zero_out=micro_epsilon(plan.epsilon(releases, "zero-out")),
        replace=micro_epsilon(plan.epsilon(releases, "replace")),
    )
