import math

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.privacy.accounting import epsilon
from anofel.privacy.events import GaussianEvent, RdpEvent, Release, Sensitivity, SkellamEvent
from anofel.privacy.mechanisms import DiscreteGaussian, Mechanism, Skellam, mechanism_named, register

ERROR_PROBABILITY = 1e-9


def ks_distance(samples, sigma):
    """Distance to the normal distribution function with continuity correction."""
    values, counts = np.unique(samples, return_counts=True)
    empirical = np.cumsum(counts) / samples.size
    normal = np.array([0.5 * (1 + math.erf((value + 0.5) / sigma / math.sqrt(2))) for value in values])
    return np.abs(empirical - normal).max()


@pytest.mark.parametrize("mechanism", [DiscreteGaussian(), Skellam()])
@pytest.mark.parametrize("sigma", [1000, 16384])
def test_samples_follow_their_distribution(mechanism, sigma):
    samples = mechanism.sample(sigma, 100_000)
    # DKW at a fixed error probability, plus what Skellam and the rounding differ from a normal at this size.
    tolerance = math.sqrt(math.log(2 / ERROR_PROBABILITY) / (2 * samples.size)) + 1 / sigma
    assert ks_distance(samples, sigma) < tolerance


@pytest.mark.parametrize("mechanism", [DiscreteGaussian(), Skellam()])
def test_sum_of_shares_has_the_sum_of_variances(mechanism):
    total = sum(mechanism.sample(500, 20_000) for _ in range(16))
    assert ks_distance(total, 2000) < math.sqrt(math.log(2 / ERROR_PROBABILITY) / 40_000) + 1 / 2000


@pytest.mark.parametrize("mechanism", [DiscreteGaussian(), Skellam()])
def test_noise_has_no_clamped_tail(mechanism):
    samples = mechanism.sample(10, 1_000_000)
    assert np.abs(samples).max() > 42  # 4.2 σ is exceeded once in 37,000 draws
    assert abs(samples.mean()) < 6.2 * 10 / 1000


@pytest.mark.parametrize("mechanism", [DiscreteGaussian(), Skellam()])
@pytest.mark.parametrize("sigma", [0, 2**41])
def test_sigma_out_of_range_is_refused(mechanism, sigma):
    with pytest.raises(InvalidInput, match="standard deviation"):
        mechanism.sample(sigma, 1)


def test_two_draws_differ():
    assert not np.array_equal(DiscreteGaussian().sample(10**6, 10), DiscreteGaussian().sample(10**6, 10))


def test_users_bring_their_own_mechanism():
    class Uniform:
        name = "uniform-for-a-test"

        def sample(self, sigma, count):
            return np.full(count, sigma, dtype=np.int64)

        def event(self, release):
            return RdpEvent(orders=(2, 4), values=(1 / release.variance, release.sampling_rate))

    assert isinstance(Uniform(), Mechanism)
    register(Uniform())
    assert mechanism_named("uniform-for-a-test").sample(3, 2).tolist() == [3, 3]
    with pytest.raises(InvalidInput, match="already"):
        register(Uniform())
    with pytest.raises(InvalidInput, match="no mechanism"):
        mechanism_named("laplace")


def test_discrete_gaussian_accounts_for_less_than_its_variance():
    event = DiscreteGaussian().event(release(1_000_000.0, 100.0))
    assert isinstance(event, GaussianEvent)
    assert 9.999 < event.noise_multiplier < 10
    with pytest.raises(InvalidInput, match="coarse"):
        DiscreteGaussian().event(release(50.0, 1.0))


def test_skellam_accounts_for_the_error_of_its_sampler():
    event = Skellam().event(release(1e12, 1e4, draws=1 << 30))
    assert (event.relative_error, event.absolute_error) == (2.0**-9, 2.0**-30)
    exact = SkellamEvent(variance=event.variance, l2=event.l2, l1=event.l1)
    assert epsilon([(event, 3)], 1e-5) == pytest.approx(epsilon([(exact, 3)], 1e-5) + 3 * 2.0**-8, abs=1e-4)
    with pytest.raises(InvalidInput, match="smaller than the error"):
        epsilon([(Skellam().event(release(1e12, 1e4, draws=1 << 50)), 1)], 1e-5)


@pytest.mark.parametrize("releases", [1, 3, 10])
def test_the_absolute_error_of_a_sampler_counts_as_often_as_epsilon_says(releases):
    """δ of the exact noise, the error of the one side, and that of the other times e^(ε+r), make up δ."""
    event = SkellamEvent(variance=1e6, l2=200, l1=200, relative_error=1e-3, absolute_error=1e-10)
    exact = SkellamEvent(variance=1e6, l2=200, l1=200)
    found, relative, absolute = epsilon([(event, releases)], 1e-5), releases * 1e-3, releases * 1e-10
    inner = found - 2 * relative
    left = math.exp(-relative) * (1e-5 - absolute * (1 + math.exp(inner + relative)))
    assert epsilon([(exact, releases)], left) == pytest.approx(inner, rel=1e-9)
    naive = epsilon([(exact, releases)], 1e-5 - 2 * absolute) + 2 * relative
    assert found > naive, "without the factor ε would be too small"


def release(variance, l2, draws=1000):
    return Release(variance=variance, sensitivity=Sensitivity(l2=l2, l1=l2), sampling_rate=1.0, draws=draws)
