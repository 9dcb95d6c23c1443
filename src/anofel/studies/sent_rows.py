"""Encoded rows on their way into a process that trains on them."""

from typing import Self

import msgspec
import numpy as np

from anofel.studies.dataset import Dataset
from anofel.tasks.schema import Schema


class SentRows(msgspec.Struct, tag="rows", array_like=True):
    """The arrays of a dataset; its schema is the task's, which the other process has."""

    samples: str
    shape: tuple[int, ...]
    features: bytes
    labels: bytes

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Take the rows of a dataset."""
        features = np.ascontiguousarray(dataset.features, dtype=dataset.features.dtype.newbyteorder("<"))
        labels = np.ascontiguousarray(dataset.labels, dtype="<i4")
        return cls(features.dtype.str, features.shape, features.tobytes(), labels.tobytes())

    def dataset(self, schema: Schema) -> Dataset:
        """Put the dataset together again. Raises ``InvalidInput`` and ``ValueError`` for rows of no sense."""
        features = np.frombuffer(self.features, dtype=self.samples).reshape(self.shape)
        labels = np.frombuffer(self.labels, dtype="<i4").astype(np.int32, copy=False)
        return Dataset(features, labels, schema)
