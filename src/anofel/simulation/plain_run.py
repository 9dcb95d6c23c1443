"""A simulation without proofs, keys, encryption and board: the sum is taken over plain integers.

For large experiments. It computes what ``board_run`` computes, integer for integer, and protects nobody.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import numpy as np

from anofel.board.groups import deal
from anofel.board.state import Progress
from anofel.ids import BlockHash, Nullifier
from anofel.models.card import digest_of, model_card
from anofel.models.means import mean_of
from anofel.models.parameters import Integers
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


@dataclass
class _Sum:
    """The sum of a group, and of how many."""

    total: Integers
    count: int

    @classmethod
    def empty(cls, part: SimulatedTask) -> "_Sum":
        return cls(np.zeros(part.plan.dimension, dtype=np.int64), 0)

    def add(self, update: Integers) -> None:
        self.total += update
        self.count += 1


def _post_name(task: int, client: int) -> Nullifier:
    return Nullifier(hashlib.sha256(f"{task} {client}".encode()).digest())


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

    def card(self, result: IterationResult) -> str:
        """Write the card of the model that a result leaves; no board says anything about it."""
        (task,) = (part.task for part in self.tasks if part.task.name == result.task)
        return model_card(task, digest=digest_of(result.model), iteration=result.iteration)

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
        groups = {index: self._groups(self.tasks[index], order) for index in live}
        sums = {index: [_Sum.empty(self.tasks[index]) for _ in set(groups[index].values())] for index in live}
        for position, (index, client) in enumerate(order, start=1):
            part, place = self.tasks[index], groups[index][index, client]
            update = part.local_update(part.clients[client], self.models[part.task.name], position)
            sums[index][place].add(update)
            self._on_progress(f"Iteration {self._iteration}", position, len(order))
        for index in live:
            yield self._finish(self.tasks[index], sums[index], len(order))

    def _groups(self, part: SimulatedTask, order: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Deal the posts to the groups of a task, by a hash in place of the block's."""
        number = 1 if part.task.groups is None else part.task.groups.number
        names = {_post_name(*who): who for who in order}
        turn = BlockHash(hashlib.sha256(f"{self._participation.seed} {self._iteration}".encode()).digest())
        dealt = deal(names, turn, groups=number, min_clients=part.task.privacy.min_clients)
        return {names[name]: place for place, group in enumerate(dealt) for name in group}

    def _finish(self, part: SimulatedTask, sums: "list[_Sum]", posts: int) -> IterationResult:
        name, least, shortened = part.task.name, part.task.privacy.min_clients, False
        opened = [group for group in sums if group.count >= least]
        enough, total = bool(opened), sum((group.total for group in opened), _Sum.empty(part).total)
        added = sum(group.count for group in opened)
        if enough:
            model = self.models[name]
            rule = rule_of(part.task)
            own, counted = mean_of(part.task, [(group.total, group.count) for group in opened])
            self.models[name] = rule.apply(model, own, counted, self._iteration)
            shortened = rule.shortens(own, counted)
            self._releases[name] += 1
        return IterationResult(
            task=name,
            iteration=self._iteration,
            outcome=(Progress.SUMMED if enough else Progress.TOO_FEW).value,
            count=sum(group.count for group in sums),
            posts=posts,
            epsilon=part.plan.epsilon(self._releases[name], part.task.privacy.relation),
            metrics=part.measure(self.models[name]) if enough and part.measure is not None else None,
            reported=reported_metrics(part.plan, total, added) if enough else None,
            shortened=shortened,
            model=self.models[name],
            total=total if enough else None,
        )
