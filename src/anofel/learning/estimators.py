"""Estimators of scikit-learn as trainers: whatever has ``coef_`` and ``intercept_`` after it was fitted.

Rules, in the same words in ``docs/bring-your-code.md``:

1. The model is ``coef_`` and ``intercept_``; nothing else of an estimator travels.
2. An estimator with ``partial_fit`` goes on from the posted model; one with ``warm_start`` starts there; any
   other is fitted afresh. The update is what it ends with, minus the posted model. Without ``partial_fit`` a
   client needs rows of every class.
3. Each training has an estimator of its own: no counter and no average is kept from one to the next.
4. What keeps averages (``average``) is refused, since they do not travel.
5. Shapes come from rows that are made up, so they say nothing about anybody's.

Nothing of scikit-learn is imported here: any object with these methods will do.
"""

import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from anofel.learning.build import TrainerRefused
from anofel.learning.losses import answers_of
from anofel.learning.own_trainer import TrainerFailed
from anofel.learning.sampling import require_rows
from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset
from anofel.tasks.schema import NumberTarget, Schema, SurvivalTarget
from anofel.tasks.task import Task

MakeEstimator = Callable[[], Any]
"""Makes an estimator that was not fitted yet."""
_TRAVELS: Final = ("coef_", "intercept_")  # (1)
_ROWS: Final = 8
"""How many rows are made up for each class."""


class EstimatorTrainer:
    """Trains an estimator of scikit-learn: its coefficients travel, and nothing else."""

    def __init__(self, make: MakeEstimator, schema: Schema, *, epochs: int = 1) -> None:
        """``epochs`` is how often ``partial_fit`` sees the rows. Raises ``TrainerRefused``."""
        target = getattr(schema, "target", None)
        if isinstance(target, SurvivalTarget):
            raise TrainerRefused("No estimator learns survival as a task has it; use the kind 'survival'.")
        if epochs < 1:
            raise TrainerRefused("An estimator sees its rows once or more.")
        self._make, self._epochs, self._schema = make, epochs, schema
        self._is_number = isinstance(target, NumberTarget)
        self._known = np.arange(schema.classes)
        self._example = self._fitted_example()
        self._shapes = {name: np.shape(getattr(self._example, name)) for name in _TRAVELS}
        if self._is_number or hasattr(self._example, "predict_proba"):
            self.probabilities = self._probabilities

    @classmethod
    def for_task(cls, task: Task, make: MakeEstimator, *, epochs: int = 1) -> Self:
        """Make the trainer of a custom task. Raises ``TrainerRefused``."""
        if task.training.algorithm != "custom":
            raise TrainerRefused(
                f"An estimator trains in its own way, not by '{task.training.algorithm}'; "
                'write algorithm = "custom".'
            )
        return cls(make, task.schema, epochs=epochs)

    def initial(self) -> Parameters:
        """Begin with all coefficients at zero."""
        return {name: np.zeros(shape) for name, shape in self._shapes.items()}

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Fit a new estimator from the posted model. Raises ``TrainerFailed`` and what it raises."""
        require_rows(dataset)
        estimator = self._make()  # (3)
        _put(estimator, parameters)
        self._fit(estimator, dataset.inputs(), answers_of(dataset))
        made = {name: np.asarray(getattr(estimator, name), dtype=np.float64) for name in _TRAVELS}
        for name, array in made.items():
            if array.shape != self._shapes[name]:
                raise TrainerFailed(
                    f"The estimator {_name(estimator)} learned {name} of the shape {array.shape}, and the "
                    f"model has {self._shapes[name]}."
                )
        return LocalUpdate({name: made[name] - parameters[name] for name in made}, len(dataset))

    def fitted(self, parameters: Parameters) -> Any:
        """Give a fitted estimator with these parameters, for whatever takes estimators."""
        estimator = deepcopy(self._example)
        _put(estimator, parameters)
        return estimator

    def _probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        """Give the probability of every class, or the number, one line per row."""
        estimator, inputs = self.fitted(parameters), dataset.inputs()
        if self._is_number:
            return np.asarray(estimator.predict(inputs), dtype=np.float64).reshape(len(dataset), 1)
        return np.asarray(estimator.predict_proba(inputs), dtype=np.float64)

    def _fit(self, estimator: Any, inputs: NDArray[np.float64], answers: NDArray[Any]) -> None:
        with warnings.catch_warnings():
            # That it has not converged after a few steps is what federated training is about.
            warnings.simplefilter("ignore", UserWarning)
            if hasattr(estimator, "partial_fit"):  # (2)
                known = {} if self._is_number else {"classes": self._known}
                for _ in range(self._epochs):
                    estimator.partial_fit(inputs, answers, **known)
                return
            if not self._is_number and len(np.unique(answers)) < len(self._known):
                raise TrainerFailed(
                    f"The estimator {_name(estimator)} needs rows of every class; one with partial_fit "
                    "does not."
                )
            if "warm_start" in estimator.get_params():
                estimator.set_params(warm_start=True)
            estimator.fit(inputs, answers)

    def _fitted_example(self) -> Any:
        """Fit an estimator to rows that are made up (5)."""
        estimator = self._make()
        if not hasattr(estimator, "fit"):
            raise TrainerRefused(f"{_name(estimator)} is no estimator: it has no 'fit'.")
        if getattr(estimator, "average", False):  # (4)
            raise TrainerRefused(
                f"{_name(estimator)} keeps averages (average={estimator.average}), which do not travel; "
                "anofel model average takes the mean of models instead."
            )
        kinds = 2 if self._is_number else self._schema.classes
        inputs = np.random.default_rng(0).normal(size=(_ROWS * kinds, self._schema.inputs))
        answers: NDArray[Any] = np.arange(len(inputs)) % kinds
        self._fit(estimator, inputs, answers.astype(np.float64) if self._is_number else answers)
        missing = [name for name in _TRAVELS if not hasattr(estimator, name)]
        if missing:
            raise TrainerRefused(
                f"{_name(estimator)} has no {' and no '.join(missing)} after it was fitted; "
                "only what is a sum of weighted features has a mean."
            )
        return estimator


def _put(estimator: Any, parameters: Parameters) -> None:
    for name in _TRAVELS:
        setattr(estimator, name, np.array(parameters[name], dtype=np.float64, order="C")[()])


def _name(estimator: object) -> str:
    return type(estimator).__name__
