"""Adversaries of DINDGame: what a new client's rows show, in its behaviour and in the sum."""

import math
from dataclasses import replace
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
from anofel.learning.trainer import Predictor
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from anofel.phase2_training.step4_local_training import make_update
from anofel.privacy import protect
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
            oracle.register("client", ClientAux(self.rows_of_helper(number)))
            for number in range(self.helpers)
        )

    def rows_of_helper(self, number: int) -> Patients:
        """Return what an honest helper has."""
        return some_rows(20, 7 + number)

    def pair(self, seed: int) -> tuple[Patients, Patients]:
        """Return D_0 and D_1: the same patients with opposite labels. A certifier signs no rows twice."""
        rows = some_rows(20, seed)
        return rows, tuple((age, pressure, 1 - ill) for age, pressure, ill in rows)

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Challenge, beside the helpers, and ask for the model."""
        assert isinstance(game, DINDGame)
        self._played += 1
        self.datasets = self.pair(1000 + self._played)
        client = game.challenge(*(self.registered(rows) for rows in self.datasets))
        for helper in self.helping:
            oracle.train(helper)
        self.begin(oracle)
        released = oracle.access()
        return Evidence(oracle, self, (client,), ((), ()), game.iteration, released)

    def begin(self, oracle: Oracle) -> None:
        """Query what belongs to the iteration of the challenge besides."""

    def registered(self, rows: Patients) -> ClientAux:
        """Return how the client of the challenge is registered, beside its rows."""
        return ClientAux(rows)


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


class SomeRows(ManyRows):
    """The same beside two helpers."""

    helpers = 2


class TwoIterations(Failing):
    """The client can pay for one iteration, and is told to train in two."""

    budget = ""

    def prepare(self, oracle: Oracle) -> None:
        """Register, and choose a budget between the costs of one release and of two."""
        super().prepare(oracle)
        costs = [Plan.of(oracle.setting.task(0)).epsilon(releases, "replace") for releases in (1, 2)]
        self.budget = f"{sum(costs) / 2:.6f}"

    def registered(self, rows: Patients) -> ClientAux:
        """Return the client with its budget."""
        return ClientAux(rows, max_epsilon=self.budget)

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Go on for one iteration more."""
        found = super().play(oracle, game)
        for client in (*found.pair, *self.helping):
            oracle.train(client)
        oracle.access()
        return found


class ThreeIterations(Datasets):
    """The client trains three models, each made from the sum before it."""

    iterations: ClassVar[int] = 3

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Go on until the last one."""
        found = super().play(oracle, game)
        for _ in range(self.iterations - 1):
            for client in (*found.pair, *self.helping):
                oracle.train(client)
            found.released = oracle.access()
        return found


class Isolating(Datasets):
    """S chooses a first model by which everybody is ill: the helper's patients are, those of D_b are not.

    So the helper's update is nearly zero, and those of D_0 and D_1 point in opposite directions and are as
    long as they may be. S announces its tasks again for each play: after the first model the board holds it
    to the rule.
    """

    certainty: ClassVar[float] = 20.0
    """The logit of being ill; the larger, the smaller the update of whoever is."""

    def prepare(self, oracle: Oracle) -> None:
        """Register; from now on the first model is this one."""
        super().prepare(oracle)
        oracle.choose_model = self.everybody_is_ill

    def everybody_is_ill(self, task: int, model: IntegerModel) -> IntegerModel:
        """Return a model that does not look at anything."""
        chosen = {name: np.zeros_like(values) for name, values in model.parameters().items()}
        chosen["layer0.bias"] += self.certainty
        made = IntegerModel.from_parameters(chosen, model.scale_bits)
        return replace(made, values=made.values + task)  # or both models would be one blob

    def rows_of_helper(self, number: int) -> Patients:
        """Return patients who are ill."""
        return tuple((age, 120, 1) for age in range(40 + number, 60))

    def pair(self, seed: int) -> tuple[Patients, Patients]:
        """Return the old with high pressure, or the young with low one; all are well."""
        older = tuple((120 - place, 240, 0) for place in range(3 + seed % 30))
        younger = tuple((place, 10, 0) for place in range(3 + seed % 30))
        return older, younger

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Announce again, and play."""
        oracle.announce_again()
        return super().play(oracle, game)


class WithSybils(Isolating):
    """All clients that a sum needs are the adversary's own, but the one of the challenge and its helper."""

    setting: ClassVar[GameSetting] = GameSetting(min_clients=10)
    sybils: ClassVar[int] = 8

    def prepare(self, oracle: Oracle) -> None:
        """Register them too."""
        super().prepare(oracle)
        self.bought = [
            oracle.register("client", ClientAux(some_rows(5, 500 + number), sybil=True))
            for number in range(self.sybils)
        ]

    def registered(self, rows: Patients) -> ClientAux:
        """Return a client that reckons with them."""
        return ClientAux(rows, max_colluders=self.sybils)

    def begin(self, oracle: Oracle) -> None:
        """Let the adversary's own clients post in the iteration that is open."""
        for sybil in self.bought:
            oracle.train(sybil)


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


