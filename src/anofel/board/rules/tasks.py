"""Step 1.d — owners announce tasks and post models; they end tasks and keep the ε ledger (AnoFel §4.3.2)."""

from anofel.board.author import Author
from anofel.board.claims import Claim, ModelClaim
from anofel.board.rule import require, rule
from anofel.board.rules.common import check_blob, find_own_task, holder, scheme_name
from anofel.board.state import LedgerEntry, Phase, State, TaskState, touch
from anofel.committee import schemes
from anofel.committee.context import TaskLimits
from anofel.committee.errors import DoesNotFit
from anofel.errors import InvalidInput
from anofel.messages import EndIteration, EndTask, Model, PrivacyLedger, Rule, Task
from anofel.task import Task as TaskFile

INTEGER_MEAN = 0
OWNER_RULE = 1

KNOWN = rule("announcement 1", "task-known", "A task is announced once.")
DOCUMENT = rule("announcement 2", "task-malformed", "The document is a task file in its canonical encoding.")
NUMBERS = rule("announcement 3", "task-mismatch", "The numbers of the posting are those of the document.")
SIZE = rule(
    "announcement 4",
    "no-size-class",
    "Length and number of posts are those of a size class of genesis.",
)
COMMITTEE = rule("announcement 5", "committee-unknown", "The committee's key is established.")
BUSY = rule(
    "announcement 6", "committee-busy", "The committee serves no other task whose bundle has not ended."
)
FITS = rule("announcement 7", "task-does-not-fit", "The committee's scheme adds such vectors exactly.")
TOO_MANY = rule("announcement 8", "too-many-tasks", "An owner has fewer unended tasks than genesis allows.")

NOT_DUE = rule("model 1", "model-not-due", "The bundle waits for the model of this iteration.")
POSTED = rule("model 2", "model-posted", "A task posts one model for an iteration.")
SHAPE = rule("model 3", "model-malformed", "A model is a canonical file with the task's shape and scale.")
RULE = rule(
    "model 4",
    "wrong-model",
    "After a sum the model is what the task's rule makes of it; otherwise it is the last one.",
)

NO_EARLY_END = rule("ending 1", "no-early-end", "The bundle was made with leave to end iterations early.")
NOT_OPEN = rule("ending 2", "nothing-to-end", "The iteration is open.")
VOTED = rule("ending 3", "end-posted", "An owner asks once for the end of an iteration.")
TASK_ENDED = rule("ending 4", "task-ended", "The task has not ended.")

RELEASES = rule("ledger 1", "wrong-releases", "The entry states the number of releases so far, above zero.")
ENTERED = rule("ledger 2", "ledger-entered", "There is one entry for a number of releases.")


def size_class_of(state: State, task: Task) -> int | None:
    """Return the first size class of genesis that fits."""
    for number, size in enumerate(state.genesis.classes):
        if task.length <= size.max_length and task.max_posts == size.max_posts:
            return number
    return None


def check_task(state: State, body: Task, author: Author) -> Claim:
    """Check an announcement."""
    subject, name = holder(author).subject, holder(author).name
    require(body.task_id(state.genesis_hash, holder(author).subject) not in state.tasks, KNOWN, culprit=name)
    try:
        document = TaskFile.from_bytes(body.document)
    except InvalidInput as error:
        require(False, DOCUMENT, str(error), culprit=name)
        raise
    differing = _differences(document, body)
    require(not differing, NUMBERS, f"They differ in {', '.join(differing)}.", culprit=name)
    require(size_class_of(state, body) is not None, SIZE, culprit=name)
    require(body.key_id in state.committees, COMMITTEE, culprit=name)
    require(not _is_serving(state, state.committees[body.key_id].task), BUSY, culprit=name)
    live = sum(1 for task in state.tasks.values() if task.owner == subject and not task.ended)
    require(live < state.genesis.limits.max_tasks, TOO_MANY, culprit=name)
    scheme = schemes.by_name(scheme_name(state.committees[body.key_id].scheme))
    try:
        TaskLimits(
            length=body.length, bound=body.bound, max_posts=body.max_posts, min_clients=body.min_clients
        )
        scheme.required_bits(body.bound, body.max_posts)
    except DoesNotFit as error:
        require(False, FITS, str(error), culprit=name)
    return Claim()


def _is_serving(state: State, task_id: bytes | None) -> bool:
    if task_id is None:
        return False
    task = state.tasks[task_id]
    return not task.ended or (task.bundle is not None and state.bundles[task.bundle].phase is not Phase.ENDED)


