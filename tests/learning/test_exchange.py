"""Models to and from safetensors, without PyTorch."""

import json
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from anofel.errors import InvalidInput
from anofel.models.card import is_card_of
from anofel.models.exchange import from_safetensors, to_safetensors
from anofel.models.integer_model import MAX_SCALE_BITS, IntegerModel
from anofel.models.parameters import Layout
from anofel.tasks.example_files import example_text

LAYOUT = Layout(("b", "w"), ((2,), (2, 3)))


def model_of(values: list[int], scale_bits: int = 16, velocity: bool = False) -> IntegerModel:
    vector = np.array(values, dtype=np.int64)
    return IntegerModel(LAYOUT, scale_bits, vector, np.ones(8, np.int64) if velocity else None)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_the_file_holds_the_numbers_by_name() -> None:
    tensors = load(to_safetensors(model_of([1 << 16, -(1 << 15), 0, 1, 2, 3, 4, 5])))
    assert {name: array.dtype for name, array in tensors.items()} == {"b": np.float32, "w": np.float32}
    np.testing.assert_array_equal(tensors["b"], [1.0, -0.5])
    np.testing.assert_array_equal(tensors["w"] * 65536, [[0, 1, 2], [3, 4, 5]])


def test_the_layout_of_the_file_is_the_published_one() -> None:
    """Read by hand: eight bytes of length, a JSON header, the bytes of the tensors."""
    data = to_safetensors(model_of([65536, 0, 0, 0, 0, 0, 0, 131072]))
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    start, end = header["w"]["data_offsets"]
    assert header["w"]["dtype"] == "F32"
    assert header["w"]["shape"] == [2, 3]
    assert struct.unpack("<6f", data[8 + length + start : 8 + length + end]) == (0, 0, 0, 0, 0, 2.0)


@given(st.lists(st.integers(-(2**24), 2**24), min_size=8, max_size=8), st.integers(4, 40))
def test_numbers_of_24_bits_return_bit_by_bit(tmp_path_factory, values: list[int], bits: int) -> None:  # type: ignore[no-untyped-def]
    model, path = model_of(values, bits), tmp_path_factory.getbasetemp() / "x.safetensors"
    path.write_bytes(to_safetensors(model))
    back = from_safetensors(path)
    assert back.is_same is True
    assert back.model.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("double", [False, True])
def test_a_single_number_keeps_its_shape(tmp_path: Path, double: bool) -> None:
    shapes = ((), (1,), (2, 1))
    model = IntegerModel(Layout(("a", "b", "c"), shapes), 16, np.arange(1, 5))
    data = to_safetensors(model, double=double)
    assert tuple(array.shape for _, array in sorted(load(data).items())) == shapes
    back = from_safetensors(written(tmp_path / "x", data))
    assert back.is_same is True
    assert back.model.to_bytes() == model.to_bytes()


def test_longer_numbers_need_double_precision_and_say_so(tmp_path: Path) -> None:
    model = model_of([2**25 + 1, *range(7)])
    single = from_safetensors(written(tmp_path / "single", to_safetensors(model)))
    assert single.is_same is False
    double = from_safetensors(written(tmp_path / "double", to_safetensors(model, double=True)))
    assert double.is_same is True


def test_velocities_stay_behind_and_start_at_zero(tmp_path: Path) -> None:
    path = written(tmp_path / "x", to_safetensors(model_of(list(range(8)), velocity=True)))
    assert from_safetensors(path).model.velocity is None
    back = from_safetensors(path, companions=1)
    assert back.is_same is True
    assert back.model.velocity is not None
    assert not back.model.velocity.any()


def test_files_of_others_need_a_scale(tmp_path: Path) -> None:
    path = written(tmp_path / "x", save({"w": np.array([0.5, -0.25], np.float16)}))
    with pytest.raises(InvalidInput, match="at which scale"):
        from_safetensors(path)
    found = from_safetensors(path, 8)
    assert found.is_same is None
    assert found.model.values.tolist() == [128, -64]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a safetensors file"),
        (pickle.dumps({"w": 1}), "not a safetensors file"),
        (save({"w": np.zeros(2, np.int64)}), "'w' holds I64"),
        (save({"w": np.array([np.nan], np.float32)}), "not finite"),
        (save({"w": np.array([1e38], np.float32)}), "larger than 2\\^20"),
        (save({}), "holds no tensor"),
        (save({"w": np.zeros(0, np.float32)}), "at least one parameter"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_safetensors(written(tmp_path / "x", data), 16)
    with pytest.raises(InvalidInput, match="not a safetensors file"):
        from_safetensors(tmp_path / "missing", 16)


@pytest.mark.parametrize("bits", [-1, MAX_SCALE_BITS + 1, 10**20])
def test_a_scale_out_of_range_is_refused(tmp_path: Path, bits: int) -> None:
    path = written(tmp_path / "x", save({"w": np.ones(2, np.float32)}))
    with pytest.raises(InvalidInput, match="must lie between"):
        from_safetensors(path, bits)
    refused = anofel("model", "import", path, "--scale-bits", bits, "--out", tmp_path / "x.model")
    assert refused.returncode == 2
    assert "--scale-bits" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_command_takes_the_largest_scale(tmp_path: Path) -> None:
    path = written(tmp_path / "x", save({"w": np.ones(2, np.float32)}))
    done = anofel("model", "import", path, "--scale-bits", MAX_SCALE_BITS, "--out", tmp_path / "x.model")
    assert done.returncode == 0, done.stderr


def anofel(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "anofel", *map(str, arguments)], capture_output=True, text=True
    )


def test_the_commands(tmp_path: Path) -> None:
    model = model_of(list(range(8)))
    path, tensors = written(tmp_path / "a.model", model.to_bytes()), tmp_path / "a.safetensors"
    shown = json.loads(anofel("model", "show", path, "--json").stdout)
    assert (shown["digest"], shown["parameters"]) == (model.digest().hex(), 8)
    assert shown["tensors"][1] == {"tensor": "w", "shape": "2 × 3"}
    assert anofel("model", "export", path, "--out", tensors).returncode == 0
    assert not (tmp_path / "a.card.md").exists()
    again = anofel("model", "export", path, "--out", tensors)
    assert again.returncode == 1
    assert "exists already" in again.stderr
    done = anofel("model", "import", tensors, "--out", tmp_path / "b.model", "--json")
    assert json.loads(done.stdout)["as_exported"] is True
    assert (tmp_path / "b.model").read_bytes() == path.read_bytes()
    bad = anofel("model", "import", path, "--out", tmp_path / "c.model")
    assert (bad.returncode, "not a safetensors file" in bad.stderr) == (1, True)


def test_an_exported_model_has_a_card(tmp_path: Path) -> None:
    model = model_of(list(range(8)))
    path = written(tmp_path / "a.model", model.to_bytes())
    task = written(tmp_path / "task.toml", example_text("small").encode())

    def export(name: str, *options: object) -> str | None:
        done = anofel("model", "export", path, *options, "--out", tmp_path / f"{name}.safetensors")
        assert done.returncode == 0, done.stderr
        card = tmp_path / f"{name}.card.md"
        return card.read_text() if card.exists() else None

    assert export("without") is None
    card = export("made", "--task", task)
    assert card is not None
    assert is_card_of(card, model.digest().hex())
    assert "comes from no board" in card
    (tmp_path / "a.card.md").write_text(f"{card}\nFetched from a board.\n")
    assert "Fetched from a board." in (export("taken") or "")
    (tmp_path / "a.card.md").write_text(card.replace(model.digest().hex(), "00" * 32))
    assert export("other") is None, "the card beside it is another model's"
