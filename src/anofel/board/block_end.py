"""The end of a block: phases move, deadlines run out, bundles form (``docs/board.md``).

Nothing here computes on ciphertexts. What had to be opened comes in as ``Results``; who holds the
attachments makes them (``verification``).
"""

from dataclasses import dataclass, field

from anofel.board.rules.committees import end_old_runs
from anofel.board.seat import Seat, Sitting
from anofel.board.state import (
    Agreement,
    Bundle,
    Iteration,
    Outcome,
    Phase,
    Position,
    Progress,
    Share,
    State,
    TaskState,
)
from anofel.ids import BlobHash, TaskId
from anofel.primitives import Commitment

REMEMBERED_BLOCKS = 1 << 14
"""For how many blocks after its end the last submissions and shares of a bundle are kept in the state."""


@dataclass(frozen=True, slots=True)
class SumResult:
    """A sum that t shares opened, and the model that the task's rule makes of it, by their hashes."""

    total: bytes
    """SHA-256 over the integers of the sums."""
    next_model: BlobHash | None
    """SHA-256 of the next model file; None if the owner's own rule makes it."""
    count: int = 0
    """How many updates are in it."""
    reported: tuple[int, ...] = ()
    """The sums of the metric slots."""


@dataclass(slots=True)
class Results:
    """What the shares of this block opened, by task."""

    counts: dict[TaskId, tuple[int, ...]] = field(default_factory=dict)
    """Of each group."""
    sums: dict[TaskId, SumResult | None] = field(default_factory=dict)
    """None if nothing can be decoded."""


def begin_block(state: State, time: int) -> None:
    """Start filling the next block; its time is known from now on."""
    state.height += 1
    state.time = time
    state.num_postings = state.num_bytes = 0
    for sitting in Sitting.live(state):
        if sitting.is_closed and sitting.iteration.closed_at == state.height - 1:
            sitting.iteration.close_hash = state.tip


def counts_due(state: State) -> list[Seat]:
    """Return the seats whose count t shares can open now."""
    return [
        seat
        for seat in _closed_seats(state)
        if _can_open(seat, Progress.AGGREGATED, seat.position.count_shares)
    ]


def sums_due(state: State) -> list[Seat]:
    """Return the seats whose sum t shares can open now."""
    return [
        seat for seat in _closed_seats(state) if _can_open(seat, Progress.COUNTED, seat.position.sum_shares)
    ]


def _can_open(seat: Seat, progress: Progress, shares: list[Share]) -> bool:
    return seat.position.progress is progress and len(shares) >= seat.shares.threshold


def end_block(state: State, results: Results) -> None:
    """Move everything that moves at the end of a block."""
    if state.newcomers:  # an empty append would still hash its way up the tree
        state.clients.append([Commitment.from_bytes(commitment) for commitment in state.newcomers])
        state.newcomers.clear()
    for bundle in state.bundles.live():
        sitting = Sitting.find(state, bundle.number)
        if sitting is not None and sitting.is_open:
            _close_if_due(sitting)
        elif sitting is not None and sitting.is_closed:
            _move_positions(sitting, results)
        if bundle.phase is Phase.WAITING:
            _open_if_due(state, bundle)
    _form_bundles(state)
    _hand_over(state)
    end_old_runs(state)
    _forget_ended(state)
    _end_epochs(state)
    _slide_window(state)
    state.validators.lapse(state.height)


def _closed_seats(state: State) -> list[Seat]:
    return [seat for sitting in Sitting.live(state) if sitting.is_closed for seat in sitting.seats]


# Open → Closed


def _close_if_due(sitting: Sitting) -> None:
    state, size, current = sitting.state, sitting.size, sitting.iteration
    if state.height < current.close_by and not _ends_early(sitting):
        return
    current.closed_at = state.height
    current.aggregate_by = state.height + size.aggregate
    current.count_by = current.aggregate_by + size.count
    current.sum_by = current.count_by + size.sum
    sitting.bundle.phase = Phase.CLOSED
    for position in current.positions:
        if position.progress is Progress.COLLECTING:
            position.progress = Progress.CLOSED
            position.shares = state.committee_of(state.tasks[position.task_id]).current
            if len(current.submissions) < state.tasks[position.task_id].facts.limits.min_clients:
                position.progress = Progress.TOO_FEW  # (D-24)
    _finish_if_over(sitting)


