"""Development keys that somebody dresses up as more: nothing that reads a key believes it."""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anofel.audit import Auditor
from anofel.board.attachments import MemoryAttachments
from anofel.board.genesis import InvalidGenesis, check_genesis
from anofel.cli import main
from anofel.disk.keystore import KeyFile
from anofel.errors import AnofelError, InvalidCeremony, InvalidKeyFile
from anofel.light_client.client import LightClient
from anofel.messages import Genesis
from anofel.network.transport import Transport
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import TestAuthority
from anofel.proofs.ceremony.verified import UnverifiedCeremony, Verdict, remember
from anofel.proofs.keys import (
    CEREMONY,
    CLAIMED_ORIGIN,
    INSECURE_ORIGIN,
    MANIFEST,
    STATEMENTS,
    VERIFIED_ORIGIN,
    KeyDirectory,
)
from anofel.roles.certifier.role import init_certifier
from anofel.roles.client.files import init_client, own_keys
from anofel.roles.directory import BOARD
from anofel.storage.blocks import GENESIS
from tests.board.world import World
from tests.roles.people import write_policy, write_schema, write_table

ORIGIN, TRANSCRIPT = 14, 15
"""Places in a key file."""
NO_CEREMONY = "claim to come from the ceremony .*which was not verified here"
MIXED = "were not all made in the same way"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine verified is nothing, at first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def copy(keys: KeyDirectory, tmp_path: Path) -> Path:
    shutil.copytree(keys.path, tmp_path / "keys")
    return tmp_path / "keys"


def edit_manifest(path: Path, **changes: Any) -> None:
    content = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(content | changes))


def edit_files(path: Path, *, names: tuple[str, ...] = STATEMENTS, transcript: bytes = bytes(32)) -> None:
    """Write *ceremony* into key files, and their new ids into the manifest."""
    content = json.loads((path / MANIFEST).read_text())
    for name in names:
        for entry in content["keys"][name].values():
            data = bytearray((path / entry["file"]).read_bytes())
            data[ORIGIN] = 1
            data[TRANSCRIPT : TRANSCRIPT + 32] = transcript
            (path / entry["file"]).write_bytes(data)
            entry["id"] = hashlib.sha256(data).hexdigest()
    (path / MANIFEST).write_text(json.dumps(content))


EDITS: list[tuple[Callable[[Path], None], str]] = [
    (lambda path: edit_manifest(path, origin="ceremony"), "has the unknown key 'origin'"),
    (lambda path: edit_manifest(path, origin=INSECURE_ORIGIN), "has the unknown key 'origin'"),
    (lambda path: edit_manifest(path, format=1, origin="ceremony"), "format must be 2, but is 1"),
    (edit_files, "this is not an anofel key file"),
    (lambda path: edit_files(path, transcript=bytes([7]) * 32), NO_CEREMONY),
    (lambda path: edit_files(path, names=("submission",), transcript=bytes([7]) * 32), MIXED),
]


