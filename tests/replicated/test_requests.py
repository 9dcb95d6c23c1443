"""Institutions begin a board together: requests, a genesis, and each takes up its place."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.disk.files import FileExists
from anofel.errors import AnofelError, InvalidInput
from anofel.messages import Genesis
from anofel.node.replicated.node import ReplicatedNode
from anofel.node.replicated.requests import join, make_genesis, read_nonce, read_request
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import TestAuthority, write_role
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import read_genesis

NONCE = "ab" * 32


def command(*words: object) -> dict[str, object]:
    done = CliRunner().invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def ask(authority: TestAuthority, directory: Path, number: int) -> Path:
    """What one institution types."""
    roles = {}
    for purpose in (Purpose.VALIDATOR, Purpose.STORAGE):
        roles[purpose] = directory / f"{purpose.value} {number}"
        write_role(roles[purpose], authority.issue(purpose, f"Clinic {number}"))
    validator, storage = roles[Purpose.VALIDATOR], roles[Purpose.STORAGE]
    files = ("--certificate", validator / "certificate.pem", "--key", validator / "key.pem")
    files += ("--storage-certificate", storage / "certificate.pem", "--storage-key", storage / "key.pem")
    out = directory / f"clinic{number}"
    where = ("--peer", f"10.0.0.{number}:26656", "--url", f"https://clinic{number}.example")
    command("node", "request", out, "--name", f"Clinic {number}", "--nonce", NONCE, *files, *where)
    return out


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> tuple[Path, Genesis]:
    """Four requests and the genesis of the organiser."""
    directory = tmp_path_factory.mktemp("begun")
    authority = TestAuthority.create()
    authority.save(directory / "ca")
    asked = [ask(authority, directory, number) for number in range(4)]
    requests = [word for out in asked for word in ("--request", out / "request.json")]
    made = command(
        *("node", "init", directory / "board", "--name", "Together", "--keys", keys.path),
        *("--root", directory / "ca" / "root.pem", "--nonce", NONCE, "--insecure-development-keys"),
        *requests,
    )
    assert (made["validators"], made["may_be_faulty"]) == (4, 1)
    return directory, read_genesis(directory / "board" / "genesis.bin")


def test_everybody_joins_and_can_open_its_board(
    begun: tuple[Path, Genesis], tmp_path: Path, keys: KeyDirectory
) -> None:
    directory, genesis = begun
    assert genesis.quorum == 3
    for number in range(4):
        own = tmp_path / f"clinic{number}"
        shutil.copytree(directory / f"clinic{number}", own)
        board = directory / "board"
        found = command(
            *("node", "join", own, "--genesis", board / "genesis.bin"),
            *("--network", board / "network.toml", "--keys", keys.path),
        )
        assert found["genesis"] == genesis.hash.hex()
        node = ReplicatedNode(own)
        assert (node.files.place, node.files.holder) == (number, number)
        assert node.network.listen == "0.0.0.0:26656"
        node.abandon()
        with pytest.raises(FileExists, match="joined"):
            join(own, board / "genesis.bin", board / "network.toml", keys)


def test_a_validator_joins_no_genesis_that_changed_its_request(
    begun: tuple[Path, Genesis], tmp_path: Path, keys: KeyDirectory
) -> None:
    directory, genesis = begun
    first, second, *others = genesis.validators
    changes = {
        "more power": {"validators": (replace(first, power=2), second, *others)},
        "another holder": {"holders": (genesis.holders[1], *genesis.holders[1:])},
        "another nonce": {"nonce": bytes(32)},
        "a quorum of one": {"quorum": 1},
        "not in it": {"validators": (second, *others), "holders": genesis.holders[1:]},
    }
    for what, changed in changes.items():
        file = tmp_path / "genesis.bin"
        file.write_bytes(replace(genesis, **changed).to_bytes())  # type: ignore[arg-type]
        own = tmp_path / what
        shutil.copytree(directory / "clinic0", own)
        before = sorted(path.name for path in own.iterdir())
        with pytest.raises(AnofelError):
            join(own, file, directory / "board" / "network.toml", keys)
        assert sorted(path.name for path in own.iterdir()) == before, what


def test_a_genesis_takes_no_request_for_another_nonce_or_with_a_false_binding(
    begun: tuple[Path, Genesis], tmp_path: Path, keys: KeyDirectory
) -> None:
    from anofel.node.init import BoardNumbers, roots_alone

    directory, genesis = begun
    requests = [read_request(directory / f"clinic{number}" / "request.json") for number in range(4)]
    numbers = BoardNumbers(1000, 2, 10, genesis.classes, genesis.limits)
    more = {"trust": roots_alone([directory / "ca" / "root.pem"]), "keys": keys, "clock": numbers}

    def make(changed: list, nonce: str = NONCE) -> None:  # type: ignore[type-arg]
        make_genesis(
            tmp_path / "board",
            changed,
            name="test",
            nonce=read_nonce(nonce),
            allow_insecure_keys=True,
            **more,  # type: ignore[arg-type]
        )

    with pytest.raises(InvalidInput, match="another nonce: Clinic 0"):
        make(requests, "cd" * 32)
    with pytest.raises(InvalidInput, match="validator 1 is not"):
        make([requests[0], replace(requests[1], binding=requests[2].binding), *requests[2:]])
    with pytest.raises(InvalidInput, match="twice"):
        make([requests[0], requests[0]])
    with pytest.raises(InvalidInput, match="64 lower-case"):
        make(requests, "short")
    assert not (tmp_path / "board").exists()
