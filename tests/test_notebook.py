"""The notebook runs from its first cell to its last, on the real study. Slow, and needs a network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "support2.ipynb"


def cells() -> list[str]:
    document = json.loads(NOTEBOOK.read_text())
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]


def test_every_cell_is_a_program_and_none_has_an_output() -> None:
    for number, cell in enumerate(cells()):
        compile(cell, f"cell {number}", "exec")
    assert all(not cell.get("outputs") for cell in json.loads(NOTEBOOK.read_text())["cells"])


@pytest.mark.slow
def test_the_notebook_goes_the_whole_way(tmp_path: Path) -> None:
    program = tmp_path / "notebook.py"
    program.write_text("\n\n".join(cells()) + "\n\nassert auc > 0.75, auc\n")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert "kept every rule" in done.stdout
    assert "Protection of one record" in done.stdout
