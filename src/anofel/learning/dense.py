"""Dense networks in NumPy: no hidden layer is logistic regression, hidden layers make an MLP.

Written by hand because the base package has no PyTorch and scikit-learn offers no per-example
clipping; gradients are checked against finite differences in the tests.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.learning.losses import Labels, Logistic, Loss, Matrix
from anofel.models.parameters import Parameters


@dataclass(frozen=True)
class DenseNetwork:
    """A stack of dense layers with tanh between them."""

    features: int
    classes: int = 2
    hidden: tuple[int, ...] = ()
    loss: Loss | None = None
    """What it is trained for; the likelihood of the classes unless another is given."""

    def __post_init__(self) -> None:
        if self.features < 1 or self.classes < 2 or min(self.hidden, default=1) < 1:
            raise InvalidInput("A network needs at least one feature, two classes and no empty layer.")

    @property
    def objective(self) -> Loss:
        """The loss it is trained for."""
        return Logistic(self.classes) if self.loss is None else self.loss

    @property
    def outputs(self) -> int:
        """How many numbers it computes of a row."""
        return self.objective.outputs

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of every layer, input first."""
        return (self.features, *self.hidden, self.outputs)

    @property
    def layers(self) -> int:
        """The number of weight matrices."""
        return len(self.hidden) + 1

    def initial(self, seed: int = 0) -> dict[str, Matrix]:
        """Zero for logistic regression; Glorot-uniform hidden layers from a public seed otherwise.

        The last biases start where the loss says.
        """
        rng = np.random.default_rng(seed)
        parameters = {}
        for layer, (inputs, outputs) in enumerate(pairwise(self.widths)):
            limit = (6 / (inputs + outputs)) ** 0.5 if layer < self.layers - 1 else 0.0
            is_last = layer == self.layers - 1
            rows = self.objective.scores if is_last else outputs
            parameters[f"layer{layer}.weight"] = rng.uniform(-limit, limit, (rows, inputs))
            parameters[f"layer{layer}.bias"] = np.full(outputs, self.objective.start if is_last else 0.0)
        return parameters

    def _forward(self, parameters: Parameters, inputs: Matrix) -> list[Matrix]:
        """Compute the input of every layer, and the logits at the end."""
        activations = [inputs]
        for layer in range(self.layers):
            weight, bias = parameters[f"layer{layer}.weight"], parameters[f"layer{layer}.bias"]
            with _overflow_shows():
                output = activations[-1] @ weight.T + bias
            activations.append(np.tanh(output) if layer < self.layers - 1 else output)
        return activations

    def logits(self, parameters: Parameters, inputs: Matrix) -> Matrix:
        """Score each example; one column for two classes, else one per class."""
        return self._forward(parameters, inputs)[-1]

    def probabilities(self, parameters: Parameters, inputs: Matrix) -> Matrix:
        """Say what the outputs mean: the probability of every class, one row per example."""
        return self.objective.predictions(self.logits(parameters, inputs))

    def mean_loss(self, parameters: Parameters, inputs: Matrix, labels: Labels) -> float:
        """Mean loss, negative log-likelihood unless another is given."""
        return float(self.objective.losses(self.logits(parameters, inputs), labels).mean())

    def _backward(
        self, parameters: Parameters, inputs: Matrix, labels: Labels
    ) -> list[tuple[Matrix, Matrix]]:
        """For every layer its input and the loss gradient of its output, one row per example.

        Their outer product is the example's gradient, so norms and clipped sums never need it.
        """
        activations = self._forward(parameters, inputs)
        delta = self.objective.gradient(activations[-1], labels)
        pairs = []
        for layer in reversed(range(self.layers)):
            pairs.append((activations[layer], delta))
            if layer:
                delta = self._of_weight(layer, delta)
                with _overflow_shows():
                    delta = (delta @ parameters[f"layer{layer}.weight"]) * (1 - activations[layer] ** 2)
        return pairs[::-1]

    def gradient(self, parameters: Parameters, inputs: Matrix, labels: Labels) -> dict[str, Matrix]:
        """Gradient of the mean loss."""
        return self._weighted(
            self._backward(parameters, inputs, labels), np.full(len(labels), 1 / max(len(labels), 1))
        )

    def clipped_gradient_sum(
        self, parameters: Parameters, inputs: Matrix, labels: Labels, clipping_norm: float
    ) -> dict[str, Matrix]:
        """Sum of the per-example gradients, each scaled down to norm `clipping_norm` at most.

        An example whose gradient is not finite adds nothing, and changes nothing of what the others add.
        """
        pairs = self._backward(parameters, inputs, labels)
        squared = np.zeros(len(labels))
        with _overflow_shows():
            for layer, (activation, delta) in enumerate(pairs):
                # |delta ⊗ activation|² + |delta|² for weight and bias of the layer.
                squared += (self._of_weight(layer, delta) ** 2).sum(axis=1) * (activation**2).sum(axis=1)
                squared += (delta**2).sum(axis=1)
        finite = np.isfinite(squared)
        if not finite.all():
            kept = [
                (_rows_where(finite, activation), _rows_where(finite, delta)) for activation, delta in pairs
            ]
            pairs, squared = kept, np.where(finite, squared, 0.0)
        norms = np.sqrt(squared)
        with _overflow_shows():  # of a gradient that is zero: what is divided by nearly nothing is cut to one
            factors = np.minimum(1, clipping_norm / np.maximum(norms, np.finfo(float).tiny))
        return self._weighted(pairs, factors)

    def _of_weight(self, layer: int, delta: Matrix) -> Matrix:
        """Sum a gradient over the outputs that share the weights of the last layer."""
        if layer < self.layers - 1 or self.objective.scores == delta.shape[1]:
            return delta
        shared: Matrix = delta.sum(axis=1, keepdims=True)
        return shared

    def _weighted(self, pairs: list[tuple[Matrix, Matrix]], weights: Matrix) -> dict[str, Matrix]:
        gradient = {}
        for layer, (activation, delta) in enumerate(pairs):
            weighted = delta * weights[:, None]
            with _overflow_shows():
                gradient[f"layer{layer}.weight"] = self._of_weight(layer, weighted).T @ activation
            gradient[f"layer{layer}.bias"] = weighted.sum(axis=0)
        return gradient


def _overflow_shows() -> np.errstate:
    """What overflows becomes an infinity or no number at all, which is looked for; no word is said."""
    return np.errstate(over="ignore", invalid="ignore")


def _rows_where(kept: NDArray[np.bool_], matrix: Matrix) -> Matrix:
    """Put zeros into the other rows; a factor of zero would leave what is not a number."""
    rows: Matrix = np.where(kept[:, None], matrix, 0.0)
    return rows
