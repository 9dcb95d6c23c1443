"""The page "Train on your data", typed as it stands in an empty directory: from a file to a prediction."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from anofel.proofs.keys import KeyDirectory
from tests.typed import commands_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "train-on-your-data.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> tuple[Path, dict[str, str]]:
    """Everything that the page says, done once: the directory, and what each command printed."""
    directory = tmp_path_factory.mktemp("wards")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}

    def run(words: list[str]) -> str:
        done = subprocess.run(
            words, cwd=directory, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout + done.stderr

    run([sys.executable, "-c", PROGRAMS[0]])
    printed = {}
    for line in commands_of(PAGE):
        assert line.startswith("anofel ")
        # Keys are made once for all tests: making them says nothing about the page.
        words = f"{line} --keys {keys.path}" if "--out run" in line else line
        printed[line] = run(words.split())
    printed["python"] = run([sys.executable, "-c", PROGRAMS[1] + "print(probabilities.shape)"])
    return directory, printed


def said(printed: dict[str, str], start: str) -> str:
    (found,) = [text for line, text in printed.items() if line.startswith(start)]
    return found


def test_the_draft_says_what_it_guessed(typed: tuple[Path, dict[str, str]]) -> None:
    text = said(typed[1], "anofel new")
    for name, role in (
        ("patient_id", "identifying"),
        ("admitted", "unused"),
        ("age", "number"),
        ("note", "unused"),
    ):
        assert re.search(rf"^{name} +{role}", text, re.M)
    assert "values were taken from your rows" in " ".join(text.split())


def test_the_board_of_the_simulation_is_audited(typed: tuple[Path, dict[str, str]]) -> None:
    assert (typed[0] / "run" / "models" / "wards-4.model").is_file()
    assert "kept every rule" in said(typed[1], "anofel audit")


def test_new_patients_get_probabilities_and_the_model_is_worth_something(
    typed: tuple[Path, dict[str, str]],
) -> None:
    lines = said(typed[1], "anofel predict").splitlines()
    assert lines[0] == "line,predicted,probability no,probability yes"
    assert [line.partition(",")[0] for line in lines[1:4]] == ["2", "3", "4"]
    measured = re.search(r"auc +([0-9.]+)", said(typed[1], "anofel evaluate"))
    assert measured is not None
    assert float(measured.group(1)) > 0.75
    assert "albumin missing" in said(typed[1], "anofel model show")
    assert "(3, 2)" in typed[1]["python"]