def _ends_early(sitting: Sitting) -> bool:
    """Whether all owners asked for the end and nobody could still post, or nobody has.

    Otherwise owners would choose after which post an iteration closes, and with posts of their own fill it up
    around a single one of somebody else.
    """
    state, size, current = sitting.state, sitting.size, sitting.iteration
    live = {task.task_id for task in state.live_tasks(sitting.bundle)}
    if not (sitting.bundle.early_end and live and live <= current.end_votes):
        return False
    if not current.submissions:  # not before posts could come: openings are what newcomers wait for
        return state.height >= current.opened_at + size.post_from
    return len(current.submissions) >= min(current.num_clients, size.max_posts)


# Closed → Aggregated → Counted → an outcome, for every committee by itself


def _move_positions(sitting: Sitting, results: Results) -> None:
    for seat in sitting.seats:
        if not seat.position.progress.is_outcome:
            _move(sitting.state.height, seat, results)
    _finish_if_over(sitting)


def _move(height: int, seat: Seat, results: Results) -> None:
    position, task, where, current = seat.position, seat.task, seat.task_id, seat.iteration
    least = task.facts.limits.min_clients
    if position.progress is Progress.CLOSED:
        position.agreed = _agreement(position, seat.shares.threshold)
        if position.agreed is not None:
            enough = all(group.num_posts >= least for group in position.agreed.groups)
            position.progress = Progress.AGGREGATED if enough else Progress.TOO_FEW  # (D-24)
        elif height >= current.aggregate_by:
            position.progress = Progress.FAILED
    elif position.progress is Progress.AGGREGATED:
        if where in results.counts:
            position.counts = results.counts[where]
            enough = any(count >= least for count in position.counts)
            position.progress = Progress.COUNTED if enough else Progress.TOO_FEW
            task.releases += enough  # whatever follows (D-21)
        elif height >= current.count_by:
            position.progress = Progress.FAILED
    elif where in results.sums:
        _take_sum(position, task, results.sums[where])
    elif height >= current.sum_by:
        position.progress = Progress.FAILED
    if position.progress.is_outcome and task.releases >= task.facts.max_releases:
        task.ended = True


def _agreement(position: Position, threshold: int) -> Agreement | None:
    """Return what t members state equally, if they do (D-18)."""
    stated = list(position.aggregates.values())
    return next((agreement for agreement in stated if stated.count(agreement) >= threshold), None)


def _take_sum(position: Position, task: TaskState, opened: SumResult | None) -> None:
    """T shares opened the sum; it may still not decode."""
    if opened is None:
        position.progress = Progress.UNDECODABLE
    else:
        position.progress, position.total = Progress.SUMMED, opened.total
        position.opened, position.reported = opened.count, opened.reported
        task.summed, task.next_model = True, opened.next_model


def _finish_if_over(sitting: Sitting) -> None:
    state, bundle = sitting.state, sitting.bundle
    if all(position.progress.is_outcome for position in sitting.iteration.positions):
        for seat in sitting.seats:
            if seat.position.progress is not Progress.ABSENT:
                seat.task.outcomes = (*seat.task.outcomes, _outcome(state.height, seat))
        bundle.phase = Phase.WAITING
        bundle.model_by = state.height + sitting.size.model
        if not state.live_tasks(bundle):
            _end_bundle(state, bundle)


def _outcome(height: int, seat: Seat) -> Outcome:
    current, position = seat.iteration, seat.position
    return Outcome(
        iteration=current.number,
        progress=position.progress,
        num_clients=current.num_clients,
        posts=len(current.submissions),
        excluded=len(position.agreed.excluded) if position.agreed else 0,
        count=position.count,
        opened=position.opened,
        releases=seat.task.releases,
        reported=position.reported,
        opened_at=current.opened_at,
        closed_at=current.closed_at,
        over_at=height,
    )


# Waiting → Open


def _open_if_due(state: State, bundle: Bundle) -> None:
    following = bundle.iterations + 1
    live = state.live_tasks(bundle)
    ready = all(task.model_iteration == following for task in live)
    if not ready and state.height < bundle.model_by:
        return
    for task in live:
        if task.model is None:
            task.ended = True  # its first model never came
    if not state.live_tasks(bundle):
        _end_bundle(state, bundle)
        return
    bundle.iterations, bundle.phase = following, Phase.OPEN
    bundle.current = Iteration(
        number=following,
        opened_at=state.height,
        close_by=state.height + state.class_of(bundle).train,
        epoch=state.epoch,
        num_clients=len(state.clients),
        client_root=state.clients.root().to_bytes(),
        positions=[_begin_position(state.tasks[name]) for name in bundle.tasks],
    )


