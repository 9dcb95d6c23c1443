"""Bound an update and turn it into integers, with a norm that is checked and not assumed.

Numbered as in ``docs/privacy.md``:

1. Clip: x ← x · min(1, C/‖x‖₂).
2. Scale and round stochastically: v = ⌊s·x⌋ + Bernoulli(fraction).
3. Check the integers: ‖v‖₂² ≤ Δ²; where rounding broke it, round again.
"""

import math
import secrets

import numpy as np

from anofel.errors import AnofelError, InvalidInput
from anofel.models.parameters import Integers, Vector

_MAX_ROUNDINGS = 200
"""A rounding passes with probability at least 1 − e^(−1/2) ≈ 0.39: 200 in a row fail once in 1e43."""


class UpdateNotFinite(InvalidInput):
    """An update holds an infinity or something that is not a number."""

    code = "update-not-finite"


class NormCheckFailed(AnofelError):
    """Rounded integers exceed the bound that the privacy analysis needs."""

    code = "norm-check-failed"


def clip(vector: Vector, clipping_norm: float) -> Vector:
    """Scale a vector down to norm C at most (1)."""
    with np.errstate(over="ignore"):  # an overflow shows as an infinite norm, which is refused
        norm = float(np.linalg.norm(vector))
    if not math.isfinite(norm):
        raise UpdateNotFinite(
            "The update holds an infinity or something that is not a number; it is not sent."
        )
    return vector if norm <= clipping_norm else vector * (clipping_norm / norm)


def rounded_norm_squared(clipping_norm: float, scale: int, dimension: int) -> int:
    """Δ²: what step 3 enforces (Kairouz, Liu, Steinke 2021, with β = e^−1/2).

    The smaller of (s·C + √d)², which always holds, and s²C² + d/4 + (s·C + √d/2), which
    stochastic rounding meets with probability at least 1 − e^(−1/2).
    """
    radius = scale * clipping_norm
    always = (radius + math.sqrt(dimension)) ** 2
    likely = radius**2 + dimension / 4 + radius + math.sqrt(dimension) / 2
    return math.floor(min(always, likely))


def round_stochastically(vector: Vector) -> Integers:
    """Round each entry up or down so that its mean is kept, to 2^−32 (2)."""
    floor = np.floor(vector)
    words = np.frombuffer(secrets.token_bytes(4 * vector.size), dtype="<u4")
    up = np.ldexp(words.astype(np.float64), -32) < vector - floor
    return floor.astype(np.int64) + up


def round_within(vector: Vector, norm_squared: int) -> Integers:
    """Round until the integers pass the norm check (2 and 3)."""
    for _ in range(_MAX_ROUNDINGS):
        rounded = round_stochastically(vector)
        if int(np.dot(rounded, rounded)) <= norm_squared:
            return rounded
    raise NormCheckFailed("The rounded update exceeds its norm bound; it is not sent.")
