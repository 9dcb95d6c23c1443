"""The experiments stay runnable: their tasks are valid, and their page is written from results alone."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_every_experiment_has_valid_tasks() -> None:
    from _learning_tasks import EXPERIMENTS, task_of

    sizes = {"lenet5": 61_706, "resnet20-gn": 273_258, "squeezenet-gn": 734_986}
    tiny = {"tiny-squeezenet": 832_456}
    for experiment in EXPERIMENTS:
        for clients in experiment.clients:
            for unit in ("none", "paper"):
                task = task_of(experiment, unit, clients, 3750)
                assert task.privacy.min_clients == clients
                wanted = tiny.get(experiment.name) or sizes.get(experiment.kind, task.model.parameters)
                assert task.model.parameters == wanted
                assert type(task).from_bytes(task.to_bytes()) == task


@pytest.mark.parametrize(
    ("name", "unit", "clients"), [("support2", "client", 512), ("mnist-iid", "record", 16)]
)
def test_a_protected_task_is_calibrated_to_the_stated_epsilon(name: str, unit: str, clients: int) -> None:
    from _learning_tasks import EPSILON, experiment_named, task_of

    from anofel.privacy.plan import Plan

    task = task_of(experiment_named(name), unit, clients, 3750)
    assert 0.99 * EPSILON < Plan.of(task).epsilon(task.privacy.max_releases, "zero-out") <= EPSILON


def variant(name: str, *scores: float, seed: int = 3, task: str = "t") -> dict[str, Any]:
    epsilon = "0.900 per record"
    from _learning_report import machine

    run = {"seed": seed, "scores": list(scores), "cpu_seconds": 90, "machines": [machine()]}
    return {"name": name, "epsilon": epsilon, "iterations": len(scores), "task": task, "runs": [run]}


def test_the_page_says_what_the_results_say(tmp_path: Path) -> None:
    from _learning_report import write, write_page

    check = {"iterations": 1, "parameters": 61_706, "train_seconds": 2.0, "overhead_seconds": 0.5}
    sent = {"client_bytes": 1_234_567}
    result = {
        "experiment": "mnist-iid",
        "title": "A title",
        "kind": "lenet5",
        "shortened": "half of it",
        "measure": "accuracy",
        "command": "python bench/learning.py mnist-iid --rows 5",
        "variants": [variant("record", 0.5, 0.75, 0.7)],
        "encrypted": [
            {**check, **sent, "clients": 16, "same_integers": True},
            {**check, "clients": 32, "same_integers": False},
        ],
        "spread": [{"clients": 16, "scores": [0.5, 0.9, 0.6]}],
    }
    path = write(result, tmp_path)
    assert json.loads(path.read_text()) == result
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "| record | 3 | 0.900 per record | 0.7000 | 1 |  | 1.5 min |" in page
    assert "`client` again, 3 runs over plain integers" in page
    assert "| 16 | 0.5000 | 0.6000 | 0.9000 |" in page
    assert "**Shortened:** half of it." in page
    paper = "420% (MNIST) | 9.2 MB |"
    assert (
        f"| mnist-iid | 16 | 61,706 | as in the plain path | 2.000 | 0.500 | 25% | 1.23 MB | {paper}" in page
    )
    assert f"| mnist-iid | 32 | 61,706 | OTHERS | 2.000 | 0.500 | 25% | – | {paper}" in page
    assert "Rows without bytes were measured before" in page
    assert "What helps" not in page, "no experiment holds remedies beside each other"
    assert "Settings of survival" not in page, "none of them ran"
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in page


def test_remedies_stand_in_one_table(tmp_path: Path) -> None:
    from _learning_report import write, write_page

    for name, parts in {
        "one": [variant("plain mean", 0.5), variant("plain mean", 0.7, seed=4), variant("FedProx", 0.8)],
        "two": [variant("plain mean", 0.9)],
    }.items():
        fixed = {"experiment": name, "title": f"Study {name}: what helps", "kind": "lenet5", "command": "x"}
        for part in parts:
            result = {**fixed, "shortened": "", "measure": "accuracy", "remedies": True, "variants": [part]}
            write({**result, "encrypted": [], "spread": []}, tmp_path)
    write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "| | Study one | Study two |" in page
    assert "| plain mean | 0.600 (0.500 – 0.700) | 0.900 |" in page
    assert "| FedProx | 0.800 | – |" in page


def test_a_part_done_again_keeps_the_others(tmp_path: Path) -> None:
    from _learning_report import write, write_page

    def result(*variants: dict[str, Any], command: str = "x") -> dict[str, Any]:
        fixed = dict.fromkeys(("experiment", "title", "kind", "measure"), "x")
        parts = {"variants": list(variants), "encrypted": [], "spread": []}
        return {**fixed, "command": command, "shortened": "", **parts}

    def written() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(path.read_text())["variants"]
        return found

    write(result(variant("a", 0.1, 0.2), variant("b", 0.3, 0.4)), tmp_path)
    path = write(result(variant("a", 0.5, 0.6)), tmp_path)
    assert written() == [variant("a", 0.5, 0.6), variant("b", 0.3, 0.4)]
    write(result(variant("a", 0.5, 0.8, seed=1)), tmp_path)
    assert [run["seed"] for run in written()[0]["runs"]] == [1, 3]
    write_page(tmp_path, tmp_path / "page.md")
    assert "| 0.7000 | 2 | 0.6000 – 0.8000 |" in (tmp_path / "page.md").read_text()
    write(result(variant("a", 0.7, 0.8, task="other settings")), tmp_path)
    assert len(written()[0]["runs"]) == 1
    write(result(variant("a", 0.7, 0.8), command="another"), tmp_path)
    assert [part["name"] for part in written()] == ["a"]


def images(experiment: Any, rows: int, classes: int = 10) -> Dataset:
    from _learning_tasks import schema_of

    schema, generator = schema_of(experiment), np.random.default_rng(0)
    pixels = generator.integers(0, 256, (rows, *schema.row_shape)).astype(np.uint8)
    return Dataset(pixels, generator.integers(0, classes, rows, dtype=np.int32), schema)


def test_remedies_change_what_they_name(tmp_path: Path) -> None:
    """Each changes the run of the same rows, and nothing but its task."""
    pytest.importorskip("torch")
    from _learning_tasks import experiment_named, task_of, variants_of
    from learning import Run

    whole = experiment_named("mnist-remedies")
    tasks = {one.name: task_of(whole, "none", 16, 625, remedy=one) for one in whole.remedies}
    plain = tasks["plain mean"]
    assert tasks["FedProx"].training.proximal
    assert tasks["momentum"].rule.momentum
    assert tasks["FedAdam"].rule.kind == "integer-adam"
    assert tasks["weighted mean"].weights is not None
    for task in tasks.values():
        assert (task.model, task.privacy) == (plain.model, plain.privacy)
    experiment = replace(whole, clients=(4,), iterations=2)
    rows = images(experiment, 30)
    Run(experiment, (rows, rows), tmp_path).run()
    written = json.loads((tmp_path / "mnist-remedies.json").read_text())
    assert tuple(part["name"] for part in written["variants"]) == variants_of(whole)
    assert len({part["task"] for part in written["variants"]}) == len(whole.remedies)


def test_a_seed_gives_another_first_model_and_the_same_task(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from _learning_tasks import experiment_named, task_of
    from learning import Run

    experiment = replace(experiment_named("mnist-remedies"), clients=(4,), iterations=1)
    assert task_of(experiment, "none", 4, 10, seed=5).model.seed == 5
    rows = images(experiment, 30)
    for seed in (0, 1):
        Run(experiment, (rows, rows), tmp_path, seed=seed, only=("plain mean",)).run()
    (part,) = json.loads((tmp_path / "mnist-remedies.json").read_text())["variants"]
    assert [run["seed"] for run in part["runs"]] == [0, 1]


def test_record_by_record_runs_for_every_epsilon(tmp_path: Path) -> None:
    from _learning_tasks import experiment_named, task_of, variants_of

    from anofel.privacy.plan import Plan

    experiment = experiment_named("mnist-private")
    assert variants_of(experiment) == ("record", "record, ε = 3")
    experiment = replace(experiment, record={**(experiment.record or {}), "iterations": 8, "batch": 0})
    noise = [task_of(experiment, "record", 16, 3750, epsilon=one) for one in experiment.epsilons]
    for task, wanted in zip(noise, (0.9, 3.0), strict=True):
        assert 0.99 * wanted < Plan.of(task).epsilon(task.privacy.max_releases, "zero-out") <= wanted


def test_settings_of_one_table_are_set_together() -> None:
    import argparse

    from _learning_tasks import experiment_named
    from learning import changes

    def changed(name: str, *settings: tuple[str, str]) -> dict[str, Any]:
        none = dict.fromkeys(("iterations", "rows", "clients"))
        return changes(experiment_named(name), argparse.Namespace(**none, set=settings))

    record = changed("mnist-private", ("record.batch", "10"), ("record.iterations", "3"))["record"]
    assert (record["batch"], record["iterations"], record["scale_bits"]) == (10, 3, 20)
    found = changed("mnist-remedies", ("FedAdam.rule.lr_den", "7"), ("FedProx.training.proximal", "0.5"))
    rules = {one.name: one for one in found["remedies"]}
    assert rules["FedAdam"].rule["lr_den"] == 7
    assert rules["FedAdam"].rule["kind"] == "integer-adam"
    assert rules["FedProx"].training == {"proximal": "0.5"}


def test_a_study_that_is_not_here_is_fetched_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from _learning_tasks import experiment_named
    from learning import load

    monkeypatch.setenv("ANOFEL_CACHE", str(tmp_path))
    with pytest.raises(InvalidInput, match="give your own copy with --from"):
        load(experiment_named("tiny-squeezenet"), 0)


def test_squeezenet_trains_on_a_copy_of_tiny_imagenet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from _learning_tasks import experiment_named
    from learning import Run, load

    from anofel.studies.images import take_tiny_imagenet
    from tests.studies.test_images import tiny_copy

    monkeypatch.setenv("ANOFEL_CACHE", str(tmp_path / "cache"))
    copy = tiny_copy(tmp_path / "copy")
    take_tiny_imagenet(study_named("tiny-imagenet"), copy, lambda *_: None)
    experiment = replace(experiment_named("tiny-squeezenet"), clients=(4,), iterations=1)
    Run(experiment, load(experiment, 0), tmp_path, only=("no DP",)).run()
    (part,) = json.loads((tmp_path / "tiny-squeezenet.json").read_text())["variants"]
    assert len(part["runs"][0]["scores"]) == 1


@pytest.mark.slow
def test_an_experiment_runs_through_the_encryption(tmp_path: Path) -> None:
    from _learning_tasks import experiment_named
    from learning import Run

    schema, generator = study_named("support2").schema(), np.random.default_rng(0)
    features = generator.integers(-256, 256, (60, *schema.row_shape), dtype=np.int32)
    rows = Dataset(features, generator.integers(0, 2, 60, dtype=np.int32), schema)
    experiment = replace(experiment_named("support2"), clients=(4,), iterations=1, converged=2)
    run = Run(experiment, (rows, rows), tmp_path)
    run.run()
    written = json.loads((tmp_path / "support2.json").read_text())
    assert [part["name"] for part in written["variants"]] == [
        "central",
        "central, converged",
        "federated",
        "client",
    ]
    (check,) = written["encrypted"]
    assert check["same_integers"]
    assert check["overhead_seconds"] > 0
    assert check["client_bytes"] > 35 * 2 * 4, "a vector for each of two committees"
    assert len(written["spread"][0]["scores"]) == 20


class Killed(Exception):
    pass


def federated_run(directory: Path, *, seed: int = 0, iterations: int = 4) -> Any:
    from _learning_tasks import experiment_named
    from learning import Run

    schema, generator = study_named("support2").schema(), np.random.default_rng(0)
    features = generator.integers(-256, 256, (60, *schema.row_shape), dtype=np.int32)
    rows = Dataset(features, generator.integers(0, 2, 60, dtype=np.int32), schema)
    experiment = replace(experiment_named("support2"), clients=(4,), iterations=iterations, encrypted=False)
    only = ("federated", "no DP")
    return Run(experiment, (rows, rows), directory, seed=seed, only=only, checkpoints=directory / "kept")


def scores_of(directory: Path) -> dict[str, list[float]]:
    written = json.loads((directory / "support2.json").read_text())
    return {part["name"]: part["runs"][0]["scores"] for part in written["variants"]}


def test_a_stopped_run_goes_on_from_its_last_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import learning

    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    federated_run(whole).run()

    def kill(text: str) -> None:
        if "iteration 2" in text:
            raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(learning, "note", kill)
        federated_run(stopped).run()
    capsys.readouterr()
    federated_run(stopped).run()
    said = capsys.readouterr().err
    assert "federated: 2 of 4 iterations are done" in said
    assert "federated: iteration 3" in said
    assert "federated: iteration 2" not in said
    assert scores_of(stopped)["federated"] == scores_of(whole)["federated"]
    assert len(scores_of(stopped)["no DP"]) == 4
    federated_run(stopped).run()
    assert "no DP: iteration" not in capsys.readouterr().err


def test_a_checkpoint_of_another_task_is_refused(tmp_path: Path) -> None:
    federated_run(tmp_path).run()
    with pytest.raises(InvalidInput, match="another task, split or seed"):
        federated_run(tmp_path, iterations=5).run()


def test_each_seed_has_its_checkpoint(tmp_path: Path) -> None:
    federated_run(tmp_path).run()
    federated_run(tmp_path, seed=1).run()
    written = json.loads((tmp_path / "support2.json").read_text())
    assert [[run["seed"] for run in part["runs"]] for part in written["variants"]] == [[0, 1], [0, 1]]


def test_validation_rows_are_training_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    import learning
    from _learning_tasks import experiment_named

    schema = study_named("support2").schema()
    features = np.arange(60, dtype=np.int32)[:, None].repeat(schema.row_shape[0], axis=1)
    rows = Dataset(features, np.zeros(60, np.int32), schema)
    monkeypatch.setattr(learning, "is_fetched", lambda _: True)
    monkeypatch.setattr(learning, "study_rows", lambda *_: (rows.take(np.arange(50)), rows))
    train, held = learning.load(experiment_named("support2"), 0, validate=True)
    seen = [set(part.features[:, 0].tolist()) for part in (train, held)]
    assert len(seen[0]) == 45
    assert seen[0] | seen[1] == set(range(50))


def test_settings_are_set_only_to_validate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import learning

    monkeypatch.setattr(sys, "argv", ["learning.py", "support2", "--set", "rate", "3"])
    with pytest.raises(SystemExit):
        learning.main()
    assert "--set is for --validate" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"not one", b"PK\x03\x04 cut short"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "support2, federated, seed 0.npz").write_bytes(content)
    with pytest.raises(InvalidInput, match="is not a checkpoint"):
        federated_run(tmp_path).run()


def test_a_private_part_stands_beside_the_mean_of_its_models(tmp_path: Path) -> None:
    from _learning_tasks import experiment_named, schema_of
    from learning import Run

    experiment = experiment_named("mnist-private")
    record = {**(experiment.record or {}), "iterations": 4, "batch": 30}
    experiment = replace(experiment, record=record, clients=(4,), epsilons=(0.9,))
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (60, 28, 28, 1)).astype(np.uint8)
    rows = Dataset(images, generator.integers(0, 10, 60, dtype=np.int32), schema_of(experiment)).transformed()
    Run(experiment, (rows, rows), tmp_path).run()
    written = json.loads((tmp_path / "mnist-private.json").read_text())["variants"]
    assert [part["name"] for part in written] == ["record", "record, models averaged"]
    last, mean = (part["runs"][0]["scores"] for part in written)
    assert len(last) == len(mean) == 4
    assert last[:3] == mean[:3], "the mean of one model is the model"


def test_readme_and_page_hold_the_table_of_the_results(tmp_path: Path) -> None:
    from _learning_report import BEGIN, END, PAGE, README, overview, write_page, write_readme

    copy = tmp_path / "README.md"
    copy.write_text(README.read_text())
    write_readme(readme=copy)
    assert copy.read_text() == README.read_text(), "run python bench/learning.py page"
    page = tmp_path / "page.md"
    write_page(page=page)
    assert page.read_text() == PAGE.read_text(), "run python bench/learning.py page"
    assert copy.read_text().split(BEGIN)[1].split(END)[0].strip() == "\n".join(overview())


def test_a_looser_epsilon_has_a_column_once_it_ran(tmp_path: Path) -> None:
    from _learning_report import overview, write

    fixed = {"experiment": "mnist-private", "title": "x", "kind": "logistic", "measure": "accuracy"}
    parts = {"shortened": "", "command": "x", "encrypted": [], "spread": []}
    write({**fixed, **parts, "variants": [variant("record", 0.5)]}, tmp_path)
    assert "ε = 3 |" not in overview(tmp_path)[0]
    write({**fixed, **parts, "variants": [variant("record, ε = 3", 0.75)]}, tmp_path)
    assert "| ε = 0.9 | ε = 3 | the paper" in overview(tmp_path)[0]
    assert "| 0.500 for a record | 0.750 | – |" in overview(tmp_path)[2]


def test_how_settings_were_chosen_is_said_of_what_ran(tmp_path: Path) -> None:
    from _learning_report import write, write_page

    fixed = {"experiment": "nwtco-survival", "title": "x", "kind": "logistic", "measure": "concordance index"}
    parts = {"shortened": "", "command": "x", "encrypted": [], "spread": []}
    write({**fixed, **parts, "variants": [variant("central", 0.5)]}, tmp_path)
    write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "Settings of survival" in page
    assert "The remedies" not in page


def test_anofel_may_not_stay_behind_plain_averaging() -> None:
    from _learning_tasks import experiment_named
    from learning import Run

    schema = study_named("support2").schema()
    rows = Dataset(np.zeros((4, *schema.row_shape), np.int32), np.zeros(4, np.int32), schema)

    def missed(shortened: str, *ends: float) -> list[str]:
        experiment = replace(experiment_named("fashion-noniid"), shortened=shortened)
        run = Run(experiment, (rows, rows), None)
        run.variants = [variant(name, end) for name, end in zip(("federated", "no DP"), ends, strict=True)]
        return run.missed_bars()

    assert missed("", 0.7, 0.694) == ["no DP: 0.60 points behind plain federated averaging"]
    assert missed("", 0.7, 0.696) == missed("", 0.6, 0.9) == missed("in parts", 0.7, 0.5) == []


def test_three_runs_have_an_interval(tmp_path: Path) -> None:
    from _learning_report import _interval

    assert _interval([0.5, 0.6]) == ""
    assert _interval([0.5, 0.6, 0.7]) == " ± 0.2484", "4.303 · 0.1 / √3"


def test_survival_is_measured_by_concordance(tmp_path: Path) -> None:
    from _learning_tasks import experiment_named, schema_of
    from learning import Run

    from anofel.simulation.rows import made_up_rows

    experiment = replace(experiment_named("nwtco-survival"), clients=(4,), iterations=2, open_iterations=3)
    rows = made_up_rows(schema_of(experiment), 80)
    assert experiment.record is not None
    experiment = replace(experiment, record={**experiment.record, "iterations": 2})
    Run(experiment, (rows, rows), tmp_path).run()
    written = json.loads((tmp_path / "nwtco-survival.json").read_text())
    assert written["measure"] == "concordance index"
    assert [part["name"] for part in written["variants"]] == ["central", "federated", "client", "record"]