class MissingPost(Adversary):
    """Whether a client takes part."""

    name = "floors"
    about = "D_1 has fifty times as many rows; looks whether a post is missing."
    strategy = SomeRows
    weakened = ("skip-with-few-rows",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say D_0 if a post is missing."""
        return int(len(evidence.challenge.posts) == 1 + SomeRows.helpers)


class Refunds(Adversary):
    """How long a budget lasts."""

    name = "refunds"
    about = "D_1 has a row at which training fails; looks whether the client can pay for one iteration more."
    strategy = TwoIterations
    weakened = ("refund-when-training-fails",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say D_1 if the client posts in the iteration after the one that it could pay for."""
        return int(len(evidence.oracle.seen[evidence.at + 1].posts) > TwoIterations.helpers)


class SumLikelihood(Adversary):
    """The likelihood-ratio test on the released sum."""

    name = "sum-likelihood"
    about = "Knows all other rows, subtracts them from the sum, and takes the nearer of the two updates."
    strategy = Datasets
    weakened: ClassVar[tuple[str, ...]] = ("no-noise",)
    decisive = 20

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

    def bound(self, weakened: str = "") -> float:  # noqa: ARG002 - the noise is the same in all variants
        """Return what the best test reaches."""
        return best_of(self.strategy.setting)


def best_of(setting: GameSetting, *, honest: int | None = None, releases: int = 1) -> float:
    """Return what the best test between neighbours reaches: (1 + γ)/2, γ exact, for *replace*."""
    plan = Plan.of(setting.task(0))
    deviations = math.sqrt(plan.guaranteed_variance(honest)) / plan.sensitivity("replace").l2
    return (1 + gaussian_advantage(deviations / math.sqrt(releases))) / 2


class FirstModel(SumLikelihood):
    """The same, with a model of S's choice."""

    name = "first-model"
    about = "The same with a first model that isolates: other rows leave it where it is, D_0 and D_1 do not."
    strategy = Isolating
    weakened = ("no-noise",)


class Sybils(SumLikelihood):
    """The same, where only two of ten contributors add noise."""

    name = "sybils"
    about = "The same in a sum of ten, eight of which are the adversary's own zeros with bit 1."
    strategy = WithSybils
    weakened = ("no-noise", "believes-owner")
    decisive = 60

    def bound(self, weakened: str = "") -> float:
        """Return what the client reckons with: two honest contributors, or all ten if it believes S."""
        setting = self.strategy.setting
        honest = setting.min_clients - (0 if weakened == "believes-owner" else WithSybils.sybils)
        return best_of(setting, honest=honest)


class FinalModel(Adversary):
    """LiRA (Carlini et al. 2022) on the last model alone, with shadow runs of everything."""

    name = "final-model"
    about = "LiRA: compares the last model's confidence on D_0 with that of shadow models of both datasets."
    strategy = ThreeIterations
    weakened = ("no-noise",)
    decisive = 30
    shadows: ClassVar[int] = 24
    """Runs of the whole training with each dataset."""

    def guess(self, evidence: Evidence) -> int | None:
        """Say whose shadows are likelier to have this confidence, taken for Gaussian."""
        strategy, oracle = evidence.strategy, evidence.oracle
        assert isinstance(strategy, Datasets)
        task = oracle.setting.task(0)
        known = [_dataset(oracle.parties[client].rows, task) for client in strategy.helping]
        pair = [_dataset(rows, task) for rows in strategy.datasets]
        first = IntegerModel.from_bytes(evidence.challenge.models[0])
        confidence = self._confidence(evidence.released.models[0], pair[0], task)
        scores = []
        for dataset in pair:
            runs = [self._run(first, [dataset, *known], task) for _ in range(self.shadows)]
            found = np.array([self._confidence(run, pair[0], task) for run in runs])
            deviation = max(float(found.std(ddof=1)), 1e-6)
            scores.append(-math.log(deviation) - (confidence - float(found.mean())) ** 2 / deviation**2 / 2)
        return int(scores[1] > scores[0])

    def _run(self, model: IntegerModel, datasets: list[Dataset], task: Task) -> IntegerModel:
        """Train as the clients would."""
        trainer, plan, rule = trainer_of(task), Plan.of(task), rule_of(task)
        for number in range(1, ThreeIterations.iterations + 1):
            made = [make_update(trainer, model, rows, plan) + protect.draw_noise(plan) for rows in datasets]
            model = rule.apply(model, np.sum(made, axis=0), len(made), number)
        return model

    def _confidence(self, model: IntegerModel, dataset: Dataset, task: Task) -> float:
        """Return the mean logit of the right label."""
        trainer = trainer_of(task)
        assert isinstance(trainer, Predictor)
        found = trainer.probabilities(model.parameters(), dataset)
        right = found[np.arange(len(dataset)), dataset.labels.astype(int)]
        return float(np.mean(np.log(right + 1e-12) - np.log1p(1e-12 - right)))

    def bound(self, weakened: str = "") -> float:  # noqa: ARG002 - the noise is the same in all variants
        """Return what the best test on all three sums reaches."""
        return best_of(self.strategy.setting, releases=ThreeIterations.iterations)
