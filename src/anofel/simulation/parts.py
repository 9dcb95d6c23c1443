"""What both kinds of simulation share: tasks, who takes part, step 4 of a client, and results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anofel.board.announcement import limits_of
from anofel.committee import schemes
from anofel.committee.context import MAX_POSTS, CommitteeShape
from anofel.errors import InvalidInput
from anofel.learning.build import OwnTrainerName, trainer_of
from anofel.learning.evaluate import Measure
from anofel.learning.own_trainer import TrainerFailed
from anofel.learning.trainer import Trainer
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Integers
from anofel.models.rules import rule_of
from anofel.phase2_training.step4_local_training import make_update
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, eq=False)
class SimulatedTask:
    """A task with the clients that train it."""

    task: Task
    clients: Sequence[Dataset] = field(repr=False)
    """The rows of each client."""
    measure: Measure | None = None
    """How each new model is measured; see ``anofel.learning.evaluate``."""
    own_trainer: Trainer | None = None
    """What trains a ``custom`` model; otherwise the task says it."""
    trainer_name: OwnTrainerName = ""
    """How workers make the trainer of a ``custom`` model: as ``module:function``, or from a Flower app."""
    on_failure: Callable[[str], None] | None = None
    """Hears why an update of a client is zero. Without it what fails ends the simulation, so that whoever
    writes a trainer sees it."""
    begun: "Begun | None" = None
    """Where an earlier run ended, if this one goes on with it."""

    @cached_property
    def trainer(self) -> Trainer:
        """What trains at the clients. Raises ``InvalidInput`` for a custom model without a trainer."""
        return trainer_of(self.task, self.trainer_name) if self.own_trainer is None else self.own_trainer

    @cached_property
    def plan(self) -> Plan:
        """The privacy of the task."""
        return Plan.of(self.task)

    def first_model(self) -> IntegerModel:
        """Make the model that opens the first iteration, or take the last one of an earlier run."""
        if self.begun is not None:
            return self.begun.model
        model = rule_of(self.task).initial(self.trainer.initial(), self.task.model.scale_bits)
        expected = self.task.model.parameters
        if model.layout.size != expected:
            raise InvalidInput(
                f"The task '{self.task.name}' has {expected} parameters, its trainer {model.layout.size}."
            )
        return model

    def local_update(self, dataset: Dataset, model: IntegerModel, position: int) -> Integers:
        """Do step 4 for one client; what fails becomes zero only if somebody hears of it."""
        try:
            made = ProtectedUpdate(make_update(self.trainer, model, dataset, self.plan))
        except TrainerFailed as error:
            if self.on_failure is None:
                raise
            self.on_failure(f"{error} The client's update is zero.")
            made = ProtectedUpdate.zero(self.plan, str(error))
        return made.with_noise(self.plan, position if self.task.privacy.adaptive else None)


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What an earlier run of the same task left: its iterations and releases count on."""

    model: IntegerModel
    iterations: int
    releases: int


@dataclass(frozen=True, kw_only=True)
class CommitteeSettings:
    """The committee of every task."""

    scheme: str = schemes.DEFAULT
    members: int = 3
    threshold: int = 2

    def check(self, tasks: "Sequence[SimulatedTask]") -> None:
        """Refuse what no committee can add, before anything is made. Raises ``InvalidInput``."""
        CommitteeShape(num_members=self.members, threshold=self.threshold)
        for part in tasks:
            schemes.by_name(self.scheme).required_bits(limits_of(part.task, part.task.privacy.max_posts))


@dataclass(frozen=True, kw_only=True)
class Participation:
    """Who takes part in an iteration; reproducible, since it is public in an experiment anyway."""

    dropout: float = 0.0
    """The probability with which a client misses an iteration."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise InvalidInput("The dropout is a probability from 0 up to, not including, 1.")

    def order(self, iteration: int, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """Return task and client of every post of an iteration, in the order of the posts."""
        rng = np.random.default_rng((self.seed, iteration))
        everybody = [(task, client) for task, size in enumerate(sizes) for client in range(size)]
        draws = rng.random(len(everybody))
        present = [who for who, draw in zip(everybody, draws, strict=True) if draw >= self.dropout]
        return [present[place] for place in rng.permutation(len(present))]


@dataclass(frozen=True, kw_only=True)
class IterationResult:
    """What became of one iteration of one task."""

    task: str
    iteration: int
    outcome: str
    """``summed``, ``too-few``, ``undecodable`` or ``failed``, as on the board."""
    count: int | None
    """How many updates are in the sum; None if it was never opened."""
    posts: int
    """How many clients posted, for any task of the bundle."""
    epsilon: float
    """What the task has cost so far, for its own unit, relation and δ."""
    metrics: dict[str, float] | None
    """The quality of the new model, if there is one and the task says how to measure it."""
    reported: dict[str, float] | None = None
    """What the metric slots of the sum say about the model before, if the task has some."""
    shortened: bool = False
    """Whether the mean was longer than the rule's ``max_mean_norm``."""
    model: IntegerModel = field(repr=False)
    """The model after the iteration: a new one after a sum, otherwise the one before."""
    total: Integers | None = field(repr=False, default=None)
    """The opened sum."""

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        names = (
            "task",
            "iteration",
            "outcome",
            "count",
            "posts",
            "epsilon",
            "metrics",
            "reported",
            "shortened",
        )
        return {name: getattr(self, name) for name in names}


def make_bundle(tasks: Sequence[SimulatedTask]) -> list[SimulatedTask]:
    """Check the tasks and put them into one size class: equal ``max_posts``, room for every client.

    Raises ``InvalidInput`` for what could never train.
    """
    if not tasks:
        raise InvalidInput("A simulation needs a task.")
    names = [part.task.name for part in tasks]
    if len(set(names)) != len(names):
        raise InvalidInput("The tasks of a simulation need different names.")
    if sum(part.task.groups is not None for part in tasks) > 1:
        raise InvalidInput("One task of a bundle may have groups; simulate the others by themselves.")
    for part in tasks:
        _check_clients(part)
    posts = max(sum(len(part.clients) for part in tasks), *(part.task.privacy.max_posts for part in tasks))
    if posts > MAX_POSTS:
        raise InvalidInput(f"A committee adds at most {MAX_POSTS} posts, not {posts}.")
    return [_with_max_posts(part, posts) for part in tasks]


def begun_iterations(tasks: Sequence[SimulatedTask]) -> int:
    """How many iterations earlier runs had; tasks of one bundle go on together."""
    return max((part.begun.iterations for part in tasks if part.begun is not None), default=0)


def _check_clients(part: SimulatedTask) -> None:
    privacy, name, there = part.task.privacy, part.task.name, len(part.clients)
    if there < privacy.min_clients:
        raise InvalidInput(
            f"The task '{name}' opens no sum of fewer than {privacy.min_clients} clients, and there are "
            f"{there}; simulate more, or lower its min_clients."
        )
    most = max(len(rows) for rows in part.clients)
    if privacy.unit == "record" and most > privacy.records_per_client:
        raise InvalidInput(
            f"A client of the task '{name}' has {most} rows, and the task allows "
            f"{privacy.records_per_client}; simulate more clients, or raise its records_per_client."
        )


def _with_max_posts(part: SimulatedTask, posts: int) -> SimulatedTask:
    if part.task.privacy.max_posts == posts:
        return part
    return replace(part, task=replace(part.task, privacy=replace(part.task.privacy, max_posts=posts)))
