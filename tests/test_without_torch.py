"""A base installation has no PyTorch: everything but training such a network works, and that says what to do.

The import is blocked in a process of its own, as if PyTorch were not installed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Absent())
"""
ROOT = Path(__file__).parents[1]
TASK = ROOT / "src" / "anofel" / "tasks" / "examples" / "mnist-lenet5.toml"
TRAIN = f"""
from pathlib import Path
from anofel.errors import AnofelError
from anofel.learning.build import trainer_of
from anofel.tasks.task import Task
try:
    trainer_of(Task.load(Path({str(TASK)!r})))
except AnofelError as error:
    print(error.code, error)
"""
MISSING = "torch-missing The network lenet5 needs PyTorch: pip install 'anofel[torch]'."


def without_torch(script: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose imports of PyTorch fail."""
    return subprocess.run([sys.executable, "-c", BLOCK + script], capture_output=True, text=True)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return without_torch(f"sys.argv = {['anofel', *arguments]!r}\nfrom anofel.cli import main; main()")


def test_the_block_itself_works() -> None:
    assert "ModuleNotFoundError" in without_torch("import torch").stderr


def test_base_commands_work() -> None:
    assert command("--help").returncode == 0
    listed = command("study", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert any(study["name"] == "mnist" for study in json.loads(listed.stdout))
    for role in ("node", "certifier", "client", "aggregator", "owner", "model"):
        assert command(role, "--help").returncode == 0


def test_a_task_with_a_network_is_read_explained_and_audited_without_it() -> None:
    explained = command("privacy", str(TASK), "--json")
    assert explained.returncode == 0, explained.stderr
    script = f"""
from pathlib import Path
from anofel.models.rules import rule_of
from anofel.tasks.task import Task
task = Task.load(Path({str(TASK)!r}))
print(task.model.parameters, rule_of(task).rate(1))
"""
    assert without_torch(script).stdout.strip() == "61706 (1, 1)"


def test_training_it_says_in_one_sentence_what_to_install() -> None:
    assert without_torch(TRAIN).stdout.strip() == MISSING


def test_an_owner_starts_it_at_a_model_that_it_has() -> None:
    script = f"""
from dataclasses import replace
from pathlib import Path
import numpy as np
from anofel.errors import AnofelError
from anofel.models.integer_model import IntegerModel
from anofel.roles.owner import Own, check_start
from anofel.tasks.task import Task
task = Task.load(Path({str(TASK)!r}))
good = IntegerModel.from_parameters({{"w": np.zeros(61706)}}, task.model.scale_bits)
bad = [
    IntegerModel.from_parameters({{"w": np.zeros(61705)}}, task.model.scale_bits),
    replace(good, scale_bits=17),
    replace(good, velocity=good.values),
]
for first in (good, None, *bad):
    try:
        check_start(task, Own(first=first))
        print("fits")
    except AnofelError as error:
        print(error.code)
"""
    found = without_torch(script)
    assert found.stdout.split() == ["fits", "torch-missing", *["invalid-input"] * 3], found.stderr


@pytest.mark.slow
def test_a_base_installation_of_its_own_works(tmp_path: Path) -> None:
    """The wheel alone, with what it asks for, in an environment where nothing else is installed."""
    build = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    there = tmp_path / "env" / "bin"
    subprocess.run([there / "pip", "install", "--quiet", str(wheel)], check=True)
    assert subprocess.run([there / "python", "-c", "import torch"], capture_output=True).returncode == 1
    explained = subprocess.run(
        [there / "anofel", "privacy", str(TASK), "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert explained.returncode == 0, explained.stderr
    answer = subprocess.run(
        [there / "python", "-c", TRAIN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == MISSING
