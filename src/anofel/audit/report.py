"""What an audit found, for people and for programs."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class CommitteeRecord:
    """A committee whose key was established."""

    key_id: str
    scheme: str
    members: list[str]
    """The names in the members' certificates, in the order of their numbers."""
    threshold: int
    established_at: int
    handovers: int = 0


@dataclass
class IterationRecord:
    """One iteration of one task."""

    task: str
    bundle: int
    iteration: int
    outcome: str
    clients_registered: int
    submissions: int
    count: int | None
    excluded: dict[str, str]
    """Nullifiers of payloads that were left out, and why."""
    sum_checked: bool | None
    """Whether the sum was recomputed from the payloads; None if there was none."""
    aggregates_by: list[int]
    count_shares_by: list[int]
    sum_shares_by: list[int]
    reported: dict[str, float] | None = None
    """What the metric slots say of the model that opened the iteration, noise included."""


@dataclass
class TaskRecord:
    """One task."""

    name: str
    task_id: str
    rule: str
    releases: int
    ended: bool
    epsilon: float | None
    """The last posted ε (zero-out)."""


@dataclass
class AuditReport:
    """Everything that was checked."""

    board: str
    genesis: str
    height: int
    tip: str
    postings: dict[str, int] = field(default_factory=dict)
    committees: list[CommitteeRecord] = field(default_factory=list)
    tasks: list[TaskRecord] = field(default_factory=list)
    iterations: list[IterationRecord] = field(default_factory=list)
    clients: int = 0
    epochs: int = 1
    blobs_checked: int = 0
    sums_recomputed: int = 0
    sums_pruned: int = 0
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return the report for ``--json``."""
        return asdict(self)
