"""A plain NumPy function as a trainer: ``(arrays, X, y) -> arrays``, by a decorator.

    @anofel.array_trainer({"weight": np.zeros(4), "bias": np.zeros(())})
    def logistic(arrays, X, y): ...

The decorated function takes a task and gives its trainer, so ``module:logistic`` names one wherever
``module:function`` does, and ``logistic(task)`` is one in Python.
"""

from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anofel.learning.losses import answers_of, loss_of
from anofel.learning.own_trainer import TrainerFailed
from anofel.learning.sampling import require_rows
from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Parameters
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

Arrays = dict[str, NDArray[np.float64]]
First = Mapping[str, ArrayLike] | Callable[[Task], Mapping[str, ArrayLike]]
"""The arrays of the first model, or what makes them for a task."""
TrainFunction = Callable[[Arrays, NDArray[np.float64], NDArray[Any]], Mapping[str, ArrayLike]]
PredictFunction = Callable[[Arrays, NDArray[np.float64]], ArrayLike]


class ArrayTrainer:
    """Trains with a plain function; the update is what it returns, minus what it was given."""

    def __init__(
        self, function: TrainFunction, first: Mapping[str, ArrayLike], predict: PredictFunction | None = None
    ) -> None:
        self._function = function
        self._first = _copied(first)
        if predict is not None:
            self.probabilities = partial(self._probabilities, predict)

    def initial(self) -> Parameters:
        """Give the arrays of the first model."""
        return _copied(self._first)

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        """Call the function on copies of the arrays. Raises ``TrainerFailed`` and what it raises."""
        require_rows(dataset)
        made = self._function(_copied(parameters), dataset.inputs(), answers_of(dataset))
        if not isinstance(made, Mapping) or set(made) != set(parameters):
            raise TrainerFailed(
                f"The function '{getattr(self._function, '__name__', 'train')}' must return the arrays that "
                f"it was given, by their names: {', '.join(sorted(parameters))}."
            )
        update = {name: np.asarray(made[name], dtype=np.float64) for name in parameters}
        for name, array in update.items():
            if array.shape != np.shape(parameters[name]):
                raise TrainerFailed(
                    f"The array '{name}' came back with the shape {array.shape}, "
                    f"not {np.shape(parameters[name])}."
                )
            update[name] = array - parameters[name]
        return LocalUpdate(update, len(dataset))

    def _probabilities(
        self, predict: PredictFunction, parameters: Parameters, dataset: Dataset
    ) -> NDArray[np.float64]:
        """Give what ``predict`` says; one number per row is that of the second of two classes."""
        made = np.asarray(predict(_copied(parameters), dataset.inputs()), dtype=np.float64)
        columns = loss_of(dataset.schema).predictions(np.zeros((1, dataset.schema.outputs))).shape[1]
        if made.ndim == 1 and columns == 2:
            return np.column_stack([1 - made, made])
        return made.reshape(-1, 1) if made.ndim == 1 and columns == 1 else made


class ArrayFunction:
    """A decorated function: it takes a task and gives its trainer."""

    def __init__(self, function: TrainFunction, first: First, predict: PredictFunction | None) -> None:
        self._function, self._first, self._predict = function, first, predict
        update_wrapper(self, function)

    def __call__(self, task: Task) -> ArrayTrainer:
        """Make the trainer of a task."""
        first = self._first(task) if callable(self._first) else self._first
        return ArrayTrainer(self._function, first, self._predict)


def array_trainer(
    first: First, *, predict: PredictFunction | None = None
) -> Callable[[TrainFunction], ArrayFunction]:
    """Make trainers of a function ``(arrays, X, y) -> arrays``, for custom tasks.

    ``first`` holds the arrays of the first model by name, or is a function of the task that makes them.
    ``predict(arrays, X)`` gives the probability of every class, one line per row; without it models are not
    measured. ``X`` are the features after the schema, ``y`` the classes from 0, or the numbers of a task that
    predicts numbers.
    """
    return lambda function: ArrayFunction(function, first, predict)


def _copied(arrays: Mapping[str, ArrayLike]) -> Arrays:
    return {name: np.array(value, dtype=np.float64) for name, value in arrays.items()}
