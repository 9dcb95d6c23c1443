"""What a page shows of a board, as documents; the node's interface gives the same ones as JSON.

Everything follows from the public state. Nothing here is about one client: submissions are counted, and a
posting is shown only to whoever asks for it by its name or its place.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from anofel.board.genesis import flaws_of
from anofel.board.seat import Seat, Sitting
from anofel.board.state import (
    Bundle,
    Committee,
    CommitteeMember,
    KeyRun,
    Outcome,
    Phase,
    Position,
    Progress,
    State,
    TaskState,
)
from anofel.committee.schemes import NAMES
from anofel.disk.sections import canonical_json, json_values
from anofel.errors import InvalidInput
from anofel.models.card import CardIteration, Course, model_card
from anofel.page.words import OUTCOMES, PROGRESS, UNITS
from anofel.privacy.metric_slots import reported_metrics
from anofel.privacy.plan import Plan
from anofel.tasks.task import Task

MICRO = 1_000_000
MAX_KEPT = 4096
"""Documents of tasks that stay read."""


@dataclass(frozen=True, kw_only=True)
class Tip:
    """The last block."""

    height: int
    hash: str
    time: int


@dataclass(frozen=True, kw_only=True)
class MemberFacts:
    """Who holds a share of a committee's key."""

    name: str
    organisation: str
    issuer: str


@dataclass(frozen=True, kw_only=True)
class CommitteeFacts:
    """A committee."""

    key_id: str
    scheme: str
    threshold: int
    members: tuple[MemberFacts, ...]
    handovers: int
    task: str | None
    """The id of the task that it serves."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A run of key generation or of a handover that is under way."""

    run_id: str
    scheme: str
    threshold: int
    num_members: int
    rounds: int
    """How many rounds anybody posted in."""
    keys_posted: int


@dataclass(frozen=True, kw_only=True)
class SeatMemberFacts:
    """What one member of a committee posted in the current iteration."""

    name: str
    """The organisation, or the name of who has none."""
    sum_stated: bool
    count_share: bool
    sum_share: bool


@dataclass(frozen=True, kw_only=True)
class SeatFacts:
    """Where one committee of a bundle stands in the current iteration."""

    task: str
    name: str
    progress: str
    words: str
    members: tuple[SeatMemberFacts, ...]
    threshold: int
    count: int | None


@dataclass(frozen=True, kw_only=True)
class BundleFacts:
    """Tasks that share their iterations, and where they stand."""

    number: int
    phase: str
    iteration: int
    tasks: tuple[str, ...]
    waits_for: str
    until: int | None
    """The height at which it goes on at the latest."""
    opened_at: int | None
    close_by: int | None
    num_clients: int | None
    """The anonymity set: clients under the root that the iteration fixed."""
    posts: int
    max_posts: int
    seats: tuple[SeatFacts, ...]


@dataclass(frozen=True, kw_only=True)
class OutcomeFacts:
    """How an iteration ended for a task."""

    iteration: int
    outcome: str
    words: str
    num_clients: int
    posts: int
    excluded: int
    count: int | None
    opened: int
    releases: int
    epsilon: float | None
    """ε (zero-out) as the owner posted it; an audit checks it."""
    reported: dict[str, float]
    """What clients report about the model that opened the iteration: noisy means."""
    opened_at: int
    closed_at: int
    over_at: int


@dataclass(frozen=True, kw_only=True)
class StudyFacts:
    """A task in plain words."""

    task: str
    name: str
    owner: str
    """The owner's organisation, by its certificate."""
    study: str
    learns: str
    """What is learned, in one sentence."""
    data: str
    """From which data, in a few words."""
    unit: str
    promise: str
    delta: str
    min_clients: int
    max_colluders: int
    releases: int
    max_releases: int
    epsilon_zero_out: float | None
    """As the owner posted it for all releases so far; None if it did not. The board does not check it."""
    epsilon_replace: float | None
    committee: str
    bundle: int | None
    ended: bool
    model: str | None
    """SHA-256 of the current model, which is a blob."""
    announced_at: int
    flaws: tuple[str, ...]
    outcomes: tuple[OutcomeFacts, ...]
    document: dict[str, Any]
    """The task as it was announced."""


@dataclass(frozen=True, kw_only=True)
class CertifierFacts:
    """A certifier's key."""

    key: str
    in_force: bool


@dataclass(frozen=True, kw_only=True)
class ValidatorFacts:
    """Who signs blocks."""

    key: str
    power: int


