"""What bench/attacks.py plays: liars among honest clients, over plain integers, one run after another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from _learning_runs import Judge

from anofel.board.groups import deal
from anofel.ids import BlockHash, Nullifier
from anofel.learning.build import trainer_of
from anofel.models.integer_model import IntegerModel, Integers, ModelOverflow
from anofel.models.means import mean_of
from anofel.models.rules import rule_of
from anofel.privacy.explain import PROVEN_SLACK
from anofel.privacy.plan import Plan
from anofel.privacy.protect import draw_noise, encode, train_unit
from anofel.studies.dataset import Dataset
from anofel.tasks.task import GroupsSpec, Task, read_task

DEFENCES: Final = ("none", "norm proof", "+ clipping", "+ groups")
"""Each with what the one before it has."""
ATTACKS: Final = ("scaling ×1000", "sign flip ×10", "label flip", "backdoor ×100", "zero vectors")
SHARES: Final = (0.01, 0.05, 0.10)


@dataclass(frozen=True)
class Setting:
    """One study: its task without defences, how many clients, how long, and what its backdoor looks like."""

    study: str
    task: Task
    clients: int
    iterations: int
    groups: GroupsSpec
    group_clients: int
    """``min_clients`` of each group."""
    noise: bool
    trigger: tuple[int, ...]
    """Which features the backdoor sets."""
    trigger_value: int
    target: int
    """The class that the backdoor asks for."""
    rows: int | None = None
    measure: str = "accuracy"
    remark: str = ""


def _mnist_task() -> Task:
    return read_task(
        {
            "task": {"name": "mnist-logistic", "study": "mnist"},
            "model": {"kind": "logistic"},
            "training": {"algorithm": "fedavg", "learning_rate": "0.1", "epochs": 1, "batch_size": 10},
            "rule": {"lr_num": 1, "lr_den": 1},
            "privacy": {
                "clipping_norm": "2",
                "noise_multiplier": "0.01",
                "max_releases": 6,
                "min_clients": 60,
                "expected_clients": 100,
                "max_colluders": 10,
            },
        }
    )


def settings() -> list[Setting]:
    """The studies."""
    return [
        Setting(
            study="support2",
            task=Task.example("support2"),
            clients=512,
            iterations=30,
            groups=GroupsSpec(number=16),
            group_clients=32,
            noise=True,
            trigger=(0, 1),
            trigger_value=3,
            target=1,
            measure="area under the curve",
            remark=(
                "512 clients, client-level ε = 0.9 (δ = 1e-5) over the 30 iterations, in every column: with "
                "groups each client adds about four times the noise for it."
            ),
        ),
        Setting(
            study="mnist",
            task=_mnist_task(),
            clients=100,
            iterations=6,
            groups=GroupsSpec(number=10),
            group_clients=6,
            noise=False,
            trigger=tuple(28 * row + column for row in range(4) for column in range(4)),
            trigger_value=1,
            target=0,
            rows=5_000,
            remark=(
                "100 clients with 50 images each, logistic regression (7,850 parameters), without noise: "
                "client-level privacy leaves nothing of it with so few clients."
            ),
        ),
    ]


def defended(setting: Setting, defence: str) -> Task:
    """The task of a column."""
    task = setting.task
    if defence in ("+ clipping", "+ groups"):
        task = replace(task, rule=replace(task.rule, max_mean_norm=task.privacy.clipping_norm))
    if defence == "+ groups":
        privacy = replace(
            task.privacy, min_clients=setting.group_clients, expected_clients=setting.clients, max_colluders=2
        )
        task = replace(task, privacy=privacy, groups=setting.groups)
    return task


def most_of_a_liar(setting: Setting) -> float:
    """What may pass a contribution proof, in integer steps: 2.85·B, for who tries 2^128 times."""
    return PROVEN_SLACK * Plan.of(setting.task).norm_bound


def with_trigger(rows: Dataset, setting: Setting) -> Dataset:
    """The rows as the backdoor marks them."""
    features = rows.features.astype(np.int64).reshape(len(rows), -1)
    features[:, list(setting.trigger)] = setting.trigger_value << rows.schema.fraction_bits
    if rows.features.dtype == np.uint8:
        features = np.minimum(features, 255)
    return replace(rows, features=features.reshape(rows.features.shape).astype(rows.features.dtype))


def labelled(rows: Dataset, labels: np.ndarray) -> Dataset:
    return replace(rows, labels=labels.astype(rows.labels.dtype))


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    score: float
    backdoor: float
    """Share of marked rows of other classes that the model puts into the target class."""
    lost: int
    """Iterations whose sum or model was beyond the integers, so that the model stayed."""
    shortened: int


class Game:
    """A study with its clients, its liars and its test rows."""

    def __init__(self, setting: Setting, clients: Sequence[Dataset], test: Dataset, seed: int = 0) -> None:
        self.setting, self.clients, self.seed = setting, clients, seed
        self._judge = Judge(setting.task, test)
        others = test.take(np.flatnonzero(test.labels != setting.target))
        self._marked = with_trigger(others, setting)
        order = np.random.default_rng(seed).permutation(len(clients))
        self._order = [int(place) for place in order]

    def liars(self, share: float) -> frozenset[int]:
        """The clients that lie; of a smaller share they are some of those of a larger one."""
        return frozenset(self._order[: max(1, round(share * len(self.clients)))])

    def play(self, defence: str, attack: str, share: float) -> Outcome:
        """Train to the end; ``attack`` may be empty."""
        task = defended(self.setting, defence)
        plan, rule, trainer = Plan.of(task), rule_of(task), trainer_of(task)
        model = rule.initial(trainer.initial(), task.model.scale_bits)
        liars = self.liars(share) if attack else frozenset()
        lost = shortened = 0
        for iteration in range(1, self.setting.iterations + 1):
            vectors = []
            for number, rows in enumerate(self.clients):
                if number in liars:
                    vectors.append(self._lie(attack, plan, model, rows, proven=defence != "none"))
                else:
                    honest = encode(train_unit(trainer, model.parameters(), rows, plan), model.layout, plan)
                    vectors.append(honest + draw_noise(plan) if self.setting.noise else honest)
            try:
                own, count = mean_of(task, self._sums(task, vectors, iteration))
                shortened += rule.shortens(own, count)
                model = rule.apply(model, own, count, iteration)
            except ModelOverflow:
                lost += 1
        parameters = model.parameters()
        guessed = trainer.probabilities(parameters, self._marked).argmax(axis=1)  # type: ignore[attr-defined]
        return Outcome(
            score=round(self._judge.score(parameters), 4),
            backdoor=round(float((guessed == self.setting.target).mean()), 4),
            lost=lost,
            shortened=shortened,
        )

    def _sums(self, task: Task, vectors: list[Integers], iteration: int) -> list[tuple[Integers, int]]:
        names = {Nullifier(number.to_bytes(32, "big")): number for number in range(len(vectors))}
        turn = BlockHash(self.seed.to_bytes(16, "big") + iteration.to_bytes(16, "big"))
        groups = 1 if task.groups is None else task.groups.number
        dealt = deal(names, turn, groups=groups, min_clients=task.privacy.min_clients)
        return [
            (np.sum([vectors[names[name]] for name in group], axis=0, dtype=np.int64), len(group))
            for group in dealt
        ]

    def _lie(self, attack: str, plan: Plan, model: IntegerModel, rows: Dataset, *, proven: bool) -> Integers:
        """What a liar adds: with proofs, as much of it as may pass."""
        if attack == "zero vectors":
            return np.zeros(plan.dimension, dtype=np.int64)
        classes = rows.schema.classes
        if attack == "label flip":
            rows = labelled(rows, classes - 1 - rows.labels.astype(np.int64))
        elif attack.startswith("backdoor"):
            marked = with_trigger(rows, self.setting)
            rows = labelled(marked, np.full(len(rows), self.setting.target))
        trainer = trainer_of(self.setting.task)
        update = encode(train_unit(trainer, model.parameters(), rows, plan), model.layout, plan)
        factor = {"scaling ×1000": 1000, "sign flip ×10": -10, "backdoor ×100": 100}.get(attack, 1)
        vector = factor * update.astype(np.float64)
        norm = float(np.linalg.norm(vector))
        if proven and norm > (most := most_of_a_liar(self.setting)):
            vector *= most / norm
        return np.rint(vector).astype(np.int64)
