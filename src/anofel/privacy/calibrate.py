"""From a target to the noise: ε, δ, releases and clients in, noise multiplier out."""

import math
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from anofel.errors import InvalidInput
from anofel.privacy.plan import Plan

_QUANTUM = Decimal("0.001")
_LARGEST = 1e6
_RATIO = 1.0005
"""Accuracy of the search: each step costs a second where records are sampled."""


class TargetUnreachable(InvalidInput):
    """No noise within range reaches the target."""

    code = "target-unreachable"


def with_noise(plan: Plan, noise_multiplier: Decimal) -> Plan:
    """Give the same plan with other noise."""
    return replace(plan, spec=replace(plan.spec, noise_multiplier=noise_multiplier))


def noise_multiplier(
    plan: Plan, target_epsilon: float, relation: str, releases: int | None = None
) -> Decimal:
    """Find the smallest noise multiplier, to 0.05 % and in steps of 0.001, whose ε stays within the target.

    Like ``get_noise_multiplier`` of Opacus, but for the plan's own sum: rounding, integer noise and
    the relation are part of it.
    """
    if plan.spec.unit == "paper":
        raise InvalidInput("The unit 'paper' proves no ε, so it cannot be calibrated to one.")
    if target_epsilon <= 0:
        raise InvalidInput("The target ε must be positive.")
    count = plan.spec.max_releases if releases is None else releases

    def reached(multiplier: float) -> bool:
        noisy = with_noise(plan, Decimal(multiplier))
        return (
            noisy.required_variance > _too_coarse(plan) and noisy.epsilon(count, relation) <= target_epsilon
        )

    high = 1.0
    while not reached(high):
        high *= 2
        if high > _LARGEST:
            raise TargetUnreachable(
                f"No noise reaches ε = {target_epsilon} at this δ within {count} releases."
            )
    low = high / 2
    while reached(low):
        low, high = low / 2, low
    while high - low > float(_QUANTUM) / 4 and high / low > _RATIO:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    rounded = Decimal(high).quantize(_QUANTUM, ROUND_CEILING)
    while not reached(float(rounded)):  # pragma: no cover - only if ε is not monotone to 1e-4
        rounded += _QUANTUM
    return rounded


def _too_coarse(plan: Plan) -> float:
    """Give the variance below which integer noise is not accounted for."""
    return 64.0 * plan.spec.honest


def releases_within(plan: Plan, target_epsilon: float, relation: str) -> int:
    """Count how many releases the plan's noise allows within the target (0 if not even one)."""
    low, high = 0, 1
    while high < 1 << 30 and plan.epsilon(high, relation) <= target_epsilon:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if plan.epsilon(middle, relation) <= target_epsilon else (low, middle)
    return low
