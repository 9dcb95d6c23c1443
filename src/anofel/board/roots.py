"""The named sub-roots of a header: each covers everything the state says about its subject.

What cannot be told from the numbers here (submissions, aggregates, shares, rounds, ledger entries) is
covered by the ``history`` of the record, which names the postings.
"""

from collections.abc import Iterator
from functools import lru_cache

from anofel.board.state import (
    Agreement,
    Bundle,
    CertifierState,
    Committee,
    CommitteeShares,
    Iteration,
    KeyRun,
    Outcome,
    Position,
    State,
    TaskState,
    digest,
)
from anofel.board.validators import Era

Hashed = bytes | int | str | None


def certifiers(state: State) -> bytes:
    """The certifier tree, the window of roots that registrations may use, and who holds which key."""
    window = digest("window", state.certifier_roots)
    keys = state.certifiers.root(lambda certifier: digest("certifier", _certifier(certifier)))
    return digest("certifiers", [state.certifier_tree.root().to_bytes(), window, keys])


def clients(state: State) -> bytes:
    """The root of the current epoch's client tree, with its size."""
    return digest("clients", [state.epoch, len(state.clients), state.clients.root().to_bytes()])


def nullifiers(state: State) -> bytes:
    """The root of the log of all nullifiers."""
    return state.nullifiers.root()


def committees(state: State) -> bytes:
    """Runs of key generation, committees, and the board's validators."""
    runs = state.runs.root(lambda run: digest("run", _run(run)))
    made = state.committees.root(lambda committee: digest("committee", _committee(committee)))
    return digest("committees", [runs, made, validators(state)])


def validators(state: State) -> bytes:
    """The eras of validators, and the changes that are proposed."""
    eras = digest("eras", [era_digest(era) for era in state.validators.eras])
    opened = [
        part for name, one in state.validators.open.items() for part in (name, digest("signed", one.signed))
    ]
    return digest("validators", [eras, *opened])


def era_digest(era: Era) -> bytes:
    """Name the validators of an era with everything that the board knows of them."""
    entries = [digest("validator", _validator(era, place)) for place in era.validators]
    holders = [digest("holder", [place, *chain]) for place, chain in era.holders.items()]
    return digest("era", [era.since, era.quorum, digest("places", entries), digest("holders", holders)])


def tasks(state: State) -> bytes:
    """Tasks, in the order of their announcement."""
    return state.tasks.root(lambda task: digest("task", _task(task)))


def bundles(state: State) -> bytes:
    """Bundles with their current iteration."""
    return state.bundles.root(lambda bundle: digest("bundle", _bundle(bundle)))


def _validator(era: Era, place: int) -> Iterator[Hashed]:
    one, address = era.validators[place], era.addresses.get(place)
    yield from (place, one.key, one.power, one.binding)
    yield None if address is None else digest("address", [address.name, address.peer, address.url])
    yield from one.chain


def _certifier(certifier: CertifierState) -> Iterator[Hashed]:
    yield from (certifier.key, certifier.holder, certifier.position, int(certifier.in_force))


def _run(run: KeyRun) -> Iterator[Hashed]:
    yield from (run.run_id, run.opened_by, run.opened_at, int(run.done), run.history)


def _shares(shares: CommitteeShares | None) -> Iterator[Hashed]:
    if shares is None:
        yield None
    else:
        yield from (shares.run_id, shares.shares_id, shares.threshold, shares.share_epoch)
        yield from shares.members


def _committee(committee: Committee) -> Iterator[Hashed]:
    yield from (committee.key_id, committee.scheme, committee.task)
    yield digest("shares", _shares(committee.current))
    yield digest("shares", _shares(committee.pending))
    for shares in committee.former:
        yield digest("shares", _shares(shares))


def _task(task: TaskState) -> Iterator[Hashed]:
    yield from (task.task_id, task.owner, task.size_class, task.announced_at, task.bundle, task.position)
    yield from (task.model, task.model_iteration, task.next_model, int(task.summed), task.releases)
    yield from (int(task.ended), task.history)
    for outcome in task.outcomes:
        yield _outcome_digest(outcome)


@lru_cache(maxsize=1 << 16)
def _outcome_digest(outcome: Outcome) -> bytes:
    """Hash an outcome once: it never changes, and a task has many."""
    return digest("outcome", _outcome(outcome))


def _outcome(outcome: Outcome) -> Iterator[Hashed]:
    yield from (outcome.iteration, outcome.progress.value, outcome.num_clients, outcome.posts)
    yield from (outcome.excluded, outcome.count, outcome.opened, outcome.releases)
    yield from (outcome.opened_at, outcome.closed_at, outcome.over_at)
    yield from outcome.reported


def _position(position: Position) -> Iterator[Hashed]:
    agreed = position.agreed
    yield from (position.task_id, position.progress.value, position.total)
    yield None if position.counts is None else digest("counts", position.counts)
    yield digest("groups", _groups(agreed)) if agreed else None
    yield position.shares.shares_id if position.shares else None
    yield position.history


def _groups(agreed: Agreement) -> Iterator[Hashed]:
    for group in agreed.groups:
        yield from (group.set_digest, group.num_posts, group.sum_digest)


def _iteration(iteration: Iteration) -> Iterator[Hashed]:
    yield from (iteration.number, iteration.opened_at, iteration.close_by, iteration.epoch)
    yield from (iteration.num_clients, iteration.client_root, iteration.closed_at)
    yield from (iteration.aggregate_by, iteration.count_by, iteration.sum_by)
    yield iteration.history
    for position in iteration.positions:
        yield digest("position", _position(position))


def _bundle(bundle: Bundle) -> Iterator[Hashed]:
    yield from (bundle.number, bundle.size_class, int(bundle.early_end), bundle.phase.value)
    yield from (bundle.model_by, bundle.iterations, bundle.ended_at, bundle.history)
    yield from bundle.tasks
    yield digest("iteration", _iteration(bundle.current)) if bundle.current else None