@dataclass(frozen=True, kw_only=True)
class BoardFacts:
    """A board after a block."""

    name: str
    genesis: str
    height: int
    tip: str
    time: int
    interval_ms: int
    rules: int
    insecure: tuple[str, ...]
    """What protects nobody on this board, by its genesis."""
    validators: tuple[ValidatorFacts, ...]
    storage_holders: int
    registered: int
    epoch: int
    certifiers: tuple[CertifierFacts, ...]
    committees: tuple[CommitteeFacts, ...]
    runs: tuple[RunFacts, ...]
    bundles: tuple[BundleFacts, ...]
    studies: tuple[StudyFacts, ...]
    refusals: dict[str, int]
    """Refused postings by the rule's code, since this node was started; empty where nobody counts."""

    def study(self, task: str) -> StudyFacts | None:
        """Return a study by the id of its task."""
        return next((study for study in self.studies if study.task == task), None)


def board_facts(state: State, tip: Tip, refusals: dict[str, int]) -> BoardFacts:
    """Say what the board looks like."""
    genesis = state.genesis
    now = state.validators.eras.at(state.height)
    return BoardFacts(
        name=genesis.name,
        genesis=state.genesis_hash.hex(),
        height=tip.height,
        tip=tip.hash,
        time=tip.time,
        interval_ms=genesis.interval_ms,
        rules=genesis.rules,
        insecure=tuple(flaws_of(genesis)),
        validators=tuple(
            ValidatorFacts(key=one.key.hex(), power=one.power) for one in now.validators.values()
        ),
        storage_holders=len(now.holders),
        registered=len(state.clients),
        epoch=state.epoch,
        certifiers=tuple(
            CertifierFacts(key=key.hex(), in_force=one.in_force) for key, one in state.certifiers.items()
        ),
        committees=tuple(_committee(state, committee) for committee in state.committees.values()),
        runs=tuple(_run(run) for run in state.runs.live() if not run.done),
        bundles=tuple(_bundle(state, bundle) for bundle in state.bundles.live()),
        studies=tuple(_study(task) for task in state.tasks.values()),
        refusals=dict(sorted(refusals.items())),
    )


def _member(member: CommitteeMember) -> MemberFacts:
    return MemberFacts(name=member.name, organisation=member.organisation, issuer=member.issuer)


def _committee(state: State, committee: Committee) -> CommitteeFacts:
    return CommitteeFacts(
        key_id=committee.key_id.hex(),
        scheme=NAMES[committee.scheme],
        threshold=committee.current.threshold,
        members=tuple(map(_member, state.members_of(committee.current))),
        handovers=len(committee.former),
        task=committee.task.hex() if committee.task else None,
    )


def _run(run: KeyRun) -> RunFacts:
    return RunFacts(
        run_id=run.run_id.hex(),
        scheme=NAMES[run.run.scheme],
        threshold=run.run.threshold,
        num_members=len(run.run.members),
        rounds=len(run.posted),
        keys_posted=len(run.votes),
    )


def facts_of(state: State) -> BoardFacts:
    """Say what a verified board looks like after its last block. Raises ``InvalidInput`` before the first."""
    if state.height == 0:
        raise InvalidInput("The board has no block yet.")
    return board_facts(state, Tip(height=state.height, hash=state.tip.hex(), time=state.time), {})


def card_of(board: BoardFacts, study: StudyFacts, *, model: str = "", iteration: int | None = None) -> str:
    """Write the card of a study's current model, or of the one with a digest, as far as this board went."""
    committee = next(one for one in board.committees if one.key_id == study.committee)
    course = Course(
        board=board.name,
        genesis=board.genesis,
        height=board.height,
        task_id=study.task,
        owner=study.owner,
        committee=[member.organisation or member.name for member in committee.members],
        threshold=committee.threshold,
        releases=study.releases,
        epsilon_zero_out=study.epsilon_zero_out,
        epsilon_replace=study.epsilon_replace,
        iterations=[
            CardIteration(number=o.iteration, outcome=o.outcome, count=o.count) for o in study.outcomes
        ],
        insecure=board.insecure,
    )
    task, _ = _read(canonical_json(study.document))
    return model_card(task, digest=model or study.model or "", course=course, iteration=iteration)


# Bundles


def _bundle(state: State, bundle: Bundle) -> BundleFacts:
    sitting = Sitting.find(state, bundle.number)
    waits_for, until = _waits_for(bundle, sitting)
    iteration = None if sitting is None else sitting.iteration
    return BundleFacts(
        number=bundle.number,
        phase=bundle.phase.value,
        iteration=bundle.iterations,
        tasks=tuple(task.hex() for task in bundle.tasks),
        waits_for=waits_for,
        until=until,
        opened_at=iteration.opened_at if iteration else None,
        close_by=iteration.close_by if iteration else None,
        num_clients=iteration.num_clients if iteration else None,
        posts=len(iteration.submissions) if iteration else 0,
        max_posts=state.class_of(bundle).max_posts,
        seats=() if sitting is None else tuple(_seat(state, seat) for seat in sitting.seats),
    )


