import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anofel._core import update_rule
from anofel.errors import InvalidInput, OutOfRange
from anofel.models.integer_model import IntegerMean, IntegerModel, ModelOverflow
from anofel.models.parameters import Layout

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "integer_mean.json").read_text())
INT64 = st.integers(-(2**63), 2**63 - 1)


def model_of(values, velocity=None, scale_bits=16):
    layout = Layout(("w",), ((len(values),),))
    as_array = lambda numbers: None if numbers is None else np.array(numbers, dtype=np.int64)  # noqa: E731
    return IntegerModel(layout, scale_bits, as_array(values), as_array(velocity))


def exactly(model, velocity, total, **rule):
    """The arithmetic of the rule for any 64-bit integers, also for those that no model may hold."""
    as_bytes = lambda numbers: np.array(numbers, dtype="<i8").tobytes()  # noqa: E731
    made = update_rule.integer_mean(as_bytes(model), as_bytes(velocity), as_bytes(total), **rule)
    return [np.frombuffer(part, "<i8").tolist() for part in (made.values, made.velocity)]


@pytest.mark.parametrize("vector", VECTORS)
def test_rule_agrees_with_vectors_from_exact_fractions(vector):
    rule = {name: vector[name] for name in ("lr_num", "lr_den", "momentum", "count", "max_mean")}
    velocity = vector["velocity"] if vector["momentum"] else [0] * len(vector["model"])
    if vector["next_model"] is None:
        with pytest.raises(OutOfRange):
            exactly(vector["model"], velocity, vector["sum"], **rule)
        return
    values, velocity = exactly(vector["model"], velocity, vector["sum"], **rule)
    assert values == vector["next_model"]
    if vector["momentum"]:
        assert velocity == vector["next_velocity"]


def test_no_parameter_and_no_velocity_is_larger_than_a_model_may_hold():
    limit = 2**36  # 2^20 at scale 2^16
    model_of([limit, -limit], [limit, -limit])
    for values, velocity in (
        ([limit + 1], None),
        ([-limit - 1], None),
        ([0], [limit + 1]),
        ([-(2**63)], None),
    ):
        with pytest.raises(ModelOverflow, match="larger than 2\\^20"):
            model_of(values, velocity)


def test_an_update_that_leaves_the_limit_is_an_overflow():
    rule, total = IntegerMean(lr_num=1, lr_den=1), np.array([1], dtype=np.int64)
    assert rule.apply(model_of([2**36 - 1]), total, 1, 1).values.tolist() == [2**36]
    with pytest.raises(ModelOverflow):
        rule.apply(model_of([2**36]), total, 1, 1)


def test_vectors_hold_overflows_and_ties():
    assert any(vector["next_model"] is None for vector in VECTORS)
    ties = [Fraction(v["lr_num"] * s, v["lr_den"] * v["count"]) for v in VECTORS for s in v["sum"]]
    assert any(tie.denominator == 2 for tie in ties)


def test_vectors_hold_means_that_are_shortened_and_others():
    bounded = [vector for vector in VECTORS if vector["max_mean"] is not None]
    shortened = [
        update_rule.mean_is_too_long(
            np.array(vector["sum"], dtype="<i8").tobytes(), count=vector["count"], max_mean=vector["max_mean"]
        )
        for vector in bounded
    ]
    assert 5 < sum(shortened) < len(bounded) - 5


def test_a_mean_beyond_its_bound_keeps_its_direction_and_loses_its_length():
    rule = IntegerMean(lr_num=1, lr_den=1, max_mean=100)
    far, near = np.array([300000, -400000], dtype=np.int64), np.array([300, -400], dtype=np.int64)
    assert rule.apply(model_of([0, 0]), far, 5, 1).values.tolist() == [60, -80]
    assert rule.apply(model_of([0, 0]), near, 5, 1).values.tolist() == [60, -80]
    assert rule.shortens(far, 5)
    assert not rule.shortens(near, 5)
    assert not IntegerMean(lr_num=1, lr_den=1).shortens(far, 5)


def test_a_norm_that_cannot_be_computed_is_an_overflow():
    total = np.full(5, -(2**63), dtype=np.int64)
    with pytest.raises(ModelOverflow, match="128-bit"):
        IntegerMean(lr_num=1, lr_den=1, max_mean=1).apply(model_of([0] * 5), total, 1, 1)


