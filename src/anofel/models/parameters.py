"""Named parameters, and the one order in which they become a vector."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Parameters = Mapping[str, NDArray[np.float64]]
"""Names and arrays; what a trainer takes and what its update has the shape of."""


@dataclass(frozen=True)
class Layout:
    """Names and shapes in the canonical order: names sorted as bytes, arrays row by row."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, parameters: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]) -> "Layout":
        """Take the layout of named arrays."""
        names = tuple(sorted(parameters, key=str.encode))
        return cls(names, tuple(parameters[name].shape for name in names))

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(math.prod(shape) for shape in self.shapes)

    def flatten(self, parameters: Parameters) -> Vector:
        """Lay named arrays out as one vector; refuses names or shapes that differ from the layout."""
        if Layout.of(parameters) != self:
            raise InvalidInput("The update does not have the names and shapes of the model.")
        return np.concatenate([np.asarray(parameters[name], dtype=np.float64).ravel() for name in self.names])

    def unflatten(self, vector: Vector) -> dict[str, NDArray[np.float64]]:
        """Cut a vector into named arrays."""
        if vector.shape != (self.size,):
            raise InvalidInput(f"The model has {self.size} parameters, the vector {vector.size}.")
        parameters = {}
        start = 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            end = start + math.prod(shape)
            parameters[name] = vector[start:end].reshape(shape)
            start = end
        return parameters
