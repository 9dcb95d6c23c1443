"""Runs that end early, go on, choose a best model and draw; one file of rows for each client."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.learning.evaluate import evaluate_on
from anofel.learning.splits import iid
from anofel.models.files import model_name
from anofel.models.integer_model import IntegerModel
from anofel.proofs.keys import KeyDirectory
from anofel.simulation import InsecurePlainSimulation, SimulatedTask, Simulation
from anofel.simulation import selection as selection_module
from anofel.simulation.parts import Begun
from anofel.simulation.record import RunRecord
from anofel.simulation.selection import BestModels
from anofel.simulation.studies import RowSource
from tests.patients import make_dataset, make_table, make_task

ROOT = Path(__file__).parents[2]
SMALL = str(ROOT / "src" / "anofel" / "tasks" / "examples" / "small.toml")
OPTIONS = ("--made-up-rows", "200", "--insecure-plain")
FEW = {"min_clients": 4, "max_colluders": 0}


def simulate(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["simulate", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_a_resumed_run_counts_on(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run"))
    first = simulate(SMALL, *OPTIONS, "--iterations", "2", *out)
    both = simulate(SMALL, *OPTIONS, "--iterations", "5", *out, "--resume")
    whole = simulate(SMALL, *OPTIONS, "--iterations", "5")
    assert both["iterations"][:2] == first["iterations"]
    assert [entry["iteration"] for entry in both["iterations"]] == [1, 2, 3, 4, 5]
    assert [entry["epsilon"] for entry in both["iterations"]] == [
        entry["epsilon"] for entry in whole["iterations"]
    ]
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == both
    again = simulate(SMALL, *OPTIONS, "--iterations", "5", *out, "--resume")
    assert again["iterations"] == both["iterations"], "there is nothing left to do"


def test_another_task_is_not_resumed(tmp_path: Path) -> None:
    out, task = ("--out", str(tmp_path / "run")), tmp_path / "task.toml"
    simulate(SMALL, *OPTIONS, "--iterations", "1", *out)
    task.write_text(Path(SMALL).read_text().replace("noise_multiplier = 6", "noise_multiplier = 7"))
    with pytest.raises(InvalidInput, match="has changed since the run"):
        CliRunner().invoke(app, ["simulate", str(task), *OPTIONS, *out, "--resume"], catch_exceptions=False)


def test_releases_of_both_runs_count_against_the_task(keys: KeyDirectory) -> None:
    task = make_task(privacy=FEW | {"max_releases": 3})
    clients = iid(make_dataset(40), 4, 0)
    with InsecurePlainSimulation([SimulatedTask(task, clients)]) as simulation:
        *_, last = simulation.run(2)
    begun = SimulatedTask(task, clients, begun=Begun(model=last.model, iterations=2, releases=2))
    with Simulation([begun], keys=keys) as going_on:
        (result,) = going_on.run(5)
    assert result.iteration == 3
    assert result.epsilon > last.epsilon
    with InsecurePlainSimulation([begun]) as plain:
        assert [result.iteration for result in plain.run(5)] == [3]


def test_a_schedule_is_not_resumed_with_another_board(keys: KeyDirectory) -> None:
    schedule = [{"iteration": 2, "lr_num": 1}]
    task = make_task(rule={"schedule": schedule}, privacy=FEW)
    part = SimulatedTask(task, iid(make_dataset(40), 4, 0))
    begun = SimulatedTask(task, part.clients, begun=Begun(model=part.first_model(), iterations=1, releases=1))
    with pytest.raises(InvalidInput, match="cannot be resumed"):
        Simulation([begun], keys=keys)


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    """The trainer interrupts the process in its third update, then in its ninth, of iteration 2."""
    (tmp_path / "interrupting.py").write_text(
        "import os, signal\nimport numpy as np\nimport anofel\n\n\n"
        "class Trainer:\n    calls = 0\n\n"
        "    def initial(self):\n        return {'w': np.zeros(8)}\n\n"
        "    def train(self, parameters, dataset):\n        Trainer.calls += 1\n"
        "        if Trainer.calls == int(os.environ.get('INTERRUPT', 0)):\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        return anofel.LocalUpdate({'w': np.ones(8)}, len(dataset))\n\n\n"
        "def make(task):\n    return Trainer()\n"
    )
    task = ROOT / "src" / "anofel" / "tasks" / "examples" / "custom.toml"
    words = [
        "simulate",
        str(task),
        *OPTIONS,
        "--trainer",
        "interrupting:make",
        "--iterations",
        "3",
        "--out",
        "run",
    ]

    places = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]

    def run(*more: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "anofel", *words, *more],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)} | environment,
            capture_output=True,
            text=True,
            timeout=600,
            # whoever runs the tests in the background may ignore the signal, and children inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    early = run(INTERRUPT="3")
    assert early.returncode == 130, early.stderr
    assert (
        "Interrupted before the first result. Start again with the same command and --resume." in early.stderr
    )
    done = run("--resume", INTERRUPT="9")
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "Go on with the same command and --resume" in " ".join(done.stderr.split())
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert [entry["iteration"] for entry in kept["iterations"]] == [1]
    assert (tmp_path / "run" / "models" / "custom-example-1.model").is_file()
    assert run("--resume").returncode == 0
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert [entry["iteration"] for entry in kept["iterations"]] == [1, 2, 3]


def test_the_best_model_is_kept_and_patience_ends(tmp_path: Path) -> None:
    out, plot = tmp_path / "run", tmp_path / "run.png"
    options = ("--iterations", "10", "--patience", "1", "--out", str(out), "--plot", str(plot))
    document = simulate(SMALL, *OPTIONS, *options)
    losses = [entry["metrics"]["loss"] for entry in document["iterations"]]
    best = document["best"]["small-example"]
    assert best["loss"] == min(losses) == losses[best["iteration"] - 1]
    assert len(losses) == 10 or losses[-1] >= best["loss"]
    models = out / "models"
    kept = (models / "small-example-best.model").read_bytes()
    assert kept == (models / model_name("small-example", best["iteration"])).read_bytes()
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_patience_counts_models_that_are_no_better() -> None:
    task = make_task(privacy=FEW)
    part = SimulatedTask(task, iid(make_dataset(40), 4, 0), evaluate_on(task, make_dataset(20, 9)))
    with InsecurePlainSimulation([part]) as simulation:
        results = list(simulation.run(3))
    watch, losses = BestModels(2), [0.5, 0.6, 0.5]
    for result, loss in zip(results, losses, strict=True):
        assert not watch.is_over
        watch.watch(type(result)(**{**vars(result), "metrics": {"loss": loss}}))
    assert watch.is_over
    assert watch.best[task.name].iteration == 1, "of equals the earlier"


def test_what_the_choice_costs_is_said_in_the_same_words() -> None:
    assert selection_module.__doc__ is not None
    rules = re.findall(r"^\d\. (.+?)(?=^\d\. |\Z)", selection_module.__doc__, re.M | re.S)
    page = " ".join((ROOT / "docs" / "simulate.md").read_text().split())
    assert len(rules) == 4
    for number, rule in enumerate(rules, start=1):
        assert f"{number}. {' '.join(rule.split())}" in page
    shown = CliRunner().invoke(app, ["simulate", SMALL, *OPTIONS, "--iterations", "1"])
    assert "on clients' rows it would" in shown.stdout


# One file for each client


def write_hospitals(directory: Path, number: int) -> list[Path]:
    paths = [directory / f"hospital-{index}.csv" for index in range(number)]
    for index, path in enumerate(paths):
        path.write_bytes(make_table(20 + index, seed=index).to_csv())
    return paths


def test_each_file_is_one_client(tmp_path: Path) -> None:
    paths, schema = write_hospitals(tmp_path, 4), make_task().schema
    parts, test = RowSource(files=tuple(paths)).deal("", schema, 4)
    assert [len(part) for part in parts] == [16, 17, 18, 19]
    assert len(test) == 16
    own = tmp_path / "own.csv"
    own.write_bytes(make_table(7, seed=50).to_csv())
    parts, test = RowSource(files=tuple(paths), validation=own).deal("", schema, 4)
    assert [len(part) for part in parts] == [20, 21, 22, 23]
    assert len(test) == 7
    parts, test = RowSource(files=(paths[0],), validation=own).deal("", schema, 4)
    assert [len(part) for part in parts] == [5, 5, 5, 5]
    assert len(test) == 7


def test_problems_of_all_files_are_named(tmp_path: Path) -> None:
    paths = write_hospitals(tmp_path, 4)
    for path in paths[1:3]:
        path.write_text(path.read_text().replace("yes", "maybe"))
    schema = make_task().schema
    with pytest.raises(InvalidInput, match=r"hospital-1\.csv: .*hospital-2\.csv: ") as refused:
        RowSource(files=tuple(paths)).deal("", schema, 4)
    assert refused.value.code == "row-does-not-fit"
    own = tmp_path / "own.csv"
    with pytest.raises(InvalidInput, match=r"hospital-1\.csv: .*hospital-2\.csv: .*own\.csv") as refused:
        RowSource(files=tuple(paths), validation=own).deal("", schema, 4)
    assert refused.value.code == "invalid-input"
    with pytest.raises(InvalidInput, match=r"hospital-1\.csv: .*own\.csv"):
        RowSource(files=(paths[1],), validation=own).deal("", schema, 4)
    with pytest.raises(InvalidInput, match="4 files of rows for 5 clients"):
        RowSource(files=tuple(paths)).deal("", make_task().schema, 5)


def test_a_record_that_is_none_is_refused(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"tasks": 1}'):
        (tmp_path / "result.json").write_text(text)
        with pytest.raises(InvalidInput, match="is not the result"):
            RunRecord.resume(tmp_path)


def test_models_are_named_by_task_and_iteration() -> None:
    assert model_name("lung / 2024", 3) == "lung___2024-3.model"
    model = SimulatedTask(make_task(privacy=FEW), iid(make_dataset(40), 4, 0)).first_model()
    assert isinstance(model, IntegerModel)
    assert np.all(model.values == 0)
