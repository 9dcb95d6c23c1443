"""Step 1.d — owners announce tasks and post models; they end tasks and keep the ε ledger (AnoFel §4.3.2)."""

from anofel.board.announcement import check_fits, facts_of
from anofel.board.author import Author
from anofel.board.claims import Claim, ModelClaim
from anofel.board.rule import Rejected, present, require, rule
from anofel.board.rules.common import check_blob, find_own_task, holder, open_sitting
from anofel.board.seat import Seat
from anofel.board.size_classes import NoSizeClass, size_class_of
from anofel.board.state import LedgerEntry, Phase, State, TaskState, touch
from anofel.committee import schemes
from anofel.committee.errors import DoesNotFit
from anofel.errors import InvalidInput
from anofel.ids import PostingId, TaskId
from anofel.messages import EndIteration, EndTask, Model, PrivacyLedger, RejectModel, TaskAnnouncement
from anofel.tasks.task import Task

KNOWN = rule("announcement 1", "task-known", "A task is announced once.")
DOCUMENT = rule("announcement 2", "task-malformed", "The document is a task file in its canonical encoding.")
SIZE = rule(
    "announcement 3",
    "no-size-class",
    "A class of genesis holds the length and the number of posts; adaptive noise needs exactly its number.",
)
COMMITTEE = rule("announcement 4", "committee-unknown", "The committee's key is established.")
BUSY = rule(
    "announcement 5", "committee-busy", "The committee serves no other task whose bundle has not ended."
)
FITS = rule(
    "announcement 6",
    "task-does-not-fit",
    "The committee's scheme adds such vectors exactly, and proves what the task asks for.",
)
TOO_MANY = rule("announcement 7", "too-many-tasks", "An owner has fewer unended tasks than genesis allows.")
NOISE = rule(
    "announcement 8",
    "noise-does-not-fit",
    "A clipped update leaves room in 64-bit integers; a client's noise spans eight of their steps or more.",
)

NOT_DUE = rule("model 1", "model-not-due", "The bundle waits for the model of this iteration.")
POSTED = rule("model 2", "model-posted", "A task posts one model for an iteration.")
SHAPE = rule("model 3", "model-malformed", "A model is a canonical file with the task's shape and scale.")
RULE = rule(
    "model 4",
    "wrong-model",
    "After a sum the model is what the task's rule makes of it; otherwise it is the last one.",
)
MAGNITUDE = rule(
    "model 5",
    "model-too-large",
    "No parameter of a model, and no velocity, is larger than 2^20, and no second moment than 2^62.",
)

NOT_SUMMED = rule(
    "rejection 1", "nothing-to-reject", "The bundle waits after this iteration, which gave the task a sum."
)
DECIDED = rule(
    "rejection 2", "model-decided", "The owner has neither posted the model that follows nor rejected it."
)

NO_EARLY_END = rule("ending 1", "no-early-end", "The bundle was made with leave to end iterations early.")
NOT_OPEN = rule("ending 2", "nothing-to-end", "The iteration is open.")
VOTED = rule("ending 3", "end-posted", "An owner asks once for the end of an iteration.")
TASK_ENDED = rule("ending 4", "task-ended", "The task has not ended.")

RELEASES = rule("ledger 1", "wrong-releases", "The entry states the number of releases so far, above zero.")
ENTERED = rule("ledger 2", "ledger-entered", "There is one entry for a number of releases.")


def check_task(state: State, body: TaskAnnouncement, author: Author) -> Claim:
    """Check an announcement; cheap checks come first, since its facts may take long to compute."""
    subject, name = holder(author).subject, holder(author).name
    require(body.task_id(state.genesis_hash, subject) not in state.tasks, KNOWN, culprit=name)
    try:
        document = Task.from_bytes(body.document)
    except InvalidInput as error:
        raise Rejected(DOCUMENT, str(error), name) from None
    try:
        size = state.genesis.classes[size_class_of(state.genesis.classes, document)]
    except NoSizeClass as error:
        raise Rejected(SIZE, str(error), name) from None
    require(body.key_id in state.committees, COMMITTEE, culprit=name)
    committee = state.committees[body.key_id]
    require(not _is_serving(state, committee.task), BUSY, culprit=name)
    live = [task for task in state.tasks.live() if task.owner == subject]
    require(len(live) < state.genesis.limits.max_tasks, TOO_MANY, culprit=name)
    try:
        check_fits(document, size, schemes.NAMES[committee.scheme])
    except DoesNotFit as error:
        raise Rejected(FITS, str(error), name) from None
    except InvalidInput as error:
        raise Rejected(NOISE, str(error), name) from None
    return Claim()


