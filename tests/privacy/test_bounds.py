"""γ and α against direct numerical integration."""

import math

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.privacy.accounting import epsilon
from anofel.privacy.bounds import (
    advantage_bound,
    error_bound,
    gaussian_advantage,
    paper_advantage,
    paper_error_scale,
)
from anofel.privacy.events import GaussianEvent

GRID = np.linspace(-40, 40, 2_000_001)


def density(mean):
    return np.exp(-((GRID - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


def total_variation(mean):
    return float(np.trapezoid(np.maximum(density(mean) - density(0), 0), GRID))


def delta_of(mean, value):
    """δ(ε) of two unit Gaussians, integrated: ∫ max(p − e^ε·q, 0)."""
    return float(np.trapezoid(np.maximum(density(mean) - math.exp(value) * density(0), 0), GRID))


@pytest.mark.parametrize("z", [0.3, 1.0, 4.11, 20.0])
def test_exact_gaussian_advantage_is_the_integral(z):
    assert gaussian_advantage(z) == pytest.approx(total_variation(1 / z), abs=1e-7)


@pytest.mark.parametrize("z", [0.5, 1.0, 4.11])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.9, 2.0, 4.0])
def test_gamma_bounds_every_test_at_every_epsilon(z, value):
    assert total_variation(1 / z) <= advantage_bound(value, delta_of(1 / z, value)) + 1e-7


@pytest.mark.parametrize(("value", "delta"), [(0.1, 0.0), (0.9, 1e-5), (2.0, 0.01), (8.0, 0.0)])
def test_gamma_is_attained(value, delta):
    """The four-point mechanism that is (ε, δ)-private with equality: its best test wins exactly γ."""
    share = (1 - delta) / (1 + math.exp(value))
    yes = np.array([delta, math.exp(value) * share, share, 0.0])
    no = np.array([0.0, share, math.exp(value) * share, delta])
    assert np.maximum(yes - math.exp(value) * no, 0).sum() == pytest.approx(delta, abs=1e-15)
    assert np.maximum(yes - no, 0).sum() == pytest.approx(advantage_bound(value, delta), abs=1e-12)


def test_gamma_grows_with_epsilon_where_the_printed_formula_falls():
    values = [advantage_bound(value, 1e-5) for value in (0.1, 0.9, 2, 5, 20, 2000)]
    assert values == sorted(values)
    assert values[-1] == 1.0
    assert values[1] == pytest.approx(0.4219, abs=1e-4)
    assert paper_advantage(0.9, 1e-5) == pytest.approx(0.1715, abs=1e-4)
    # An attack beats the printed formula, so it is no bound: ε = 5 at δ = 1e-5 has z = 0.95 or so.
    z = 0.95
    assert epsilon([(GaussianEvent(noise_multiplier=z), 1)], 1e-5) < 5
    assert total_variation(1 / z) > paper_advantage(5, 1e-5)


@pytest.mark.parametrize(
    ("coordinates", "iterations", "failure"), [(1, 1, 0.05), (34, 30, 0.05), (61706, 25, 1e-6)]
)
def test_alpha_is_the_quantile_of_the_largest_error(coordinates, iterations, failure):
    alpha = error_bound(sigma=2.0, coordinates=coordinates, iterations=iterations, failure=failure)
    tail = np.linspace(alpha / 2.0, alpha / 2.0 + 20, 2_000_001)
    outside = 2 * float(np.trapezoid(np.exp(-(tail**2) / 2) / math.sqrt(2 * math.pi), tail))
    failed = -math.expm1(coordinates * iterations * math.log1p(-outside))
    assert failed == pytest.approx(failure, rel=1e-4)


def test_alpha_holds_in_simulation():
    alpha = error_bound(sigma=1.0, coordinates=20, iterations=10, failure=0.05)
    noise = np.random.default_rng(0).normal(size=(20_000, 200))
    # 20,000 runs, 5 % expected: Hoeffding at 1e-9 allows 2.4 % either way.
    assert abs((np.abs(noise).max(axis=1) > alpha).mean() - 0.05) < 0.024


def test_paper_scale_follows_its_formula():
    value = paper_error_scale(sensitivity=0.1, epsilon=0.9, delta=1e-5, iterations=25)
    assert value == pytest.approx(0.1 * math.sqrt(25 * math.log(1e5)) / 0.9 * math.sqrt(math.log(25)))


def test_arguments_out_of_range_are_refused():
    with pytest.raises(InvalidInput):
        advantage_bound(-1, 0)
    with pytest.raises(InvalidInput):
        gaussian_advantage(0)
    with pytest.raises(InvalidInput):
        error_bound(sigma=1, coordinates=0, iterations=1, failure=0.1)
