"""The protocol of anything that trains: named parameters in, update and example count out.

``anofel`` ships NumPy trainers (:mod:`anofel.learning.federated`) and one for every module of PyTorch
(:mod:`anofel.learning.pytorch`); anybody else implements these methods and nothing else::

    class MyTrainer:
        def initial(self) -> Parameters: ...
        def train(self, parameters, dataset) -> LocalUpdate: ...
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset


@dataclass(frozen=True, eq=False)
class LocalUpdate:
    """What a client learned: the direction in which the model should move, not yet private."""

    update: Parameters
    examples: int
    """How many examples it comes from; it leaves the client inside the sum of a task with weights alone."""
    metrics: tuple[float, ...] = ()
    """What the task's metric slots get: each of a client within 0 … 1, or a sum of such over its records."""

    def __repr__(self) -> str:
        return f"LocalUpdate(<redacted>, examples={self.examples})"


@runtime_checkable
class Trainer(Protocol):
    """Anything that trains."""

    def initial(self) -> Parameters:
        """Make the first model; the same for the same trainer."""
        ...

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Train on a dataset, starting from `parameters`; the update is added to the model."""
        ...


@runtime_checkable
class Predictor(Protocol):
    """A trainer whose models can be measured."""

    def probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        """Give the probability of every class, one row per record."""
        ...


@runtime_checkable
class RecordTrainer(Trainer, Protocol):
    """A trainer that can bound what one record does: needed for the unit ``record``."""

    def train_records(
        self, parameters: Parameters, dataset: Dataset, clipping_norm: float, sampling_rate: float
    ) -> LocalUpdate:
        """Sum the gradients of (secretly sampled) records, each clipped to `clipping_norm`."""
        ...
