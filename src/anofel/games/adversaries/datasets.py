"""Adversaries of DINDGame: what a new client's rows show, in its behaviour and in the sum."""

import math
from typing import Any, ClassVar

import numpy as np

from anofel.games import parties
from anofel.games.adversaries.posts import mean
from anofel.games.adversary import Adversary, Evidence, Strategy
from anofel.games.oracle import ClientAux, Oracle
from anofel.games.rules import DINDGame, Game
from anofel.games.setting import FEW_ROWS, MANY_ROWS, GameSetting, Patients, as_csv, some_rows
from anofel.games.weak import replaced
from anofel.learning.build import trainer_of
from anofel.models.integer_model import IntegerModel
from anofel.phase2_training.step4_local_training import make_update
from anofel.privacy.bounds import gaussian_advantage
from anofel.privacy.plan import Plan
from anofel.studies.dataset import Dataset
from anofel.studies.load import load_file
from anofel.studies.table import MemoryFile
from anofel.tasks.task import Task

MARKED_AGE = 119
"""A row with this age makes the chosen trainer fail."""


class Datasets(Strategy):
    """Two datasets for a new client, beside an honest helper whose rows the adversary chose as well."""

    game = "dind"
    plays_per_setup = 30
    helping: tuple[bytes, ...] = ()
    datasets: tuple[Patients, Patients] = ((), ())
    """What the adversary chose in this play."""
    _played: int = 0
    helpers: ClassVar[int] = 1

    def prepare(self, oracle: Oracle) -> None:
        """Register the helpers; the adversary knows their rows."""
        self.helping = tuple(
            oracle.register("client", ClientAux(some_rows(20, 7 + number))) for number in range(self.helpers)
        )

    def pair(self, seed: int) -> tuple[Patients, Patients]:
        """Return D_0 and D_1: the same patients with opposite labels. A certifier signs no rows twice."""
        rows = some_rows(20, seed)
        return rows, tuple((age, pressure, 1 - ill) for age, pressure, ill in rows)

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Challenge, beside the helpers, and ask for the model."""
        assert isinstance(game, DINDGame)
        self._played += 1
        self.datasets = self.pair(1000 + self._played)
        client = game.challenge(*(ClientAux(rows) for rows in self.datasets))
        for helper in self.helping:
            oracle.train(helper)
        released = oracle.access()
        return Evidence(oracle, self, (client,), ((), ()), game.iteration, released)


class ManyRows(Datasets):
    """D_0 has few rows, D_1 has many."""

    def pair(self, seed: int) -> tuple[Patients, Patients]:
        """Return both."""
        return some_rows(FEW_ROWS, seed), some_rows(MANY_ROWS, seed)


class Failing(Datasets):
    """The server posts what makes training fail for a row of its choice, which D_1 has."""

    helpers = 2

    def pair(self, seed: int) -> tuple[Patients, Patients]:
        """Return both."""
        rows = some_rows(20, seed)
        return rows, ((MARKED_AGE, 100, 1), *rows[1:])

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Play with a trainer that fails at the marked row, as an overflow in a deep network would."""
        with replaced(parties, "trainer_of", failing_trainer):
            return super().play(oracle, game)


class _Fails:
    """A trainer that raises for one row."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)

    def train(self, parameters: Any, dataset: Dataset) -> Any:
        if _is_marked(dataset):
            raise FloatingPointError("overflow")
        return self._trainer.train(parameters, dataset)


def _is_marked(dataset: Dataset) -> bool:
    scaled = np.ldexp(dataset.features[:, 0].astype(np.float64), -dataset.schema.fraction_bits)
    return bool(((scaled * 25 + 50).round() == MARKED_AGE).any())


def failing_trainer(task: Any) -> Any:
    """Return a task's trainer, which fails at the marked row."""
    return _Fails(trainer_of(task))


def _dataset(rows: Patients, task: Task) -> Dataset:
    return load_file(MemoryFile("rows.csv", as_csv(rows)), task.schema)


class TimeOfTraining(Adversary):
    """How long training takes."""

    name = "training-time"
    about = "D_1 has fifty times as many rows; compares when posts come with the middle of the window."
    strategy = ManyRows
    weakened = ("post-when-ready",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say D_1 if posts come late."""
        seen = evidence.challenge
        times = [post.height - seen.opened_at for post in seen.posts]
        middle = (evidence.closes_at - seen.opened_at + 2) / 2
        return None if mean(times) == middle else int(mean(times) > middle)


class FailedTraining(Adversary):
    """Whether a post is missing."""

    name = "failed-training"
    about = "D_1 has a row at which training fails; counts the posts."
    strategy = Failing
    weakened = ("skip-when-training-fails",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say D_1 if a post is missing."""
        return int(len(evidence.challenge.posts) < 1 + Failing.helpers)


class SumLikelihood(Adversary):
    """The likelihood-ratio test on the released sum."""

    name = "sum-likelihood"
    about = "Knows all other rows, subtracts them from the sum, and takes the nearer of the two updates."
    strategy = Datasets
    weakened = ("no-noise",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say which dataset makes the sum likelier; Gaussian noise is as likely as it is short."""
        total = evidence.released.outcomes[0].total
        strategy = evidence.strategy
        if total is None or not isinstance(strategy, Datasets):
            return None
        oracle = evidence.oracle
        others = sum(self._update(evidence, oracle.parties[client].rows) for client in strategy.helping)
        rest = total - others
        distances = [float(np.linalg.norm(rest - self._update(evidence, rows))) for rows in strategy.datasets]
        return int(distances[1] < distances[0])

    def _update(self, evidence: Evidence, rows: Patients) -> Any:
        task = evidence.oracle.setting.task(0)
        model = IntegerModel.from_bytes(evidence.challenge.models[0])
        return make_update(trainer_of(task), model, _dataset(rows, task), Plan.of(task)).astype(np.float64)

    def bound(self, setting: GameSetting) -> float:
        """Return what the best test reaches: (1 + γ)/2 with the exact γ of the noise, for *replace*."""
        plan = Plan.of(setting.task(0))
        sensitivity = plan.sensitivity("replace").l2
        return (1 + gaussian_advantage(math.sqrt(plan.guaranteed_variance()) / sensitivity)) / 2
