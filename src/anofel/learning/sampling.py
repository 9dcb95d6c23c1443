"""Which rows a client trains on."""

import secrets

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset


def require_rows(dataset: Dataset) -> None:
    """Refuse a dataset without rows."""
    if not len(dataset):
        raise InvalidInput("There is nothing to train on: the dataset has no rows.")


def at_most(dataset: Dataset, count: int) -> Dataset:
    """Draw so many records without replacement, or take all if there are not more.

    Security: which ones is secret, as for ``sample_records``.
    """
    if len(dataset) <= count:
        return dataset
    return dataset.take(np.array(sorted(secrets.SystemRandom().sample(range(len(dataset)), count))))


def sample_records(dataset: Dataset, rate: float) -> Dataset:
    """Choose each record independently with probability at most `rate` (to 2^-64).

    Security: which records were sampled is secret, so the choice comes from the operating system.
    """
    return dataset if rate == 1.0 else dataset.take(_poisson_sample(len(dataset), rate))


def _poisson_sample(count: int, rate: float) -> NDArray[np.int64]:
    words = np.frombuffer(secrets.token_bytes(8 * count), dtype="<u8")
    return np.flatnonzero(words < np.uint64(min(int(rate * 2**64), 2**64 - 1)))
