"""A dataset as it is trained on, and the exact bytes its certificate covers.

Canonical encoding (``docs/studies.md``): integers are little-endian.

====================  =====================================================
16 bytes              ``anofel.dataset.1``
32 bytes              SHA-256 of the canonical schema
u8                    sample type: 1 = unsigned 8-bit, 4 = signed 32-bit
u8                    fraction bits: a feature is its integer / 2^bits
u8, then u32 each     number of dimensions of a row, and the dimensions
u32                   number of classes
u64                   number of rows n
n × row               features, row after row
n × u32               labels
====================  =====================================================

Nothing else reaches a trainer: identifying and unused columns are gone before this point.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.studies.scattering import scattered
from anofel.tasks.schema import ImageSchema, Schema, schema_digest

_MAGIC = b"anofel.dataset.1"
_SAMPLE_CODES = {"|u1": 1, "<i4": 4}
_CHUNK_BYTES = 1 << 20


class LabelledRows(Protocol):
    """Rows that can be dealt out: a dataset, or a table together with the dataset that it encodes to."""

    @property
    def labels(self) -> NDArray[np.int32]:
        """The class of each row."""

    @property
    def dataset(self) -> "Dataset":
        """What is trained on."""

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Select rows, in the order given."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Encoded rows: integer features at scale 2^fraction_bits, and labels 0 … classes − 1."""

    features: NDArray[np.uint8] | NDArray[np.int32]
    labels: NDArray[np.int32]
    schema: Schema
    _transformed: NDArray[np.float32] | None = field(default=None, repr=False)
    """What the schema's transform made of the rows, where that is kept."""

    @property
    def dataset(self) -> "Dataset":
        """Itself, as for rows of a table."""
        return self

    def __post_init__(self) -> None:
        if self.features.dtype.newbyteorder("<").str not in _SAMPLE_CODES or self.labels.dtype != np.int32:
            raise InvalidInput("A dataset holds 8-bit or 32-bit integer features and 32-bit labels.")
        if self.features.shape[1:] != self.schema.row_shape:
            raise InvalidInput(
                f"The schema describes rows of shape {self.schema.row_shape}, "
                f"but the data has rows of shape {self.features.shape[1:]}."
            )
        if len(self.features) != len(self.labels):
            raise InvalidInput(
                f"The dataset has {len(self.features)} rows and {len(self.labels)} labels; they must agree."
            )
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < self.schema.classes:
            raise InvalidInput(f"Labels must lie between 0 and {self.schema.classes - 1}.")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Dataset(<{len(self)} rows, redacted>)"

    def inputs(self) -> NDArray[np.float64]:
        """Give the features as numbers, one flat row per example, after the schema's transform."""
        if isinstance(self.schema, ImageSchema) and self.schema.transform == "scattering":
            kept = scattered(self._images()) if self._transformed is None else self._transformed
            return kept.astype(np.float64)
        flat = self.features.reshape(len(self), math.prod(self.schema.row_shape))
        return np.ldexp(flat.astype(np.float64), -self.schema.fraction_bits)

    def _images(self) -> NDArray[np.uint8]:
        if self.features.dtype != np.uint8:
            raise InvalidInput("Images are unsigned bytes.")
        return self.features.astype(np.uint8, copy=False)

    def take(self, rows: NDArray[np.int64]) -> "Dataset":
        """Select rows, in the order given."""
        kept = None if self._transformed is None else self._transformed[rows]
        return Dataset(self.features[rows], self.labels[rows], self.schema, kept)

    def transformed(self) -> "Dataset":
        """Give the dataset with its transform done, so that it is not done again for rows taken of it."""
        wanted = isinstance(self.schema, ImageSchema) and self.schema.transform == "scattering"
        if not wanted or self._transformed is not None:
            return self
        return replace(self, _transformed=scattered(self._images()))


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Put datasets of one schema together."""
    return Dataset(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
        parts[0].schema,
    )


def canonical_chunks(dataset: Dataset) -> Iterator[bytes]:
    """Yield the canonical bytes piece by piece, so that a large dataset is never copied whole."""
    features = np.ascontiguousarray(dataset.features, dtype=dataset.features.dtype.newbyteorder("<"))
    shape = features.shape[1:]
    yield _MAGIC + schema_digest(dataset.schema)
    yield struct.pack("<BBB", _SAMPLE_CODES[features.dtype.str], dataset.schema.fraction_bits, len(shape))
    yield struct.pack(f"<{len(shape)}IIQ", *shape, dataset.schema.classes, len(dataset))
    for array in (features, np.ascontiguousarray(dataset.labels, dtype="<u4")):
        view = array.reshape(-1).view(np.uint8)
        for start in range(0, len(view), _CHUNK_BYTES):
            yield view[start : start + _CHUNK_BYTES].tobytes()
