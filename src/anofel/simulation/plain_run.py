"""A simulation without proofs, keys, encryption and board: the sum is taken over plain integers.

For large experiments. It computes what ``board_run`` computes, integer for integer, and protects nobody.
"""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Self

import numpy as np

from anofel.board.state import Progress
from anofel.models.rules import rule_of
from anofel.privacy.metric_slots import reported_metrics
from anofel.simulation.parts import (
    IterationResult,
    OnProgress,
    Participation,
    SimulatedTask,
    begun_iterations,
    make_bundle,
    no_progress,
)

SWITCHED_OFF: Final = ("proofs", "committee encryption", "the board")


class InsecurePlainSimulation:
    """Trains tasks on plain sums; nothing of it can be audited."""

    switched_off: tuple[str, ...] = SWITCHED_OFF

    def __init__(
        self,
        tasks: Sequence[SimulatedTask],
        *,
        participation: Participation | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self.tasks = make_bundle(tasks)
        self._participation = Participation() if participation is None else participation
        self._on_progress = on_progress
        self.models = {part.task.name: part.first_model() for part in self.tasks}
        """The current model of every task, by the name of the task."""
        self._iteration = begun_iterations(self.tasks)
        self._releases = {
            part.task.name: 0 if part.begun is None else part.begun.releases for part in self.tasks
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing; there is nothing to let go of."""

    def run(self, iterations: int) -> Iterator[IterationResult]:
        """Run iterations; gives the results of each task as they come, until every task has ended."""
        for _ in range(iterations):
            live = [index for index, part in enumerate(self.tasks) if not self._has_ended(part)]
            if not live:
                return
            self._iteration += 1
            sizes = [len(part.clients) for part in self.tasks]
            order = [who for who in self._participation.order(self._iteration, sizes) if who[0] in live]
            yield from self._iterate(order, live)

    def _has_ended(self, part: SimulatedTask) -> bool:
        return self._releases[part.task.name] >= part.task.privacy.max_releases

    def _iterate(self, order: list[tuple[int, int]], live: list[int]) -> Iterator[IterationResult]:
        totals = {index: np.zeros(self.tasks[index].plan.dimension, dtype=np.int64) for index in live}
        counts = dict.fromkeys(live, 0)
        for position, (index, client) in enumerate(order, start=1):
            part = self.tasks[index]
            totals[index] += part.local_update(part.clients[client], self.models[part.task.name], position)
            counts[index] += 1
            self._on_progress(f"Iteration {self._iteration}", position, len(order))
        for index in live:
            yield self._finish(self.tasks[index], totals[index], counts[index], len(order))

    def _finish(self, part: SimulatedTask, total: np.ndarray, count: int, posts: int) -> IterationResult:
        name, enough, shortened = part.task.name, count >= part.task.privacy.min_clients, False
        if enough:
            model = self.models[name]
            rule = rule_of(part.task)
            own = model.own_part(total)
            self.models[name] = rule.apply(model, own, count, self._iteration)
            shortened = rule.shortens(own, count)
            self._releases[name] += 1
        return IterationResult(
            task=name,
            iteration=self._iteration,
            outcome=(Progress.SUMMED if enough else Progress.TOO_FEW).value,
            count=count,
            posts=posts,
            epsilon=part.plan.epsilon(self._releases[name], part.task.privacy.relation),
            metrics=part.measure(self.models[name]) if enough and part.measure is not None else None,
            reported=reported_metrics(part.plan, total, count) if enough else None,
            shortened=shortened,
            model=self.models[name],
            total=total if enough else None,
        )
