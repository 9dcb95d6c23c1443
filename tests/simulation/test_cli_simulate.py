"""``anofel simulate`` and the examples of the Python interface."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.learning.trainer import LocalUpdate
from anofel.models.card import digest_of, is_card_of
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Parameters
from anofel.proofs.keys import KeyDirectory
from anofel.simulation import board_run
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

EXAMPLES = Path(__file__).parents[2] / "examples"
TASKS = Path(__file__).parents[2] / "src" / "anofel" / "tasks" / "examples"
CUSTOM = str(TASKS / "custom.toml")
SMALL = str(TASKS / "small.toml")
MADE_UP = ("--made-up-rows", "200")


def simulate(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["simulate", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_real_run_leaves_models_and_a_board_that_audits(keys: KeyDirectory, tmp_path: Path) -> None:
    out = tmp_path / "run"
    real = ("--keys", str(keys.path), "--committee", "2", "--out", str(out))
    document = simulate(SMALL, *MADE_UP, "--iterations", "1", *real)
    assert document["dir"] == str(out)
    assert document["insecure"] == ["test certificate authority", "development proof keys"]
    (entry,) = document["iterations"]
    assert (entry["task"], entry["iteration"], entry["outcome"]) == ("small-example", 1, "summed")
    assert entry["count"] == entry["posts"] == 6
    assert 0 < entry["epsilon"] < 1
    assert set(entry["metrics"]) == {"loss", "accuracy", "auc"}
    model = IntegerModel.from_bytes((out / "models" / "small-example-1.model").read_bytes())
    card = (out / "models" / "small-example-1.card.md").read_text()
    assert is_card_of(card, digest_of(model))
    assert "| Stands after iteration | 1 |" in card
    assert "| 1 | summed | 6 |" in card
    assert json.loads((out / "result.json").read_text()) == document
    audited = CliRunner().invoke(app, ["audit", document["board"], "--json"], catch_exceptions=False)
    assert json.loads(audited.stdout)["sums_recomputed"] == 1


def test_a_plain_run_says_what_was_switched_off_and_leaves_no_board(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = (*MADE_UP, "--iterations", "2", "--insecure-plain", "--out", str(out))
    document = simulate(SMALL, *options, "--clients", "8", "--split", "dirichlet:0.5")
    assert document["insecure"] == ["proofs", "committee encryption", "the board"]
    assert document["board"] is None
    assert document["scheme"] is None
    assert not (out / "board").exists()
    assert [entry["count"] for entry in document["iterations"]] == [8, 8]
    shown = CliRunner().invoke(app, ["simulate", SMALL, *MADE_UP, "--iterations", "1", "--insecure-plain"])
    assert "Switched off: proofs, committee encryption, the board." in shown.stdout


def test_a_study_gets_a_task_within_its_epsilon() -> None:
    options = ("--made-up-rows", "400", "--clients", "6", "--iterations", "3", "--insecure-plain")
    document = simulate("--study", "nwtco", "--study", "support2", *options, "--target-epsilon", "1.5")
    assert document["clients"] == {"nwtco": 6, "support2": 6}
    last = document["iterations"][-2:]
    assert [entry["iteration"] for entry in last] == [3, 3]
    assert all(1.4 < entry["epsilon"] <= 1.5 for entry in last)


class Centres:
    """A trainer of one's own that can also predict."""

    def initial(self) -> Parameters:
        return {"centres": np.zeros((2, 4))}

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        return LocalUpdate({"centres": np.full((2, 4), len(dataset))}, len(dataset))

    def probabilities(self, parameters: Parameters, dataset: Dataset) -> NDArray[np.float64]:
        return np.full((len(dataset), 2), 0.5)


def centres(_task: Task) -> Centres:
    return Centres()


def test_a_custom_task_is_trained_and_measured_by_the_trainer_that_is_named() -> None:
    options = (*MADE_UP, "--iterations", "1", "--insecure-plain", "--trainer", f"{__name__}:centres")
    (entry,) = simulate(CUSTOM, *options)["iterations"]
    assert entry["outcome"] == "summed"
    assert entry["metrics"]["loss"] == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([CUSTOM, *MADE_UP], "name its own trainer"),
        ([SMALL, *MADE_UP, "--trainer", "here:there"], "is not custom"),
        (["--study", "nwtco", "--trainer", "here:there"], "--trainer goes with one task file"),
        ([], "Give task files, or --study"),
        ([SMALL, "--study", "nwtco"], "not both"),
        ([SMALL], "names no study"),
        ([SMALL, *MADE_UP, "--iterations", "11"], "ends after 10 releases"),
        ([SMALL, *MADE_UP, "--clients", "5"], "fewer than 6 clients"),
        ([SMALL, *MADE_UP, "--dropout", "1"], "dropout"),
        ([SMALL, SMALL, "--rows", "rows.csv"], "one task file"),
        ([SMALL, *MADE_UP, "--resume"], "--resume needs --out"),
        ([SMALL, *MADE_UP, "--resume", "--out", str(EXAMPLES)], "no run to resume"),
        ([SMALL, *MADE_UP, "--plot", "run.pdf"], "must end in .png"),
        ([SMALL, *MADE_UP, "--out", str(EXAMPLES)], "not empty"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        CliRunner().invoke(app, ["simulate", *arguments, "--insecure-plain"], catch_exceptions=False)


@pytest.mark.parametrize(
    "path", [EXAMPLES / "train_a_model.py", TASKS / "custom_model.py", TASKS / "own_estimator.py"]
)
def test_the_example_trains(path: Path, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "own_estimator":
        pytest.importorskip("sklearn")
    monkeypatch.setattr(board_run, "make_insecure_development_keys", lambda _path: keys)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.main(iterations=1)
    assert np.any(model.values)
