"""A ceremony in which snarkjs takes part, checked by both verifiers; without Node it is skipped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from anofel._core import ceremony as core
from anofel._core import keys as core_keys
from anofel.proofs.ceremony.transcript import CeremonyTranscript
from anofel.proofs.export import make_example
from anofel.proofs.statements import OwnershipProver, OwnershipVerifier
from tests.ceremony.conftest import BEACON


@pytest.mark.slow
def test_a_mixed_ceremony_passes_both_verifiers(
    snarkjs: Callable[..., str],
    states: list[CeremonyTranscript],
    power8: Path,
    digest8: bytes,
    tmp_path: Path,
) -> None:
    ours, theirs = tmp_path / "ours.zkey", tmp_path / "theirs.zkey"
    ours.write_bytes(states[1].files["ownership.zkey"])
    snarkjs("zkey", "contribute", ours, theirs, "--name=made with snarkjs", "-e=some entropy")
    mixed = states[1].take({"ownership.zkey": theirs.read_bytes()})
    assert mixed.names == ["Clinic A", "made with snarkjs"]
    mixed = mixed.contribute("Clinic C")[0].end(BEACON)
    CeremonyTranscript.of_files(mixed.files, other_powers=digest8).check_end()

    (tmp_path / "last.zkey").write_bytes(mixed.files["ownership.zkey"])
    (tmp_path / "circuit.r1cs").write_bytes(core_keys.r1cs("ownership"))
    said = snarkjs("zkey", "verify", tmp_path / "circuit.r1cs", power8, tmp_path / "last.zkey")
    assert "ZKey Ok!" in said

    # Our proof under the key of the ceremony, verified by snarkjs with the key that it exports.
    key = mixed.keys[0]
    data = key.proving_key(mixed.digest)
    prover = OwnershipProver.from_bytes(data, core_keys.describe(data).key_id, threads=1)
    made = make_example("ownership")
    proof = prover.prove(made.statement, made.witness)
    OwnershipVerifier.from_bytes(key.verification_key(mixed.digest)).verify(made.statement, proof)
    (tmp_path / "proof.json").write_text(proof.to_snarkjs())
    (tmp_path / "public.json").write_text(made.statement.to_snarkjs())
    exported = tmp_path / "verification_key.json"
    snarkjs("zkey", "export", "verificationkey", tmp_path / "last.zkey", exported)
    assert "OK!" in snarkjs("groth16", "verify", exported, tmp_path / "public.json", tmp_path / "proof.json")
    assert core.transcript_digest(digest8, [key]) == mixed.digest
