"""The mean of models: exact, half to even, and only of models that belong together."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout

entries = st.integers(-(2**60), 2**60)


def model_of(*values: int, bits: int = 40, velocity: bool = False) -> IntegerModel:
    held = np.array(values, np.int64)
    layout = Layout(("weight",), ((len(values),),))
    return IntegerModel(layout, bits, held, held if velocity else None)


@given(st.lists(entries, min_size=1, max_size=40))
def test_the_mean_is_the_exact_one(values: list[int]) -> None:
    found = IntegerModel.average([model_of(value) for value in values])
    assert found.values.tolist() == [round(Fraction(sum(values), len(values)))]


def test_velocities_stay_behind() -> None:
    assert IntegerModel.average([model_of(1, velocity=True), model_of(4, velocity=True)]).velocity is None


def test_other_models_have_no_mean() -> None:
    for others in ([], [model_of(1), model_of(1, 2)], [model_of(1), model_of(1, bits=20)]):
        with pytest.raises(InvalidInput):
            IntegerModel.average(others)


def test_the_command_writes_the_mean(tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        paths.append(tmp_path / f"{number}.model")
        paths[-1].write_bytes(model_of(number * 10, bits=16).to_bytes())
    out = tmp_path / "mean.model"
    done = CliRunner().invoke(app, ["model", "average", *map(str, paths), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert IntegerModel.load(out).values.tolist() == [15]
