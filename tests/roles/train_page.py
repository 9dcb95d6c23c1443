"""The page "Train on your data", typed as it stands in an empty directory: from a file to a prediction."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.typed import commands_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "train-on-your-data.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)


HERE = Path(sys.executable).parent
"""Where the programs of this environment are."""


def run(directory: Path, words: list[str], programs: Path = HERE, code: int = 0) -> str:
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == code, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout + done.stderr


def make_study(directory: Path) -> None:
    """Only the rows and the task, as sections 1 and 2 of the page say."""
    run(directory, ["python", "-c", PROGRAMS[0]])
    for line in commands_of(PAGE):
        if line.startswith(("anofel new", "sed")):
            run(directory, shlex.split(line))


def type_page(directory: Path, keys: Path, programs: Path = HERE) -> None:
    """Everything that the page says, by the programs of an environment, and what it must have printed."""
    run(directory, ["python", "-c", PROGRAMS[0]], programs)
    printed = {}
    for line in commands_of(PAGE):
        # Keys are made once for all tests: making them says nothing about the page.
        words = f"{line} --keys {keys}" if "--out run" in line else line
        printed[line] = run(directory, shlex.split(words), programs)
    printed["python"] = run(directory, ["python", "-c", PROGRAMS[1] + "print(probabilities.shape)"], programs)
    check_draft(said(printed, "anofel new"))
    assert "kept every rule" in said(printed, "anofel audit")
    assert (directory / "run" / "models" / "wards-4.model").is_file()
    check_prediction(said(printed, "anofel predict"))
    measured = re.search(r"auc +([0-9.]+)", said(printed, "anofel evaluate"))
    assert measured is not None
    assert float(measured.group(1)) > 0.75, "the model is worth something"
    assert "albumin missing" in said(printed, "anofel model show")
    assert "(3, 2)" in printed["python"]


def said(printed: dict[str, str], start: str) -> str:
    (found,) = [text for line, text in printed.items() if line.startswith(start)]
    return found


def check_draft(text: str) -> None:
    """The draft says what it guessed."""
    for name, role in (
        ("patient_id", "identifying"),
        ("admitted", "unused"),
        ("age", "number"),
        ("note", "unused"),
    ):
        assert re.search(rf"^{name} +{role}", text, re.M)
    assert "values were taken from your rows" in " ".join(text.split())


def check_prediction(text: str) -> None:
    """New patients get probabilities."""
    lines = text.splitlines()
    assert lines[0] == "line,predicted,probability no,probability yes"
    assert [line.partition(",")[0] for line in lines[1:4]] == ["2", "3", "4"]
    for line in lines[1:4]:
        assert abs(sum(map(float, line.split(",")[2:])) - 1) < 1e-3
