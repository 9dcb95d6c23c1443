"""The mean of a task's models: anybody can take it of what the board shows, and it costs no ε.

Noise is drawn afresh in every iteration, so the mean of the last models carries less of it than the last one.
"""

from collections.abc import Sequence

import numpy as np

from anofel.errors import InvalidInput
from anofel.models.integer_model import IntegerModel


def mean_of(models: Sequence[IntegerModel]) -> IntegerModel:
    """Average models entry by entry, half to even; velocities stay behind. Raises ``InvalidInput``."""
    if not models:
        raise InvalidInput("There is no model to average.")
    first = models[0]
    if any((model.layout, model.scale_bits) != (first.layout, first.scale_bits) for model in models):
        raise InvalidInput("Only models with the same tensors and scale have a mean.")
    quotient, rest = np.zeros_like(first.values), np.zeros_like(first.values)
    for model in models:  # quotients and rests are added apart, so nothing overflows
        part = np.divmod(model.values, len(models))
        quotient, rest = quotient + part[0], rest + part[1]
    more, rest = np.divmod(rest, len(models))
    quotient += more
    up = (2 * rest > len(models)) | ((2 * rest == len(models)) & (quotient % 2 == 1))
    return IntegerModel(first.layout, first.scale_bits, quotient + up)
