"""What the board knows after a block: plain data, the same at everybody who replays the same blocks.

Records change only in ``rules`` (by an admitted posting) and in ``clock`` (at the end of a block).
Every record has a ``history``: the hash chain over the postings that touched it. Together with its
numbers that gives the digests under the sub-roots of a header.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from anofel.board.genesis import check_genesis
from anofel.board.log import MerkleLog, chained
from anofel.messages import Class, Genesis, Run, Task
from anofel.primitives import CertifierTree, ClientTree, Scope

NO_HISTORY = bytes(32)


class Phase(StrEnum):
    """Where a bundle stands (DESIGN §6)."""

    WAITING = "waiting"
    OPEN = "open"
    CLOSED = "closed"
    ENDED = "ended"


class Progress(StrEnum):
    """Where one committee of a bundle stands in a closed iteration; the last five are outcomes."""

    COLLECTING = "collecting"
    CLOSED = "closed"
    AGGREGATED = "aggregated"
    COUNTED = "counted"
    SUMMED = "summed"
    TOO_FEW = "too-few"
    UNDECODABLE = "undecodable"
    FAILED = "failed"
    ABSENT = "absent"
    """The task ended before the iteration opened; its committee is addressed but decrypts nothing."""

    @property
    def is_outcome(self) -> bool:
        """Whether the iteration is over for this committee."""
        return self in _OUTCOMES


_OUTCOMES = frozenset(
    (Progress.SUMMED, Progress.TOO_FEW, Progress.UNDECODABLE, Progress.FAILED, Progress.ABSENT)
)


@dataclass(slots=True)
class Certifier:
    """A certifier whose key was posted (step 1.a)."""

    key: bytes
    holder: bytes
    position: int
    in_force: bool = True


@dataclass(slots=True)
class KeyVote:
    """What one member posted as the end of a run."""

    key_id: bytes
    shares_id: bytes
    transcript: bytes


@dataclass(slots=True)
class KeyRun:
    """A run of key generation or of a handover (step 1.c)."""

    run_id: bytes
    run: Run
    opened_by: bytes
    opened_at: int
    base: bytes = b""
    """In a handover, the shares with which it began."""
    share_epoch: int = 0
    """Which generation of shares the run makes."""
    posted: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """Round → sender → SHA-256 of the message."""
    votes: dict[int, KeyVote] = field(default_factory=dict)
    done: bool = False
    history: bytes = NO_HISTORY


@dataclass(slots=True)
class CommitteeShares:
    """One generation of a committee's shares: who holds them, and the key file."""

    run_id: bytes
    shares_id: bytes
    """SHA-256 of the key file, which is also its name as a blob."""
    members: tuple[bytes, ...]
    threshold: int
    share_epoch: int


@dataclass(slots=True)
class Committee:
    """An established committee."""

    key_id: bytes
    scheme: int
    current: CommitteeShares
    pending: CommitteeShares | None = None
    """Handed over; takes effect when no iteration of its task is between close and outcome."""
    task: bytes | None = None
    """The task that it serves."""


@dataclass(slots=True)
class LedgerEntry:
    """ε after a number of releases, in micro-units."""

    releases: int
    zero_out: int
    replace: int


@dataclass(slots=True)
class TaskState:
    """An announced task (step 1.d)."""

    task_id: bytes
    owner: bytes
    task: Task
    size_class: int
    announced_at: int
    bundle: int | None = None
    position: int = 0
    model: bytes | None = None
    """SHA-256 of the current model file."""
    model_iteration: int = 0
    """The iteration that the owner's last model opens."""
    next_model: bytes | None = None
    """What the rule makes of the last sum; None if the owner is free, or if the model stays."""
    summed: bool = False
    """Whether the last iteration was ``Summed``."""
    releases: int = 0
    ended: bool = False
    ledger: list[LedgerEntry] = field(default_factory=list)
    history: bytes = NO_HISTORY


@dataclass(slots=True)
class PayloadName:
    """The payload of one contribution and its envelope."""

    envelope: bytes
    sha256: bytes
    length: int


@dataclass(slots=True)
class Accepted:
    """An accepted submission (step 5)."""

    nullifier: bytes
    tag: bytes
    message_key: bytes
    type_commitment: bytes
    ballot: bytes
    payloads: tuple[PayloadName, ...]


@dataclass(slots=True)
class Agreement:
    """What one ``Aggregate`` states, beside its author (D-18)."""

    excluded: tuple[tuple[bytes, int], ...]
    """Nullifier and reason, ascending."""
    set_digest: bytes
    num_posts: int
    sum_digest: bytes
    """SHA-256 of the sum file, which is also its name as a blob."""


@dataclass(slots=True)
class Share:
    """A share of a count (inline) or of a sum (by hash)."""

    member: int
    content: bytes