@given(m=INT64, s=INT64, num=st.integers(1, 2**62), den=st.integers(1, 2**62), count=st.integers(1, 2**40))
def test_rule_is_exact_for_any_integers(m, s, num, den, count):
    expected = m + round(Fraction(num * s, den * count))
    step = expected - m
    rule = {"lr_num": num, "lr_den": den, "momentum": 0, "count": count}
    if -(2**63) <= expected < 2**63 and -(2**63) <= step < 2**63:
        assert exactly([m], [0], [s], **rule)[0] == [expected]
    else:
        with pytest.raises(OutOfRange):
            exactly([m], [0], [s], **rule)


def test_velocity_and_momentum_belong_together():
    with pytest.raises(InvalidInput, match="velocity exactly if"):
        IntegerMean(lr_num=1, lr_den=1, momentum=5).apply(model_of([1]), np.zeros(1, np.int64), 1, 1)
    with pytest.raises(InvalidInput, match="velocity exactly if"):
        IntegerMean(lr_num=1, lr_den=1).apply(model_of([1], [0]), np.zeros(1, np.int64), 1, 1)


@pytest.mark.parametrize(
    ("rule", "total", "count"),
    [
        ({"lr_num": 0, "lr_den": 1}, [0], 1),
        ({"lr_num": 1, "lr_den": 0}, [0], 1),
        ({"lr_num": 1, "lr_den": 1}, [0], 0),
        ({"lr_num": 1, "lr_den": 1}, [0, 0], 1),
    ],
)
def test_rule_out_of_range_is_refused(rule, total, count):
    with pytest.raises(InvalidInput, match="cannot be applied"):
        IntegerMean(**rule).apply(model_of([1]), np.array(total, dtype=np.int64), count, 1)


@given(
    shapes=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=10),
        st.lists(st.integers(0, 4), max_size=3).map(tuple),  # a tensor may be empty, a model not
        min_size=1,
        max_size=4,
    ),
    scale_bits=st.integers(0, 40),
    momentum=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_file_round_trip(shapes, scale_bits, momentum, seed):
    layout = Layout.of({name: np.zeros(shape) for name, shape in shapes.items()})
    assume(layout.size)
    most = 2 ** (scale_bits + 20)
    draw = lambda: np.random.default_rng(seed).integers(-most, most, layout.size)  # noqa: E731
    model = IntegerModel(layout, scale_bits, draw(), draw() if momentum else None)
    data = model.to_bytes()
    again = IntegerModel.from_bytes(data)
    assert again.to_bytes() == data
    assert again.layout == layout
    assert again.digest() == model.digest()


def test_file_bytes_are_pinned():
    parameters = {"b": np.array([1.0]), "a": np.array([[0.5, -0.5]])}
    data = IntegerModel.from_parameters(parameters, 8).to_bytes()
    assert data.hex() == (
        "616e6f66656c2e6d6f64656c2e310000"  # anofel.model.1
        "08" "00" "02000000"
        "0100" "61" "02" "01000000" "02000000"
        "0100" "62" "01" "01000000"
        "8000000000000000" "80ffffffffffffff" "0001000000000000"
    )  # fmt: skip


def _valid() -> bytes:
    return IntegerModel.from_parameters({"a": np.zeros(1), "b": np.zeros(1)}, 8).to_bytes()


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda data: b"x" + data[1:], "does not begin"),
        (lambda data: data[:-1], "length does not fit"),
        (lambda data: data + b"\0", "length does not fit"),
        (lambda data: data[:30], "cut short|length"),
        (lambda data: data[:16] + b"\x29" + data[17:], "scale"),
        (lambda data: data[:17] + b"\x03" + data[18:], "header"),
        (lambda data: data.replace(b"\x01\0a", b"\x01\0c"), "sorted"),
        (lambda data: data.replace(b"\x01\0a", b"\x01\0b"), "sorted"),
        (lambda data: data.replace(b"\x01\0a", b"\x01\0\xff"), "cut short"),
        (lambda data: data[:18] + b"\xff\xff\xff\xff" + data[22:], "header"),
    ],
)
def test_malformed_file_is_refused(tamper, message):
    with pytest.raises(InvalidInput, match=message):
        IntegerModel.from_bytes(tamper(_valid()))


def test_parameters_survive_at_their_scale():
    parameters = {"w": np.array([1.25, -3.0]), "b": np.array([0.1])}
    back = IntegerModel.from_parameters(parameters, 16).parameters()
    assert back["w"].tolist() == [1.25, -3.0]
    assert abs(back["b"][0] - 0.1) <= 2**-17


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e30])
def test_parameters_that_do_not_fit_are_refused(value):
    with pytest.raises(ModelOverflow):
        IntegerModel.from_parameters({"w": np.array([value])}, 16)
