"""Boards and simulations in trackers of experiments: what is read, what is written, and nothing twice."""

import importlib.util
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import anofel
from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.track.results import TrackedIteration, read_results
from anofel.track.tensorboard import STATE, TensorBoardFiles, TrackerMissing

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "src" / "anofel" / "tasks" / "examples" / "small.toml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a simulation of two iterations."""
    out = tmp_path_factory.mktemp("track") / "run"
    words = ["simulate", str(SMALL), "--made-up-rows", "200", "--iterations", "2", "--insecure-plain"]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    return out


def events(directory: Path) -> Iterator[Any]:
    """Read files of TensorBoard: records of a length, its checksum, the event and its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    for path in sorted(directory.glob("events.*")):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = Event()
            event.ParseFromString(data[12 : 12 + length])
            yield event
            data = data[16 + length :]


def values_in(directory: Path) -> list[tuple[str, int, Any]]:
    found = []
    for event in events(directory):
        for value in event.summary.value:
            plain = value.simple_value if value.HasField("simple_value") else value.tensor.string_val[0]
            found.append((value.tag, event.step, plain))
    return found


def shortened(run: Path, to: Path, iterations: int) -> Path:
    """The run as it was after so many iterations."""
    shutil.copytree(run, to)
    document = json.loads((run / "result.json").read_text())
    document["iterations"] = document["iterations"][:iterations]
    (to / "result.json").write_text(json.dumps(document))
    return to


def track(*words: object) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["track", *map(str, words), "--json"], catch_exceptions=False)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# What is read


def test_a_simulation_is_read_with_its_cards(run: Path) -> None:
    first, second = anofel.read_results(run)
    said = json.loads((run / "result.json").read_text())["iterations"][1]
    assert (first.task, first.iteration, second.iteration) == ("small-example", 1, 2)
    assert second.values["epsilon"] == said["epsilon"]
    assert second.values["metrics/auc"] == said["metrics"]["auc"]
    assert (second.values["count"], second.values["posts"]) == (6, 6)
    assert "| Stands after iteration | 2 |" in second.card


def test_a_board_is_read_with_what_it_shows(history: Path) -> None:
    found = read_results(history)
    summed = [one for one in found if one.outcome == "summed"]
    assert summed
    assert all(one.values["count"] >= 1 and one.values["registered"] >= 5 for one in summed)
    assert any("epsilon" in one.values for one in summed)
    last = {one.source: one for one in found}
    assert all(one.card.startswith("---\nlibrary_name") for one in last.values())
    assert not any(name.startswith("metrics/") for one in found for name in one.values)


def test_what_is_neither_is_said(tmp_path: Path, run: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no directory"):
        read_results(tmp_path / "nothing")
    (tmp_path / "result.json").write_text('{"iterations": [{}]}')
    with pytest.raises(InvalidInput, match="is not the result of a simulation"):
        read_results(tmp_path)


# TensorBoard


def test_rule_1_a_task_is_a_run_and_an_iteration_a_step(run: Path, tmp_path: Path) -> None:
    said = track(run, "--tensorboard", tmp_path)
    found = values_in(tmp_path / "small-example")
    assert said["values"] == len(found)
    steps = {tag: [step for name, step, _ in found if name == tag] for tag, _, _ in found}
    for name in ("epsilon", "count", "posts", "metrics/auc", "metrics/loss", "model card/text_summary"):
        assert steps[name] == [1, 2], name
    expected = [one.values["epsilon"] for one in read_results(run)]
    assert [value for tag, _, value in found if tag == "epsilon"] == pytest.approx(expected)
    cards = [value.decode() for tag, _, value in found if tag.startswith("model card")]
    assert "task_digest" in cards[0]


def test_rule_2_nothing_is_written_twice_and_late_values_are_added(run: Path, tmp_path: Path) -> None:
    early, logs = shortened(run, tmp_path / "early", 1), tmp_path / "logs"
    first = track(early, "--tensorboard", logs)["values"]
    assert track(early, "--tensorboard", logs)["values"] == 0
    second = track(run, "--tensorboard", logs)["values"]
    found = values_in(logs / "small-example")
    assert len(found) == first + second == len({(tag, step) for tag, step, _ in found})
    assert [step for tag, step, _ in found if tag == "epsilon"] == [1, 2]
    files = TensorBoardFiles(tmp_path / "late")
    without = TrackedIteration(task="t", source="s", iteration=1, outcome="summed", values={"count": 3})
    assert files.write([without]) == 1
    assert files.write([TrackedIteration(**{**vars(without), "values": {"count": 3, "epsilon": 0.5}})]) == 1
    files.close()


def test_rule_3_another_task_of_the_name_is_refused(run: Path, tmp_path: Path) -> None:
    files = TensorBoardFiles(tmp_path)
    one = TrackedIteration(task="t", source="s", iteration=1, outcome="summed", values={"count": 3})
    files.write([one])
    files.close()
    again = TensorBoardFiles(tmp_path)
    with pytest.raises(InvalidInput, match="follows another task of this name; give a new directory"):
        again.write([TrackedIteration(**{**vars(one), "source": "other"})])
    (tmp_path / "t" / STATE).write_text("{")
    with pytest.raises(InvalidInput, match="is damaged"):
        TensorBoardFiles(tmp_path).write([one])


def test_names_of_tasks_are_no_paths(tmp_path: Path) -> None:
    files = TensorBoardFiles(tmp_path / "logs")
    files.write(
        [TrackedIteration(task="../../x", source="s", iteration=1, outcome="summed", values={"count": 1})]
    )
    files.close()
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [".._.._x"]


def test_without_the_library_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(TrackerMissing, match=r"pip install 'anofel\[tensorboard\]'"):
        TensorBoardFiles(tmp_path)


def test_a_board_that_lies_in_a_directory_is_tracked_once(history: Path, tmp_path: Path) -> None:
    assert track(history, "--tensorboard", tmp_path)["values"] > 0
    with pytest.raises(InvalidInput, match="is read once; follow the node"):
        track(history, "--tensorboard", tmp_path / "other", "--follow")


def test_a_simulation_is_followed_until_ctrl_c(run: Path, tmp_path: Path) -> None:
    going, state = shortened(run, tmp_path / "going", 1), tmp_path / "logs" / "small-example" / STATE
    words = ["track", str(going), "--tensorboard", str(tmp_path / "logs"), "--follow", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "anofel", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_for_step(state, 1, process)
        shutil.copy(run / "result.json", going / "result.json.new")
        os.replace(going / "result.json.new", going / "result.json")
        wait_for_step(state, 2, process)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert json.loads(said)["values"] == len(values_in(state.parent))


def wait_for_step(state: Path, step: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 300
    while not state.is_file() or json.loads(state.read_text())["steps"]["epsilon"] < step:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)


# Who logs


def test_no_role_and_no_other_module_knows_a_tracker() -> None:
    words = ("tensorboardX", "mlflow", "wandb", "anofel.track")
    for path in (ROOT / "src" / "anofel").rglob("*.py"):
        name = path.relative_to(ROOT / "src" / "anofel").as_posix()
        if not name.startswith("track/") and name not in ("cli/track.py", "cli/__init__.py", "__init__.py"):
            assert not any(f"import {word}" in path.read_text() for word in words), name
            assert "from anofel.track" not in path.read_text(), name


# Recipes


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("default")
def test_the_recipe_for_mlflow(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    example("track_mlflow").log(str(run))
    (found,) = mlflow.search_runs(output_format="list")
    assert found.data.metrics["epsilon"] == pytest.approx(read_results(run)[-1].values["epsilon"])
    history = mlflow.MlflowClient().get_metric_history(found.info.run_id, "metrics/auc")
    assert [point.step for point in history] == [1, 2]
    card = Path(mlflow.artifacts.download_artifacts(run_id=found.info.run_id, artifact_path="card.md"))
    assert "task_digest" in card.read_text()


@pytest.mark.filterwarnings("default")
def test_the_recipe_for_weights_and_biases(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    example("track_wandb").log(str(run))
    wandb.teardown()  # its service writes the file, and has it written when it ends
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"metrics/auc" in file.read_bytes()
