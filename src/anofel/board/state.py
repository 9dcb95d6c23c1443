"""What the board knows after a block: plain data, the same at everybody who replays the same blocks.

Records change only in ``rules`` (by an admitted posting) and in ``block_end`` (at the end of a block).
Every record has a ``history``: the hash chain over the postings that touched it. Together with its
numbers that gives the digests under the sub-roots of a header.
"""

import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Self

from anofel.board.announcement import TaskFacts
from anofel.board.genesis import check_genesis
from anofel.board.log import MerkleLog, chained
from anofel.board.records import Record, Records, forked
from anofel.board.validators import Eras, ValidatorState
from anofel.ids import (
    BlobHash,
    BlockHash,
    GenesisHash,
    KeyId,
    Nullifier,
    PostingId,
    RunId,
    SetDigest,
    SharesId,
    Subject,
    TaskId,
)
from anofel.messages import Class, Genesis, Run, TaskAnnouncement
from anofel.primitives import CertifierTree, ClientTree, NameSet

NO_HISTORY = bytes(32)
NO_BLOCK = BlockHash(b"")


class Phase(StrEnum):
    """Where a bundle stands (``docs/board.md``)."""

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
class CertifierState(Record):
    """A certifier whose key was posted (step 1.a)."""

    key: bytes
    holder: Subject
    position: int
    in_force: bool = True


@dataclass(slots=True)
class KeyVote:
    """What one member posted as the end of a run."""

    key_id: KeyId
    shares_id: SharesId
    transcript: bytes


@dataclass(slots=True)
class CommitteeMember:
    """Who a member of a run is, as its certificate says."""

    name: str
    """The distinguished name of its subject."""
    issuer: str
    organisation: str


@dataclass(slots=True)
class KeyRun(Record):
    """A run of key generation or of a handover (step 1.c)."""

    run_id: RunId
    run: Run
    opened_by: Subject
    opened_at: int
    base: SharesId | None = None
    """In a handover, the shares with which it began."""
    share_epoch: int = 0
    """Which generation of shares the run makes."""
    entered: dict[int, CommitteeMember] = field(default_factory=dict)
    """Who each member is, by the certificate with which it posted round 0."""
    posted: dict[int, dict[int, BlobHash]] = field(default_factory=dict)
    """Round → sender → SHA-256 of the message."""
    votes: dict[int, KeyVote] = field(default_factory=dict)
    done: bool = False
    history: bytes = NO_HISTORY

    @property
    def is_live(self) -> bool:
        """Whether its messages are still kept."""
        return bool(self.posted)

    def fork(self) -> Self:
        """Return a run that changes by itself."""
        made = forked(self)
        made.posted = {number: messages.copy() for number, messages in self.posted.items()}
        return made


@dataclass(slots=True)
class CommitteeShares:
    """One generation of a committee's shares: who holds them, and the key file."""

    run_id: RunId
    shares_id: SharesId
    """SHA-256 of the key file, which is also its name as a blob."""
    members: tuple[Subject, ...]
    threshold: int
    share_epoch: int


@dataclass(slots=True)
class Committee(Record):
    """An established committee."""

    key_id: KeyId
    scheme: int
    current: CommitteeShares
    pending: CommitteeShares | None = None
    """Handed over; takes effect when no iteration of its task is between opening and outcome."""
    former: list[CommitteeShares] = field(default_factory=list)
    """The generations of shares before, oldest first: a handover keeps the key, so they still open."""
    task: TaskId | None = None
    """The task that it serves."""

    @property
    def generations(self) -> list[CommitteeShares]:
        """Every generation of shares that opens what is encrypted under the key, oldest first."""
        return [*self.former, self.current]

    @property
    def is_live(self) -> bool:
        """Whether a handover waits to take effect."""
        return self.pending is not None


@dataclass(slots=True)
class LedgerEntry:
    """ε after a number of releases, in micro-units."""

    releases: int
    zero_out: int
    replace: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an iteration ended for a task: what stays when the iteration itself is forgotten."""

    iteration: int
    progress: Progress
    num_clients: int
    """Registered clients under the root of the iteration."""
    posts: int
    """Accepted submissions."""
    excluded: int
    """Those whose payloads the committee left out."""
    count: int | None
    """Updates for this task; None if the count was not opened."""
    opened: int
    """Updates in the sums that were opened and decoded."""
    releases: int
    """Releases of the task up to here, this iteration included."""
    reported: tuple[int, ...]
    """The sums of the metric slots, if the task has any: how good the model was that opened the iteration."""
    opened_at: int
    closed_at: int
    over_at: int


@dataclass(slots=True)
class TaskState(Record):
    """An announced task (step 1.d)."""

    task_id: TaskId
    owner: Subject
    announcement: TaskAnnouncement
    facts: TaskFacts
    size_class: int
    announced_at: int
    organisation: str = ""
    """The owner's, by the certificate with which it announced the task."""
    bundle: int | None = None
    position: int = 0
    model: BlobHash | None = None
    """SHA-256 of the current model file."""
    model_iteration: int = 0
    """The iteration that the owner's last model opens."""
    next_model: BlobHash | None = None
    """What the rule makes of the last sum; None if the owner is free, or if the model stays."""
    summed: bool = False
    """Whether the last iteration was ``Summed``."""
    releases: int = 0
    ended: bool = False
    ledger: list[LedgerEntry] = field(default_factory=list)
    outcomes: tuple[Outcome, ...] = ()
    """Of its iterations, in their order; none for one that it did not see."""
    history: bytes = NO_HISTORY

    @property
    def is_live(self) -> bool:
        """Whether it has not ended."""
        return not self.ended


