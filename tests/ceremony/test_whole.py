"""All three statements, from powers of tau to a board. The powers are a toy: one machine made them."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass
class Whole:
    """A ceremony of three people for all statements, and the state directory of who finished it."""

    keys: KeyDirectory
    ended: CeremonyTranscript
    powers: bytes


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    place = tmp_path_factory.mktemp("whole")
    toy = core.OwnPowers.from_bytes(core.OwnPowers.start(13)).contribute("INSECURE toy powers").data
    (place / "toy.ptau").write_bytes(toy)
    digest = hashlib.blake2b(toy).digest()
    files = new_ceremony(place / "toy.ptau", other_powers=digest)
    state = CeremonyTranscript.of_files(files, other_powers=digest)
    for name in PEOPLE:
        state, _locked = state.contribute(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        keys, ended = finish(state, BEACON, place / "keys")
        assert (keys.origin, keys.transcript) == (VERIFIED_ORIGIN, ended.digest)
    return Whole(keys, ended, digest)


def test_proofs_under_its_keys_hold_for_us_and_for_snarkjs(
    whole: Whole, snarkjs: Callable[..., str], tmp_path: Path
) -> None:
    for name in STATEMENTS:
        made = make_example(name)
        proof = getattr(whole.keys, f"{name}_prover")(threads=1).prove(made.statement, made.witness)
        getattr(whole.keys, f"{name}_verifier")().verify(made.statement, proof)
        last, key = tmp_path / f"{name}.zkey", tmp_path / f"{name}.vk.json"
        last.write_bytes(whole.ended.files[f"{name}.zkey"])
        snarkjs("zkey", "export", "verificationkey", last, key)
        public, shown = tmp_path / f"{name}.public.json", tmp_path / f"{name}.proof.json"
        public.write_text(made.statement.to_snarkjs())
        shown.write_text(proof.to_snarkjs())
        assert "OK!" in snarkjs("groth16", "verify", key, public, shown)


def test_a_ceremony_makes_the_keys_of_a_board(whole: Whole, tmp_path: Path) -> None:
    keys, ended, digest = whole.keys, whole.ended, whole.powers
    shutil.copytree(keys.path, tmp_path / "keys")
    # On another machine the same files are a claim, until it verifies them itself.
    assert KeyDirectory.open(tmp_path / "keys").origin == CLAIMED_ORIGIN
    node = ("node", "init", tmp_path / "node", "--name", "x", "--keys", tmp_path / "keys")
    refused = anofel(*node, "--insecure-test-ca", tmp_path / "ca")
    assert refused.returncode == 1
    assert "not the public file" in refused.stderr
    done = anofel("setup", "ceremony", "verify", tmp_path / "keys", "--other-powers-of-tau", digest.hex())
    assert done.returncode == 0, done.stderr
    verdict = recall(ended.digest)
    assert verdict is not None
    assert (verdict.people, verdict.pins) == (3, {name: i.hex() for name, i in keys.ids().items()})
    assert open_verified(tmp_path / "keys").origin == VERIFIED_ORIGIN
    made_node = anofel(*node, "--insecure-test-ca", tmp_path / "ca", "--json")
    assert made_node.returncode == 0, made_node.stderr
    assert '"insecure": "test certificate authority"' in made_node.stdout
    inspected = anofel("setup", "inspect", tmp_path / "keys", "--json").stdout
    assert f"{digest.hex()} (NOT the public ones)" in inspected

    # A key of the same ceremony with one byte changed, pinned by the manifest all the same.
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
