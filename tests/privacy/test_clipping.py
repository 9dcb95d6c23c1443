import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.privacy import clipping
from anofel.privacy.clipping import NormCheckFailed, UpdateNotFinite, clip, round_within, rounded_norm_squared


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50),
    st.floats(1e-3, 1e3),
    st.integers(8, 24),
)
def test_rounded_update_never_exceeds_the_accounted_norm(values, clipping_norm, bits):
    vector = np.ldexp(clip(np.array(values), clipping_norm), bits)
    bound = rounded_norm_squared(clipping_norm, 1 << bits, len(values))
    rounded = round_within(vector, bound)
    assert int(np.dot(rounded, rounded)) <= bound
    assert np.all(np.abs(rounded - vector) < 1)


def test_clipping_keeps_direction_and_small_updates():
    vector = np.array([3.0, 4.0])
    np.testing.assert_allclose(clip(vector, 1.0), [0.6, 0.8])
    assert clip(vector, 5.0) is vector


def test_rounding_is_unbiased():
    draws = np.mean([clipping.round_stochastically(np.full(1000, 0.3)).mean() for _ in range(100)])
    # Hoeffding over 100,000 coins at error probability 1e-9.
    assert abs(draws - 0.3) < 0.0104


def test_bound_is_the_smaller_of_the_two():
    always = (2**8 * 0.5 + math.sqrt(10)) ** 2
    likely = (2**8 * 0.5) ** 2 + 10 / 4 + 2**8 * 0.5 + math.sqrt(10) / 2
    assert rounded_norm_squared(0.5, 2**8, 10) == math.floor(min(always, likely))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
def test_update_that_is_not_finite_is_refused(value):
    with pytest.raises(UpdateNotFinite):
        clip(np.array([value, 1.0]), 1.0)


def test_rounding_that_cannot_pass_is_refused():
    with pytest.raises(NormCheckFailed):
        round_within(np.array([100.0]), 99)
