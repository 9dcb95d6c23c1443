"""Split one dataset over clients, reproducibly: equal parts, sorted or skewed labels, or skewed sizes."""

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset

Rows = NDArray[np.int64]


def _check(rows: int, clients: int) -> None:
    if not 1 <= clients <= rows:
        raise InvalidInput(f"{rows} rows cannot be split over {clients} clients with at least one row each.")


def iid(dataset: Dataset, clients: int, seed: int) -> list[Dataset]:
    """Shuffle and cut into parts whose sizes differ by at most one."""
    _check(len(dataset), clients)
    order = np.random.default_rng(seed).permutation(len(dataset))
    return [dataset.take(part) for part in np.array_split(order, clients)]


def by_label(dataset: Dataset, clients: int) -> list[Dataset]:
    """Sort by label and cut into equal parts, so that a client knows one or two labels.

    The split of Karimireddy, He and Jaggi (2020), which the paper takes for its experiment without IID data.
    """
    _check(len(dataset), clients)
    order = np.argsort(dataset.labels, kind="stable")
    return [dataset.take(part) for part in np.array_split(order, clients)]


def label_skew(dataset: Dataset, clients: int, alpha: float, seed: int) -> list[Dataset]:
    """Give each client its own mix of labels: each class is dealt out by Dirichlet(alpha) proportions."""
    _check(len(dataset), clients)
    _check_alpha(alpha)
    rng = np.random.default_rng(seed)
    parts: list[list[Rows]] = [[] for _ in range(clients)]
    for label in range(dataset.schema.classes):
        rows = rng.permutation(np.flatnonzero(dataset.labels == label))
        for client, piece in enumerate(_cut(rows, rng.dirichlet(np.full(clients, alpha)))):
            parts[client].append(piece)
    return _finish(dataset, [np.concatenate(pieces) for pieces in parts], rng)


def quantity_skew(dataset: Dataset, clients: int, alpha: float, seed: int) -> list[Dataset]:
    """Give each client the same mix of labels but a size drawn by Dirichlet(alpha)."""
    _check(len(dataset), clients)
    _check_alpha(alpha)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(dataset))
    return _finish(dataset, _cut(order, rng.dirichlet(np.full(clients, alpha))), rng)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1e6:
        raise InvalidInput("The Dirichlet parameter must be positive.")


def _cut(rows: Rows, shares: NDArray[np.float64]) -> list[Rows]:
    return np.split(rows, np.rint(np.cumsum(shares)[:-1] * len(rows)).astype(np.int64))


def _finish(dataset: Dataset, parts: list[Rows], rng: np.random.Generator) -> list[Dataset]:
    """Give a client without rows one of the largest, since an empty dataset cannot be certified."""
    for index, part in enumerate(parts):
        if not len(part):
            largest = max(range(len(parts)), key=lambda other: len(parts[other]))
            parts[index], parts[largest] = parts[largest][:1], parts[largest][1:]
    return [dataset.take(rng.permutation(part)) for part in parts]
