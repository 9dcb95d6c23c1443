"""A trainer of one's own, wrapped: whatever goes wrong in it becomes one sentence that names it.

Without this a mistake in the user's code would end a client with a stack trace after the iteration was
charged, and the next start could only say that the update was lost.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.errors import AnofelError
from anofel.learning.losses import loss_of
from anofel.learning.trainer import LocalUpdate, Predictor, RecordTrainer, Trainer
from anofel.models.parameters import Layout, Parameters
from anofel.studies.dataset import Dataset
from anofel.tasks.entry_points import fault


class TrainerFailed(AnofelError):
    """A trainer of one's own raised an error, or returned what cannot be used; the message names it."""

    code = "trainer-failed"


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Turn what the trainer of this name raises into ``TrainerFailed``; our own errors stay as they are."""
    try:
        yield
    except AnofelError:
        raise
    except Exception as error:
        raise TrainerFailed(f"The trainer '{name}' failed: {fault(error)}.") from error


class OwnTrainer:
    """Has the methods of the trainer it wraps, and no others."""

    def __init__(self, name: str, trainer: Trainer) -> None:
        self._name, self._trainer = name, trainer
        if isinstance(trainer, RecordTrainer):
            self.train_records = self._train_records
        if isinstance(trainer, Predictor):
            self.probabilities = self._probabilities

    def initial(self) -> Parameters:
        """Make the first model. Raises ``TrainerFailed``, as all methods do."""
        with blaming(self._name):
            return _arrays(self._trainer.initial())

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Train on a dataset."""
        with blaming(self._name):
            return self._checked(self._trainer.train(parameters, dataset))

    def _train_records(
        self, parameters: Parameters, dataset: Dataset, clipping_norm: float, sampling_rate: float
    ) -> LocalUpdate:
        assert isinstance(self._trainer, RecordTrainer)
        with blaming(self._name):
            return self._checked(
                self._trainer.train_records(parameters, dataset, clipping_norm, sampling_rate)
            )

    def _probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        assert isinstance(self._trainer, Predictor)
        with blaming(self._name):
            made = np.asarray(self._trainer.probabilities(parameters, dataset), dtype=np.float64)
        columns = loss_of(dataset.schema).predictions(np.zeros((1, dataset.schema.outputs))).shape[1]
        if made.shape != (len(dataset), columns):
            raise TrainerFailed(
                f"The trainer '{self._name}' gave probabilities of the shape {made.shape} for {len(dataset)} "
                f"rows, where {columns} columns are wanted."
            )
        return made

    def _checked(self, made: object) -> LocalUpdate:
        if not isinstance(made, LocalUpdate):
            raise TrainerFailed(f"The trainer '{self._name}' returned no LocalUpdate.")
        return replace(made, update=_arrays(made.update), examples=int(made.examples))


def _arrays(named: Mapping[str, Any]) -> Parameters:
    """Read what a trainer returned as named arrays; raises whatever that meets."""
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in named.items()}
    Layout.of(arrays)  # names are texts
    return arrays
