"""Models to and from safetensors, the format that other tools read: plain tensors, nothing that runs.

A model travels as integers in its canonical file (:mod:`anofel.models.integer_model`); this is the way
in and out. Velocities stay behind: they belong to a task's rule, not to the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.models.integer_model import IntegerModel

_DIGEST, _SCALE = "anofel.model", "anofel.scale_bits"


@dataclass(frozen=True, eq=False)
class Imported:
    """A model that was read from safetensors."""

    model: IntegerModel
    is_same: bool | None
    """Whether it is bit by bit the exported one; None if the file does not say which one that was."""


def to_safetensors(model: IntegerModel, *, double: bool = False) -> bytes:
    """Write the parameters as 32-bit floating-point numbers, which hold 24 bits; or as 64-bit ones, 53."""
    from safetensors.numpy import save

    kind = np.float64 if double else np.float32
    # Not ascontiguousarray, which makes a list of one of a single number.
    tensors = {name: np.asarray(array, kind, order="C") for name, array in model.parameters().items()}
    bare = IntegerModel(model.layout, model.scale_bits, model.values)
    return save(tensors, {"format": "pt", _DIGEST: bare.digest().hex(), _SCALE: str(model.scale_bits)})


def from_safetensors(path: Path, scale_bits: int | None = None, *, companions: int = 0) -> Imported:
    """Round the tensors of a file to integers at scale 2^scale_bits, by default the one they came from.

    Raises ``InvalidInput`` for a file that is not safetensors, or that holds anything but real numbers.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            parameters = {name: _read(file, name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError) as error:
        raise InvalidInput(f"'{path}' is not a safetensors file: {error}.") from None
    if not parameters:
        raise InvalidInput(f"'{path}' holds no tensor.")
    made = IntegerModel.from_parameters(
        parameters, _scale_of(metadata) if scale_bits is None else scale_bits, companions=companions
    )
    bare, digest = IntegerModel(made.layout, made.scale_bits, made.values), metadata.get(_DIGEST)
    return Imported(made, None if digest is None else digest == bare.digest().hex())


def _scale_of(metadata: Mapping[str, str]) -> int:
    text = metadata.get(_SCALE, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 2):
        raise InvalidInput("The file does not say at which scale its numbers are integers; give one.")
    return int(text)


def _read(file: Any, name: str) -> NDArray[np.float64]:
    kind = file.get_slice(name).get_dtype()
    if kind not in ("F64", "F32", "F16"):
        raise InvalidInput(f"The tensor '{name}' holds {kind}; a model holds F64, F32 or F16.")
    array: NDArray[np.float64] = file.get_tensor(name).astype(np.float64)
    return array
