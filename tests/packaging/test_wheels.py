"""What ``tools/wheels.py`` refuses to release. ``make wheels`` makes and tries the real ones."""

import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "wheels.py"
NAME = "anofel-0.1.0-cp311-abi3-manylinux2014_x86_64.whl"
PARTS = {"ark-groth16": "0.6.0", "pyo3": "0.30.1", "curve25519-dalek": "5.0.0"}
BOM = "anofel-0.1.0.dist-info/sboms/anofel-py.cyclonedx.json"


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheels", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wheels"] = module
    spec.loader.exec_module(module)
    return module


def write(path: Path, leave_out: str = "", bom: object = None) -> Path:
    """A wheel with everything that one must have, but for something."""
    parts = [{"name": name, "version": version} for name, version in PARTS.items()]
    bom = bom or {"bomFormat": "CycloneDX", "components": parts}
    licences = [f"anofel-0.1.0.dist-info/licenses/LICENSE-{kind}" for kind in ("MIT", "APACHE")]
    with zipfile.ZipFile(path, "w") as wheel:
        for name in ("anofel/_core.abi3.so", "anofel/py.typed", *licences, BOM):
            if not leave_out or leave_out not in name:
                wheel.writestr(name, json.dumps(bom) if name == BOM else "x")
    return path


def test_a_whole_wheel_is_taken(wheels: ModuleType, tmp_path: Path) -> None:
    wheels.check_wheel(write(tmp_path / NAME), "manylinux2014")


@pytest.mark.parametrize(
    ("leave_out", "says"),
    [
        ("_core", "lacks _core.abi3.so"),
        ("py.typed", "lacks py.typed"),
        ("MIT", "lacks licenses/LICENSE-MIT"),
        ("sboms", "has 0 lists of its Rust parts"),
    ],
)
def test_a_wheel_that_lacks_something_is_refused(
    wheels: ModuleType, leave_out: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(wheels.NotReleasable, match=says):
        wheels.check_wheel(write(tmp_path / NAME, leave_out), "manylinux2014")


def test_a_list_of_parts_that_names_none_is_refused(wheels: ModuleType, tmp_path: Path) -> None:
    empty = {"bomFormat": "CycloneDX", "components": []}
    with pytest.raises(wheels.NotReleasable, match="does not name ark-groth16, pyo3, curve25519-dalek"):
        wheels.check_wheel(write(tmp_path / NAME, bom=empty), "manylinux2014")


@pytest.mark.parametrize("name", [NAME.replace("manylinux2014", "linux"), NAME.replace("abi3", "cp311")])
def test_a_wheel_for_one_machine_or_one_python_is_refused(
    wheels: ModuleType, name: str, tmp_path: Path
) -> None:
    with pytest.raises(wheels.NotReleasable, match="is not for manylinux2014 and every Python"):
        wheels.check_wheel(write(tmp_path / name), "manylinux2014")


def test_the_lock_of_the_sdist_fits_it(tmp_path: Path) -> None:
    """A workspace that lacks a member wants another lock, and nothing would be built with ``--locked``."""
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, check=True, capture_output=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = (path for path in tmp_path.iterdir() if path.is_dir())
    version = subprocess.run(["rustc", "--version", "--verbose"], check=True, capture_output=True, text=True)
    host = re.findall(r"^host: (.+)$", version.stdout, re.M)
    words = ["cargo", "metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", *host]
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
