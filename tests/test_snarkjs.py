"""An independent program accepts what we export, and refuses what was changed.

snarkjs is installed by npm for these tests only; without Node they are skipped and say so.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from anofel.proofs.export import export_statement
from anofel.proofs.keys import STATEMENTS, KeyDirectory

INSTALL = Path(__file__).parents[1] / "tools" / "snarkjs" / "install.py"
# The order of the field of coordinates.
BASE_FIELD = 21888242871839275222246405745257275088696311157297823662689037894645226208583

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def snarkjs() -> Run:
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"snarkjs needs Node and npm; not found: {', '.join(missing)}")
    installed = subprocess.run([sys.executable, INSTALL], stdout=subprocess.PIPE, text=True, check=True)
    cli = Path(installed.stdout.strip()) / "node_modules" / "snarkjs" / "cli.js"

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["node", cli, *arguments], capture_output=True, text=True, timeout=600, check=False
        )

    return run


@pytest.fixture(scope="module")
def exported(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The files of a statement, made once for the whole run, also when it has several processes."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def export(statement: str) -> Path:
        out = shared / f"snarkjs-{statement}"
        with FileLock(f"{out}.lock"):
            if not out.exists():
                export_statement(keys, statement, out, example=True)
        return out

    return export


def verify(snarkjs: Run, out: Path, **replaced: Path) -> subprocess.CompletedProcess[str]:
    names = ("verification_key", "public", "proof")
    return snarkjs("groth16", "verify", *(replaced.get(name, out / f"{name}.json") for name in names))


def is_refused(done: subprocess.CompletedProcess[str]) -> bool:
    """snarkjs checked the equation and found that it does not hold; it did not merely fail to run."""
    return done.returncode != 0 and "Invalid proof" in done.stdout


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_exported_proof_is_accepted(snarkjs: Run, exported: Callable[[str], Path], statement: str) -> None:
    done = verify(snarkjs, exported(statement))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK!" in done.stdout


def test_every_changed_public_input_is_refused(
    snarkjs: Run, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    out = exported("ownership")
    inputs = json.loads((out / "public.json").read_text())
    for position, value in enumerate(inputs):
        changed = inputs.copy()
        changed[position] = str(int(value) - 1)
        (tmp_path / "public.json").write_text(json.dumps(changed))
        assert is_refused(verify(snarkjs, out, public=tmp_path / "public.json")), position


@pytest.mark.parametrize("point", ["pi_a", "pi_b", "pi_c"])
def test_a_changed_proof_is_refused(
    snarkjs: Run, exported: Callable[[str], Path], tmp_path: Path, point: str
) -> None:
    out = exported("submission")
    proof = json.loads((out / "proof.json").read_text())
    # The negative of a point is on the curve too, so only the equation can refuse it.
    x, y, one = proof[point]
    proof[point] = [x, negate(y), one]
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    assert is_refused(verify(snarkjs, out, proof=tmp_path / "proof.json"))


def negate(coordinate: Any) -> Any:
    if isinstance(coordinate, list):
        return [negate(part) for part in coordinate]
    return str(-int(coordinate) % BASE_FIELD)


def test_a_proof_of_another_statement_is_refused(snarkjs: Run, exported: Callable[[str], Path]) -> None:
    other = exported("registration") / "proof.json"
    assert is_refused(verify(snarkjs, exported("submission"), proof=other))


@pytest.mark.parametrize(
    ("statement", "constraints", "variables", "inputs"),
    [("ownership", 215, 218, 2), ("registration", 6256, 6287, 6), ("submission", 4435, 4490, 7)],
)
def test_the_constraint_system_is_read_as_we_count_it(
    snarkjs: Run,
    exported: Callable[[str], Path],
    statement: str,
    constraints: int,
    variables: int,
    inputs: int,
) -> None:
    done = snarkjs("r1cs", "info", exported(statement) / "circuit.r1cs")
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "Curve: bn-128",
        f"# of Wires: {variables}",
        f"# of Constraints: {constraints}",
        f"# of Public Inputs: {inputs}",
        "# of Outputs: 0",
    ):
        assert f"{line}\n" in done.stdout


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_witness_satisfies_the_constraint_system(
    snarkjs: Run, exported: Callable[[str], Path], statement: str
) -> None:
    out = exported(statement)
    done = snarkjs("wtns", "check", out / "circuit.r1cs", out / "witness.wtns")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WITNESS IS CORRECT" in done.stdout


def test_a_changed_witness_does_not_satisfy_the_constraint_system(
    snarkjs: Run, exported: Callable[[str], Path], tmp_path: Path
) -> None:
    out = exported("ownership")
    witness = bytearray((out / "witness.wtns").read_bytes())
    witness[-32] ^= 1  # The last value's lowest bit.
    (tmp_path / "witness.wtns").write_bytes(witness)
    done = snarkjs("wtns", "check", out / "circuit.r1cs", tmp_path / "witness.wtns")
    assert done.returncode != 0
    assert "WITNESS IS NOT CORRECT" in done.stdout
