"""A weighted mean: one more clipped slot of the encrypted sum, and a rule that divides by what it says."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel.board.announcement import limits_of
from anofel.board.seat import Seat
from anofel.board.state import Phase, Progress
from anofel.cli.privacy_report import render
from anofel.errors import InvalidInput
from anofel.learning.trainer import LocalUpdate
from anofel.models.means import mean_of
from anofel.models.parameters import Layout
from anofel.models.rules import rule_of
from anofel.privacy.explain import explain
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate, encode
from anofel.proofs.keys import KeyDirectory
from anofel.tasks.task import GroupsSpec, Task, WeightsSpec
from tests.audit.test_deep import audit
from tests.board.prepared import fork
from tests.board.world import World
from tests.patients import make_task

WEIGHTS = {"most": 100, "share": "0.6"}
BOTH = {"names": ["accuracy", "loss"], "share": "0.3"}


def weighted(**sections: Any) -> Task:
    return make_task(**({"weights": WEIGHTS} | sections))


# The task file


def test_without_the_table_nothing_changes() -> None:
    task = make_task()
    assert (task.weights, task.weight_step, task.length) == (None, 0, task.model.parameters)
    assert b"weights" not in task.to_bytes()
    assert Plan.of(task).weight(7) == 1


def test_a_task_with_weights_has_one_encoding_and_one_more_slot() -> None:
    task = weighted(metrics=BOTH)
    assert Task.from_bytes(task.to_bytes()) == task
    assert task.length == Plan.of(task).dimension == task.model.parameters + 3
    assert limits_of(task, 10).length == task.length
    ranges = limits_of(weighted(metrics=BOTH | {"proven_ranges": True}), 10).ranges
    assert [found.coordinate for found in ranges] == [task.model.parameters + 1, task.model.parameters + 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"privacy": {"unit": "record", "records_per_client": 50}}, "need the unit 'client'"),
        ({"privacy": {"unit": "paper", "noise_multiplier": 0}}, "need the unit 'client'"),
        ({"rule": {"kind": "owner"}}, "not the kind owner"),
        ({"metrics": BOTH | {"share": "0.8"}}, "leave nothing of the clipping norm"),
        ({"weights": {"most": 0}}, "most"),
        ({"weights": {"most": 5, "floor": "0"}}, "floor"),
        ({"weights": {}}, "most"),
    ],
)
def test_weights_that_cannot_be_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        weighted(**changes)


# What a client sends


@given(
    update=st.lists(st.floats(-1e6, 1e6), min_size=7, max_size=7),
    examples=st.integers(0, 300),
    metrics=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_update_weight_and_metrics_together_keep_the_clipping_norm(
    update: list[float], examples: int, metrics: tuple[float, float]
) -> None:
    task = weighted(metrics=BOTH)
    plan, layout = Plan.of(task), Layout(("w",), ((task.model.parameters,),))
    vector = np.resize(np.array(update), task.model.parameters)
    encoded = encode(LocalUpdate({"w": vector}, examples, metrics), layout, plan)
    assert int(np.dot(encoded, encoded)) <= plan.norm_squared
    weight = min(examples, 100) / 100
    assert abs(encoded[task.model.parameters] - weight * task.weight_step) < 1
    assert encoded[-2:] / (plan.metric_weight * plan.scale) == pytest.approx(
        metrics, abs=2 / (plan.metric_weight * plan.scale)
    )
    norm = np.linalg.norm(vector)
    clipped = vector * min(1.0, plan.update_norm / norm if norm else 1.0)
    assert np.abs(encoded[: vector.size] - weight * clipped * plan.scale).max() < 1.001


def test_shares_of_the_clipping_norm_add_up() -> None:
    plan = Plan.of(weighted(metrics=BOTH))
    assert plan.update_norm**2 == pytest.approx((1 - 0.36 - 0.09) * plan.clipping_norm**2)
    assert plan.weight_step == pytest.approx(0.6 * plan.radius, abs=1)


def test_the_zero_update_has_no_weight() -> None:
    plan = Plan.of(weighted())
    assert not ProtectedUpdate.zero(plan, "it was late").values.any()


# The rule, against exact fractions


def three_parameters(weights: WeightsSpec, groups: GroupsSpec | None = None) -> Task:
    task = weighted()
    return replace(task, weights=weights, groups=groups, model=replace(task.model, parameters=3))


def exact(task: Task, total: list[int], count: int) -> list[Fraction]:
    assert task.weights is not None
    least = math.ceil(Fraction(task.weights.floor) * task.weight_step * count)
    divisor = max(total[3], least)
    return [
        Fraction(round(Fraction(65536 * task.weight_step * value, divisor)), 65536) for value in total[:3]
    ]


TOTALS = st.lists(st.integers(-(1 << 40), 1 << 40), min_size=5, max_size=5)


@given(total=TOTALS, count=st.integers(1, 1 << 14))
def test_the_weighted_mean_is_exact(total: list[int], count: int) -> None:
    task = three_parameters(WeightsSpec(most=100))
    made, divisor = mean_of(task, [(np.array(total, dtype=np.int64), count)])
    most = 1 << 41
    wanted = [max(-most, min(most, value)) for value in exact(task, total, count)]
    assert [Fraction(int(value), divisor) for value in made] == wanted


@given(sums=st.lists(st.tuples(TOTALS, st.integers(1, 1 << 14)), min_size=3, max_size=3))
def test_groups_combine_weighted_means(sums: list[tuple[list[int], int]]) -> None:
    task = three_parameters(WeightsSpec(most=100), GroupsSpec(number=3))
    made, divisor = mean_of(task, [(np.array(total, dtype=np.int64), n) for total, n in sums])
    most = 1 << 41
    columns = zip(*(exact(task, total, n) for total, n in sums), strict=True)
    wanted = [sorted(max(-most, min(most, value)) for value in column)[1] for column in columns]
    assert [Fraction(int(value), divisor) for value in made] == wanted


def test_a_liar_in_the_weights_magnifies_no_more_than_the_floor_allows() -> None:
    task = three_parameters(WeightsSpec(most=100))
    step = task.weight_step
    honest = np.array([100 * step, 0, 0, 10 * step], dtype=np.int64)
    lie = np.array([0, 0, 0, -(1 << 40)], dtype=np.int64)
    made, divisor = mean_of(task, [(honest + lie, 10)])
    plain, of_plain = mean_of(task, [(honest, 10)])
    assert Fraction(int(made[0]), divisor) / Fraction(int(plain[0]), of_plain) == pytest.approx(10, rel=1e-3)


# Over a board


@pytest.fixture(scope="module")
def opened(keys: KeyDirectory) -> World:
    world = World(keys)
    world.set_up(num_clients=3, weights=WEIGHTS)
    return world


def test_the_board_makes_the_weighted_mean_and_an_audit_recomputes_it(opened: World) -> None:
    world = fork(opened)
    owner = world.owners[0]
    plan, model = Plan.of(owner.task), owner.model
    assert model is not None
    size, vectors = owner.task.model.parameters, []
    for place, examples in enumerate((10, 40, 500)):
        update = np.full(size, (-1) ** place * 0.01 * (place + 1))
        vectors.append(encode(LocalUpdate({"w": update}, examples), Layout(("w",), ((size,),)), plan))
        world.board.post(world.submission(world.clients[place], 0, vectors[-1]))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    assert Seat.of(world.board.state, owner.task_id).position.progress is Progress.SUMMED
    total = np.sum(vectors, axis=0)
    made = world.recover(owner)
    wanted = rule_of(owner.task).apply(model, *mean_of(owner.task, [(total, 3)]), 1)
    assert made.to_bytes() == wanted.to_bytes()
    weights = (0.1, 0.4, 1.0)
    mean = sum(w * (-1) ** k * 0.01 * (k + 1) for k, w in enumerate(weights)) / sum(weights)
    moved = (made.values - model.values) / plan.scale
    np.testing.assert_allclose(moved, mean, atol=0.01)
    world.post_model(owner)
    assert audit(world).ok


# What the owner reads


def test_the_report_says_what_weights_cost() -> None:
    text = render(explain(weighted()))
    assert "Weights (1 from 100 rows on), part of the same sum and of the same ε:" in text
    assert "10-fold at most" in text
