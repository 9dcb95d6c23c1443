"""An attack as experiment: membership inference on posted sums, against the bound γ.

The game (the paper's D-IND, and its zero-out variant): the adversary is the model owner. It chooses
the model of every iteration and two datasets for one client, knows the data of everyone else, and sees
the sums. It subtracts what it knows; what remains is the client's contribution plus the honest noise.
The likelihood-ratio test on that is the best test there is, so the measured advantage TPR − FPR
should come close to the exact one and must not exceed γ beyond the error of the measurement.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.models.means import mean_of
from anofel.models.rules import rule_of
from anofel.privacy.bounds import advantage_bound
from anofel.privacy.plan import Plan
from anofel.privacy.protect import encode, train_unit
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

_RECORDS = 200
"""How many records the adversary looks through for the one that shows most."""
CONFIDENCE_ERROR = 1e-6
"""The measured advantage is within its margin with probability at least 1 − 1e-6."""


@dataclass(frozen=True, kw_only=True)
class AttackResult:
    """What the adversary achieved."""

    relation: str
    iterations: int
    trials: int
    honest: int
    advantage_without_noise: float
    advantage_with_noise: float
    margin: float
    gamma: float
    """The bound for the task's ε after these iterations."""

    @property
    def within_bound(self) -> bool:
        """Whether the measured advantage stays below γ, given the margin."""
        return self.advantage_with_noise <= self.gamma + self.margin

    def document(self) -> dict[str, Any]:
        """Write the result as one document."""
        return {**vars(self), "within_bound": self.within_bound}


def worst_datasets(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """Give two datasets that differ as much as the study allows: the same rows with opposite labels."""
    flipped = (dataset.schema.classes - 1 - dataset.labels).astype(np.int32)
    return dataset, Dataset(dataset.features, flipped, dataset.schema)


def run_attack(
    task: Task,
    target: Dataset,
    *,
    relation: str = "replace",
    iterations: int | None = None,
    trials: int = 4000,
) -> AttackResult:
    """Play the game `trials` times for each of the two datasets, with and without noise."""
    plan = Plan.of(task)
    if plan.spec.unit == "paper":
        raise InvalidInput("The unit 'paper' proves no bound, so there is nothing to hold an attack against.")
    if plan.spec.sampling_rate != 1:
        raise InvalidInput("The attack plays with all records of a client; the task samples them.")
    if plan.spec.unit == "record":
        target = _loudest_record(task, plan, target)
    if trials < 100:
        raise InvalidInput("The attack needs at least 100 trials.")
    rounds = plan.spec.max_releases if iterations is None else iterations
    means = _contributions(task, plan, target, relation, rounds)
    with_noise = _advantage(plan, means, trials, noise=True)
    without = _advantage(plan, means, min(trials, 200), noise=False)
    epsilon = plan.epsilon(rounds, relation)
    return AttackResult(
        relation=relation,
        iterations=rounds,
        trials=trials,
        honest=plan.spec.honest,
        advantage_without_noise=without,
        advantage_with_noise=with_noise,
        # Dvoretzky–Kiefer–Wolfowitz for both samples: the threshold was chosen after looking.
        margin=2 * math.sqrt(math.log(4 / CONFIDENCE_ERROR) / (2 * trials)),
        gamma=advantage_bound(epsilon, float(plan.spec.delta)),
    )


def _loudest_record(task: Task, plan: Plan, target: Dataset) -> Dataset:
    """Choose the record that moves the first model most; the adversary knows all others, so they cancel."""
    trainer, rule = trainer_of(task), rule_of(task)
    parameters = rule.initial(trainer.initial(), task.model.scale_bits).parameters()
    records = [target.take(np.array([index])) for index in range(min(len(target), _RECORDS))]

    def norm(record: Dataset) -> float:
        update = train_unit(trainer, parameters, record, plan).update
        return math.sqrt(sum(float((array**2).sum()) for array in update.values()))

    return max(records, key=norm)


def _contributions(
    task: Task, plan: Plan, target: Dataset, relation: str, rounds: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the client's clipped updates for both datasets, in integer steps, iteration by iteration.

    The owner posts the models of a run of its own on the target's first dataset.
    """
    trainer, rule = trainer_of(task), rule_of(task)
    first, second = worst_datasets(target)
    model = rule.initial(trainer.initial(), task.model.scale_bits)
    updates: tuple[list[Any], list[Any]] = ([], [])
    for iteration in range(1, rounds + 1):
        parameters = model.parameters()
        for side, dataset in enumerate((first, second)):
            if side == 1 and relation == "zero-out":
                updates[1].append(np.zeros(plan.dimension))
                continue
            local = train_unit(trainer, parameters, dataset, plan)
            updates[side].append(encode(local, model.layout, plan).astype(np.float64))
        total = np.asarray(updates[0][-1], dtype=np.int64)
        model = rule.apply(model, *mean_of(task, [(total, 1)]), iteration)
    return np.concatenate(updates[0]), np.concatenate(updates[1])


def _advantage(
    plan: Plan, means: tuple[NDArray[np.float64], NDArray[np.float64]], trials: int, *, noise: bool
) -> float:
    """Measure the best TPR − FPR over all thresholds of the likelihood ratio."""
    direction = means[1] - means[0]
    # A sum of h discrete Gaussians is one of h times the variance (lemma 1), so one draw per entry is enough.
    sigma = math.isqrt(math.floor(plan.guaranteed_variance()))
    scores = []
    for side in (0, 1):
        scores.append(np.full(trials, direction @ means[side]))
        if noise:
            for trial in range(trials):
                scores[side][trial] += direction @ plan.mechanism.sample(sigma, direction.size)
    return best_advantage(scores[0], scores[1])


def best_advantage(null: NDArray[np.float64], alternative: NDArray[np.float64]) -> float:
    """Compute the largest TPR − FPR over all thresholds: the distance between two empirical distributions."""
    points = np.unique(np.concatenate([null, alternative]))
    false_positives = np.searchsorted(np.sort(null), points, side="right") / null.size
    true_positives = np.searchsorted(np.sort(alternative), points, side="right") / alternative.size
    return float(np.abs(false_positives - true_positives).max())
