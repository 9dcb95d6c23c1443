"""Update and noise keep to bounds of their own, so that what is encrypted never exceeds a task's."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.learning.trainer import LocalUpdate
from anofel.models.parameters import Layout
from anofel.privacy.clipping import NormCheckFailed
from anofel.privacy.mechanisms import DiscreteGaussian, register
from anofel.privacy.plan import Plan
from anofel.privacy.protect import NoiseTooWide, ProtectedUpdate, draw_noise, encode, fits
from tests.patients import make_task

NOISES = {
    "fixed": {},
    "adaptive": {"adaptive": True, "max_posts": 40},
    "record": {"unit": "record", "records_per_client": 12},
    "paper": {"unit": "paper", "records_per_client": 20, "noise_multiplier": 0},
}


class Told:
    """A mechanism that draws what a test tells it to, and then as usual."""

    name = "told-for-a-test"

    def __init__(self) -> None:
        self.next: list[np.ndarray] = []
        self.always: np.ndarray | None = None

    def sample(self, sigma: int, count: int) -> np.ndarray:
        if self.always is not None:
            return self.always
        return self.next.pop() if self.next else DiscreteGaussian().sample(sigma, count)

    event = DiscreteGaussian.event
    _SMOOTHING_VARIANCE = DiscreteGaussian._SMOOTHING_VARIANCE


TOLD = Told()
register(TOLD)


def plan_of(noise: str) -> Plan:
    return Plan.of(make_task(privacy=NOISES[noise] | {"mechanism": TOLD.name}))


def longest_noise(plan: Plan) -> np.ndarray:
    """What is just not drawn again, as far as one direction goes."""
    most = plan.value_bound - plan.contribution_bound
    entry = min(most, int((plan.noise_norm_squared / plan.dimension) ** 0.5))
    return np.full(plan.dimension, entry)


@pytest.mark.parametrize("noise", NOISES)
@given(entries=st.lists(st.floats(-1, 1), min_size=40, max_size=40))
def test_whatever_fits_and_whatever_is_drawn_have_room_together(noise: str, entries: list[float]) -> None:
    plan = plan_of(noise)
    direction = np.array(entries[: plan.dimension]) + 1e-3
    longest = plan.update_norm_bound if noise == "record" else plan.norm_squared**0.5
    update = np.trunc(direction * longest / np.linalg.norm(direction)).astype(np.int64)
    if not fits(update, plan):
        return
    TOLD.next = [longest_noise(plan)]
    whole = ProtectedUpdate(update).with_noise(plan, 1 if plan.spec.adaptive else None)
    assert not TOLD.next
    assert np.abs(whole).max() <= plan.value_bound
    assert int(np.dot(whole.astype(object), whole.astype(object))) <= plan.norm_bound**2


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("fault", ["entry", "norm"])
def test_noise_without_room_is_drawn_again_whatever_the_update(noise: str, fault: str) -> None:
    """Else an update in the direction of its noise could not be encrypted, and its client would not post."""
    plan = plan_of(noise)
    position = 1 if plan.spec.adaptive else None
    most = plan.value_bound - plan.contribution_bound
    wide = np.zeros(plan.dimension, dtype=np.int64)
    if fault == "entry":
        wide[0] = most + 1
    else:
        wide = longest_noise(plan) + 1
        wide[: plan.dimension // 2] *= -1
    for update in (np.zeros(plan.dimension, dtype=np.int64), -np.sign(wide)):
        TOLD.next = [wide]
        drawn = ProtectedUpdate(update).with_noise(plan, position) - update
        assert not TOLD.next
        assert not np.array_equal(drawn, wide)


def test_a_mechanism_that_never_fits_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("fixed")
    monkeypatch.setattr(TOLD, "always", np.full(plan.dimension, plan.value_bound))
    with pytest.raises(NoiseTooWide, match="64 times in a row"):
        draw_noise(plan)


def test_records_fit_by_their_norm_as_well() -> None:
    """Every entry within its bound, and together far longer than all records of a client can be."""
    plan = plan_of("record")
    assert not fits(np.full(plan.dimension, plan.contribution_bound), plan)
    one = np.zeros(plan.dimension, dtype=np.int64)
    one[0] = plan.contribution_bound
    assert fits(one, plan)


def test_a_trainer_that_speaks_of_more_records_than_it_got_is_refused() -> None:
    """The bound of its update would grow with what it says."""
    plan = plan_of("record")
    parameters = {"w": np.zeros(plan.dimension)}
    parameters["w"][0] = 100 * plan.clipping_norm
    lying = LocalUpdate(parameters, 100)
    with pytest.raises(NormCheckFailed, match="more records"):
        encode(lying, Layout.of(parameters), plan)
    with pytest.raises(NormCheckFailed, match="exceeds its bound"):
        encode(replace(lying, examples=12), Layout.of(parameters), plan)


@pytest.mark.parametrize("noise", ["fixed", "record"])
def test_slots_with_proven_ranges_keep_to_theirs(noise: str) -> None:
    """Noise, or an update that a child made, with a slot out of its range could not be proven."""
    metrics = {"names": ["accuracy", "loss"], "proven_ranges": True}
    plan = Plan.of(make_task(metrics=metrics, privacy=NOISES[noise] | {"mechanism": TOLD.name}))
    assert plan.metric_range is not None
    low, high = plan.metric_range
    update, wide = np.zeros(plan.dimension, dtype=np.int64), np.zeros(plan.dimension, dtype=np.int64)
    for value, fit in ((0, True), (high + low, True), (high + low + 1, False), (-1, False)):
        update[-1] = value
        assert fits(update, plan) == fit
    update[-1] = high + low
    for sign in (1, -1):
        wide[-1] = sign * (plan.metric_noise + 1)
        TOLD.next = [wide]
        drawn = ProtectedUpdate(update).with_noise(plan) - update
        assert not TOLD.next
        assert not np.array_equal(drawn, wide)
        wide[-1] = sign * plan.metric_noise
        TOLD.next = [wide]
        assert np.array_equal(ProtectedUpdate(update).with_noise(plan) - update, wide)
