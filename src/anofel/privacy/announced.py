"""What a task's document fixes about its vectors, in exact arithmetic.

Board, owner, client and audit call these functions, and different machines must agree to the last bit:
integers, fractions, and decimals of fixed precision whose roots and logarithms are correctly rounded; no
floats.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

from anofel.errors import InvalidInput
from anofel.privacy.mechanisms import MIN_LOCAL_SIGMA
from anofel.tasks.task import MetricsSpec, PrivacySpec, Task

TAIL = 10
"""Slots leave room for ten standard deviations of noise: 2·exp(−50) < 1e-21 per coordinate and sum."""

MAX_ROOT = 1 << 31
"""A rounded update has a norm below 2^31, so that its square fits a signed 64-bit integer."""

_HARMONIC_BITS = 96
_DECIMALS = Context(prec=60)


def value_bound(spec: PrivacySpec, scale_bits: int) -> int:
    """Return the largest entry of one client's vector, noise included (:data:`TAIL`); a task announces it."""
    records = spec.records_per_client if spec.unit == "record" else 1
    contribution = math.ceil(records * _radius(spec, scale_bits)) + 1
    return contribution + TAIL * _local_sigma(spec, scale_bits, position=1)


def norm_bound(spec: PrivacySpec, scale_bits: int, length: int) -> int:
    """Return B, the largest norm of one client's vector of integers; contribution proofs are about it.

    B = Δ + (σ_loc + 1)·√(d + 2·√(28·d) + 56): the clipped and rounded update, and the client's noise, whose
    norm is larger with probability below e^−28. One step more than σ_loc covers a sampler that rounds it up.
    """
    return update_norm(spec, scale_bits, length) + _root_above(
        Fraction(noise_norm_squared(spec, scale_bits, length))
    )


def update_norm(spec: PrivacySpec, scale_bits: int, length: int) -> int:
    """Return Δ, the largest norm of one client's clipped and rounded update, without noise."""
    radius, root = _radius(spec, scale_bits), _root_above(Fraction(length))
    if spec.unit == "record":
        together = spec.records_per_client * radius
        return math.ceil(together + together / (1 << 29)) + root
    # One step more than the norm that clients check in floating point.
    return _root_above(radius * radius + Fraction(length, 4) + radius + Fraction(root, 2)) + 1


def noise_norm_squared(spec: PrivacySpec, scale_bits: int, length: int) -> int:
    """Return the square of the largest norm of one client's noise that B has room for."""
    spread = length + 2 * _root_above(Fraction(28 * length)) + 56
    sigma = _local_sigma(spec, scale_bits, position=1) + 1
    return sigma * sigma * spread


def metric_bound(spec: PrivacySpec, metrics: MetricsSpec, scale_bits: int, slots: int) -> int:
    """Return the largest value of one of k metric slots in one client's vector, without noise.

    The least is 0, the largest R·f·s·C/√k and one step for rounding; R is 1 but for the unit ``record``.
    """
    records = spec.records_per_client if spec.unit == "record" else 1
    largest = records * Fraction(metrics.share) * _radius(spec, scale_bits)
    largest += largest / (1 << 29)  # for the check in floating point
    return _root_above(largest * largest / slots) + 1


def metric_noise(spec: PrivacySpec, scale_bits: int) -> int:
    """Return the largest noise in a slot with a proven range; a Gaussian is beyond it once in e^29 draws."""
    sigma = _local_sigma(spec, scale_bits, position=1) + 1
    return _root_above(Fraction(60 * sigma * sigma))


def metric_range(spec: PrivacySpec, metrics: MetricsSpec, scale_bits: int, slots: int) -> tuple[int, int]:
    """Return the least and the largest value of a metric slot in one client's vector, noise included."""
    noise = metric_noise(spec, scale_bits)
    return -noise, metric_bound(spec, metrics, scale_bits, slots) + noise


def check_noise(task: Task) -> None:
    """Refuse a task whose vectors or noise integers cannot hold. Raises ``InvalidInput``.

    1. A client's clipped and rounded update leaves room in 64-bit integers.
    2. The least noise that a client adds spans at least eight integer steps (not for the unit ``paper``).
    """
    spec, scale_bits = task.privacy, task.model.scale_bits
    room = MAX_ROOT - _radius(spec, scale_bits)
    if room <= 0 or task.length >= room * room:  # (1)
        raise InvalidInput("clipping_norm at this scale leaves no room in 64-bit integers; lower scale_bits.")
    smallest = _local_sigma(spec, scale_bits, position=spec.max_posts)
    if spec.unit != "paper" and smallest < MIN_LOCAL_SIGMA:  # (2)
        raise InvalidInput(
            f"A client's noise would have a standard deviation of {smallest} integer steps, below "
            f"{MIN_LOCAL_SIGMA}; raise scale_bits."
        )


def _radius(spec: PrivacySpec, scale_bits: int) -> Fraction:
    """s·C: the clipping norm in integer steps."""
    return (1 << scale_bits) * Fraction(spec.clipping_norm)


def _local_sigma(spec: PrivacySpec, scale_bits: int, position: int) -> int:
    """Give the standard deviation of one client's noise, rounded up; only adaptive noise has a position."""
    if spec.unit == "paper":
        return max(1, math.ceil((1 << scale_bits) * _paper_sigma(spec) / spec.expected_clients))
    variance = (Fraction(spec.noise_multiplier) * _radius(spec, scale_bits)) ** 2
    if not spec.adaptive:
        return max(1, _root_above(variance / spec.honest))
    last = spec.max_posts
    one = 1 << _HARMONIC_BITS
    harmonic = Fraction(sum(one // k for k in range(last - spec.honest + 1, last + 1)), one)
    return max(1, _root_above(variance / harmonic / position))


def _paper_sigma(spec: PrivacySpec) -> Fraction:
    """The paper's noise scale σ = c·T·S_f/ε, S_f = 2C/|D|, c = √(2 ln(1.25/δ))."""
    exact = Fraction(spec.max_releases * 2, spec.records_per_client) * Fraction(spec.clipping_norm)
    logarithm = _DECIMALS.ln(_DECIMALS.divide(Decimal("1.25"), spec.delta))
    c = _DECIMALS.sqrt(_DECIMALS.multiply(2, logarithm))
    return Fraction(c) * exact / Fraction(spec.paper_epsilon)


def _root_above(square: Fraction) -> int:
    """Return the least integer whose square is at least this."""
    whole = math.ceil(square)
    return math.isqrt(whole - 1) + 1 if whole > 0 else 0
