"""The announced bound: exact, the same everywhere, and that of the plan's floats up to their rounding."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.privacy.announced import TAIL, norm_bound, value_bound
from anofel.privacy.plan import Plan
from anofel.privacy.protect import draw_noise
from anofel.tasks.task import Task
from tests.patients import make_task

NOISES = {
    "fixed": {},
    "adaptive": {"adaptive": True, "max_posts": 40},
    "record": {"unit": "record", "records_per_client": 12},
    "paper": {"unit": "paper", "records_per_client": 20, "noise_multiplier": 0},
}


def a_task(noise: str, **privacy: object) -> Task:
    return make_task(privacy=NOISES[noise] | privacy)


@pytest.mark.parametrize("noise", NOISES)
@given(norm=st.integers(1, 400), multiplier=st.integers(50, 5000))
def test_the_exact_bound_is_that_of_the_plan(noise: str, norm: int, multiplier: int) -> None:
    changes = {} if noise == "paper" else {"noise_multiplier": str(Decimal(multiplier) / 100)}
    task = a_task(noise, clipping_norm=str(Decimal(norm) / 100), **changes)
    plan = Plan.of(task)
    floats = plan.contribution_bound + TAIL * plan.local_sigma(1 if plan.spec.adaptive else None)
    assert abs(value_bound(task.privacy, task.model.scale_bits) - floats) <= TAIL + 1


def test_the_bound_is_exact() -> None:
    """σ = 16 steps for each of four clients: no rounding anywhere."""
    task = make_task(
        privacy={"clipping_norm": "0.5", "noise_multiplier": 1, "min_clients": 4, "max_colluders": 0},
        model={"scale_bits": 8},
    )
    assert value_bound(task.privacy, 8) == 128 + 1 + TAIL * 64


def test_the_bound_of_the_norm_is_exact() -> None:
    """Δ² = 128² + 9/4 + 128 + 3/2, so Δ ≤ 129 + 1; 65 steps times √(9 + 2·16 + 56) = 640.2."""
    task = make_task(
        privacy={"clipping_norm": "0.5", "noise_multiplier": 1, "min_clients": 4, "max_colluders": 0},
        model={"scale_bits": 8},
    )
    assert norm_bound(task.privacy, 8, 9) == 129 + 1 + 641


@pytest.mark.parametrize("noise", NOISES)
def test_honest_vectors_keep_to_the_bound_of_the_norm(noise: str) -> None:
    """The longest update and its noise; a record's noise is for all its client's records."""
    plan = Plan.of(a_task(noise))
    longest = plan.spec.records_per_client * plan.radius if noise == "record" else plan.norm_squared**0.5
    for _ in range(20):
        assert longest + np.linalg.norm(draw_noise(plan, 1)) <= plan.norm_bound


@pytest.mark.parametrize("noise", NOISES)
def test_the_bound_does_not_depend_on_the_surroundings(noise: str) -> None:
    task = a_task(noise)
    with localcontext(prec=3):
        cut = value_bound(task.privacy, task.model.scale_bits)
    assert cut == value_bound(task.privacy, task.model.scale_bits)


@given(square=st.fractions(min_value=0, max_value=10**40))
def test_roots_are_rounded_up(square) -> None:  # type: ignore[no-untyped-def]
    from anofel.privacy.announced import _root_above

    root = _root_above(square)
    assert root**2 >= square
    assert root == 0 or (root - 1) ** 2 < square
    assert isinstance(root, int)
