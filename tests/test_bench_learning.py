"""The experiments stay runnable: their tasks are valid, and their page is written from results alone."""

import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


def test_every_experiment_has_valid_tasks() -> None:
    from _learning_tasks import EXPERIMENTS, task_of

    sizes = {"lenet5": 61_706, "resnet20-gn": 273_258, "squeezenet-gn": 734_986}
    for experiment in EXPERIMENTS:
        for clients in experiment.clients:
            for unit in ("none", "paper"):
                task = task_of(experiment, unit, clients, 3750)
                assert task.privacy.min_clients == clients
                assert task.model.parameters == sizes.get(experiment.kind, task.model.parameters)
                assert type(task).from_bytes(task.to_bytes()) == task


def test_a_protected_task_is_calibrated_to_the_stated_epsilon() -> None:
    from _learning_tasks import EPSILON, experiment_named, task_of

    from anofel.privacy.plan import Plan

    task = task_of(experiment_named("support2"), "client", 512, 20)
    assert 0.99 * EPSILON < Plan.of(task).epsilon(task.privacy.max_releases, "zero-out") <= EPSILON


def test_the_page_says_what_the_results_say(tmp_path: Path) -> None:
    from _learning_report import machine, write, write_page

    check = {"clients": 16, "iterations": 1, "train_seconds": 2.0, "overhead_seconds": 0.5}
    result = {
        "experiment": "mnist-iid",
        "title": "A title",
        "kind": "lenet5",
        "shortened": "half of it",
        "measure": "accuracy",
        "command": "python bench/learning.py mnist-iid --rows 5",
        "seed": 3,
        "machine": machine(),
        "variants": [{"name": "record", "epsilon": "0.900 per record", "scores": [0.5, 0.75, 0.7]}],
        "encrypted": [{**check, "same_integers": True}, {**check, "same_integers": False}],
    }
    path = write(result, tmp_path)
    assert json.loads(path.read_text()) == result
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    write_page(tmp_path, tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "| record | 3 | 0.900 per record | 0.7000 | 0.7500 |" in page
    assert "**Shortened:** half of it." in page
    assert "0.500 s on noise, proof and encryption (25% of its training)" in page
    assert page.count("the same integers") == page.count("OTHER INTEGERS") == 1
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in page