def _differences(document: TaskFile, body: Task) -> list[str]:
    privacy, rule_ = document.privacy, document.rule
    types = (document.dataset_type,) if document.dataset_type else None
    kind = INTEGER_MEAN if rule_.kind == "integer-mean" else OWNER_RULE
    expected_rule = Rule(kind=kind, lr_num=rule_.lr_num, lr_den=rule_.lr_den, momentum=rule_.momentum)
    pairs = {
        "length": (document.length, body.length),
        "max_posts": (privacy.max_posts, body.max_posts),
        "min_clients": (privacy.min_clients, body.min_clients),
        "max_colluders": (privacy.max_colluders, body.max_colluders),
        "max_releases": (privacy.max_releases, body.max_releases),
        "types": (types, body.types),
        "rule": (expected_rule, body.rule),
    }
    return [name for name, (stated, posted) in pairs.items() if stated != posted]


def apply_task(state: State, body: Task, author: Author, posting_id: bytes) -> None:
    """Queue the task for a bundle."""
    task_id, size_class = body.task_id(state.genesis_hash, holder(author).subject), size_class_of(state, body)
    assert size_class is not None
    task = TaskState(task_id, holder(author).subject, body, size_class, state.height)
    touch(task, posting_id)
    state.tasks[task_id] = task
    state.committees[body.key_id].task = task_id


def check_model(state: State, body: Model, author: Author) -> Claim:
    """Check the model that opens an iteration."""
    task, name = find_own_task(state, body.task, author), holder(author).name
    bundle = state.bundles.get(-1 if task.bundle is None else task.bundle)
    due = bundle is not None and bundle.phase is Phase.WAITING and not task.ended
    require(due and bundle is not None and body.iteration == bundle.iterations + 1, NOT_DUE, culprit=name)
    require(task.model_iteration < body.iteration, POSTED, culprit=name)
    check_blob(state, body.model, state.genesis.limits.max_model_bytes)
    free = task.model is None or (task.summed and task.task.rule.kind == OWNER_RULE)
    if not free:
        expected = task.next_model if task.summed else task.model
        require(body.model.sha256 == expected, RULE, culprit=name)
        return Claim((body.model,))
    document = TaskFile.from_bytes(task.task.document)
    momentum = task.task.rule.kind == INTEGER_MEAN and task.task.rule.momentum > 0
    shape = ModelClaim(body.model.sha256, document.model.parameters, document.model.scale_bits, momentum)
    return Claim((body.model,), shape)


def apply_model(state: State, body: Model, _author: Author, posting_id: bytes) -> None:
    """Take the model; the iteration opens at the end of a block (``clock``)."""
    task = state.tasks[body.task]
    task.model, task.model_iteration = body.model.sha256, body.iteration
    touch(task, posting_id)


def check_end_iteration(state: State, body: EndIteration, author: Author) -> Claim:
    """Check an owner's wish to end an iteration early."""
    task, name = find_own_task(state, body.task, author), holder(author).name
    bundle = state.bundles.get(-1 if task.bundle is None else task.bundle)
    current = bundle.current if bundle else None
    is_open = bundle is not None and bundle.phase is Phase.OPEN and bundle.iterations == body.iteration
    require(is_open, NOT_OPEN, culprit=name)
    assert bundle is not None
    assert current is not None
    require(bundle.early_end, NO_EARLY_END, culprit=name)
    require(body.task not in current.end_votes, VOTED, culprit=name)
    return Claim()


def apply_end_iteration(state: State, body: EndIteration, _author: Author, posting_id: bytes) -> None:
    """Record the wish; it takes every live owner of the bundle."""
    bundle = state.bundles[state.tasks[body.task].bundle or 0]
    assert bundle.current is not None
    bundle.current.end_votes.add(body.task)
    touch(bundle.current, posting_id)


def check_end_task(state: State, body: EndTask, author: Author) -> Claim:
    """Check the end of a task."""
    task = find_own_task(state, body.task, author)
    require(not task.ended, TASK_ENDED, culprit=holder(author).name)
    return Claim()


def apply_end_task(state: State, body: EndTask, _author: Author, posting_id: bytes) -> None:
    """End the task; an iteration under way still runs to its outcome."""
    task = state.tasks[body.task]
    task.ended = True
    touch(task, posting_id)


def check_ledger(state: State, body: PrivacyLedger, author: Author) -> Claim:
    """Check an entry of the ε ledger; ε itself is checked by audits, to 1 %."""
    task, name = find_own_task(state, body.task, author), holder(author).name
    require(0 < body.releases == task.releases, RELEASES, culprit=name)
    entered = {entry.releases for entry in task.ledger}
    require(body.releases not in entered, ENTERED, culprit=name)
    return Claim()


def apply_ledger(state: State, body: PrivacyLedger, _author: Author, posting_id: bytes) -> None:
    """Record the entry."""
    task = state.tasks[body.task]
    task.ledger.append(LedgerEntry(body.releases, body.zero_out, body.replace))
    touch(task, posting_id)
