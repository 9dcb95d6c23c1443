"""A rule of an owner's own: twice the mean, and no model at all where it is asked to fail."""

import numpy as np

from anofel.models.integer_model import IntegerModel, Integers


def double(model: IntegerModel, total: Integers, count: int) -> IntegerModel:
    return IntegerModel(model.layout, model.scale_bits, model.values + 2 * total // count)


def broken(model: IntegerModel, total: Integers, count: int) -> IntegerModel:
    raise ZeroDivisionError("no step size")


def nothing(model: IntegerModel, total: Integers, count: int) -> None:
    return None


def coarser(model: IntegerModel, total: Integers, count: int) -> IntegerModel:
    return IntegerModel(model.layout, model.scale_bits - 1, model.values)


def with_velocity(model: IntegerModel, total: Integers, count: int) -> IntegerModel:
    return IntegerModel(model.layout, model.scale_bits, model.values, np.zeros_like(model.values))


not_a_function = 3