def _is_serving(state: State, task_id: TaskId | None) -> bool:
    if task_id is None:
        return False
    task = state.tasks[task_id]
    return not task.ended or (task.bundle is not None and state.bundles[task.bundle].phase is not Phase.ENDED)


def apply_task(state: State, body: TaskAnnouncement, author: Author, posting_id: PostingId) -> None:
    """Queue the task for a bundle."""
    identity, document = holder(author).identity, Task.from_bytes(body.document)
    task_id, classes = body.task_id(state.genesis_hash, identity.subject), state.genesis.classes
    size_class = size_class_of(classes, document)
    task = TaskState(
        task_id=task_id,
        owner=identity.subject,
        announcement=body,
        facts=facts_of(document, classes[size_class]),
        size_class=size_class,
        announced_at=state.height,
        organisation=identity.organisation,
    )
    touch(task, posting_id)
    state.tasks[task_id] = task
    state.committees[body.key_id].task = task_id


def check_model(state: State, body: Model, author: Author) -> Claim:
    """Check the model that opens an iteration."""
    task, name = find_own_task(state, body.task, author), holder(author).name
    bundle = present(None if task.bundle is None else state.bundles[task.bundle], NOT_DUE, culprit=name)
    due = bundle.phase is Phase.WAITING and not task.ended and body.iteration == bundle.iterations + 1
    require(due, NOT_DUE, culprit=name)
    require(task.model_iteration < body.iteration, POSTED, culprit=name)
    check_blob(state, body.model, state.genesis.limits.max_model_bytes)
    free = task.model is None or (task.summed and task.facts.own_rule)
    if not free:
        expected = task.next_model if task.summed else task.model
        require(body.model.sha256 == expected, RULE, culprit=name)
        return Claim((body.model,))
    facts = task.facts
    shape = ModelClaim(body.model.sha256, facts.parameters, facts.scale_bits, facts.companions)
    return Claim((body.model,), shape)


def apply_model(state: State, body: Model, _author: Author, posting_id: PostingId) -> None:
    """Take the model; the iteration opens at the end of a block (``block_end``)."""
    task = state.tasks[body.task]
    task.model, task.model_iteration = body.model.sha256, body.iteration
    touch(task, posting_id)


def check_rejection(state: State, body: RejectModel, author: Author) -> Claim:
    """Check that an owner rejects what its last sum made, before the next iteration opens."""
    task, name = find_own_task(state, body.task, author), holder(author).name
    bundle = state.bundles.get(-1 if task.bundle is None else task.bundle)
    waits = bundle is not None and bundle.phase is Phase.WAITING and bundle.iterations == body.iteration
    require(waits and task.summed and not task.ended, NOT_SUMMED, culprit=name)
    require(task.model_iteration <= body.iteration, DECIDED, culprit=name)
    return Claim()


def apply_rejection(state: State, body: RejectModel, _author: Author, posting_id: PostingId) -> None:
    """Let the former model, with its velocity, open the next iteration; the release stays a release."""
    task = state.tasks[body.task]
    task.model_iteration = body.iteration + 1
    touch(task, posting_id)


def check_end_iteration(state: State, body: EndIteration, author: Author) -> Claim:
    """Check an owner's wish to end an iteration early."""
    task, name = find_own_task(state, body.task, author), holder(author).name
    sitting = open_sitting(state, task.bundle, body.iteration, NOT_OPEN, culprit=name)
    require(sitting.bundle.early_end, NO_EARLY_END, culprit=name)
    require(body.task not in sitting.iteration.end_votes, VOTED, culprit=name)
    return Claim()


def apply_end_iteration(state: State, body: EndIteration, _author: Author, posting_id: PostingId) -> None:
    """Record the wish; it takes every live owner of the bundle."""
    current = Seat.of(state, body.task).iteration
    current.end_votes.add(body.task)
    touch(current, posting_id)


def check_end_task(state: State, body: EndTask, author: Author) -> Claim:
    """Check the end of a task."""
    task = find_own_task(state, body.task, author)
    require(not task.ended, TASK_ENDED, culprit=holder(author).name)
    return Claim()


def apply_end_task(state: State, body: EndTask, _author: Author, posting_id: PostingId) -> None:
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


def apply_ledger(state: State, body: PrivacyLedger, _author: Author, posting_id: PostingId) -> None:
    """Record the entry."""
    task = state.tasks[body.task]
    task.ledger.append(LedgerEntry(body.releases, body.zero_out, body.replace))
    touch(task, posting_id)
