"""Measure models on rows that somebody holds for themselves."""

from collections.abc import Callable

from anofel.learning.build import network_of
from anofel.learning.integer_model import IntegerModel
from anofel.learning.metrics import accuracy, auc
from anofel.studies.dataset import Dataset
from anofel.task import Task

Measure = Callable[[IntegerModel], dict[str, float]]
"""Gives the quality of a model by the names of the measures."""


def evaluate_on(task: Task, rows: Dataset) -> Measure:
    """Return what measures a task's models on these rows; with two classes also the area under the curve."""
    network, inputs = network_of(task), rows.inputs()

    def measure(model: IntegerModel) -> dict[str, float]:
        parameters = model.parameters()
        probabilities = network.probabilities(parameters, inputs)
        found = {
            "loss": network.loss(parameters, inputs, rows.labels),
            "accuracy": accuracy(probabilities, rows.labels),
        }
        if task.schema.classes == 2 and 0 < int((rows.labels == 1).sum()) < len(rows):
            found["auc"] = auc(probabilities[:, 1], rows.labels)
        return found

    return measure