@pytest.mark.parametrize(("edit", "words"), EDITS)
def test_no_edit_makes_development_keys_pass(
    copy: Path,
    tmp_path: Path,
    edit: Callable[[Path], None],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edit(copy)
    if words == NO_CEREMONY:
        assert KeyDirectory.open(copy).origin == CLAIMED_ORIGIN
    else:
        with pytest.raises(InvalidKeyFile, match=words):
            KeyDirectory.open(copy)
    with pytest.raises(AnofelError, match=words):
        init_client(
            tmp_path / "client",
            lambda: b"",  # type: ignore[arg-type,return-value]
            board="http://localhost:1",
            genesis_hash=bytes(32),
            data=tmp_path / "none.csv",
            schema=tmp_path / "none.toml",
            keys=copy,
            settings={},
        )
    for flags in ((), ("--insecure-development-keys",)):
        node = ("node", "init", tmp_path / "node", "--name", "x", "--keys", copy)
        command = ("anofel", *node, "--insecure-test-ca", tmp_path / "ca", *flags)
        monkeypatch.setattr(sys, "argv", list(map(str, command)))
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        assert re.search(words, capsys.readouterr().err.replace("\n", " "))
        assert not (tmp_path / "node").exists()


class Node:
    """A node that serves a genesis and two keys."""

    def __init__(self, genesis: Genesis, keys: KeyDirectory) -> None:
        self._answers = {"/v1/genesis": genesis.to_bytes()}
        self._answers |= {f"/v1/keys/{name}": file.read() for name, file in keys.verification.items()}

    def ask(self, _method: str, path: str, read: Callable[[bytes], object], **_: object) -> object:
        return read(self._answers[path])


def test_a_genesis_that_hides_development_keys_is_refused_by_everybody(
    keys: KeyDirectory, tmp_path: Path
) -> None:
    """Its owner made it with a program of its own, so that no flag was needed."""
    made_up = {"insecure": "test certificate authority", "transcript": TRANSCRIPT_DIGEST}
    hidden = replace(World(keys).genesis, **made_up)
    words = f"registration key comes from an {INSECURE_ORIGIN}, and it does not say so"
    parts = {
        "registration": keys.registration_verifier(threads=1),
        "submission": keys.submission_verifier(threads=1),
    }
    with pytest.raises(InvalidGenesis, match=words):
        World(keys, **made_up)
    with pytest.raises(UnverifiedCeremony, match=NO_CEREMONY):
        LightClient(tmp_path, Node(hidden, keys), genesis_hash=hidden.hash)  # type: ignore[arg-type]
    with pytest.raises(UnverifiedCeremony, match=NO_CEREMONY):
        Auditor(hidden, **parts, attachments=MemoryAttachments())
    remember(verdict_for(keys))  # even then the keys say what they are
    with pytest.raises(InvalidGenesis, match=words):
        LightClient(tmp_path, Node(hidden, keys), genesis_hash=hidden.hash)  # type: ignore[arg-type]
    with pytest.raises(InvalidGenesis, match=words):
        Auditor(hidden, **parts, attachments=MemoryAttachments())


def test_everybody_is_told_what_the_keys_of_a_board_are(keys: KeyDirectory) -> None:
    world = World(keys)
    auditor = Auditor(
        world.genesis,
        registration=keys.registration_verifier(threads=1),
        submission=keys.submission_verifier(threads=1),
        attachments=MemoryAttachments(),
    )
    assert any("could forge proofs" in note for note in auditor.finish().notes)
    assert keys.origin == INSECURE_ORIGIN


TRANSCRIPT_DIGEST = bytes([7]) * 32


def verdict_for(keys: KeyDirectory, **changes: str) -> Verdict:
    pins = {name: key_id.hex() for name, key_id in keys.ids().items()}
    return Verdict(transcript=TRANSCRIPT_DIGEST.hex(), powers="00" * 64, people=3, pins=pins | changes)


def test_only_a_verdict_of_this_machine_makes_keys_verified(copy: Path) -> None:
    """``tests/ceremony`` shows how a verdict comes about; here only that nothing else will do."""
    edit_files(copy, transcript=TRANSCRIPT_DIGEST)
    claimed = KeyDirectory.open(copy)
    kept = remember(verdict_for(claimed))
    opened = KeyDirectory.open(copy)
    assert (opened.origin, opened.is_insecure) == (VERIFIED_ORIGIN, False)
    # The same file among the keys is worth nothing.
    (copy / CEREMONY).mkdir()
    kept.rename(copy / CEREMONY / kept.name)
    assert KeyDirectory.open(copy).origin == CLAIMED_ORIGIN
    with pytest.raises(UnverifiedCeremony, match=NO_CEREMONY):
        KeyDirectory.open(copy).require_verified()


@pytest.mark.parametrize("field", [f"{name}{role}_key" for name in STATEMENTS for role in ("", "_proving")])
def test_a_verdict_is_for_all_six_keys(copy: Path, field: str) -> None:
    edit_files(copy, transcript=TRANSCRIPT_DIGEST)
    remember(verdict_for(KeyDirectory.open(copy), **{field: "00" * 32}))
    assert KeyDirectory.open(copy).origin == CLAIMED_ORIGIN
    words = f"name a {field.replace('_', ' ')} that the verified ceremony .* did not yield"
    with pytest.raises(InvalidCeremony, match=words):
        KeyDirectory.open(copy).require_verified()


def test_a_board_over_a_ceremony_is_used_by_those_who_verified_it(copy: Path, tmp_path: Path) -> None:
    edit_files(copy, transcript=TRANSCRIPT_DIGEST)
    claimed = KeyDirectory.open(copy)
    world_keys = {"insecure": "test certificate authority", **claimed.pins()}
    world = World(claimed, **world_keys)
    parts = {
        "registration": claimed.registration_verifier(threads=1),
        "submission": claimed.submission_verifier(threads=1),
    }
    with pytest.raises(UnverifiedCeremony, match=NO_CEREMONY):
        LightClient(tmp_path, Node(world.genesis, claimed), genesis_hash=world.genesis.hash)  # type: ignore[arg-type]
    with pytest.raises(UnverifiedCeremony, match=NO_CEREMONY):
        Auditor(world.genesis, **parts, attachments=MemoryAttachments())
    remember(verdict_for(claimed))
    client = LightClient(tmp_path, Node(world.genesis, claimed), genesis_hash=world.genesis.hash)  # type: ignore[arg-type]
    assert client.genesis.transcript == TRANSCRIPT_DIGEST
    auditor = Auditor(world.genesis, **parts, attachments=MemoryAttachments())
    assert not any("could forge proofs" in note for note in auditor.finish().notes)


@pytest.mark.parametrize(
    "changes",
    [{"transcript": TRANSCRIPT_DIGEST}, {"insecure": "test certificate authority"}],
)
def test_a_genesis_pins_a_transcript_or_says_development_keys(
    keys: KeyDirectory, changes: dict[str, Any]
) -> None:
    genesis = replace(World(keys).genesis, **changes)
    with pytest.raises(InvalidGenesis, match="pins the transcript of a ceremony or says"):
        check_genesis(genesis)


# A board hands keys out


def fetch_as_client(path: Path, place: Path, genesis: Genesis) -> None:
    init_client(
        path,
        KeyFile.generate(place / "unlock.key"),
        board="http://board.example",
        genesis_hash=genesis.hash,
        data=write_table(place / "patients.csv"),
        schema=write_schema(place / "schema.toml"),
        keys=None,
        settings={"max_epsilon": "2"},
    )


def fetch_as_certifier(path: Path, place: Path, genesis: Genesis) -> None:
    init_certifier(
        path,
        KeyFile.generate(place / "unlock.key"),
        board="http://board.example",
        genesis_hash=genesis.hash,
        role_key=TestAuthority.create().issue(Purpose.CERTIFIER, "Clinic"),
        keys=None,
        policy=write_policy(place),
    )


NOT_YIELDED = "name a ownership key that the verified ceremony .* did not yield"


@pytest.mark.parametrize("fetch", [fetch_as_client, fetch_as_certifier])
@pytest.mark.parametrize(
    ("transcript", "verified", "words"),
    [
        (TRANSCRIPT_DIGEST, False, NO_CEREMONY),
        (bytes(32), False, NO_CEREMONY),
        (TRANSCRIPT_DIGEST, True, NOT_YIELDED),
    ],
    ids=["another ceremony", "no ceremony and no word about it", "keys of another set-up"],
)
def test_keys_of_a_board_are_judged_before_they_are_fetched(
    keys: KeyDirectory,
    tmp_path: Path,
    fetch: Callable[[Path, Path, Genesis], None],
    transcript: bytes,
    verified: bool,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The board serves development keys and says that they come from a ceremony."""
    genesis = replace(World(keys).genesis, insecure="test certificate authority", transcript=transcript)
    asked = list[str]()

    def answer(
        _self: Transport, _method: str, path: str, read: Callable[[bytes], object], **_: object
    ) -> object:
        asked.append(path)
        return read(genesis.to_bytes())

    monkeypatch.setattr(Transport, "ask", answer)
    if verified:
        remember(verdict_for(keys, ownership_key="00" * 32))
    with pytest.raises((UnverifiedCeremony, InvalidCeremony), match=words):
        fetch(tmp_path / "role", tmp_path, genesis)
    assert asked == ["/v1/genesis"]
    assert not (tmp_path / "role").exists()


def test_fetched_keys_are_judged_again_before_they_prove(keys: KeyDirectory, tmp_path: Path) -> None:
    """Somebody put another genesis, and its development keys, where the client keeps the board's."""
    genesis = replace(World(keys).genesis, insecure="", transcript=TRANSCRIPT_DIGEST)
    shutil.copytree(keys.path, tmp_path / BOARD)
    (tmp_path / BOARD / GENESIS).write_bytes(genesis.to_bytes())
    settings = SimpleNamespace(keys=None)
    with pytest.raises(UnverifiedCeremony, match=NO_CEREMONY):
        own_keys(tmp_path, settings)  # type: ignore[arg-type]
    remember(verdict_for(keys))
    assert own_keys(tmp_path, settings).ids() == keys.ids()  # type: ignore[arg-type]
