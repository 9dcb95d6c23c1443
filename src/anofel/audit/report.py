"""What an audit found, for people and for programs."""

from dataclasses import asdict, dataclass, field
from typing import Any

MAX_FINDINGS = 1000
MAX_ITERATIONS = 1000
"""How many findings (the first) and iterations (the last) a report lists; the others are counted."""


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it must be."""

    height: int
    posting: int | None
    """The place in the block, where it is about one posting."""
    rule: str
    about: str
    """Whom it concerns: a task, a run, a block, a file."""
    reason: str


def about_task(name: str) -> str:
    """Say that a finding concerns a task."""
    return f"task '{name}'"


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
    counts: list[int] | None
    """The count of each group, if posts were dealt to several."""
    excluded: dict[str, str]
    """Nullifiers of payloads that were left out, and why."""
    sum_checked: bool | None
    """Whether the sum was recomputed from the payloads and is right; None if there was none."""
    aggregates_by: list[int]
    count_shares_by: list[int]
    sum_shares_by: list[int]
    reported: dict[str, float] | None = None
    """What the metric slots say of the model that opened the iteration, noise included."""
    shortened: bool = False
    """Whether the mean was longer than the rule's bound, and was shortened to it."""
    rejected: bool = False
    """Whether the owner rejected the model that its sum makes."""


@dataclass
class TaskRecord:
    """One task."""

    name: str
    task_id: str
    rule: str
    contributions: str
    """``proven``; ``proven-zero`` if the scheme bounds no norm; ``insecure-unproven`` if the task says so."""
    releases: int
    ended: bool
    epsilon: float | None
    """The last posted ε (zero-out)."""
    rejected: list[int] = field(default_factory=list)
    """The iterations whose models the owner rejected."""


@dataclass
class AuditReport:
    """Everything that was checked."""

    board: str
    genesis: str
    height: int
    """The last block that was checked."""
    tip: str
    time: int = 0
    """The time of that block."""
    findings: list[Finding] = field(default_factory=list)
    """What is wrong, in the order of the history; empty if every rule was kept."""
    findings_left_out: int = 0
    postings: dict[str, int] = field(default_factory=dict)
    committees: list[CommitteeRecord] = field(default_factory=list)
    tasks: list[TaskRecord] = field(default_factory=list)
    iterations: list[IterationRecord] = field(default_factory=list)
    iterations_left_out: int = 0
    clients: int = 0
    epochs: int = 1
    blobs_checked: int = 0
    sums_recomputed: int = 0
    sums_pruned: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every rule was kept."""
        return not self.findings

    def add(self, height: int, reason: str, rule: str, about: str, posting: int | None = None) -> None:
        """Write down what is wrong."""
        self.add_finding(Finding(height, posting, rule, about, reason))

    def add_finding(self, finding: Finding) -> None:
        """Write down a finding, or count it when there are very many."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)
        else:
            self.findings_left_out += 1

    def add_iteration(self, record: IterationRecord) -> None:
        """Write down an iteration; the first ones make room when there are very many."""
        self.iterations.append(record)
        if len(self.iterations) > MAX_ITERATIONS:
            del self.iterations[0]
            self.iterations_left_out += 1

    def mark_rejected(self, task: str, iteration: int) -> None:
        """Write down that the owner of a task rejected the model of an iteration that is listed."""
        for record in reversed(self.iterations):
            if (record.task, record.iteration) == (task, iteration):
                record.rejected = True
                return

    def document(self) -> dict[str, Any]:
        """Return the report for ``--json``."""
        return asdict(self)
