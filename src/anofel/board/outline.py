"""What headers vouch for of a state, without what was posted: enough for a client that verifies no postings.

An outline holds the records of every kind with the numbers that their digests cover (``roots``), the
certifiers' window of roots, the validators, and the size and root of the client tree. It comes in *parts*,
one for each sub-root of a header. Whoever reads it takes nothing else from it: what no digest covers is
derived (facts of a task, by its document) or left empty (ledgers, messages of runs and who sent them,
submissions and their number), and every part must give the sub-root of a header that validators signed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec

from anofel.board import roots
from anofel.board.announcement import TaskFacts, facts_of
from anofel.board.records import Record, Records
from anofel.board.state import (
    NO_BLOCK,
    Agreement,
    Bundle,
    CertifierState,
    Committee,
    CommitteeMember,
    CommitteeShares,
    Iteration,
    KeyRun,
    Position,
    State,
    TaskState,
    digest,
)
from anofel.board.validators import ValidatorState
from anofel.errors import AnofelError, VerificationError
from anofel.ids import SharesId
from anofel.messages import Genesis, Header
from anofel.primitives import CertifierKey, CertifierTree, ClientTree
from anofel.tasks.task import Task

PARTS: Final = ("certifiers", "clients", "committees", "tasks", "bundles")
"""The sub-roots of a header that an outline opens. The log of nullifiers is left out."""

UNNAMED: Final = CommitteeMember("a member whom headers do not name", "", "")
"""No digest covers the names in members' certificates; whoever demands some demands them in vain."""

T = TypeVar("T")
R = TypeVar("R", bound=Record)


class FalseOutline(VerificationError):
    """A part of an outline is not what the header vouches for."""

    code = "false-outline"


@dataclass
class _Certifiers:
    records: list[CertifierState]
    window: list[bytes]


@dataclass
class _Clients:
    epoch: int
    size: int
    root: bytes


@dataclass
class _Committees:
    runs: list[KeyRun]
    committees: list[Committee]
    validators: ValidatorState


Part = _Certifiers | _Clients | _Committees | list[TaskState] | list[Bundle]


def part_of(state: State, name: str) -> bytes:
    """Write one part of the outline of a state."""
    return msgspec.msgpack.encode(_part(state, name))


def _part(state: State, name: str) -> Part:
    if name == "certifiers":
        return _Certifiers(list(state.certifiers.resting()), state.certifier_roots)
    if name == "clients":
        return _Clients(state.epoch, len(state.clients), state.clients.root().to_bytes())
    if name == "committees":
        runs = [replace(run, posted={}, votes={}, entered={}) for run in state.runs.resting()]
        return _Committees(runs, list(state.committees.resting()), state.validators)
    if name == "tasks":
        return [replace(task, ledger=[]) for task in state.tasks.resting()]
    return [_bare(bundle) for bundle in state.bundles.resting()]


def _bare(bundle: Bundle) -> Bundle:
    if bundle.current is None:
        return replace(bundle)
    positions = [
        replace(position, aggregates={}, count_shares=[], sum_shares=[])
        for position in bundle.current.positions
    ]
    return replace(
        bundle,
        current=replace(bundle.current, submissions={}, tags=set(), end_votes=set(), positions=positions),
    )


# Reading


def read_outline(
    genesis: Genesis, header: Header, parts: Mapping[str, bytes], trees: Mapping[int, ClientTree]
) -> State:
    """Return the state after a block as far as its header vouches for it. Raises ``FalseOutline``.

    ``trees``: the client trees that were verified before, by epoch; the current one may have another size.
    What was posted is not in it: nobody knows from it which nullifiers were spent, how many submissions an
    iteration has, or what the members of a committee are called.
    """
    certifiers = _decoded(parts, "certifiers", _Certifiers)
    committees = _decoded(parts, "committees", _Committees)
    tasks = _decoded(parts, "tasks", list[TaskState])
    bundles = _decoded(parts, "bundles", list[Bundle])
    try:
        tree = _certifier_tree(certifiers.records)
        made = {one.key_id: _fresh(one) for one in committees.committees}
        shares = {one.shares_id: one for found in made.values() for one in _generations(found)}
        state = State(
            genesis=genesis,
            genesis_hash=genesis.hash,
            validators=committees.validators,
            height=header.height,
            time=header.time,
            tip=header.hash(genesis.hash),
            epoch=header.epoch,
            certifiers=Records({one.key: _fresh(one) for one in certifiers.records}),
            certifier_tree=tree,
            certifier_roots=certifiers.window,
            client_trees={header.epoch: ClientTree(), **trees},
            runs=Records({run.run_id: _own_run(genesis, run) for run in committees.runs}),
            committees=Records(made),
            tasks=Records({task.task_id: _own_task(genesis, task) for task in tasks}),
            bundles=Records({bundle.number: _own_bundle(bundle, shares) for bundle in bundles}, nested=True),
        )
        found = {
            "certifiers": roots.certifiers(state),
            "committees": roots.committees(state),
            "tasks": roots.tasks(state),
            "bundles": roots.bundles(state),
        }
    except (AnofelError, ValueError, KeyError, TypeError, IndexError) as error:
        raise FalseOutline(f"The outline of block {header.height} cannot be used: {error}") from None
    for name, root in found.items():
        if root != getattr(header, name):
            raise FalseOutline(f"The {name} of block {header.height} are not those that its header names.")
    return state


