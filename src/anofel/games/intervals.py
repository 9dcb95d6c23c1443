"""Exact confidence intervals for a share of wins (Clopper and Pearson 1934), and what a result says."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from anofel.errors import InvalidInput

CONFIDENCE: Final = 0.99
"""Of one interval. In a table of thirty, one misses by chance about every fourth time."""
_STEPS: Final = 60


@dataclass(frozen=True)
class Interval:
    """The probabilities of a win that the plays do not rule out."""

    low: float
    high: float


def clopper_pearson(wins: int, plays: int, confidence: float = CONFIDENCE) -> Interval:
    """Give the interval that holds the true probability with at least this confidence, whatever it is.

    Its ends are where as many wins, or as few, would have half of what is left over as their probability.
    """
    if plays < 1 or not 0 <= wins <= plays or not 0 < confidence < 1:
        raise InvalidInput("An interval needs at least one play, no more wins than plays, and a confidence.")
    rest = (1 - confidence) / 2
    terms = _logarithms(plays)
    low = 0.0 if wins == 0 else _solve(lambda p: _tail(terms, range(wins, plays + 1), plays, p), rest)
    high = 1.0 if wins == plays else 1 - _solve(lambda q: _tail(terms, range(wins + 1), plays, 1 - q), rest)
    return Interval(low, high)


def _logarithms(plays: int) -> list[float]:
    """The logarithms of the binomial coefficients."""
    whole = math.lgamma(plays + 1)
    return [whole - math.lgamma(k + 1) - math.lgamma(plays - k + 1) for k in range(plays + 1)]


def _tail(terms: list[float], wins: range, plays: int, p: float) -> float:
    """The probability of so many wins."""
    if p <= 0.0 or p >= 1.0:
        return float((0 if p <= 0.0 else plays) in wins)
    yes, no = math.log(p), math.log1p(-p)
    return math.fsum(math.exp(terms[k] + k * yes + (plays - k) * no) for k in wins)


def _solve(rises: Callable[[float], float], wanted: float) -> float:
    """Find where a function that rises from 0 to 1 takes a value."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < wanted else (low, middle)
    return (low + high) / 2
