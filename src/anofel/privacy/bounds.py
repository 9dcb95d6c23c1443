"""γ and α: what an attacker gains and what the model loses (the paper's definition 1)."""

import math
from statistics import NormalDist

from anofel.errors import InvalidInput

_NORMAL = NormalDist()


def advantage_bound(epsilon: float, delta: float) -> float:
    """γ: the largest TPR − FPR of any test between two neighbouring inputs under (ε, δ).

    (e^ε − 1 + 2δ)/(e^ε + 1), which is attained. The paper's equation 1 has e^(−ε) with the other sign
    in the numerator, which falls to zero as ε grows; see D-11. For the D-IND game take ε of *replace*.
    """
    if epsilon < 0 or not 0 <= delta <= 1:
        raise InvalidInput("γ needs ε ≥ 0 and δ between 0 and 1.")
    # Divided by e^ε, so that a large ε does not overflow.
    shrink = math.exp(-epsilon)
    return min(1.0, (1 - shrink + 2 * delta * shrink) / (1 + shrink))


def gaussian_advantage(composed_noise_multiplier: float) -> float:
    """Compute the exact advantage against Gaussian noise of z sensitivities: 2Φ(1/2z) − 1."""
    if composed_noise_multiplier <= 0:
        raise InvalidInput("The noise multiplier must be positive.")
    return math.erf(1 / (2 * composed_noise_multiplier) / math.sqrt(2))


def paper_advantage(epsilon: float, delta: float) -> float:
    """Compute equation 1 as printed in the paper; for comparison only, it is not a bound."""
    return (1 - math.exp(-epsilon) + 2 * delta) / (math.exp(epsilon) + 1)


def error_bound(*, sigma: float, coordinates: int, iterations: int, failure: float) -> float:
    """α: with probability 1 − `failure`, no coordinate of any of the released means is off by more than this.

    `sigma` is the standard deviation of the noise in one coordinate of one mean. The paper gives the
    order of growth, O(R·√log k); this is the exact quantile for independent Gaussian noise.
    """
    if sigma < 0 or coordinates < 1 or iterations < 1 or not 0 < failure < 1:
        raise InvalidInput(
            "α needs σ ≥ 0, at least one coordinate and iteration, and a failure probability in (0, 1)."
        )
    # (1 − 2·tail)^(coordinates·iterations) = 1 − failure, solved for the tail without cancellation.
    tail = -math.expm1(math.log1p(-failure) / (coordinates * iterations)) / 2
    return -sigma * _NORMAL.inv_cdf(tail)


def paper_error_scale(*, sensitivity: float, epsilon: float, delta: float, iterations: int) -> float:
    """Compute R·√(log k) of the paper (§3.3), R = S_f·√(k·log(1/δ))/ε; its constant is not given there."""
    spread = sensitivity * math.sqrt(iterations * math.log(1 / delta)) / epsilon
    return spread * math.sqrt(math.log(iterations))
