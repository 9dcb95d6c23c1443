"""The commands of a ceremony, as people type them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anofel.pki.certificates import RoleKey
from anofel.pki.testing_ca import write_role
from tests.ceremony.conftest import BEACON


def anofel(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anofel", "setup", "ceremony", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_rehearsal_from_the_first_key_to_the_last(
    power8: Path, digest8: bytes, signer: RoleKey, tmp_path: Path
) -> None:
    other = ("--other-powers-of-tau", digest8.hex())
    begin = ("new", "--ptau", power8, "--out", tmp_path / "c0", "--statement", "ownership")
    refused = anofel(*begin, code=1)
    assert "not the public file of power 13" in refused.stderr
    assert digest8.hex() in refused.stderr
    assert not (tmp_path / "c0").exists()
    anofel(*begin, *other, "--beacon-source", "dice")

    write_role(tmp_path / "role", signer)
    certificate = tmp_path / "role" / "certificate.pem"
    sign = ("--certificate", certificate, "--key", tmp_path / "role" / "key.pem")
    step = anofel("contribute", tmp_path / "c0", tmp_path / "c1", "--name", "Clinic A", *sign, *other)
    assert "drawn from the operating system, used and wiped" in step.stderr.replace("\n", " ")
    early = anofel("finish", tmp_path / "c1", "--beacon", BEACON.hex(), *other, code=1)
    assert "1 people contributed; 2 are needed" in early.stderr
    anofel("contribute", tmp_path / "c1", tmp_path / "c2", "--name", "Clinic B", *other)
    anofel("finish", tmp_path / "c2", "--beacon", BEACON.hex(), "--out", tmp_path / "end", *other)

    mine = ("--mine", tmp_path / "c1.receipt.json", "--certificate", certificate)
    text = anofel("verify", tmp_path / "end", *mine, *other).stdout
    assert "Your contribution, number 1 as 'Clinic A', is in." in text
    assert "secrets of all 2 contributors" in text
    assert "NOT the public ones" in text
    shown = json.loads(anofel("verify", tmp_path / "end", *other, "--json").stdout)
    assert [made["name"] for made in shown["contributions"]] == ["Clinic A", "Clinic B", "beacon"]
    assert (shown["people"], shown["signed_receipts"], shown["ended"]) == (2, 1, True)
    assert not shown["verified_here"]  # a rehearsal makes no keys

    again = anofel("contribute", tmp_path / "end", tmp_path / "c9", "--name", "late", *other, code=1)
    assert "has ended with its beacon" in again.stderr
    assert not (tmp_path / "c9").exists()
    key = tmp_path / "end" / "ownership.zkey"
    key.write_bytes(key.read_bytes()[:-1])
    damaged = anofel("verify", tmp_path / "end", *other, code=1)
    assert damaged.stderr.strip() == "anofel: The ownership key is refused: the file is truncated."


def test_powers_of_our_own(tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.ptau" for n in range(4)]
    anofel("powers", "new", files[0], "--power", 4)
    anofel("powers", "contribute", files[0], files[1], "--name", "Clinic A")
    early = anofel("powers", "finish", files[1], files[3], "--beacon", BEACON.hex(), code=1)
    assert "1 contributions of people; 2 are needed" in early.stderr
    assert not files[3].exists()
    anofel("powers", "contribute", files[1], files[2], "--name", "Clinic B")
    anofel("powers", "finish", files[2], files[3], "--beacon", BEACON.hex())
    shown = json.loads(anofel("powers", "verify", files[3], "--beacon", BEACON.hex(), "--json").stdout)
    assert [made["name"] for made in shown["contributions"]] == ["Clinic A", "Clinic B", "beacon"]
    other = anofel("powers", "verify", files[3], "--beacon", "00" * 16, code=1)
    assert "not derived from the announced one" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("verify", "nowhere"), 1, "nowhere/ceremony.json cannot be read"),
        (("new", "--ptau", "nowhere"), 1, "nowhere cannot be read"),
        (("verify", "nowhere", "--other-powers-of-tau", "12"), 2, "128 hexadecimal digits"),
        (("finish", "nowhere", "--beacon", "xyz"), 2, "--beacon is not hexadecimal"),
        (("contribute", "nowhere", "out", "--name", "x", "--key", "k"), 2, "belong together"),
        (("new", "--ptau", "x", "--statement", "nonsense"), 1, "no statement named 'nonsense'"),
        (("powers", "verify", "nowhere"), 1, "nowhere cannot be read"),
    ],
)
def test_a_mistake_gets_one_sentence(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in anofel(*arguments, code=code).stderr
    assert not list(tmp_path.iterdir())
