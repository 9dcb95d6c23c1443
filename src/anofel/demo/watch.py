"""What the demo can tell about the run: the board as everybody verifies it, and what roles say of themselves.

No secret is read. The quality of a model comes from its owner's own rows (``iterations.jsonl``), refusals
from the cheaters' notes (``tried.jsonl``).
"""

from dataclasses import dataclass, field
from typing import Any

from anofel.board.seat import Sitting
from anofel.board.state import Progress
from anofel.demo.data import DemoStudy
from anofel.demo.misbehave import ACCEPTED, Try, read_tries
from anofel.demo.plan import StageLayout
from anofel.ids import GenesisHash, TaskId
from anofel.light_client.client import LightClient
from anofel.messages import Block, Posting, Registration, Submission
from anofel.network.transport import Transport
from anofel.roles.owner import read_iterations


@dataclass
class Result:
    """The outcome of one iteration for one study."""

    task: str
    iteration: int
    outcome: str
    count: int | None
    releases: int
    epsilon: float | None = None
    metrics: dict[str, float] | None = None

    def document(self) -> dict[str, Any]:
        """Return it as the JSON document shows it."""
        fields = ("task", "iteration", "outcome", "count", "epsilon", "metrics")
        return {name: getattr(self, name) for name in fields}


@dataclass
class Seen:
    """What anybody could count on the board."""

    registrations: int = 0
    submissions: int = 0
    submission_bytes: set[int] = field(default_factory=set)
    """The sizes of submissions, payloads included."""
    sizes_of_sets: dict[int, int] = field(default_factory=dict)
    """By iteration: registered clients under the root that it fixed."""


class DemoWatch:
    """A verified view of the board, kept beside what the roles report."""

    def __init__(self, layout: StageLayout, url: str, genesis_hash: GenesisHash) -> None:
        self._layout = layout
        self.board = LightClient(layout.root / "view", Transport(url), genesis_hash=genesis_hash)
        self.results: dict[tuple[str, int], Result] = {}
        self.seen = Seen()
        self.tries: list[Try] = []
        self._names: dict[TaskId, str] = {}

    def close(self) -> None:
        """Let go of the view."""
        self.board.close()

    def poll(self, studies: list[DemoStudy], cheaters: list[str]) -> None:
        """Follow the board to its last block and read what the roles wrote."""
        self.board.sync(on_block=self._take)
        for study in studies:
            self._read_metrics(study)
        self.tries = [tried for name in cheaters for tried in read_tries(self._layout.role(name))]
        self.tries.sort(key=lambda tried: tried.height)

    # The board

    @property
    def sitting(self) -> Sitting | None:
        """The bundle of the demo's tasks, once it had an iteration."""
        return Sitting.find(self.board.state, 0)

    @property
    def iteration(self) -> int:
        """How many iterations were opened."""
        return self.sitting.number if self.sitting else 0

    @property
    def is_open(self) -> bool:
        """Whether clients can post now."""
        return self.sitting is not None and self.sitting.is_open

    def name_of(self, task_id: TaskId) -> str:
        """The name of a task on the board."""
        return self._names[task_id]

    def _take(self, block: Block) -> None:
        state = self.board.state
        for task_id, task in state.tasks.items():
            if task_id not in self._names:
                self._names[task_id] = task.facts.name
        self._count(block)
        if self.sitting is None:
            return
        current = self.sitting.iteration
        self.seen.sizes_of_sets.setdefault(current.number, current.num_clients)
        for position in current.positions:
            name, task = self._names[position.task_id], state.tasks[position.task_id]
            is_new = (name, current.number) not in self.results
            if position.progress.is_outcome and position.progress is not Progress.ABSENT and is_new:
                self.results[name, current.number] = Result(
                    name, current.number, position.progress.value, position.count, task.releases
                )
            entries = {0: 0.0} | {entry.releases: entry.zero_out / 1e6 for entry in task.ledger}
            for result in self.results.values():
                if result.task == name:
                    result.epsilon = entries.get(result.releases)

    def _count(self, block: Block) -> None:
        for data in block.postings:
            body = Posting.from_bytes(data).body
            if isinstance(body, Registration):
                self.seen.registrations += 1
            elif isinstance(body, Submission):
                self.seen.submissions += 1
                payloads = sum(part.payload.length for part in body.contributions)
                self.seen.submission_bytes.add(len(data) + payloads)

    # The roles

    def _read_metrics(self, study: DemoStudy) -> None:
        for entry in read_iterations(self._layout.role(study.owner)):
            result = self.results.get((study.name, entry["iteration"]))
            if result is not None:
                result.metrics = entry["metrics"]

    def of(self, study: DemoStudy) -> list[Result]:
        """Return the outcomes of a study, in order."""
        found = [result for (name, _), result in self.results.items() if name == study.name]
        return sorted(found, key=lambda result: result.iteration)

    @property
    def refused(self) -> list[Try]:
        """What was refused."""
        return [tried for tried in self.tries if tried.code not in ("", ACCEPTED)]
