"""ε of released sums, by ``dp-accounting``: exact or PLD for Gaussian noise, RDP otherwise.

``dp-accounting`` (and SciPy with it) is imported when an ε is asked for, never at start-up.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anofel.errors import InvalidInput, VerificationError
from anofel.privacy.events import Event, GaussianEvent, RdpEvent, SkellamEvent

MICRO = 1_000_000
"""ε travels on the board in integer micro-units."""

AUDIT_TOLERANCE = Fraction(1, 100)

_MAX_STEPS = 64
_MAX_EXPONENT = 700.0
_CLOSE = 1e-12

_ORDERS = (*range(2, 65), *range(68, 257, 4), *range(272, 1025, 16), *range(1152, 4097, 128), 8192, 16384)

Composition = Sequence[tuple[Event, int]]
"""Events and how often each was released."""


class EpsilonMismatch(VerificationError):
    """A posted ε differs from the recomputed one."""

    code = "epsilon-mismatch"


def epsilon(composition: Composition, delta: float) -> float:
    """Compose the releases and give the smallest ε known to hold at `delta`."""
    if not 0 < delta < 1:
        raise InvalidInput("δ must lie strictly between 0 and 1.")
    releases = [(event, count) for event, count in composition if count > 0]
    if not releases:
        return 0.0
    gaussian = [(event, count) for event, count in releases if isinstance(event, GaussianEvent)]
    if len(gaussian) == len(releases):
        return _gaussian_epsilon(gaussian, delta)
    sampled = [(event, count) for event, count in gaussian if event.sampling_rate < 1.0]
    if not sampled:
        return _rdp_epsilon(releases, delta)
    # Sampled Gaussians have no simple Rényi curve: account the two groups apart, each with half of δ.
    rest = [(event, count) for event, count in releases if (event, count) not in sampled]
    return _gaussian_epsilon(sampled, delta / 2) + _rdp_epsilon(rest, delta / 2)


def _merge(releases: Iterable[tuple[GaussianEvent, int]]) -> float:
    """Give the one noise multiplier that unsampled Gaussian releases compose to: Σ count/z² adds up."""
    return 1 / math.sqrt(math.fsum(count / event.noise_multiplier**2 for event, count in releases))


def _gaussian_epsilon(releases: list[tuple[GaussianEvent, int]], delta: float) -> float:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    whole = [(event, count) for event, count in releases if event.sampling_rate == 1.0]
    sampled = [(event, count) for event, count in releases if event.sampling_rate < 1.0]
    if not sampled:
        # The privacy loss of a Gaussian is Gaussian, so the closed form is the PLD without its grid.
        with np.errstate(divide="ignore"):  # a δ of zero has the logarithm −∞, which is meant
            return max(0.0, float(dp_accounting.get_epsilon_gaussian(_merge(whole), delta)))
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    if whole:
        accountant.compose(dp_accounting.GaussianDpEvent(_merge(whole)))
    for event, count in sampled:
        inner = dp_accounting.GaussianDpEvent(event.noise_multiplier)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(event.sampling_rate, inner), count)
    return max(0.0, float(accountant.get_epsilon(delta)))


def _rdp_epsilon(releases: Composition, delta: float) -> float:
    from dp_accounting import rdp

    orders = list(_ORDERS)
    given = [set(event.orders) for event, _ in releases if isinstance(event, RdpEvent)]
    if given:
        orders = sorted(order for order in set.intersection(*given) if order == int(order) and order >= 2)
        if not orders:
            raise InvalidInput("The mechanisms have no common integer Rényi order, so ε cannot be computed.")
    total = [0.0] * len(orders)
    for event, count in releases:
        for index, value in enumerate(_rdp_curve(event, orders)):
            total[index] += count * value
    skellam = [(event, count) for event, count in releases if isinstance(event, SkellamEvent)]
    return _with_sampler_error(
        lambda exact: max(0.0, float(rdp.compute_epsilon(orders, total, exact)[0])),
        delta,
        math.fsum(count * event.relative_error for event, count in skellam),
        math.fsum(count * event.absolute_error for event, count in skellam),
    )


def _with_sampler_error(
    exact_epsilon: Callable[[float], float], delta: float, relative: float, absolute: float
) -> float:
    """Give ε for noise whose sampler is not exact.

    The drawn P̃ and the exact P bound each other: P̃ ≤ e^r·P + η and P ≤ e^r·P̃ + η. So (ε, δ) of the exact
    noise gives P̃ ≤ e^(ε+2r)·P̃′ + e^r·δ + η·(1 + e^(ε+r)). The last term needs the ε that is sought: the
    smallest one that allows for itself is approached from below.
    """
    if not relative and not absolute:
        return exact_epsilon(delta)
    found = 0.0
    for _ in range(_MAX_STEPS):
        left = math.exp(-relative) * (delta - absolute * (1 + math.exp(min(found + relative, _MAX_EXPONENT))))
        if left <= 0:
            break
        following = exact_epsilon(left)
        if following <= found * (1 + _CLOSE):
            return max(found, following) + 2 * relative
        found = following * (1 + _CLOSE)
    raise InvalidInput("δ is smaller than the error of the noise sampler; use the discrete Gaussian.")


def _rdp_curve(event: Event, orders: list[Any]) -> list[float]:
    if isinstance(event, SkellamEvent):
        return [event.rdp(order) for order in orders]
    if isinstance(event, RdpEvent):
        known = dict(zip(event.orders, event.values, strict=True))
        return [known[order] for order in orders]
    return [order / (2 * event.noise_multiplier**2) for order in orders]


def micro_epsilon(value: float) -> int:
    """Round ε up to integer micro-units, the form in which the board carries it."""
    if not math.isfinite(value) or value < 0:
        raise InvalidInput("ε must be a finite number that is not negative.")
    return math.ceil(value * MICRO)


def verify_micro_epsilon(claimed: int, recomputed: float) -> None:
    """Check a posted ε against the recomputed one, to 1 %. Raises EpsilonMismatch."""
    honest = micro_epsilon(recomputed)
    if abs(claimed - honest) > max(1, math.floor(honest * AUDIT_TOLERANCE)):
        raise EpsilonMismatch(
            f"The posting claims ε = {claimed / MICRO:.6f}, but its releases give ε = {honest / MICRO:.6f}."
        )
