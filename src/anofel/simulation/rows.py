"""Made-up rows, for a simulation of a task whose data is not here."""

import math

import numpy as np

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset
from anofel.tasks.schema import ImageSchema, Schema

_SPREAD = 1.0
"""Standard deviation of a made-up feature; schemas scale real ones to about the same."""


def made_up_rows(schema: Schema, count: int, seed: int = 0) -> Dataset:
    """Make rows up that fit a schema, for a task whose data is not here; they describe nobody.

    The label follows a random linear rule with noise, so that there is something to learn.
    """
    if count < 1:
        raise InvalidInput("At least one row is needed.")
    rng = np.random.default_rng(seed)
    width = math.prod(schema.row_shape)
    inputs = rng.normal(0, _SPREAD, (count, width))
    many = schema.classes if getattr(schema, "target", None) is None else 1
    scores = inputs @ rng.normal(0, 1, (width, many)) + rng.normal(0, 0.5, (count, many))
    labels = scores.argmax(axis=1)
    if many == 1:  # a number or a time: the larger the score, the later the label
        ranks = scores[:, 0].argsort().argsort()
        labels = ranks * schema.classes // count
    if isinstance(schema, ImageSchema):
        features: np.ndarray = np.clip(np.rint(128 + 40 * inputs), 0, 255).astype(np.uint8)
    else:
        features = np.rint(np.ldexp(inputs, schema.fraction_bits)).astype(np.int32)
    return Dataset(features.reshape(count, *schema.row_shape), labels.astype(np.int32), schema)
