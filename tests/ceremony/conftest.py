"""A small real ceremony: three people, the ownership statement, the genuine powers of tau of power 8."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anofel.disk.files import write_new_directory
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.proofs.ceremony.receipts import ContributionReceipt
from anofel.proofs.ceremony.transcript import CeremonyTranscript, new_ceremony

INSTALL = Path(__file__).parents[2] / "tools" / "snarkjs" / "install.py"
FETCH = Path(__file__).parents[2] / "tools" / "powers" / "fetch.py"
BEACON = b"a value that was announced"
PEOPLE = ("Clinic A", "Clinic B", "Clinic C")


@pytest.fixture(scope="session")
def power8() -> Path:
    found = subprocess.run([sys.executable, FETCH], stdout=subprocess.PIPE, text=True, check=True)
    return Path(found.stdout.strip())


@pytest.fixture(scope="session")
def digest8(power8: Path) -> bytes:
    return hashlib.blake2b(power8.read_bytes()).digest()


@pytest.fixture(scope="session")
def signer() -> RoleKey:
    return TestAuthority.create().issue(Purpose.CERTIFIER, "Clinic A")


@pytest.fixture(scope="session")
def states(power8: Path, digest8: bytes, signer: RoleKey) -> list[CeremonyTranscript]:
    """After nobody, one, two and three people, and after the beacon."""
    files = new_ceremony(power8, other_powers=digest8, statements=("ownership",), beacon_source="dice")
    made = [CeremonyTranscript.of_files(files, other_powers=digest8)]
    for name in PEOPLE:
        after, _locked = made[-1].contribute(name)
        receipt = ContributionReceipt.make(
            name=name,
            number=len(after.hashes),
            powers=after.powers_digest,
            beacon_source="dice",
            hashes=after.hashes[-1],
            role=signer if name == "Clinic A" else None,
        )
        made.append(after.with_receipt(receipt))
    return [*made, made[-1].end(BEACON)]


@pytest.fixture
def ended(states: list[CeremonyTranscript], tmp_path: Path) -> Path:
    write_new_directory(tmp_path / "ended", dict(states[-1].files))
    return tmp_path / "ended"


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Verdicts of a test stay in the test."""
    place = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    return place


@pytest.fixture(scope="session")
def snarkjs() -> Callable[..., str]:
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"snarkjs needs Node and npm; not found: {', '.join(missing)}")
    installed = subprocess.run([sys.executable, INSTALL], stdout=subprocess.PIPE, text=True, check=True)
    cli = Path(installed.stdout.strip()) / "node_modules" / "snarkjs" / "cli.js"

    def run(*arguments: object) -> str:
        command = ["node", cli, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
