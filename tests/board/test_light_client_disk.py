"""What the light client keeps: signals, many blocks at once, and what rots on the disk."""

import hashlib
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anofel.board import roots
from anofel.board.chain import Chain
from anofel.disk.keystore import KeyFile
from anofel.errors import PeerUnreachable
from anofel.light_client.client import LightClient
from anofel.messages import Block
from anofel.proofs.keys import KeyDirectory
from anofel.roles.directory import RoleDirectory
from anofel.storage.blocks import BlockStore
from tests.board.prepared import Stages
from tests.board.two_histories import PAGE, Histories, serving, transport
from tests.board.world import TIME


class Stopped(BaseException):
    """A signal, wherever it comes."""


@pytest.mark.parametrize(
    "statement", ["BEGIN IMMEDIATE", "INSERT INTO block", "DELETE FROM pending", "COMMIT"]
)
def test_a_signal_while_a_block_is_written_costs_nothing(
    lying: tuple[Histories, LightClient], statement: str
) -> None:
    histories, client = lying
    histories.blocks = histories.honest
    store, real = client._store, client._store._connection
    store._connection = Interrupted(real, statement)  # type: ignore[assignment]
    with pytest.raises(Stopped):
        client.sync()
    store._connection = real
    assert client.state.height == store.height == (4 if statement == "COMMIT" else 3)
    client.close()  # keeps a snapshot; a write that was cut short is not in its way
    again = LightClient(client.directory, client.transport)
    again.sync()
    assert again.state.height == 4
    again.close()


class Interrupted:
    """A connection during which a signal comes, after a statement was carried out."""

    def __init__(self, connection: sqlite3.Connection, statement: str) -> None:
        self._connection, self._statement = connection, statement

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        made = self._connection.execute(statement, *values)
        if statement.startswith(self._statement):
            raise Stopped
        return made

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)


# Many blocks


def test_quiet_blocks_are_kept_together_and_shown_one_by_one(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys, 300)
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        statements: list[str] = []
        client._store._connection.set_trace_callback(statements.append)
        shown: list[int] = []
        assert client.sync(on_block=lambda block: shown.append(block.header.height)) == 300
        assert shown == list(range(1, 301))
        assert statements.count("COMMIT") == 2, "the first block and all others"
        client.close()
        again = LightClient(tmp_path / "view", transport(url))
        assert (again.state.height, again.state.tip) == (300, client.state.tip)
        again.close()


def test_what_is_shown_is_on_disk_and_the_state_is_that_of_the_block(
    keys: KeyDirectory, tmp_path: Path, stages: Stages
) -> None:
    """Roles act on what they are shown: it must be the state that the block made, and never be forgotten."""
    histories = Histories(keys, 1)
    histories.go_on_as(stages("summed"))
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        shown = []

        def look(block: Block) -> None:
            state, header = client.state, block.header
            shown.append(header.height)
            disk = BlockStore(tmp_path / "view", read_only=True)
            assert disk.header(header.height) == header
            disk.close()
            assert roots.bundles(state) == header.bundles
            assert roots.tasks(state) == header.tasks
            assert roots.committees(state) == header.committees
            assert (roots.clients(state), roots.nullifiers(state)) == (header.clients, header.nullifiers)

        client.sync(on_block=look)
        assert shown == list(range(1, len(histories.blocks) + 1))
        client.close()


@pytest.mark.parametrize("fails_at", [1, 150, 299])
def test_what_ends_a_sync_leaves_the_blocks_before_it(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """A signal, or a blob that cannot be fetched, in the middle of blocks that are kept together."""
    histories = Histories(keys, 300)
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        follow = Chain.follow

        def fail(chain: Chain, block: Block) -> bytes:
            made = follow(chain, block)
            if block.header.height == fails_at:
                raise Stopped
            return made

        monkeypatch.setattr(Chain, "follow", fail)
        with pytest.raises(Stopped):
            client.sync()
        monkeypatch.setattr(Chain, "follow", follow)
        assert client.state.height == client._store.height == fails_at - 1
        assert (
            client.state.tip == [histories.genesis.hash, *map(histories.name, histories.blocks)][fails_at - 1]
        )
        assert client.sync() == 301 - fails_at
        client.close()


def test_only_what_changed_nothing_is_kept_without_being_shown(
    keys: KeyDirectory, tmp_path: Path, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends a sync is no reason for a role to miss a block in which something happened."""
    histories = Histories(keys, 1)
    histories.go_on_as(stages("summed"))
    follow, last = Chain.follow, len(histories.blocks)

    def fail(chain: Chain, block: Block) -> bytes:
        if block.header.height == last:
            raise Stopped
        return follow(chain, block)

    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        monkeypatch.setattr(Chain, "follow", fail)
        shown: list[int] = []
        with pytest.raises(Stopped):
            client.sync(on_block=lambda block: shown.append(block.header.height))
        unseen = set(range(1, client._store.height + 1)) - set(shown)
        client.close()
    assert unseen, "else the contract could promise more"
    headers = {block.header.height: block.header for block in histories.blocks}
    for height in unseen:
        after, block = headers[height], histories.blocks[height - 1]
        moved = {"height": after.height, "time": after.time, "previous": after.previous}
        assert replace(headers[height - 1], **moved, postings=after.postings) == after  # type: ignore[arg-type]
        assert not block.postings


# What rots on our own disk


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_rotten_blob_is_fetched_again(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    name = hashlib.sha256(b"a model").digest()
    histories.said[f"/v1/blobs/{name.hex()}"] = b"a model"
    assert client.attachments.read(name) == b"a model"
    flip(client.attachments.path(name))
    assert client.attachments.read(name) == b"a model"
    assert client.attachments.path(name).read_bytes() == b"a model"
    flip(client.attachments.path(name))
    histories.said[f"/v1/blobs/{name.hex()}"] = PAGE
    with pytest.raises(PeerUnreachable, match="does not have the hash"):
        client.attachments.read(name)


def test_a_rotten_proof_key_is_fetched_again(lying: tuple[Histories, LightClient]) -> None:
    _, client = lying
    client.close()
    path = client.directory / "submission.verification.key"
    sound = path.read_bytes()
    flip(path)
    LightClient(client.directory, client.transport).close()
    assert path.read_bytes() == sound


def test_a_damaged_snapshot_costs_only_time(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        client.sync()
        tip = client.state.tip
        client.close()
        with sqlite3.connect(tmp_path / "view" / "board.sqlite") as connection:
            connection.execute("UPDATE snapshot SET data = x'00'")
        connection.close()
        again = LightClient(tmp_path / "view", transport(url))
        assert again.state.tip == tip
        again.close()


def test_a_role_is_told_when_the_boards_time_is_not_its_own(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories, heard = Histories(keys), list[str]()
    monkeypatch.setattr("anofel.light_client.watch.time.time", lambda: TIME - 5 * 365 * 86_400)
    path, key = tmp_path / "role", KeyFile.generate(tmp_path / "key")
    with serving(histories) as url:
        RoleDirectory.create(path, key, role="owner", board=url, genesis_hash=histories.genesis.hash)
        with RoleDirectory.open(path, key, role="owner") as directory:
            client = directory.connect(heard.append)
            client.sync()
            client.sync()
            client.close()
    (sentence,) = heard
    assert "1825 days apart: one of the clocks is wrong" in sentence
    assert client.watch.trouble is not None
