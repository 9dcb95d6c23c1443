"""What the package asks of others: stated once, as low as it works, and installable beside Flower."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOWEST_TESTS = (
    "tests/test_cli.py",
    "tests/test_sections.py",
    "tests/node/test_api.py",
    "tests/serving",
    "tests/page/test_routes.py",
    "tests/transport",
    "tests/certificates",
    "tests/keystore",
    "tests/learning/test_exchange.py",
    "tests/learning/test_training.py",
    "tests/privacy/test_accounting.py",
    "tests/paillier/test_arithmetic.py",
    "tests/simulation/test_cli_simulate.py",
)
"""Some of every dependency: HTTP both ways, templates, certificates, key stores, numbers, the shell."""
ASIDE = "not help and not heading and not version"
"""How help is worded follows typer 0.29, and only an installed package has a version."""
TOOLS = ("pytest==8.4.2", "hypothesis==6.140.0", "filelock==3.20.0", "httpx2==2.16.0")


def uv() -> str:
    found = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if found is None:
        pytest.skip("uv is not here: make test-lowest installs it")
    return found


def run(*words: object, **settings: object) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return str(done.stdout)


def resolved(*requirements: object) -> dict[str, tuple[int, ...]]:
    """The versions that go together."""
    said = run(uv(), "pip", "compile", "--quiet", "--no-header", "--no-annotate", *requirements)
    pairs = re.findall(r"^([a-z0-9.-]+)==([0-9.]+)", said, re.M)
    return {name: tuple(int(part) for part in version.strip(".").split(".")) for name, version in pairs}


def test_the_pinned_packages_are_those_of_the_project() -> None:
    written = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    assert sorted(line for line in written if line and line[0] != "#") == sorted(PROJECT["dependencies"])


def test_every_dependency_has_a_lowest_version() -> None:
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]:
        assert re.fullmatch(r"[A-Za-z0-9_-]+(\[\w+\])?>=\d+(\.\d+)*(,<\d+(\.\d+)*)?", line), line


@pytest.mark.slow
def test_the_newest_flower_installs_beside_it(tmp_path: Path) -> None:
    alone, both = tmp_path / "flwr.in", tmp_path / "both.in"
    alone.write_text("flwr\n")
    newest = resolved(alone)["flwr"]
    both.write_text(f"flwr=={'.'.join(map(str, newest))}\n")
    together = resolved(ROOT / "pyproject.toml", both)
    assert together["flwr"] == newest
    assert {"starlette", "uvicorn", "typer", "numpy"} <= together.keys()


@pytest.mark.slow
def test_the_lowest_versions_work(tmp_path: Path) -> None:
    place = tmp_path / "environment"
    run(uv(), "venv", "--quiet", "--python", sys.executable, place)
    install = (uv(), "pip", "install", "--quiet", "--python", place / "bin" / "python")
    lowest = tmp_path / "lowest.in"
    lowest.write_text("\n".join([*PROJECT["dependencies"], *TOOLS]) + "\n")
    run(*install, "--resolution", "lowest-direct", "-r", lowest)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "source.pth").write_text(f"{ROOT / 'src'}\n")
    versions = run(*install[:2], "list", "--python", place / "bin" / "python")
    for name in ("starlette", "uvicorn", "typer", "numpy", "rich"):
        floor = next(line.partition(">=")[2] for line in PROJECT["dependencies"] if line.startswith(name))
        assert re.search(rf"^{name} +{re.escape(floor)}(\.0)*\s*$", versions, re.M), versions
    old = ("-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning")
    words = ("-q", "-p", "no:cacheprovider", *old, "-k", ASIDE, *LOWEST_TESTS)
    said = run(place / "bin" / "python", "-m", "pytest", *words, cwd=ROOT)
    assert int(re.findall(r"(\d+) passed", said)[-1]) > 100