@dataclass(slots=True)
class PayloadName:
    """The payload of one contribution and its envelope."""

    envelope: bytes
    sha256: BlobHash
    length: int


@dataclass(slots=True)
class AcceptedSubmission:
    """An accepted submission (step 5)."""

    nullifier: Nullifier
    tag: bytes
    message_key: bytes
    type_commitment: bytes
    ballot: bytes
    payloads: tuple[PayloadName, ...]


class Reason(IntEnum):
    """Why a payload is excluded; the rule is deterministic, so anyone with the payload can check it."""

    PAYLOAD_REFUSED = 1
    """The scheme's ``verify_payload`` refuses it."""


@dataclass(slots=True)
class GroupTotal:
    """What was added for one group."""

    set_digest: SetDigest
    num_posts: int
    sum_digest: BlobHash
    """SHA-256 of the sum file, which is also its name as a blob."""


@dataclass(slots=True)
class Agreement:
    """What one ``Aggregate`` states, beside its author (D-18)."""

    excluded: tuple[tuple[Nullifier, int], ...]
    """Nullifier and reason, ascending."""
    groups: tuple[GroupTotal, ...]
    """In the order of the deal; one unless the task asks for more (D-26)."""


@dataclass(slots=True)
class Share:
    """A share of the counts (inline) or of the sums (by hash), one part for each group."""

    member: int
    contents: tuple[bytes, ...]


@dataclass(slots=True)
class Position:
    """One committee of a bundle in one iteration."""

    task_id: TaskId
    progress: Progress = Progress.COLLECTING
    shares: CommitteeShares | None = None
    """The committee's shares when the iteration closed; a later handover does not change them."""
    aggregates: dict[int, Agreement] = field(default_factory=dict)
    agreed: Agreement | None = None
    count_shares: list[Share] = field(default_factory=list)
    """In board order; the first t define the counts."""
    counts: tuple[int, ...] | None = None
    """How many updates each group holds, once that was opened."""
    sum_shares: list[Share] = field(default_factory=list)
    total: bytes | None = None
    """SHA-256 over the decoded sums."""
    opened: int = 0
    """How many updates are in them."""
    reported: tuple[int, ...] = ()
    """The sums of the metric slots, if the task has any."""
    history: bytes = NO_HISTORY

    @property
    def count(self) -> int | None:
        """How many updates were submitted and not excluded, once the counts were opened."""
        return None if self.counts is None else sum(self.counts)

    @property
    def is_release(self) -> bool:
        """Whether the sum was opened or could have been: from *counted* on, whatever follows (D-21).

        n − t members may open in private what fails in public.
        """
        return self.counts is not None and self.progress is not Progress.TOO_FEW


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
    close_hash: BlockHash = NO_BLOCK
    aggregate_by: int = 0
    count_by: int = 0
    sum_by: int = 0
    submissions: dict[Nullifier, AcceptedSubmission] = field(default_factory=dict)
    tags: set[bytes] = field(default_factory=set)
    end_votes: set[TaskId] = field(default_factory=set)
    positions: list[Position] = field(default_factory=list)
    history: bytes = NO_HISTORY

    def fork(self) -> Self:
        """Return an iteration that changes by itself."""
        made = forked(self)
        made.positions = [forked(position) for position in self.positions]
        return made

    def forget(self) -> None:
        """Drop what is needed to reach the outcomes and to open them, and nothing that a digest covers."""
        self.submissions.clear()
        self.tags.clear()
        self.end_votes.clear()
        for position in self.positions:
            position.aggregates.clear()
            position.count_shares.clear()
            position.sum_shares.clear()


