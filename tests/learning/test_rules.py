"""The rule of a task, or a function of its owner's."""

from copy import deepcopy

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.models.rules import OwnerRuleFailed, first_model, rule_of, update_rule_of
from anofel.tasks.task import Task, read_task
from tests.patients import DOCUMENT


def a_task(**rule: object) -> Task:
    document = deepcopy(DOCUMENT)
    document["rule"] |= rule
    return read_task(document)


OWN = {"kind": "owner", "momentum": 0}


def test_the_tasks_own_rule_is_the_integer_mean() -> None:
    task = a_task(momentum=1 << 15)
    model = first_model(task, trainer_of(task).initial())
    assert model.velocity is not None
    total = np.arange(model.values.size, dtype=np.int64)
    made = update_rule_of(task).apply(model, total, 3, 1)
    assert made.to_bytes() == rule_of(task).apply(model, total, 3, 1).to_bytes()
    with pytest.raises(InvalidInput, match="no place in it"):
        update_rule_of(task, "tests.roles.own_rule:double")


def test_an_owners_function_makes_the_model() -> None:
    task = a_task(**OWN)
    model = first_model(task, trainer_of(task).initial())
    assert model.velocity is None
    total = np.arange(model.values.size, dtype=np.int64)
    made = update_rule_of(task, "tests.roles.own_rule:double").apply(model, total, 2, 1)
    assert (made.values == model.values + total).all()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "name it with --rule"),
        ("tests.roles.own_rule:missing", "cannot be imported"),
        ("no.such.module:rule", "cannot be imported"),
        ("tests.roles.own_rule:not_a_function", "must be a function"),
    ],
)
def test_a_function_that_is_not_there_is_refused_at_once(name: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        update_rule_of(a_task(**OWN), name)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("broken", "failed: ZeroDivisionError"),
        ("nothing", "returned no IntegerModel"),
        ("coarser", "another shape or scale"),
        ("with_velocity", "with a velocity"),
    ],
)
def test_a_function_that_makes_no_fit_model_is_named(function: str, words: str) -> None:
    task = a_task(**OWN)
    model = first_model(task, trainer_of(task).initial())
    rule = update_rule_of(task, f"tests.roles.own_rule:{function}")
    with pytest.raises(OwnerRuleFailed, match=words):
        rule.apply(model, np.zeros_like(model.values), 2, 1)


def test_a_bound_on_the_mean_is_part_of_the_task() -> None:
    bounded, free = a_task(max_mean_norm="0.1"), a_task()
    assert bounded.digest() != free.digest()
    assert b"max_mean_norm" not in free.to_bytes()
    assert Task.from_bytes(bounded.to_bytes()) == bounded
    assert rule_of(bounded).max_mean == 6554, "0.1 at scale 2^16, rounded up"
    assert rule_of(free).max_mean is None
    with pytest.raises(InvalidInput, match="belongs to the rule integer-mean"):
        a_task(kind="owner", momentum=0, max_mean_norm="0.1")
