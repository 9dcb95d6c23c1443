"""``anofel client join``: one file, and whom a client trusts stays its own word (``docs/client.md``)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.disk.keystore import KeyFile
from anofel.disk.sections import canonical_json
from anofel.errors import AnofelError, InvalidInput
from anofel.pki.certificates import Purpose
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import JoinDocument, MalformedDocument
from anofel.roles.certifier.role import CertifierOffice
from anofel.roles.client.files import ClientSettings
from anofel.roles.client.join import InvitationRefused, Known
from anofel.roles.directory import read_config
from tests.node.support import SECONDS, BoardOfTest, make_board, running
from tests.roles.people import TYPE, make_certifier, write_table

ANOFEL = [sys.executable, "-m", "anofel"]


@dataclass
class Scene:
    """A board and a certifier at work, and a client's home."""

    board: BoardOfTest
    clinic: Path
    keys: Path
    home: Path

    def invite(self, subject: str = "Ward") -> JoinDocument:
        return CertifierOffice.open(self.clinic).invite_to_join(subject, TYPE)

    def write(self, document: JoinDocument) -> Path:
        path = self.home / "invitation.json"
        path.write_bytes(document.to_bytes() + b"\n")
        return path

    def join(
        self, document: JoinDocument, *more: str, name: str = "ward"
    ) -> subprocess.CompletedProcess[str]:
        rows = self.home / "patients.csv"
        if not rows.exists():
            write_table(rows)
        words = ["--rows", rows, "--keys", self.keys, "--directory", self.home / name]
        words += ["--key-file", self.home / f"{name}.key", "--insecure-test-board", "--json", *more]
        return subprocess.run(
            [*ANOFEL, "client", "join", self.write(document), *words],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@contextmanager
def serving(path: Path, unlock: KeyFile) -> Iterator[str]:
    command = [*ANOFEL, "certifier", "run", path, "--port", "0", "--json", "--key-file", unlock.path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        yield json.loads(text)["url"]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("join")
    board = make_board(home / "board", keys)
    role = board.authority.issue(Purpose.CERTIFIER, "Clinic")
    with running(home / "board") as node:
        path, unlock = make_certifier(home / "clinic", keys, role, board=node.url, genesis=board.genesis.hash)
        command = [*ANOFEL, "certifier", "enroll", path, "--key-file", unlock.path]
        subprocess.run(command, check=True, capture_output=True)
        with serving(path, unlock) as url:
            config = path / "role.toml"
            config.write_text(config.read_text() + f'address = "{url}"\n')
            yield Scene(board, path, keys.path, home)


def test_one_file_and_one_command_make_a_registered_client(scene: Scene) -> None:
    document = scene.invite("Ward 1")
    made = scene.join(document, "--fingerprint", document.fingerprint, "--task", "lung", "--max-epsilon", "2")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["anonymity_set"] >= 1
    again = scene.join(document)
    assert again.returncode == 0, again.stderr
    settings = ClientSettings.of(read_config(scene.home / "ward", role="client"))
    assert settings.floors.max_epsilon == 2, "what the directory was made with stays"
    assert settings.wanted.task == "lung"


def test_defaults_trust_nobody(scene: Scene) -> None:
    rows = write_table(scene.home / "other.csv", seed=5)
    made = scene.join(scene.invite("Ward 2"), "--rows", str(rows), name="careful")
    assert made.returncode == 0, made.stderr
    settings = ClientSettings.of(read_config(scene.home / "careful", role="client"))
    assert settings.floors.max_epsilon == 1
    assert settings.floors.unit == "client"
    assert settings.trust.max_colluders is None, "nothing is trained until somebody says it"
    assert settings.floors.max_colluders is None, "all others may be the owner's own"
    assert settings.trust.min_bundle == 2
    assert settings.wanted.task == settings.wanted.owner == ""
    assert "No task is named" in made.stderr
    assert "Nobody told this client with how many" in made.stderr


@pytest.mark.parametrize(
    "setting", ["max_epsilon", "min_bundle", "max_colluders", "task", "proxy", "allowed_aggregators"]
)
def test_rule_1_an_invitation_cannot_say_whom_a_client_trusts(setting: str) -> None:
    values = json.loads(an_invitation().to_bytes()) | {setting: "1000"}
    with pytest.raises(MalformedDocument):
        JoinDocument.from_bytes(canonical_json(values))


def test_rule_2_another_board_at_the_address_is_no_answer(scene: Scene) -> None:
    """The certifier's hash is that of another genesis: what answers there is not believed."""
    document = scene.invite("Ward 3")
    invited = replace(document.invited(), genesis=bytes(32))
    made = scene.join(replace(document, invitation=invited.to_bytes()), name="lost")
    assert made.returncode == 3, made.stderr
    assert not (scene.home / "lost").exists()


def test_rule_3_a_board_of_test_material_is_joined_only_by_who_says_so(scene: Scene) -> None:
    with pytest.raises(InvitationRefused, match="INSECURE"):
        Known().check_board(scene.board.genesis)
    Known(insecure=True).check_board(scene.board.genesis)
    Known().check_board(replace(scene.board.genesis, insecure=""))


def test_rule_4_rows_are_shown_over_tls() -> None:
    Known().check(an_invitation())
    Known().check(replace(an_invitation(), address="http://127.0.0.1:1"))
    with pytest.raises(InvalidInput, match="https://"):
        Known().check(replace(an_invitation(), address="http://clinic.example"))


def test_rule_5_a_changed_invitation_is_noticed() -> None:
    made = an_invitation()
    Known(fingerprint=made.fingerprint, genesis=made.invited().genesis).check(made)
    for changed in (
        replace(made, address="https://thief.example"),
        replace(made, address_ca="other roots"),
        replace(made, board="https://other.example"),
        replace(made, schema="[]"),
    ):
        with pytest.raises(InvitationRefused, match="fingerprint"):
            Known(fingerprint=made.fingerprint).check(changed)
    with pytest.raises(InvitationRefused, match="another board"):
        Known(genesis=bytes(32)).check(made)


def test_rule_6_keys_are_those_of_genesis(scene: Scene, tmp_path: Path) -> None:
    subprocess.run([*ANOFEL, "setup", "dev", tmp_path / "keys"], check=True, capture_output=True)
    made = scene.join(scene.invite("Ward 4"), "--keys", str(tmp_path / "keys"), name="keyless")
    assert made.returncode == 1
    assert "not the one that the board pins" in made.stderr
    assert not (scene.home / "keyless").exists()


def test_rule_7_a_directory_stays_with_its_board(scene: Scene) -> None:
    document = scene.invite("Ward 5")
    if not (scene.home / "ward").exists():
        assert scene.join(document).returncode == 0
    invited = replace(document.invited(), dt=TYPE + 1)
    made = scene.join(replace(document, invitation=invited.to_bytes()))
    assert made.returncode == 1
    assert "another board or dataset type" in made.stderr


def test_a_hostile_schema_is_a_sentence_not_a_stack_trace(scene: Scene) -> None:
    for schema in ("[" * 50_000, '{"kind": "table\\u0000"}', '{"__proto__": 1}'):
        made = scene.join(replace(scene.invite("Ward 6"), schema=schema), name="nonsense")
        assert made.returncode == 1, made.stderr
        assert "Traceback" not in made.stderr
        assert not (scene.home / "nonsense").exists()


def test_an_invitation_is_a_secret(scene: Scene, tmp_path: Path) -> None:
    assert "redacted" in repr(an_invitation())
    out = tmp_path / "invitation.json"
    words = ["certifier", "invite", str(scene.clinic), "--subject", "Ward 7", "--type", str(TYPE)]
    made = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert made.exit_code == 0, made.output
    assert out.stat().st_mode & 0o777 == 0o600
    assert JoinDocument.read(out).fingerprint in made.output


def test_a_certifier_without_an_address_says_so(scene: Scene, tmp_path: Path) -> None:
    config = read_config(scene.clinic, role="certifier")
    office = CertifierOffice.open(scene.clinic)
    bare = replace(office, config=replace(config, settings={**config.settings, "address": ""}))
    with pytest.raises(AnofelError, match="--token-only"):
        bare.invite_to_join("Ward 8", TYPE)


def an_invitation() -> JoinDocument:
    from anofel.roles.certificate_files import InvitationDocument

    token = InvitationDocument(genesis=bytes(range(32)), certifier=bytes(32), dt=TYPE, token=bytes(32))
    return JoinDocument(
        board="https://board.example",
        board_ca="",
        address="https://clinic.example",
        address_ca="",
        schema="{}",
        invitation=token.to_bytes(),
    )
