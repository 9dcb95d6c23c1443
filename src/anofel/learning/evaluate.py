"""Measure models on rows that somebody holds for themselves."""

import contextlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.losses import likelihoods, numbers_of
from anofel.learning.metrics import accuracy, auc, concordance
from anofel.learning.trainer import Predictor, Trainer
from anofel.models.integer_model import IntegerModel
from anofel.studies.dataset import Dataset
from anofel.tasks.schema import NumberTarget, SurvivalTarget, TableSchema
from anofel.tasks.task import Task

Measure = Callable[[IntegerModel], dict[str, float]]
"""Gives the quality of a model by the names of the measures."""


def evaluate_on(task: Task, rows: Dataset, trainer: Trainer | None = None) -> Measure:
    """Return what measures a task's models on these rows; with two classes also the area under the curve.

    Raises ``InvalidInput`` for a trainer that cannot predict.
    """
    predictor = trainer_of(task) if trainer is None else trainer
    if not isinstance(predictor, Predictor):
        raise InvalidInput(f"The trainer of task '{task.name}' has no 'probabilities' to measure models by.")

    def measure(model: IntegerModel) -> dict[str, float]:
        probabilities = predictor.probabilities(model.parameters(), rows)
        if isinstance(task.schema, TableSchema) and task.schema.target is not None:
            return _measured(task.schema.target, probabilities, rows.labels)
        chosen = probabilities[np.arange(len(rows)), rows.labels]
        found = {
            "loss": float(-np.log(np.maximum(chosen, np.finfo(float).tiny)).mean()),
            "accuracy": accuracy(probabilities, rows.labels),
        }
        if task.schema.classes == 2 and 0 < int((rows.labels == 1).sum()) < len(rows):
            found["auc"] = auc(probabilities[:, 1], rows.labels)
        return found

    return measure


def _measured(
    target: NumberTarget | SurvivalTarget, predicted: NDArray[np.float64], labels: NDArray[np.int32]
) -> dict[str, float]:
    """Measure numbers by their root mean squared error, and survival by its concordance."""
    if isinstance(target, NumberTarget):
        errors = predicted[:, 0] - numbers_of(labels, target)
        return {"rmse": float(np.sqrt((errors**2).mean())), "mean_error": float(np.abs(errors).mean())}
    intervals, events = np.divmod(labels, 2)
    risk = -predicted.sum(axis=1)  # minus the intervals that a row is expected to survive
    found = {"loss": float(-np.log(np.maximum(likelihoods(predicted, labels), np.finfo(float).tiny)).mean())}
    with contextlib.suppress(InvalidInput):
        found["concordance"] = concordance(risk, intervals, events == 1)
    return found
