"""Noise mechanisms. A mechanism is two methods; users can bring their own with :func:`register`."""

from typing import Protocol, runtime_checkable

import numpy as np

from anofel._core import noise
from anofel.errors import InvalidInput
from anofel.models.parameters import Integers
from anofel.privacy.events import Event, GaussianEvent, Release, SkellamEvent

MIN_LOCAL_SIGMA = 8
"""Below this the integers show: with σ ≥ 8 per client, a sum of discrete Gaussians and the
discretisation of a continuous one differ by less than e^−600 (``docs/privacy.md``, lemmas 1 and 2)."""


@runtime_checkable
class Mechanism(Protocol):
    """Draws a client's share of the noise, and says what the sum of the shares protects."""

    @property
    def name(self) -> str:
        """How a task names it."""
        ...

    def sample(self, sigma: int, count: int) -> Integers:
        """Draw `count` integers of standard deviation at least `sigma`, from a CSPRNG, never clamped."""
        ...

    def event(self, release: Release) -> Event:
        """Describe what one release costs."""
        ...


class DiscreteGaussian:
    """The exact discrete Gaussian; accounted as a Gaussian with slightly less variance (lemma 2)."""

    name = "discrete-gaussian"

    _SMOOTHING_VARIANCE = 36.0
    """Variance given up in lemma 2, so that its error is below e^−600."""

    def sample(self, sigma: int, count: int) -> Integers:
        """Draw from N_Z(0, σ²)."""
        return _draw(noise.discrete_gaussian, sigma, count)

    def event(self, release: Release) -> GaussianEvent:
        """Describe a sum of discrete Gaussians (lemmas 1 and 2)."""
        if release.variance <= 2 * self._SMOOTHING_VARIANCE:
            raise InvalidInput("The noise is too coarse to be accounted for; raise scale_bits.")
        spread = float(release.variance - self._SMOOTHING_VARIANCE) ** 0.5
        return GaussianEvent(
            noise_multiplier=spread / release.sensitivity.l2, sampling_rate=release.sampling_rate
        )


class Skellam:
    """The difference of two Poisson variables; sums of it are Skellam again."""

    name = "skellam"

    _RELATIVE_ERROR = 2.0**-39
    _ABSOLUTE_ERROR = 2.0**-60
    """How far one sample's distribution is from Skellam (``crates/anofel-dp/src/skellam.rs``)."""

    def sample(self, sigma: int, count: int) -> Integers:
        """Draw Skellam noise of variance at least σ²."""
        return _draw(noise.skellam, sigma, count)

    def event(self, release: Release) -> SkellamEvent:
        """Describe a sum of Skellam shares; sampling of records is allowed but not credited."""
        return SkellamEvent(
            variance=release.variance,
            l2=release.sensitivity.l2,
            l1=release.sensitivity.l1,
            relative_error=release.draws * self._RELATIVE_ERROR,
            absolute_error=release.draws * self._ABSOLUTE_ERROR,
        )


def _draw(sampler: object, sigma: int, count: int) -> Integers:
    try:
        data: bytes = sampler(sigma, count)  # type: ignore[operator]
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"No noise can be drawn: {error}.") from None
    return np.frombuffer(data, dtype="<i8").astype(np.int64, copy=False)


_REGISTERED: dict[str, Mechanism] = {
    mechanism.name: mechanism for mechanism in (DiscreteGaussian(), Skellam())
}


def register(mechanism: Mechanism) -> None:
    """Make a mechanism known under its name, for tasks that ask for it."""
    if mechanism.name in _REGISTERED:
        raise InvalidInput(f"There is already a mechanism called '{mechanism.name}'.")
    _REGISTERED[mechanism.name] = mechanism


def is_known(name: str) -> bool:
    """Whether a mechanism of this name is known here."""
    return name in _REGISTERED


def mechanism_named(name: str) -> Mechanism:
    """Find a mechanism by the name a task gives."""
    if name not in _REGISTERED:
        raise InvalidInput(f"There is no mechanism '{name}'; known are {', '.join(sorted(_REGISTERED))}.")
    return _REGISTERED[name]