@dataclass(slots=True)
class Position:
    """One committee of a bundle in one iteration."""

    task_id: bytes
    progress: Progress = Progress.COLLECTING
    shares: CommitteeShares | None = None
    """The committee's shares when the iteration closed; a later handover does not change them."""
    aggregates: dict[int, Agreement] = field(default_factory=dict)
    agreed: Agreement | None = None
    count_shares: list[Share] = field(default_factory=list)
    """In board order; the first t define the count."""
    count: int | None = None
    sum_shares: list[Share] = field(default_factory=list)
    total: bytes | None = None
    """SHA-256 over the decoded sum."""
    history: bytes = NO_HISTORY

    @property
    def threshold(self) -> int:
        """How many members decrypt this position, once the iteration is closed."""
        assert self.shares is not None
        return self.shares.threshold


@dataclass(slots=True)
class Iteration:
    """The current iteration of a bundle."""

    number: int
    opened_at: int
    close_by: int
    epoch: int
    num_clients: int
    client_root: bytes
    closed_at: int = 0
    close_hash: bytes = b""
    aggregate_by: int = 0
    count_by: int = 0
    sum_by: int = 0
    submissions: dict[bytes, Accepted] = field(default_factory=dict)
    tags: set[bytes] = field(default_factory=set)
    end_votes: set[bytes] = field(default_factory=set)
    positions: list[Position] = field(default_factory=list)
    history: bytes = NO_HISTORY


@dataclass(slots=True)
class Bundle:
    """Tasks that share their iterations (D-06)."""

    number: int
    tasks: tuple[bytes, ...]
    size_class: int
    early_end: bool
    phase: Phase = Phase.WAITING
    model_by: int = 0
    iterations: int = 0
    """How many iterations were opened."""
    current: Iteration | None = None
    history: bytes = NO_HISTORY


@dataclass(slots=True)
class State:
    """The board between two postings."""

    genesis: Genesis
    genesis_hash: bytes
    height: int = 0
    """The block that is being filled."""
    time: int = 0
    tip: bytes = b""
    """Hash of the last block; that of genesis before the first."""
    num_postings: int = 0
    num_bytes: int = 0
    epoch: int = 0
    certifiers: dict[bytes, Certifier] = field(default_factory=dict)
    certifier_tree: CertifierTree = field(default_factory=CertifierTree)
    certifier_roots: list[bytes] = field(default_factory=list)
    """The window of roots that registrations may use, newest last."""
    client_trees: dict[int, ClientTree] = field(default_factory=lambda: {0: ClientTree()})
    newcomers: list[bytes] = field(default_factory=list)
    """Commitments of the block that is being filled; the tree takes them together, which is cheaper."""
    registered: set[bytes] = field(default_factory=set)
    """Registration nullifiers of the current epoch."""
    nullifiers: MerkleLog = field(default_factory=MerkleLog)
    runs: dict[bytes, KeyRun] = field(default_factory=dict)
    committees: dict[bytes, Committee] = field(default_factory=dict)
    tasks: dict[bytes, TaskState] = field(default_factory=dict)
    bundles: dict[int, Bundle] = field(default_factory=dict)

    @classmethod
    def at_genesis(cls, genesis: Genesis) -> "State":
        """Return the board before its first block. Raises ``InvalidGenesis``."""
        check_genesis(genesis)
        state = cls(genesis=genesis, genesis_hash=genesis.hash, time=genesis.time, tip=genesis.hash)
        state.certifier_roots.append(state.certifier_tree.root().to_bytes())
        return state

    @property
    def clients(self) -> ClientTree:
        """The clients of the current epoch."""
        return self.client_trees[self.epoch]

    def class_of(self, bundle: Bundle) -> Class:
        """Return the size class of a bundle, with its deadlines."""
        return self.genesis.classes[bundle.size_class]

    def scope(self, bundle: Bundle) -> Scope:
        """Return the scope of a bundle's current iteration."""
        return Scope(self.genesis_hash, bundle.number, bundle.iterations)

    def committee_of(self, task: TaskState) -> Committee:
        """Return the committee that a task announced."""
        return self.committees[task.task.key_id]

    def live_tasks(self, bundle: Bundle) -> list[TaskState]:
        """Return the tasks of a bundle that have not ended."""
        return [self.tasks[name] for name in bundle.tasks if not self.tasks[name].ended]

    def waiting_tasks(self) -> list[TaskState]:
        """Return the announced tasks that no bundle holds yet, in the order of their announcement."""
        return [task for task in self.tasks.values() if task.bundle is None and not task.ended]


def touch(record: KeyRun | TaskState | Position | Iteration | Bundle, posting_id: bytes) -> None:
    """Extend a record's history by the posting that changes it."""
    record.history = chained(record.history, posting_id)


def digest(domain: str, parts: Iterable[bytes | int | str | None]) -> bytes:
    """Hash fields of a record; each is framed, so that no two records collide."""
    state = hashlib.sha256(f"anofel/1/state/{domain}".encode())
    for part in parts:
        encoded = _encode(part)
        state.update(len(encoded).to_bytes(4, "little") + encoded)
    return state.digest()


def _encode(part: bytes | int | str | None) -> bytes:
    if part is None:
        return b"-"
    if isinstance(part, bytes):
        return b"b" + part
    return f"{'i' if isinstance(part, int) else 's'}{part}".encode()
