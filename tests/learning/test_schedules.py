"""The learning rate may change at iterations of the board: as fractions, the same for everybody."""

import math
import tomllib
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.errors import InvalidInput
from anofel.models.integer_model import IntegerMean
from anofel.models.rules import rule_of
from anofel.models.schedules import cosine_schedule, schedule_toml, step_schedule
from anofel.privacy.explain import explain
from anofel.tasks.task import MAX_CHANGES, RateChange, Task, read_task
from tests.learning.test_integer_model import model_of
from tests.patients import make_task

CHANGES = [{"iteration": 3, "lr_num": 1, "lr_den": 4}, {"iteration": 5, "lr_num": 3, "lr_den": 1}]


def scheduled(changes: list[dict[str, int]]) -> Task:
    return make_task(rule={"lr_num": 1, "lr_den": 2, "schedule": changes})


def test_the_rate_is_that_of_the_last_change_so_far() -> None:
    rule = rule_of(scheduled(CHANGES))
    rates = [rule.rate(iteration) for iteration in range(1, 8)]
    assert rates == [(1, 2), (1, 2), (1, 4), (1, 4), (3, 1), (3, 1), (3, 1)]


def test_a_sum_is_applied_at_the_rate_of_its_iteration() -> None:
    rule, total = rule_of(scheduled(CHANGES)), np.array([80], dtype=np.int64)
    moved = [rule.apply(model_of([7]), total, 2, iteration).values[0] - 7 for iteration in (1, 3, 5)]
    assert moved == [20, 10, 120]


def test_a_schedule_is_part_of_the_canonical_task() -> None:
    task = scheduled(CHANGES)
    assert Task.from_bytes(task.to_bytes()) == task
    assert task.digest() != make_task(rule={"lr_num": 1, "lr_den": 2}).digest()
    assert b"schedule" not in make_task().to_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "must be a list of tables"),
        ([{"iteration": 1, "lr_num": 1}], "must be an integer between 2"),
        ([{"iteration": 2, "lr_num": 0}], "must be an integer between 1"),
        ([{"iteration": 2, "lr_num": 1, "lr_den": 0}], "must be an integer between 1"),
        ([{"iteration": 2, "lr_num": 1, "rate": 1}], "unknown key 'rate'"),
        ([CHANGES[1], CHANGES[0]], "in the order of its iterations"),
        ([CHANGES[0], CHANGES[0]], "each named once"),
        ([{"iteration": i, "lr_num": 1} for i in range(2, MAX_CHANGES + 3)], "at most 1024 changes"),
    ],
)
def test_a_malformed_schedule_is_refused(changes: list[dict[str, int]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        scheduled(changes)


def test_an_owners_own_rule_has_no_schedule() -> None:
    with pytest.raises(InvalidInput, match="belongs to the rule integer-mean"):
        make_task(rule={"kind": "owner", "schedule": CHANGES})


def test_the_error_bound_is_for_the_highest_rate() -> None:
    plain = explain(make_task(rule={"lr_num": 3, "lr_den": 1}))
    assert explain(scheduled(CHANGES))["alpha"] == plain["alpha"]


def test_steps() -> None:
    assert step_schedule(1, 10, every=5, factor=10, times=2) == (
        RateChange(iteration=6, lr_num=1, lr_den=100),
        RateChange(iteration=11, lr_num=1, lr_den=1000),
    )


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(2, 200))
def test_a_cosine_falls_and_stays_positive(num: int, den: int, iterations: int) -> None:
    changes = cosine_schedule(num, den, iterations=iterations)
    rule = IntegerMean(lr_num=num, lr_den=den, schedule=changes)
    rates = [Fraction(*rule.rate(iteration)) for iteration in range(1, iterations + 1)]
    assert rates[-1] > 0
    assert all(later <= earlier for earlier, later in pairwise(rates))
    for iteration, rate in enumerate(rates):
        expected = num / den * (1 + math.cos(math.pi * iteration / iterations)) / 2
        assert float(rate) == pytest.approx(expected, abs=2e-6 / den)


def test_a_schedule_is_written_as_a_task_file_holds_it() -> None:
    changes = cosine_schedule(3, 10, iterations=6)
    document = tomllib.loads(schedule_toml(changes))
    task = read_task(
        {**make_task().document(), "schema": _plain(make_task().document()["schema"]), "rule": document}
    )
    assert task.rule.schedule == changes


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(
    "make",
    [
        lambda: step_schedule(0, 1, every=1, factor=2, times=1),
        lambda: step_schedule(1, 1, every=1, factor=1, times=1),
        lambda: cosine_schedule(1, 1, iterations=1),
        lambda: cosine_schedule(1, 1, iterations=MAX_CHANGES + 2),
    ],
)
def test_schedules_out_of_range_are_refused(make: object) -> None:
    with pytest.raises(InvalidInput):
        make()  # type: ignore[operator]
