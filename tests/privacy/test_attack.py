from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.privacy import attack
from anofel.privacy.attack import best_advantage, run_attack
from anofel.privacy.bounds import gaussian_advantage
from anofel.privacy.plan import Plan
from tests.patients import make_dataset, make_task

TASK = make_task(privacy={"noise_multiplier": "10", "max_releases": 10})


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_attack_stays_within_gamma_and_wins_without_noise(relation):
    result = run_attack(TASK, make_dataset(30), relation=relation, trials=2000)
    assert result.within_bound
    assert result.advantage_without_noise == 1.0
    # The test is the best one, so it cannot beat the exact advantage at the accounted sensitivity either.
    event = Plan.of(TASK).event(relation)
    assert result.advantage_with_noise <= gaussian_advantage(event.noise_multiplier / 10**0.5) + result.margin


def test_attack_detects_noise_that_is_too_small(monkeypatch):
    """With a fiftieth of the noise the same attack breaks the bound, so the experiment can fail."""
    honest = attack._advantage

    def fiftieth(plan, means, trials, *, noise):
        return honest(
            replace(plan, spec=replace(plan.spec, noise_multiplier=plan.spec.noise_multiplier / 50)),
            means,
            trials,
            noise=noise,
        )

    monkeypatch.setattr(attack, "_advantage", fiftieth)
    task = make_task(privacy={"noise_multiplier": "20", "max_releases": 10})
    result = run_attack(task, make_dataset(30), relation="replace", trials=2000)
    assert not result.within_bound


def test_best_advantage_is_the_distance_of_distributions():
    assert best_advantage(np.array([0.0, 1.0]), np.array([2.0, 3.0])) == 1
    assert best_advantage(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0
    assert best_advantage(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0, 5.0])) == 0.5


def test_a_record_is_attacked_within_its_bound():
    spec = {"unit": "record", "records_per_client": 50, "noise_multiplier": 2, "max_releases": 2}
    result = run_attack(make_task(privacy=spec), make_dataset(20), trials=1000)
    assert result.advantage_without_noise == 1
    assert result.advantage_with_noise > 0
    assert result.within_bound


def test_attack_needs_a_bound_and_enough_trials():
    with pytest.raises(InvalidInput, match="proves no bound"):
        run_attack(make_task(privacy={"unit": "paper"}), make_dataset(1))
    with pytest.raises(InvalidInput, match="samples them"):
        run_attack(make_task(privacy={"unit": "record", "sampling_rate": Decimal("0.5")}), make_dataset(1))
    with pytest.raises(InvalidInput, match="trials"):
        run_attack(TASK, make_dataset(5), trials=5)
