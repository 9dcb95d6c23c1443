"""The examples run as they stand, on made-up images."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.pytorch.digits import make_digits

EXAMPLES = Path(__file__).parents[2] / "examples"
TASKS = Path(__file__).parents[2] / "src" / "anofel" / "tasks" / "examples"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows, path = make_digits(500), tmp_path_factory.mktemp("images") / "digits.npz"
    np.savez(path, images=rows.features[..., 0], labels=rows.labels)
    return path


def run(path: Path, archive: Path, seconds: float) -> str:
    done = subprocess.run(
        [sys.executable, str(path), str(archive)], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_walk_through_runs(archive: Path) -> None:
    said = run(EXAMPLES / "walkthrough.py", archive, 300)
    assert "lenet5: 61,706 parameters" in said
    assert "ε after 12 iterations: 3.7" in said
    assert said.strip().endswith("the same integers again: True")


def test_a_module_of_ones_own_trains(archive: Path) -> None:
    said = run(TASKS / "own_module.py", archive, 300)
    assert said.count("iteration ") == 3
    assert float(said.split()[-1]) > 0.5


@pytest.mark.slow
def test_mnist_trains_with_every_role_its_own_process(archive: Path) -> None:
    said = run(EXAMPLES / "mnist_processes.py", archive, 1200)
    assert said.count("summed, 4 clients") == 2
    assert "audit: every rule was kept" in said
