"""FedSGD and FedAvg over a dense network (step 4)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.learning.dense import DenseNetwork
from anofel.learning.sampling import require_rows, sample_records
from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset


def _negated(gradient: Parameters) -> dict[str, NDArray[np.float64]]:
    return {name: -array for name, array in gradient.items()}


@dataclass(frozen=True)
class FedSGD:
    """One full gradient per iteration; the update is minus the gradient of the mean loss."""

    network: DenseNetwork
    seed: int = 0

    def initial(self) -> Parameters:
        """Make the first model."""
        return self.network.initial(self.seed)

    def probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        """Give the probability of every class, one row per record."""
        return self.network.probabilities(parameters, dataset.inputs())

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Compute one gradient over the whole dataset."""
        require_rows(dataset)
        gradient = self.network.gradient(parameters, dataset.inputs(), dataset.labels)
        return LocalUpdate(_negated(gradient), len(dataset))

    def train_records(
        self, parameters: Parameters, dataset: Dataset, clipping_norm: float, sampling_rate: float = 1.0
    ) -> LocalUpdate:
        """Sum the clipped gradients of the records, each sampled independently with `sampling_rate`."""
        require_rows(dataset)
        rows = sample_records(dataset, sampling_rate)
        gradient = self.network.clipped_gradient_sum(parameters, rows.inputs(), rows.labels, clipping_norm)
        return LocalUpdate(_negated(gradient), len(rows))


@dataclass(frozen=True)
class FedAvg:
    """Local epochs of mini-batch SGD; the update is the trained model minus the posted one."""

    network: DenseNetwork
    learning_rate: float
    epochs: int = 1
    batch_size: int = 32
    seed: int = 0
    max_steps: int = 0
    """The most batches of an iteration; 0: any number."""
    proximal: float = 0.0
    """μ of FedProx: each step also goes back towards the posted model."""

    def __post_init__(self) -> None:
        if self.learning_rate <= 0 or self.epochs < 1 or self.batch_size < 1:
            raise InvalidInput("FedAvg needs a positive learning rate, epoch count and batch size.")

    def initial(self) -> Parameters:
        """Make the first model."""
        return self.network.initial(self.seed)

    def probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        """Give the probability of every class, one row per record."""
        return self.network.probabilities(parameters, dataset.inputs())

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Train for the local epochs; batches are shuffled by the public seed and the epoch."""
        require_rows(dataset)
        inputs, labels = dataset.inputs(), dataset.labels
        local = {name: array.copy() for name, array in parameters.items()}
        for batch in self._batches(len(labels)):
            gradient = self.network.gradient(local, inputs[batch], labels[batch])
            with np.errstate(over="ignore", invalid="ignore"):  # shows in the update, which is refused
                for name, array in gradient.items():
                    pull = self.proximal * (local[name] - parameters[name])
                    local[name] -= self.learning_rate * (array + pull)
        with np.errstate(over="ignore", invalid="ignore"):
            return LocalUpdate({name: local[name] - parameters[name] for name in local}, len(dataset))

    def _batches(self, rows: int) -> Iterator[NDArray[np.int64]]:
        orders = (np.random.default_rng((self.seed, epoch)).permutation(rows) for epoch in range(self.epochs))
        batches = (
            order[start : start + self.batch_size]
            for order in orders
            for start in range(0, rows, self.batch_size)
        )
        return islice(batches, self.max_steps or None)
