import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from anofel.errors import InvalidInput
from anofel.privacy.accounting import EpsilonMismatch, epsilon, micro_epsilon, verify_micro_epsilon
from anofel.privacy.events import GaussianEvent, RdpEvent, SkellamEvent, event_from_json, event_to_json
from anofel.privacy.plan import Plan
from tests.patients import make_task

DELTA = 1e-5


@pytest.mark.parametrize(("z", "count"), [(4.11, 1), (13.0, 10), (20.5, 25), (29.0, 50), (1.0, 3)])
def test_gaussian_epsilon_agrees_with_an_independent_pld(z, count):
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(dp_accounting.GaussianDpEvent(z), count)
    ours = epsilon([(GaussianEvent(noise_multiplier=z), count)], DELTA)
    assert ours == pytest.approx(accountant.get_epsilon(DELTA), rel=0.01)


def test_published_multipliers_reach_nine_tenths():
    for z, count in [(4.107, 1), (12.99, 10), (20.53, 25), (41.07, 100)]:
        assert epsilon([(GaussianEvent(noise_multiplier=z), count)], DELTA) == pytest.approx(0.9, rel=0.01)


def test_a_plan_agrees_with_pld_of_its_own_numbers():
    plan = Plan.of(make_task(privacy={"noise_multiplier": "22.5", "max_releases": 30}))
    steps = math.sqrt(plan.spec.honest) * plan.local_sigma()
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(dp_accounting.GaussianDpEvent(steps / math.sqrt(plan.norm_squared)), 30)
    assert plan.epsilon(30, "zero-out") == pytest.approx(accountant.get_epsilon(DELTA), rel=0.01)


def test_sampled_gaussian_agrees_with_pld():
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    sampled = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2.0))
    accountant.compose(sampled, 20)
    ours = epsilon([(GaussianEvent(noise_multiplier=2.0, sampling_rate=0.1), 20)], DELTA)
    assert ours == pytest.approx(accountant.get_epsilon(DELTA), rel=0.01)
    assert ours < epsilon([(GaussianEvent(noise_multiplier=2.0), 20)], DELTA)


def test_large_skellam_is_a_gaussian_up_to_rdp():
    skellam = SkellamEvent(variance=(20.0 * 65536) ** 2, l2=65536.0, l1=65536.0 * 6)
    gaussian = GaussianEvent(noise_multiplier=20.0)
    ours = epsilon([(skellam, 25)], DELTA)
    exact = epsilon([(gaussian, 25)], DELTA)
    assert exact <= ours <= 1.16 * exact
    rdp = dp_accounting.rdp.RdpAccountant()
    rdp.compose(dp_accounting.GaussianDpEvent(20.0), 25)
    assert ours == pytest.approx(rdp.get_epsilon(DELTA), rel=0.01)


def test_mixtures_compose_and_never_shrink():
    gaussian = (GaussianEvent(noise_multiplier=20.0), 10)
    sampled = (GaussianEvent(noise_multiplier=2.0, sampling_rate=0.01), 10)
    skellam = (SkellamEvent(variance=1e8, l2=1000.0, l1=5000.0), 10)
    for mixture in ([gaussian, sampled], [gaussian, skellam], [gaussian, sampled, skellam]):
        parts = [epsilon([part], DELTA) for part in mixture]
        assert epsilon(mixture, DELTA) > max(parts)


def test_own_rdp_curves_compose():
    orders = tuple(range(2, 65))
    own = RdpEvent(orders=orders, values=tuple(order / (2 * 20.0**2) for order in orders))
    both = epsilon([(own, 10), (SkellamEvent(variance=1e30, l2=1.0, l1=1.0), 1)], DELTA)
    assert both == pytest.approx(epsilon([(own, 10)], DELTA), rel=1e-6)
    with pytest.raises(InvalidInput, match="no common"):
        epsilon([(own, 1), (RdpEvent(orders=(100,), values=(1.0,)), 1)], DELTA)


def test_nothing_released_costs_nothing():
    assert epsilon([], DELTA) == 0
    assert epsilon([(GaussianEvent(noise_multiplier=1.0), 0)], DELTA) == 0
    with pytest.raises(InvalidInput, match="δ"):
        epsilon([], 0.0)


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(noise_multiplier=2.5, sampling_rate=0.5),
        SkellamEvent(variance=9.0, l2=1.0, l1=1.0),
        RdpEvent(orders=(2.0,), values=(0.1,)),
    ],
)
def test_events_survive_the_ledger(event):
    assert event_from_json(event_to_json(event)) == event


@pytest.mark.parametrize("document", [{}, {"kind": "laplace"}, {"kind": "gaussian", "sigma": 1}])
def test_unknown_events_are_refused(document):
    with pytest.raises(InvalidInput, match="unknown kind"):
        event_from_json(document)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianEvent(noise_multiplier=0.0),
        lambda: GaussianEvent(noise_multiplier=1.0, sampling_rate=0.0),
        lambda: SkellamEvent(variance=0.0, l2=1.0, l1=1.0),
        lambda: RdpEvent(orders=(1.0,), values=(0.0,)),
    ],
)
def test_events_out_of_range_are_refused(make):
    with pytest.raises(InvalidInput):
        make()


def test_micro_epsilon_is_rounded_up_and_checked_to_one_percent():
    assert micro_epsilon(0.9) == 900_000
    assert micro_epsilon(0.9000000001) == 900_001
    verify_micro_epsilon(900_000, 0.905)
    for claimed in (880_000, 920_000):
        with pytest.raises(EpsilonMismatch, match="claims"):
            verify_micro_epsilon(claimed, 0.9)
    with pytest.raises(InvalidInput):
        micro_epsilon(math.inf)
