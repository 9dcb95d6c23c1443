"""From a target to the noise: ε, δ, releases and clients in, noise multiplier out."""

import math
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from anofel.errors import InvalidInput
from anofel.privacy.mechanisms import MIN_LOCAL_SIGMA
from anofel.privacy.plan import Plan

_QUANTUM = Decimal("0.001")
_LARGEST = 1e6
_RATIO = 1.0005
"""Accuracy of the search: each step costs a second where records are sampled."""
_NUDGE = 1.0002
"""How far beside the expected answer the search aims, so that both ends close in."""


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

    def cost(multiplier: float) -> float:
        noisy = with_noise(plan, Decimal(multiplier))
        if noisy.smallest_local_sigma < MIN_LOCAL_SIGMA:
            return math.inf
        return noisy.epsilon(count, relation)

    high, high_cost = 1.0, cost(1.0)
    while high_cost > target_epsilon:
        high *= 2
        if high > _LARGEST:
            raise TargetUnreachable(
                f"No noise reaches ε = {target_epsilon} at this δ within {count} releases."
            )
        high_cost = cost(high)
    low, low_cost = high / 2, cost(high / 2)
    while low_cost <= target_epsilon:
        low, high, high_cost = low / 2, low, low_cost
        low_cost = cost(low)
    nudge = _NUDGE
    while high - low > float(_QUANTUM) / 4 and high / low > _RATIO:
        guess = _interpolate((low, low_cost), (high, high_cost), target_epsilon, nudge)
        nudge = 1 / nudge  # aim just above the answer, then just below it
        value = cost(guess)
        if value <= target_epsilon:
            high, high_cost = guess, value
        else:
            low, low_cost = guess, value
    rounded = Decimal(high).quantize(_QUANTUM, ROUND_CEILING)
    while cost(float(rounded)) > target_epsilon:  # only if ε is not monotone to 0.05 %
        rounded += _QUANTUM
    return rounded


def _interpolate(low: tuple[float, float], high: tuple[float, float], target: float, nudge: float) -> float:
    """Guess where ε meets the target: log ε is nearly linear in log z; the middle where that fails."""
    if math.isfinite(low[1]) and high[1] > 0 and low[1] > high[1]:
        slope = math.log(high[0] / low[0]) / math.log(high[1] / low[1])
        guess = high[0] * math.pow(target / high[1], slope) * nudge
        if low[0] * _NUDGE < guess < high[0] / _NUDGE:
            return guess
    return math.sqrt(low[0] * high[0])


def releases_within(plan: Plan, target_epsilon: float, relation: str) -> int:
    """Count how many releases the plan's noise allows within the target (0 if not even one)."""
    low, high = 0, 1
    while high < 1 << 30 and plan.epsilon(high, relation) <= target_epsilon:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if plan.epsilon(middle, relation) <= target_epsilon else (low, middle)
    return low