def _begin_position(task: TaskState) -> Position:
    if task.ended:
        return Position(task.task_id, Progress.ABSENT)
    # A rule's model that the owner did not post in time is not taken: the last model stays.
    task.summed, task.next_model = False, None
    return Position(task.task_id)


def _end_bundle(state: State, bundle: Bundle) -> None:
    bundle.phase, bundle.ended_at = Phase.ENDED, state.height
    state.remembered.append(bundle.number)
    for name in bundle.tasks:
        committee = state.committee_of(state.tasks[name])
        if committee.task == name:
            committee.task = None


# Bundles, handovers, epochs, roots


def _form_bundles(state: State) -> None:
    """Group waiting tasks: first come, per size class, owners of different organisations (D-06).

    At most one of them deals its posts to groups.
    """
    for size_class in range(len(state.genesis.classes)):
        while True:
            waiting = [task for task in state.waiting_tasks() if task.size_class == size_class]
            chosen: list[TaskState] = []
            for task in waiting:
                if not any(_is_same_house(task, other) or _would_cross(task, other) for other in chosen):
                    chosen.append(task)
            chosen = chosen[: state.genesis.bundle_size]
            full = len(chosen) == state.genesis.bundle_size
            if not full and not (
                waiting and state.height - waiting[0].announced_at >= state.genesis.bundle_wait
            ):
                break
            _make_bundle(state, size_class, chosen)


def _is_same_house(task: TaskState, other: TaskState) -> bool:
    """Whether two tasks are of one organisation, which could otherwise make up a bundle by itself.

    Owners whose certificates name none count as one.
    """
    return task.owner == other.owner or task.organisation == other.organisation


def _would_cross(task: TaskState, other: TaskState) -> bool:
    """Whether both tasks deal posts to groups (D-26).

    A post has a bit of 1 for one task at most, so the counts of two deals of the same posts tell on each
    other: where they differ in one post, the difference of two counts is its bit.
    """
    return task.facts.groups > 1 and other.facts.groups > 1


def _make_bundle(state: State, size_class: int, tasks: list[TaskState]) -> None:
    bundle = Bundle(
        number=len(state.bundles),
        tasks=tuple(task.task_id for task in tasks),
        size_class=size_class,
        early_end=all(task.announcement.early_end for task in tasks),
        model_by=state.height + state.genesis.classes[size_class].model,
    )
    state.bundles[bundle.number] = bundle
    for position, task in enumerate(tasks):
        task.bundle, task.position = bundle.number, position


def _hand_over(state: State) -> None:
    """Let handed-over shares take effect between iterations: clients of an open one know the old members."""
    for committee in state.committees.live():
        if committee.pending is not None and not _is_in_use(state, committee.task):
            committee.former.append(committee.current)
            committee.current, committee.pending = committee.pending, None


def _is_in_use(state: State, task_id: TaskId | None) -> bool:
    bundle = state.tasks[task_id].bundle if task_id is not None else None
    return bundle is not None and state.bundles[bundle].phase in (Phase.OPEN, Phase.CLOSED)


def _forget_ended(state: State) -> None:
    """Drop what bundles that ended long ago no longer need; outcomes, counts and digests stay.

    Owners open the last sum at its block, or a little later if a blob could not be fetched.
    """
    while state.remembered:
        bundle = state.bundles[state.remembered[0]]
        assert bundle.ended_at is not None
        if state.height < bundle.ended_at + REMEMBERED_BLOCKS:
            return
        state.remembered.popleft()
        if (sitting := Sitting.find(state, bundle.number)) is not None:
            sitting.iteration.forget()


def _end_epochs(state: State) -> None:
    """Drop client trees that no open iteration needs."""
    needed = {state.epoch} | {sitting.iteration.epoch for sitting in Sitting.live(state) if sitting.is_open}
    for epoch in state.client_trees.keys() - needed:
        del state.client_trees[epoch]


def _slide_window(state: State) -> None:
    """Keep the certifier roots of the last blocks (D-07)."""
    state.certifier_roots.append(state.certifier_tree.root().to_bytes())
    del state.certifier_roots[: -state.genesis.limits.root_window]
