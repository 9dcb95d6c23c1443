"""Key directories and `anofel setup`, with everything that can be wrong with a file."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anofel.errors import AnofelError, InvalidKeyFile
from anofel.proofs.keys import MANIFEST, STATEMENTS, KeyDirectory, make_insecure_development_keys
from anofel.proofs.statements import SubmissionProver, SubmissionVerifier


def anofel(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anofel", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def copy(keys: KeyDirectory, tmp_path: Path) -> Path:
    shutil.copytree(keys.path, tmp_path / "keys")
    return tmp_path / "keys"


def test_every_key_says_that_it_is_insecure(keys: KeyDirectory) -> None:
    assert keys.is_insecure
    for name in STATEMENTS:
        assert getattr(keys, f"{name}_verifier")().origin == "insecure development setup"
        assert "insecure development setup" in repr(getattr(keys, f"{name}_prover")(threads=1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "not an anofel key file"),
        (lambda data: b"PK\x03\x04" + bytes(3000), "not an anofel key file"),
        (lambda data: data[:50], "truncated: it has 50 bytes instead of"),
        (lambda data: data[:-1], "truncated"),
        (lambda data: data + b"\0", "too long"),
        (lambda data: data[:10] + b"\x01\x00" + data[12:], "format version 1; this program reads version 3"),
        (lambda data: data[:13] + b"\x01" + data[14:], "for the registration statement|public inputs"),
        (lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:], "another version|not the pinned one"),
    ],
)
@pytest.mark.parametrize("role", ["proving", "verification"])
def test_a_damaged_key_gets_one_clear_sentence(keys: KeyDirectory, role: str, damage, message: str) -> None:
    file = getattr(keys, role)["submission"]
    data = damage(file.path.read_bytes())
    with pytest.raises(InvalidKeyFile, match=message) as caught:
        if role == "proving":
            SubmissionProver.from_bytes(data, file.key_id, threads=1)
        else:
            SubmissionVerifier.from_bytes(data)
    assert "\n" not in str(caught.value)


def test_a_key_of_another_role_or_statement_is_refused(keys: KeyDirectory) -> None:
    proving, verification = keys.proving["submission"], keys.verification["submission"]
    with pytest.raises(InvalidKeyFile, match="verification key; a proving key is needed"):
        SubmissionProver.from_bytes(verification.read(), verification.key_id)
    with pytest.raises(InvalidKeyFile, match="proving key; a verification key is needed"):
        SubmissionVerifier.from_bytes(proving.read())
    other = keys.verification["registration"].read()
    with pytest.raises(InvalidKeyFile, match="registration statement; a key for the submission statement"):
        SubmissionVerifier.from_bytes(other)


def test_a_proving_key_that_is_not_pinned_is_refused(keys: KeyDirectory) -> None:
    with pytest.raises(InvalidKeyFile, match="not the pinned one"):
        SubmissionProver.from_bytes(keys.proving["submission"].read(), bytes(32))


def test_a_replaced_verification_key_is_refused(keys: KeyDirectory, copy: Path) -> None:
    shutil.copy(copy / "ownership.verification.key", copy / "submission.verification.key")
    with pytest.raises(InvalidKeyFile, match="is not the pinned key"):
        KeyDirectory.open(copy).submission_verifier()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 2}', '{"format": 2, "keys": {}}', '{"format": 2, "keys": 1}']
)
def test_a_manifest_that_is_none_is_refused(copy: Path, content: str) -> None:
    (copy / MANIFEST).write_text(content)
    with pytest.raises(InvalidKeyFile, match="is not a key manifest"):
        KeyDirectory.open(copy)


def test_a_manifest_of_another_format_is_refused(copy: Path) -> None:
    manifest = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps(manifest | {"format": 9}))
    with pytest.raises(InvalidKeyFile, match="format must be 2, but is 9"):
        KeyDirectory.open(copy)


def test_missing_files_are_named(copy: Path) -> None:
    with pytest.raises(InvalidKeyFile, match="nowhere.*cannot be read: No such file"):
        KeyDirectory.open(copy / "nowhere")
    (copy / "submission.proving.key").unlink()
    with pytest.raises(InvalidKeyFile, match="submission.proving.key cannot be read"):
        KeyDirectory.open(copy).submission_prover()


def test_nothing_is_overwritten_and_nothing_half_written(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(path.name for path in copy.parent.iterdir())
    with pytest.raises(InvalidKeyFile, match="exists already"):
        make_insecure_development_keys(copy)

    def fail(name: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_insecure_development_keys(copy.parent / "new", on_progress=fail)
    assert sorted(path.name for path in copy.parent.iterdir()) == before


def test_setup_dev_makes_keys_and_warns(tmp_path: Path) -> None:
    done = anofel("setup", "dev", tmp_path / "keys", "--json")
    assert done.returncode == 0, done.stderr
    assert "insecure development setup" in done.stderr
    printed = json.loads(done.stdout)
    assert printed["origin"] == "insecure development setup"
    opened = KeyDirectory.open(tmp_path / "keys")
    assert printed["verification_key_ids"] == {n: opened.verification[n].key_id.hex() for n in STATEMENTS}
    again = anofel("setup", "dev", tmp_path / "keys")
    assert again.returncode == 1
    assert re.fullmatch(r"anofel: .*keys exists already; give the name of a new directory\.\n", again.stderr)


def test_setup_inspect_describes_and_refuses(keys: KeyDirectory, tmp_path: Path) -> None:
    done = anofel("setup", "inspect", keys.path, "--json")
    assert done.returncode == 0, done.stderr
    described = json.loads(done.stdout)
    assert {(key["statement"], key["role"]) for key in described} == {
        (name, role) for name in STATEMENTS for role in ("proving", "verification")
    }
    assert all(key["id_is_pinned"] for key in described)
    assert {key["constraints"] for key in described} == {215, 6256, 4435}
    text = anofel("setup", "inspect", keys.verification["submission"].path)
    assert "client root, iteration nullifier, tag, a, scope" in text.stdout
    (tmp_path / "no.key").write_bytes(b"hello")
    refused = anofel("setup", "inspect", tmp_path / "no.key")
    assert (refused.returncode, refused.stderr) == (1, "anofel: this is not an anofel key file\n")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_setup_export_writes_what_snarkjs_reads(keys: KeyDirectory, tmp_path: Path, statement: str) -> None:
    done = anofel("setup", "export", keys.path, statement, "--example", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    assert "insecure development setup" in done.stderr
    key = json.loads((tmp_path / "out" / "verification_key.json").read_text())
    public = json.loads((tmp_path / "out" / "public.json").read_text())
    assert key["nPublic"] == len(public) == len(key["IC"]) - 1
    assert (tmp_path / "out" / "circuit.r1cs").read_bytes()[:4] == b"r1cs"
    assert (tmp_path / "out" / "witness.wtns").read_bytes()[:4] == b"wtns"


def test_setup_export_converts_a_given_proof(keys: KeyDirectory, tmp_path: Path) -> None:
    from anofel.proofs.export import make_example

    made = make_example("submission")
    proof = keys.submission_prover(threads=1).prove(made.statement, made.witness)
    (tmp_path / "proof").write_bytes(proof.to_bytes())
    inputs = b"".join(made.statement.public_inputs())
    (tmp_path / "inputs").write_bytes(inputs)
    arguments = ["setup", "export", keys.path, "submission", "--proof", tmp_path / "proof"]
    done = anofel(*arguments, "--inputs", tmp_path / "inputs", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    expected = [str(int.from_bytes(inputs[i : i + 32], "little")) for i in range(0, len(inputs), 32)]
    assert json.loads((tmp_path / "out" / "public.json").read_text()) == expected
    (tmp_path / "inputs").write_bytes(inputs[:-32] + b"\xff" * 32)
    refused = anofel(*arguments, "--inputs", tmp_path / "inputs", "--out", tmp_path / "out2")
    assert refused.returncode == 1
    assert "a public input is not canonical" in refused.stderr
    assert not (tmp_path / "out2").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["setup", "export", "KEYS", "nonsense", "--out", "OUT"], 1, "no statement named 'nonsense'"),
        (["setup", "export", "KEYS", "submission", "--out", "KEYS"], 1, "exists already"),
        (
            ["setup", "export", "KEYS", "submission", "--example", "--proof", "x", "--out", "OUT"],
            1,
            "--example",
        ),
        (["setup", "inspect", "OUT"], 1, "cannot be read"),
        (["setup", "nonsense"], 2, "No such command"),
        (["setup", "dev", "--nonsense"], 2, "No such option"),
    ],
)
def test_a_wrong_command_gets_one_sentence(
    keys: KeyDirectory, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    places = {"KEYS": keys.path, "OUT": tmp_path / "out"}
    done = anofel(*(places.get(argument, argument) for argument in arguments))
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_every_error_has_a_stable_code() -> None:
    def leaves(kind: type[AnofelError]) -> list[type[AnofelError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in leaves(child))]

    # Rows of uneven length are rows that do not fit, also for scripts.
    kinds = {kind for kind in leaves(AnofelError) if kind.__name__ != "UnevenRows"}
    codes = [kind.code for kind in kinds]
    assert len(codes) == len(set(codes))
