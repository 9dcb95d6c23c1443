"""All three statements, from powers of tau to a board. The powers are a toy: one machine made them."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from anofel._core import ceremony as core
from anofel.errors import InvalidCeremony
from anofel.proofs.ceremony.finished import finish, open_verified, verify_keys
from anofel.proofs.ceremony.transcript import CeremonyTranscript, new_ceremony
from anofel.proofs.ceremony.verified import recall
from anofel.proofs.export import make_example
from anofel.proofs.keys import CLAIMED_ORIGIN, STATEMENTS, VERIFIED_ORIGIN, KeyDirectory
from tests.ceremony.conftest import BEACON, PEOPLE

pytestmark = pytest.mark.slow


def anofel(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anofel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_a_ceremony_makes_the_keys_of_a_board(tmp_path: Path, own_state: Path) -> None:
    toy = core.OwnPowers.from_bytes(core.OwnPowers.start(13)).contribute("INSECURE toy powers").data
    (tmp_path / "toy.ptau").write_bytes(toy)
    digest = hashlib.blake2b(toy).digest()
    files = new_ceremony(tmp_path / "toy.ptau", other_powers=digest)
    state = CeremonyTranscript.of_files(files, other_powers=digest)
    for name in PEOPLE:
        state, _locked = state.contribute(name)
    keys, ended = finish(state, BEACON, tmp_path / "keys")
    assert (keys.origin, keys.transcript) == (VERIFIED_ORIGIN, ended.digest)
    for name in STATEMENTS:
        made = make_example(name)
        proof = getattr(keys, f"{name}_prover")(threads=1).prove(made.statement, made.witness)
        getattr(keys, f"{name}_verifier")().verify(made.statement, proof)

    # On another machine the same files are a claim, until it verifies them itself.
    verdict = recall(ended.digest)
    next(own_state.rglob("*.json")).unlink()
    assert KeyDirectory.open(tmp_path / "keys").origin == CLAIMED_ORIGIN
    node = ("node", "init", tmp_path / "node", "--name", "x", "--keys", tmp_path / "keys")
    refused = anofel(*node, "--insecure-test-ca", tmp_path / "ca")
    assert refused.returncode == 1
    assert "not the public file" in refused.stderr
    done = anofel("setup", "ceremony", "verify", tmp_path / "keys", "--other-powers-of-tau", digest.hex())
    assert done.returncode == 0, done.stderr
    assert recall(ended.digest) == verdict
    assert open_verified(tmp_path / "keys").origin == VERIFIED_ORIGIN
    made_node = anofel(*node, "--insecure-test-ca", tmp_path / "ca", "--json")
    assert made_node.returncode == 0, made_node.stderr
    assert '"insecure": "test certificate authority"' in made_node.stdout
    inspected = anofel("setup", "inspect", tmp_path / "keys", "--json").stdout
    assert f"{digest.hex()} (NOT the public ones)" in inspected

    # A key of the same ceremony with one byte changed, pinned by the manifest all the same.
    next(own_state.rglob("*.json")).unlink()
    file = tmp_path / "keys" / "submission.proving.key"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    manifest = tmp_path / "keys" / "keys.json"
    old = keys.proving["submission"].key_id.hex()
    manifest.write_text(manifest.read_text().replace(old, hashlib.sha256(data).hexdigest()))
    with pytest.raises(
        InvalidCeremony, match="submission proving key in .* is not the one that its ceremony"
    ):
        verify_keys(KeyDirectory.open(tmp_path / "keys"), other_powers=digest)
