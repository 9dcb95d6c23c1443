"""FedAdam and FedYogi in integers: against exact fractions, and what models, tasks and files make of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from anofel._core import update_rule
from anofel.errors import InvalidInput, OutOfRange
from anofel.models.integer_model import IntegerAdaptive, IntegerModel, ModelOverflow
from anofel.models.parameters import Layout
from anofel.models.rules import companions_of, first_model, rule_of, update_rule_of
from tests.patients import make_dataset, make_task
from tests.plain_path import iterate

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "integer_adaptive.json").read_text())
ADAM = {"kind": "integer-adam", "momentum": 58_982, "lr_num": 1, "lr_den": 10}


def integers(values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("vector", VECTORS)
def test_rules_agree_with_vectors_from_exact_fractions(vector):
    names = ("yogi", "momentum", "second_momentum", "floor", "scale_bits", "lr_num", "lr_den", "count")
    given = [integers(vector[name]).tobytes() for name in ("model", "first", "second", "sum")]
    rule = {name: vector[name] for name in names}
    if vector["next"] is None:
        with pytest.raises(OutOfRange):
            update_rule.integer_adaptive(*given, **rule)
        return
    made = update_rule.integer_adaptive(*given, **rule)
    found = [np.frombuffer(part, "<i8").tolist() for part in (made.values, made.first, made.second)]
    assert found == vector["next"]


def test_a_task_file_chooses_the_rule():
    rule = rule_of(make_task(rule={**ADAM, "kind": "integer-yogi", "floor": "0.01"}))
    assert isinstance(rule, IntegerAdaptive)
    assert (rule.yogi, rule.second_momentum, rule.floor) == (True, 64_881, 656)
    assert not rule_of(make_task(rule=ADAM)).yogi


def test_the_encoding_of_other_rules_does_not_name_the_keys():
    assert b"second_momentum" not in make_task().to_bytes()
    task = make_task(rule=ADAM)
    assert b"second_momentum" in task.to_bytes()
    assert type(task).from_bytes(task.to_bytes()) == task


@pytest.mark.parametrize(("key", "value"), [("second_momentum", 5), ("floor", "0.5")])
def test_keys_of_the_adaptive_rules_are_refused_elsewhere(key, value):
    with pytest.raises(InvalidInput, match=f"{key}: belongs to the rules integer-adam and integer-yogi"):
        make_task(rule={key: value})


def test_models_carry_both_moments():
    task = make_task(rule=ADAM)
    model = first_model(task, {"w": np.zeros(6)})
    assert companions_of(task) == model.companions == 2
    assert IntegerModel.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    total = integers([40, -8, 0, 3, 0, 0])
    after = update_rule_of(task).apply(model, total, 4, 1)
    assert after.velocity.tolist() == [1, 0, 0, 0, 0, 0]
    assert after.second.tolist() == [1, 0, 0, 0, 0, 0]
    back = IntegerModel.from_bytes(after.to_bytes())
    assert np.array_equal(back.second, after.second)
    with pytest.raises(InvalidInput, match="not fit"):
        IntegerModel.from_bytes(after.to_bytes()[:-8])


def test_a_model_without_the_moments_is_refused():
    plain = IntegerModel.from_parameters({"w": np.zeros(6)}, 16)
    with pytest.raises(InvalidInput, match="exactly if its rule"):
        rule_of(make_task(rule=ADAM)).apply(plain, integers([0] * 6), 3, 1)


def test_a_second_moment_has_bounds():
    layout, zero = Layout(("w",), ((1,),)), integers([0])
    IntegerModel(layout, 16, zero, zero, integers([2**62]))
    for second in (-1, 2**62 + 1):
        with pytest.raises(ModelOverflow, match="second moment"):
            IntegerModel(layout, 16, zero, zero, integers([second]))
    with pytest.raises(InvalidInput, match="beside a velocity"):
        IntegerModel(layout, 16, zero, None, zero)


def test_an_overflow_is_one_for_the_rule():
    task = make_task(rule=ADAM)
    model = first_model(task, {"w": np.zeros(6)})
    with pytest.raises(ModelOverflow, match="cannot be applied"):
        rule_of(task).apply(model, integers([2**40] + [0] * 5), 1, 1)


def test_entries_with_small_gradients_move_as_far_as_others():
    task = make_task(rule={**ADAM, "momentum": 0, "floor": "0.000001"})
    model = first_model(task, {"w": np.zeros(6)})
    after = rule_of(task).apply(model, integers([100_000, 1000, 0, 0, 0, -100_000]), 1, 1)
    far, near, *_, back = after.values.tolist()
    assert abs(far - near) < 0.02 * far
    assert back == -far


@pytest.mark.parametrize("kind", ["integer-adam", "integer-yogi"])
def test_training_with_them_lowers_the_loss(kind):
    privacy = {"noise_multiplier": "0.001", "clipping_norm": "10", "max_releases": 30}
    task = make_task(rule={**ADAM, "kind": kind}, privacy=privacy)
    rows = [make_dataset(40, seed) for seed in range(task.privacy.min_clients)]
    from anofel.learning.evaluate import evaluate_on

    measure, losses = evaluate_on(task, rows[0]), []
    for model, _ in iterate(task, rows, 30):
        losses.append(measure(model)["loss"])
    assert losses[-1] < 0.8 * losses[0]


def test_privacy_promises_no_step_of_a_rule_that_divides_by_what_it_saw():
    from anofel.privacy.explain import explain

    for rule, is_bounded in ((ADAM, False), ({}, True)):
        report = explain(make_task(rule={**rule, "max_mean_norm": "0.1"}))
        assert (report["alpha"]["per_model_step"] is not None) == is_bounded
        assert (report["mean_bound"]["model_step"] is not None) == is_bounded
