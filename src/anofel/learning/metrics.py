"""How good a model is on rows it has not seen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.tasks.task import MetricsSpec


def auc(scores: NDArray[np.float64], labels: NDArray[np.integer[Any]]) -> float:
    """Area under the ROC curve: how often a row of label 1 outscores one of label 0; ties count half."""
    positives = int((labels == 1).sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        raise InvalidInput("The area under the curve needs both labels among the rows.")
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(ranks[inverse][labels == 1].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def accuracy(probabilities: NDArray[np.float64], labels: NDArray[np.integer[Any]]) -> float:
    """Share of rows whose likeliest class is the label."""
    return float((probabilities.argmax(axis=1) == labels).mean())


def concordance(
    scores: NDArray[np.float64], times: NDArray[np.integer[Any]], events: NDArray[np.bool_]
) -> float:
    """Concordance index (Harrell): how often, of two rows, the one with the event first has the higher score.

    Two rows are compared if the earlier one had the event, and the other did not have it in the same
    interval; ties count half.
    """
    comparable, agreeing = 0, 0.0
    for time in np.unique(times[events]):
        first = scores[(times == time) & events]
        later = np.sort(scores[(times > time) | ((times == time) & ~events)])
        comparable += len(first) * len(later)
        below = np.searchsorted(later, first, "left")
        ties = np.searchsorted(later, first, "right") - below
        agreeing += float(below.sum()) + float(ties.sum()) / 2
    if not comparable:
        raise InvalidInput("The concordance index needs two rows of which one had the event first.")
    return agreeing / comparable


def record_metrics(
    probabilities: NDArray[np.float64], labels: NDArray[np.integer[Any]], spec: MetricsSpec
) -> NDArray[np.float64]:
    """Measure every record for the metric slots: one column per name, each value within 0 … 1.

    A record whose probabilities are not numbers gets zeros.
    """
    bound = float(spec.loss_bound)
    finite: NDArray[np.bool_] = np.all(np.isfinite(probabilities), axis=1)
    probabilities = np.where(finite[:, None], probabilities, 1.0)
    chosen = probabilities[np.arange(len(labels)), labels]
    found = {
        "accuracy": (probabilities.argmax(axis=1) == labels).astype(np.float64),
        "loss": np.minimum(-np.log(np.maximum(chosen, np.finfo(float).tiny)), bound) / bound,
    }
    return np.column_stack([found[name] * finite for name in spec.names])