def clients_of(header: Header, parts: Mapping[str, bytes]) -> tuple[int, bytes]:
    """Return size and root of the client tree after a block. Raises ``FalseOutline``."""
    clients = _decoded(parts, "clients", _Clients)
    if clients.epoch != header.epoch or not 0 <= clients.size <= ClientTree.CAPACITY:
        raise FalseOutline(f"The clients of block {header.height} are of another epoch or number.")
    if digest("clients", [clients.epoch, clients.size, clients.root]) != header.clients:
        raise FalseOutline(f"The clients of block {header.height} are not those that its header names.")
    return clients.size, clients.root


def validators_in(parts: Mapping[str, bytes]) -> ValidatorState:
    """Return the validators that an outline names; nothing vouches for them yet. Raises ``FalseOutline``."""
    return _decoded(parts, "committees", _Committees).validators


def _decoded(parts: Mapping[str, bytes], name: str, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(parts[name], type=kind)
    except (msgspec.MsgspecError, AnofelError, KeyError, ValueError, TypeError, RecursionError):
        raise FalseOutline(f"The {name} of an outline cannot be read.") from None


def _fresh(record: R) -> R:
    return replace(record)  # type: ignore[type-var]


def _generations(committee: Committee) -> list[CommitteeShares]:
    pending = [] if committee.pending is None else [committee.pending]
    return [*committee.former, committee.current, *pending]


def _certifier_tree(records: list[CertifierState]) -> CertifierTree:
    if [one.position for one in records] != list(range(len(records))):
        raise FalseOutline("The places of the certifiers are not those of a tree.")
    tree = CertifierTree()
    tree.append([CertifierKey.from_bytes(one.key) for one in records])
    for one in records:
        if not one.in_force:
            tree.zero(one.position)
    return tree


def _own_run(genesis: Genesis, run: KeyRun) -> KeyRun:
    if run.run.run_id(genesis.hash) != run.run_id:
        raise FalseOutline("A run has another name than its description gives.")
    entered = dict.fromkeys(range(1, len(run.run.members) + 1), UNNAMED)
    return replace(run, base=None, share_epoch=0, posted={}, votes={}, entered=entered)


def _own_task(genesis: Genesis, task: TaskState) -> TaskState:
    """Take what the digest covers, and derive the facts from the document that the task's name covers."""
    if task.announcement.task_id(genesis.hash, task.owner) != task.task_id:
        raise FalseOutline("A task has another name than its announcement gives.")
    if not 0 <= task.size_class < len(genesis.classes):
        raise FalseOutline("A task is of no size class.")
    facts = _facts(task.announcement.document, genesis, task.size_class)
    return replace(task, facts=facts, organisation="", ledger=[])


_FACTS: dict[tuple[bytes, bytes, int], TaskFacts] = {}
_MOST_FACTS: Final = 1024


def _facts(document: bytes, genesis: Genesis, size_class: int) -> TaskFacts:
    """Derive the facts of a document once: they take long where very many clients are admitted."""
    key = (document, genesis.hash, size_class)
    if key not in _FACTS:
        if len(_FACTS) >= _MOST_FACTS:
            _FACTS.clear()
        _FACTS[key] = facts_of(Task.from_bytes(document), genesis.classes[size_class])
    return _FACTS[key]


def _own_bundle(bundle: Bundle, shares: Mapping[SharesId, CommitteeShares]) -> Bundle:
    current = bundle.current
    if current is None:
        return replace(bundle)
    own = Iteration(
        number=current.number,
        opened_at=current.opened_at,
        close_by=current.close_by,
        epoch=current.epoch,
        num_clients=current.num_clients,
        client_root=current.client_root,
        closed_at=current.closed_at,
        close_hash=NO_BLOCK,
        aggregate_by=current.aggregate_by,
        count_by=current.count_by,
        sum_by=current.sum_by,
        positions=[_own_position(position, shares) for position in current.positions],
        history=current.history,
    )
    return replace(bundle, current=own)


def _own_position(position: Position, shares: Mapping[SharesId, CommitteeShares]) -> Position:
    agreed = position.agreed
    return Position(
        task_id=position.task_id,
        progress=position.progress,
        shares=None if position.shares is None else shares[position.shares.shares_id],
        agreed=None if agreed is None else Agreement((), agreed.groups),
        counts=position.counts,
        total=position.total,
        history=position.history,
    )
