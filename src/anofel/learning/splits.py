"""Split labelled rows over clients, reproducibly: equal parts, sorted or skewed labels, or skewed sizes."""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.studies.dataset import LabelledRows

RowNumbers = NDArray[np.int64]
T = TypeVar("T", bound=LabelledRows)


def split_rows(rows: T, clients: int, split: str = "iid", seed: int = 0) -> list[T]:
    """Split rows over clients as a word says.

    ``iid``; ``by-label`` for one or two labels each; ``dirichlet:ALPHA`` for skewed labels;
    ``sizes:ALPHA`` for skewed sizes. Raises ``InvalidInput``.
    """
    kind, _, parameter = split.partition(":")
    if split == "iid":
        return iid(rows, clients, seed)
    if split == "by-label":
        return by_label(rows, clients)
    try:
        alpha = float(parameter)
    except ValueError:
        alpha = math.nan
    if kind == "dirichlet":
        return label_skew(rows, clients, alpha, seed)
    if kind == "sizes":
        return quantity_skew(rows, clients, alpha, seed)
    raise InvalidInput(f"There is no split '{split}'; use iid, by-label, dirichlet:ALPHA or sizes:ALPHA.")


def _check(rows: int, clients: int) -> None:
    if not 1 <= clients <= rows:
        raise InvalidInput(f"{rows} rows cannot be split over {clients} clients with at least one row each.")


def iid(rows: T, clients: int, seed: int) -> list[T]:
    """Shuffle and cut into parts whose sizes differ by at most one."""
    _check(len(rows.labels), clients)
    order = np.random.default_rng(seed).permutation(len(rows.labels))
    return [rows.take(part) for part in np.array_split(order, clients)]


def by_label(rows: T, clients: int) -> list[T]:
    """Sort by label and cut into equal parts, so that a client knows one or two labels.

    The split of Karimireddy, He and Jaggi (2020), which the paper takes for its experiment without IID data.
    """
    _check(len(rows.labels), clients)
    order = np.argsort(rows.labels, kind="stable")
    return [rows.take(part) for part in np.array_split(order, clients)]


def label_skew(rows: T, clients: int, alpha: float, seed: int) -> list[T]:
    """Give each client its own mix of labels: each class is dealt out by Dirichlet(alpha) proportions."""
    _check(len(rows.labels), clients)
    _check_alpha(alpha)
    rng = np.random.default_rng(seed)
    parts: list[list[RowNumbers]] = [[] for _ in range(clients)]
    for label in range(int(rows.labels.max()) + 1):
        found = rng.permutation(np.flatnonzero(rows.labels == label))
        for client, piece in enumerate(_cut(found, rng.dirichlet(np.full(clients, alpha)))):
            parts[client].append(piece)
    return _finish(rows, [np.concatenate(pieces) for pieces in parts], rng)


def quantity_skew(rows: T, clients: int, alpha: float, seed: int) -> list[T]:
    """Give each client the same mix of labels but a size drawn by Dirichlet(alpha)."""
    _check(len(rows.labels), clients)
    _check_alpha(alpha)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows.labels))
    return _finish(rows, _cut(order, rng.dirichlet(np.full(clients, alpha))), rng)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1e6:
        raise InvalidInput("The Dirichlet parameter must be positive.")


def _cut(order: RowNumbers, shares: NDArray[np.float64]) -> list[RowNumbers]:
    return np.split(order, np.rint(np.cumsum(shares)[:-1] * len(order)).astype(np.int64))


def _finish(rows: T, parts: list[RowNumbers], rng: np.random.Generator) -> list[T]:
    """Give a client without rows one of the largest, since an empty dataset cannot be certified."""
    for index, part in enumerate(parts):
        if not len(part):
            largest = max(range(len(parts)), key=lambda other: len(parts[other]))
            parts[index], parts[largest] = parts[largest][:1], parts[largest][1:]
    return [rows.take(rng.permutation(part)) for part in parts]