def _waits_for(bundle: Bundle, sitting: Sitting | None) -> tuple[str, int | None]:
    if bundle.phase is Phase.ENDED:
        return "Every task of this bundle has ended.", None
    if bundle.phase is Phase.WAITING or sitting is None:
        return "The owners post the models that open the next iteration.", bundle.model_by
    current = sitting.iteration
    if bundle.phase is Phase.OPEN:
        return "Clients train on their own rows and post, encrypted.", current.close_by
    stages = {position.progress for position in current.positions}
    if Progress.CLOSED in stages:
        return "The committees add the encrypted posts and state their sums.", current.aggregate_by
    if Progress.AGGREGATED in stages:
        return "The committees open how many updates there are.", current.count_by
    return "The committees open the sums.", current.sum_by


def _seat(state: State, seat: Seat) -> SeatFacts:
    position: Position = seat.position
    counted = {share.member for share in position.count_shares}
    opened = {share.member for share in position.sum_shares}
    members = enumerate(state.members_of(seat.shares), start=1)
    return SeatFacts(
        task=seat.task_id.hex(),
        name=seat.task.facts.name,
        progress=position.progress.value,
        words=PROGRESS[position.progress],
        members=tuple(
            SeatMemberFacts(
                name=member.organisation or member.name,
                sum_stated=number in position.aggregates,
                count_share=number in counted,
                sum_share=number in opened,
            )
            for number, member in members
        ),
        threshold=seat.shares.threshold,
        count=position.count,
    )


# Studies


@lru_cache(maxsize=MAX_KEPT)
def _read(document: bytes) -> tuple[Task, dict[str, Any]]:
    """Read a task's document; a board shows it anew with every block."""
    return Task.from_bytes(document), json_values(document, "A task")


def _study(state: TaskState) -> StudyFacts:
    task, document = _read(state.announcement.document)
    last = next((entry for entry in reversed(state.ledger) if entry.releases == state.releases), None)
    spent = {entry.releases: entry.zero_out / MICRO for entry in state.ledger}
    return StudyFacts(
        task=state.task_id.hex(),
        name=task.name,
        owner=state.organisation,
        study=task.study,
        learns=_learns(task),
        data=_data(task),
        unit=task.privacy.unit,
        promise=UNITS[task.privacy.unit],
        delta=str(task.privacy.delta),
        min_clients=task.privacy.min_clients,
        max_colluders=task.privacy.max_colluders,
        releases=state.releases,
        max_releases=state.facts.max_releases,
        epsilon_zero_out=last.zero_out / MICRO if last else None,
        epsilon_replace=last.replace / MICRO if last else None,
        committee=state.announcement.key_id.hex(),
        bundle=state.bundle,
        ended=state.ended,
        model=state.model.hex() if state.model else None,
        announced_at=state.announced_at,
        flaws=("contributions are unproven",) if task.insecure_unproven_contributions else (),
        outcomes=tuple(_outcome(outcome, spent, state.announcement.document) for outcome in state.outcomes),
        document=document,
    )


@lru_cache(maxsize=16 * MAX_KEPT)
def _reported(document: bytes, sums: tuple[int, ...], count: int) -> dict[str, float]:
    """Say what an iteration's metric slots tell; iterations that ended do not change."""
    task, _ = _read(document)
    slots = np.array(sums, dtype=np.int64)
    return (reported_metrics(Plan.of(task), slots, count) or {}) if sums else {}


def _outcome(outcome: Outcome, spent: dict[int, float], document: bytes) -> OutcomeFacts:
    return OutcomeFacts(
        iteration=outcome.iteration,
        outcome=outcome.progress.value,
        words=OUTCOMES[outcome.progress],
        num_clients=outcome.num_clients,
        posts=outcome.posts,
        excluded=outcome.excluded,
        count=outcome.count,
        opened=outcome.opened,
        releases=outcome.releases,
        epsilon=spent.get(outcome.releases) if outcome.releases else 0.0,
        reported=_reported(document, outcome.reported, outcome.opened),
        opened_at=outcome.opened_at,
        closed_at=outcome.closed_at,
        over_at=outcome.over_at,
    )


def _learns(task: Task) -> str:
    size = f"{task.model.parameters:,} numbers"
    return f"A {task.model.kind} model of {size}, trained by {task.training.algorithm}."


def _data(task: Task) -> str:
    kind = f"rows of type {task.dataset_type}" if task.dataset_type else "rows of any certified type"
    return f"{kind} ({task.study})" if task.study else kind
