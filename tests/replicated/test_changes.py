"""Validators that come, leave and take other keys, with real engines and the commands that people type."""

import json
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from anofel.cli import app
from anofel.errors import InvalidInput
from anofel.messages import Block
from anofel.node.files import PLACE, read_place
from anofel.node.replicated.network import NETWORK
from anofel.node.replicated.node import ReplicatedNode
from anofel.node.replicated.requests import REQUEST, join, make_request, read_request
from anofel.pki.certificates import Purpose, RoleKey
from anofel.proofs.keys import KeyDirectory
from tests.node.support import SECONDS, NodeProcess, wait_until
from tests.replicated.support import Validators, free_ports, make_validators, needs_engine, running
from tests.replicated.test_engine import audit, height, height_at, in_a_block


def ask(
    validators: Validators, directory: Path, nonce: bytes | None = None, same: Path | None = None
) -> Path:
    """Make the keys and the request of somebody who is not in genesis, or ``same`` certificates as there."""
    http = free_ports(2)

    def role(purpose: Purpose, name: str, file: str) -> RoleKey:
        if same is not None:
            return RoleKey.from_files(same / f"{file}.pem", same / f"{file}.key")
        return validators.authority.issue(purpose, name)

    make_request(
        directory,
        name="Newcomer",
        nonce=nonce or validators.genesis.nonce,
        validator=role(Purpose.VALIDATOR, "Newcomer", "validator"),
        storage=role(Purpose.STORAGE, "Storage of Newcomer", "storage"),
        listen=f"127.0.0.1:{http + 1}",
        peer=f"127.0.0.1:{http + 1}",
        url=f"http://127.0.0.1:{http}",
    )
    return directory


def take_up(validators: Validators, directory: Path, keys: KeyDirectory, place: int) -> None:
    at = validators.path(0)
    join(directory, at / "genesis.bin", at / NETWORK, keys, place)


def test_who_comes_later_joins_at_a_place_and_follows(keys: KeyDirectory, tmp_path: Path) -> None:
    validators = make_validators(tmp_path, keys, number=4)
    new = ask(validators, tmp_path / "new")
    take_up(validators, new, keys, 4)
    assert read_place(new) == 4
    node = ReplicatedNode(new)
    try:
        assert node.files.holder == 4
        assert len(node.peers) == 4, "it asks all validators of genesis for blocks"
        assert sorted(node.holders._holders) == [0, 1, 2, 3]
    finally:
        node.abandon()
    (new / PLACE).write_text("four\n")
    with pytest.raises(InvalidInput, match="does not hold the place"):
        read_place(new)


def test_a_request_for_another_board_takes_no_place(keys: KeyDirectory, tmp_path: Path) -> None:
    validators = make_validators(tmp_path, keys, number=4)
    new = ask(validators, tmp_path / "new", nonce=bytes(32))
    with pytest.raises(InvalidInput, match="for another board"):
        take_up(validators, new, keys, 4)
    assert not (new / "genesis.bin").exists()


def command(*words: object) -> dict[str, object]:
    done = CliRunner().invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def signers(validators: Validators, number: int) -> set[int]:
    url = f"{validators.url(1)}/v1/blocks/{number}"
    block = Block.from_bytes(httpx2.get(url, timeout=SECONDS).raise_for_status().content)
    assert block.seal is not None
    return {vote.validator for vote in block.seal.votes}


@pytest.mark.slow
def test_a_validator_comes_by_block_sync_and_another_leaves(keys: KeyDirectory, tmp_path: Path) -> None:
    """It fetches all blocks, is proposed, signed and votes; then one of genesis goes; an audit follows it."""
    needs_engine()
    validators = make_validators(tmp_path, keys, number=4, interval_ms=500)
    new = ask(validators, tmp_path / "new")
    with running(validators, 0, 1, 2, 3):
        posted = [validators.offer().posting.data for _ in range(3)]
        for data in posted:
            in_a_block(validators, 1, data)
        take_up(validators, new, keys, 4)
        newcomer = NodeProcess(new, port=int(read_request(new / REQUEST).url.rpartition(":")[2]))
        try:
            wait_until(lambda: height_at(newcomer.url) >= height(validators, 1) - 1 > 0)

            at = height(validators, 1)
            to = ("--board", validators.url(1))
            made = command(
                *("node", "change", validators.path(0), "--request", new / REQUEST, "--since", at + 60, *to)
            )
            assert (made["place"], made["decided"]) == (4, False)
            shown = command("node", "sign", validators.path(1), str(made["change"])[:12], *to)
            assert (shown["comes"], shown["signed_by"]) == ("Newcomer", "0")
            for number in (1, 2):
                last = command(
                    "node", "sign", validators.path(number), str(made["change"])[:12], *to, "--confirm"
                )
            assert last["decided"]
            since = int(str(last["since"]))
            wait_until(lambda: height(validators, 1) >= since + 12)
            status = httpx2.get(f"{validators.url(1)}/v1/status", timeout=SECONDS).json()
            assert (status["validators"], status["may_be_faulty"]) == (5, 1)
            assert any(4 in signers(validators, number) for number in range(since, since + 12))
            assert all(4 not in signers(validators, number) for number in range(since - 3, since))

            at = height(validators, 1)
            made = command("node", "change", new, "--place", 0, "--since", at + 60, *to)
            for number in (1, 2, 3):
                last = command(
                    "node", "sign", validators.path(number), str(made["change"])[:12], *to, "--confirm"
                )
            assert last["decided"]
            since = int(str(last["since"]))
            wait_until(lambda: height(validators, 1) >= since + 6)
            assert all(0 not in signers(validators, number) for number in range(since, since + 6))
            in_a_block(validators, 2, validators.offer().posting.data)
            audit(newcomer.url)
        finally:
            newcomer.stop()
    audit(str(new))


@pytest.mark.slow
def test_a_validator_takes_another_key(keys: KeyDirectory, tmp_path: Path) -> None:
    """Its certificates stay; the others sign, and the new key votes in place of the old one."""
    needs_engine()
    validators = make_validators(tmp_path, keys, number=4, interval_ms=500)
    new = ask(validators, tmp_path / "new", same=validators.path(3))
    with running(validators, 0, 1, 2, 3) as nodes:
        in_a_block(validators, 1, validators.offer().posting.data)
        take_up(validators, new, keys, 3)
        rotated = NodeProcess(new, port=int(read_request(new / REQUEST).url.rpartition(":")[2]))
        try:
            wait_until(lambda: height_at(rotated.url) >= height(validators, 1) - 1 > 0)
            at, to = height(validators, 1), ("--board", validators.url(1))
            made = command(
                *("node", "change", validators.path(3), "--request", new / REQUEST, "--place", 3),
                *("--since", at + 60, *to),
            )
            for number in (0, 1):
                last = command(
                    "node", "sign", validators.path(number), str(made["change"])[:12], *to, "--confirm"
                )
            assert last["decided"]
            since = int(str(last["since"]))
            wait_until(lambda: height(validators, 1) >= since + 3)
            nodes[3].stop()
            nodes[0].process.kill()  # now every block needs the new key
            nodes[0].wait()
            at = height(validators, 1)
            wait_until(lambda: height(validators, 1) >= at + 4)
            assert all(signers(validators, number) == {1, 2, 3} for number in range(at + 2, at + 4))
            in_a_block(validators, 2, validators.offer().posting.data)
            status = httpx2.get(f"{validators.url(1)}/v1/status", timeout=SECONDS).json()
            assert (status["validators"], status["may_be_faulty"]) == (4, 1)
            audit(rotated.url)
        finally:
            rotated.stop()
    audit(str(new))