@dataclass(slots=True)
class Bundle(Record):
    """Tasks that share their iterations (D-06)."""

    number: int
    tasks: tuple[TaskId, ...]
    size_class: int
    early_end: bool
    phase: Phase = Phase.WAITING
    model_by: int = 0
    iterations: int = 0
    """How many iterations were opened."""
    current: Iteration | None = None
    ended_at: int | None = None
    history: bytes = NO_HISTORY

    @property
    def is_live(self) -> bool:
        """Whether it has not ended."""
        return self.phase is not Phase.ENDED

    def fork(self) -> Self:
        """Return a bundle that changes by itself."""
        made = forked(self)
        made.current = None if self.current is None else self.current.fork()
        return made


@dataclass(slots=True)
class State:
    """The board between two postings."""

    genesis: Genesis
    genesis_hash: GenesisHash
    validators: ValidatorState
    height: int = 0
    """The block that is being filled."""
    time: int = 0
    tip: BlockHash = NO_BLOCK
    """Hash of the last block; that of genesis before the first."""
    num_postings: int = 0
    num_bytes: int = 0
    epoch: int = 0
    certifiers: Records[bytes, CertifierState] = field(default_factory=Records)
    certifier_tree: CertifierTree = field(default_factory=CertifierTree)
    certifier_roots: list[bytes] = field(default_factory=list)
    """The window of roots that registrations may use, newest last."""
    client_trees: dict[int, ClientTree] = field(default_factory=lambda: {0: ClientTree()})
    newcomers: list[bytes] = field(default_factory=list)
    """Commitments of the block that is being filled; the tree takes them together, which is cheaper."""
    registered: NameSet = field(default_factory=NameSet)
    """Registration nullifiers of the current epoch."""
    nullifiers: MerkleLog = field(default_factory=MerkleLog)
    runs: Records[RunId, KeyRun] = field(default_factory=Records)
    committees: Records[KeyId, Committee] = field(default_factory=Records)
    tasks: Records[TaskId, TaskState] = field(default_factory=Records)
    bundles: Records[int, Bundle] = field(default_factory=lambda: Records(nested=True))
    remembered: deque[int] = field(default_factory=deque)
    """Bundles that ended and whose last submissions are still here, oldest first."""

    @classmethod
    def at_genesis(cls, genesis: Genesis) -> "State":
        """Return the board before its first block. Raises ``InvalidGenesis``."""
        check_genesis(genesis)
        state = cls(
            genesis=genesis,
            genesis_hash=genesis.hash,
            validators=ValidatorState(Eras.of(genesis)),
            time=genesis.time,
            tip=BlockHash(genesis.hash),
        )
        state.certifier_roots.append(state.certifier_tree.root().to_bytes())
        return state

    def fork(self) -> "State":
        """Return a state that goes on by itself, as long as this one rests.

        What grows with the clients is shared until one of the two changes it, so the cost does not depend
        on their number. A fork that is dropped leaves no trace.
        """
        return State(
            genesis=self.genesis,
            genesis_hash=self.genesis_hash,
            validators=self.validators.fork(),
            height=self.height,
            time=self.time,
            tip=self.tip,
            num_postings=self.num_postings,
            num_bytes=self.num_bytes,
            epoch=self.epoch,
            certifiers=self.certifiers.fork(),
            certifier_tree=self.certifier_tree.fork(),
            certifier_roots=self.certifier_roots.copy(),
            client_trees={epoch: tree.fork() for epoch, tree in self.client_trees.items()},
            newcomers=self.newcomers.copy(),
            registered=self.registered.fork(),
            nullifiers=forked(self.nullifiers),
            runs=self.runs.fork(),
            committees=self.committees.fork(),
            tasks=self.tasks.fork(),
            bundles=self.bundles.fork(),
            remembered=self.remembered.copy(),
        )

    @property
    def clients(self) -> ClientTree:
        """The clients of the current epoch."""
        return self.client_trees[self.epoch]

    def class_of(self, bundle: Bundle) -> Class:
        """Return the size class of a bundle, with its deadlines."""
        return self.genesis.classes[bundle.size_class]

    def committee_of(self, task: TaskState) -> Committee:
        """Return the committee that a task announced."""
        return self.committees[task.announcement.key_id]

    def members_of(self, shares: CommitteeShares) -> list[CommitteeMember]:
        """Return who holds the shares, in the order of their numbers."""
        entered = self.runs[shares.run_id].entered
        return [entered[number] for number in range(1, len(shares.members) + 1)]

    def live_tasks(self, bundle: Bundle) -> list[TaskState]:
        """Return the tasks of a bundle that have not ended."""
        return [self.tasks[name] for name in bundle.tasks if not self.tasks[name].ended]

    def waiting_tasks(self) -> list[TaskState]:
        """Return the announced tasks that no bundle holds yet, in the order of their announcement."""
        return [task for task in self.tasks.live() if task.bundle is None]


def touch(record: KeyRun | TaskState | Position | Iteration | Bundle, posting_id: PostingId) -> None:
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
