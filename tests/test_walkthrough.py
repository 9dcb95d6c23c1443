"""The walk-through runs as the README says, and its double submission is caught."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "prove_membership.py"


def test_the_walk_through_runs_and_catches_the_double_submission() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("accepted\n") == 2
    assert "refused: this nullifier was seen in this iteration" in done.stdout
    assert "insecure development setup" in done.stdout
