"""What a model is trained for: classes, a number, or survival; each loss for rows of a schema's target.

A loss knows how many outputs a network needs, the gradient of each row's loss in the outputs, and what
the outputs say about a row. It is ordinary arithmetic on outputs, so clipping and noise do not depend on it.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anofel.studies.dataset import Dataset
from anofel.tasks.schema import (
    TARGET_STEPS,
    NumberTarget,
    Schema,
    SurvivalTarget,
    TableSchema,
    outputs_of_classes,
)

Matrix = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]


class Loss(Protocol):
    """A loss of outputs, row by row."""

    @property
    def outputs(self) -> int:
        """How many outputs of a network it needs."""

    @property
    def scores(self) -> int:
        """How many weights of the last layer a feature has: one for each output, or one shared by all."""

    @property
    def start(self) -> float:
        """What a linear model says before it learned anything."""

    def gradient(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give the gradient of each row's loss in its outputs."""

    def losses(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give the loss of each row."""

    def predictions(self, outputs: Matrix) -> Matrix:
        """Say what outputs mean: probabilities of classes, a number, or probabilities of surviving."""


@dataclass(frozen=True)
class Logistic:
    """Negative log-likelihood of classes: one logit for two classes, else one for each."""

    classes: int

    @property
    def outputs(self) -> int:
        """Two classes need one logit only."""
        return outputs_of_classes(self.classes)

    @property
    def scores(self) -> int:
        """Each output has weights of its own."""
        return self.outputs

    start = 0.0

    def gradient(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give probabilities minus what was observed."""
        if self.outputs == 1:
            return sigmoid(outputs) - labels[:, None]
        delta = softmax(outputs)
        delta[np.arange(len(labels)), labels] -= 1
        return delta

    def losses(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give minus the logarithm of the probability of the label."""
        if self.outputs == 1:
            found: Matrix = np.logaddexp(0, np.where(labels == 1, -outputs[:, 0], outputs[:, 0]))
            return found
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        likely: Matrix = shifted[np.arange(len(labels)), labels] - np.log(np.exp(shifted).sum(axis=1))
        return -likely

    def predictions(self, outputs: Matrix) -> Matrix:
        """Give the probability of every class."""
        if self.outputs == 1:
            positive = sigmoid(outputs)
            return np.hstack([1 - positive, positive])
        return softmax(outputs)


@dataclass(frozen=True)
class ClippedSquare:
    """Half the squared error in the target's scale, and linear beyond one scale: its gradient is at most one.

    A single wild value then pulls no harder than one that is off by one scale, which is also what
    clipping record by record would leave of it.
    """

    target: NumberTarget

    outputs = 1
    scores = 1
    start = 0.0

    def gradient(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give the error, clipped to −1 … 1."""
        return np.clip(self._errors(outputs, labels), -1, 1)[:, None]

    def losses(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give half the squared error, linear beyond one."""
        size = np.abs(self._errors(outputs, labels))
        found: Matrix = np.where(size <= 1, size**2 / 2, size - 0.5)
        return found

    def predictions(self, outputs: Matrix) -> Matrix:
        """Give the number, in its unit; one column."""
        return outputs * float(self.target.scale) + float(self.target.offset)

    def _errors(self, outputs: Matrix, labels: Labels) -> Matrix:
        wanted = (numbers_of(labels, self.target) - float(self.target.offset)) / float(self.target.scale)
        found: Matrix = outputs[:, 0] - wanted
        return found


@dataclass(frozen=True)
class Hazard:
    """Discrete-time survival, with proportional hazards: a feature has one weight, an interval one bias.

    The loss is minus the logarithm of the likelihood of what was seen, summed while a row is at risk.
    Who was censored within an interval counts as at risk up to the interval before it.
    """

    target: SurvivalTarget

    @property
    def outputs(self) -> int:
        """One hazard for each interval."""
        return len(self.target.cuts)

    scores = 1
    start = -2.2
    """A hazard of a tenth in each interval: events are rare, and the way there from a half is long."""

    def gradient(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give hazards minus what happened, where a row was at risk."""
        at_risk, happened = self._history(labels)
        found: Matrix = np.where(at_risk, sigmoid(outputs) - happened, 0.0)
        return found

    def losses(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Give minus the logarithm of the likelihood of what happened."""
        at_risk, happened = self._history(labels)
        each = np.logaddexp(0, np.where(happened, -outputs, outputs))
        found: Matrix = np.where(at_risk, each, 0.0).sum(axis=1)
        return found

    def predictions(self, outputs: Matrix) -> Matrix:
        """Give the probability of surviving each interval."""
        found: Matrix = np.cumprod(1 - sigmoid(outputs), axis=1, dtype=np.float64)
        return found

    def _history(self, labels: Labels) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        interval, event = np.divmod(labels, 2)
        places = np.arange(self.outputs)
        happened = (places == interval[:, None]) & (event == 1)[:, None]
        return (places < interval[:, None]) | happened, happened


def loss_of(schema: Schema) -> Loss:
    """Choose the loss of a schema's target."""
    target = schema.target if isinstance(schema, TableSchema) else None
    if isinstance(target, NumberTarget):
        return ClippedSquare(target)
    if isinstance(target, SurvivalTarget):
        return Hazard(target)
    return Logistic(schema.classes)


def numbers_of(labels: Labels, target: NumberTarget) -> Matrix:
    """Give the numbers that labels stand for, in their unit."""
    low, high = float(target.low), float(target.high)
    return low + labels.astype(np.float64) * ((high - low) / TARGET_STEPS)


def answers_of(dataset: Dataset) -> NDArray[Any]:
    """Give what rows are to be learned for: classes from 0, or numbers where the task predicts numbers."""
    target = getattr(dataset.schema, "target", None)
    return numbers_of(dataset.labels, target) if isinstance(target, NumberTarget) else dataset.labels


def likelihoods(surviving: Matrix, labels: Labels) -> Matrix:
    """Give the probability of what was seen of each row, from those of surviving each interval."""
    interval, event = np.divmod(labels, 2)
    all_of_it = np.hstack([np.ones((len(surviving), 1)), surviving])
    rows = np.arange(len(labels))
    lost = all_of_it[rows, interval] - all_of_it[rows, np.minimum(interval + 1, surviving.shape[1])]
    found: Matrix = np.where(event == 1, lost, all_of_it[rows, interval])
    return found


def sigmoid(logits: Matrix) -> Matrix:
    """Give probabilities of logits."""
    return 0.5 * (1 + np.tanh(0.5 * logits))


def softmax(logits: Matrix) -> Matrix:
    """Give probabilities of rows of logits; what overflows becomes no number, which is looked for."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers: Matrix = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers
