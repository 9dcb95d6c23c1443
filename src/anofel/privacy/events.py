"""What one released sum costs, as data: a ledger stores it and anyone can recompute ε from it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from anofel.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How far one unit can move a sum of integers."""

    l2: float
    l1: float


@dataclass(frozen=True, kw_only=True)
class Release:
    """One released sum as a mechanism sees it."""

    variance: float
    """What the honest noise has at least, in every coordinate."""
    sensitivity: Sensitivity
    sampling_rate: float
    """The share of records that were secretly sampled; 1 if all were used."""
    draws: int
    """How many samples make up the honest noise: contributors times parameters."""


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """A sum with Gaussian noise of `noise_multiplier` sensitivities, over a Poisson sample of records."""

    noise_multiplier: float
    sampling_rate: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.noise_multiplier < math.inf or not 0 < self.sampling_rate <= 1:
            raise InvalidInput(
                "A Gaussian release needs a positive noise multiplier and a sampling rate in (0, 1]."
            )


@dataclass(frozen=True, kw_only=True)
class SkellamEvent:
    """A sum with Skellam noise of this variance and sensitivity, drawn by a sampler with a known error."""

    variance: float
    l2: float
    l1: float
    relative_error: float = 0.0
    """r: all draws together have at most e^r times the probability that they should have, plus η."""
    absolute_error: float = 0.0
    """η: the part of their probability that no factor bounds."""

    def __post_init__(self) -> None:
        if not (self.relative_error >= 0 and self.absolute_error >= 0) or not (
            0 < self.variance < math.inf and 0 < self.l2 < math.inf and 0 < self.l1 < math.inf
        ):
            raise InvalidInput("A Skellam release needs a positive variance and sensitivity.")

    def rdp(self, order: float) -> float:
        """Rényi divergence bound of integer order ≥ 2 (Agarwal, Kairouz, Liu 2021, theorem 3.5)."""
        second = ((2 * order - 1) * self.l2**2 + 6 * self.l1) / (4 * self.variance**2)
        return order * self.l2**2 / (2 * self.variance) + min(second, 3 * self.l1 / (2 * self.variance))


@dataclass(frozen=True, kw_only=True)
class RdpEvent:
    """A release known by its Rényi divergences at some orders: for mechanisms that users bring."""

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", tuple(self.orders))
        object.__setattr__(self, "values", tuple(self.values))
        if (
            len(self.orders) != len(self.values)
            or not self.orders
            or min(self.orders) <= 1
            or min(self.values) < 0
        ):
            raise InvalidInput("A Rényi release needs one non-negative value for each order above 1.")


Event = GaussianEvent | SkellamEvent | RdpEvent

_KINDS: dict[str, type[GaussianEvent] | type[SkellamEvent] | type[RdpEvent]] = {
    "gaussian": GaussianEvent,
    "skellam": SkellamEvent,
    "rdp": RdpEvent,
}


def event_to_json(event: Event) -> dict[str, Any]:
    """Write an event for the ledger."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(event, cls))
    return {"kind": kind, **asdict(event)}


def event_from_json(document: Mapping[str, Any]) -> Event:
    """Read an event from the ledger; an unknown one is refused, never skipped."""
    fields = dict(document)
    kind = _KINDS.get(str(fields.pop("kind", "")))
    try:
        if kind is None:
            raise TypeError
        return kind(**fields)
    except TypeError:
        raise InvalidInput(
            "The ledger holds a release of unknown kind; it was written by another version."
        ) from None
