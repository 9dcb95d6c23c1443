"""The light client against a real node, and against nodes that lie."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from anofel.board.chain import Chain
from anofel.board.light_client import BoardMisbehaved, LightClient, WaitedTooLong
from anofel.board.local import LocalBoard
from anofel.board.store import StoreError
from anofel.errors import InvalidInput, PeerUnreachable, VerificationError
from anofel.keys import KeyDirectory
from anofel.messages import Block, Genesis, Header
from anofel.transport import Refused, Transport
from tests.board.world import TIME, World
from tests.node.support import make_board, running


def transport(url: str) -> Transport:
    return Transport(url, attempts=1, patience=10)


# A real node


def test_a_client_posts_follows_and_resumes(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        client = LightClient(tmp_path / "view", transport(node.url), genesis_hash=board.genesis.hash)
        client.post(board.posting())
        client.wait_for(lambda state: len(state.certifiers) == 1, "the posting", seconds=20)
        height = client.state.height
        client.close()
        again = LightClient(tmp_path / "view", transport(node.url))
        assert again.state.height == height
        assert len(again.state.certifiers) == 1
        again.sync()
        assert again.state.height >= height
        again.close()


def test_a_blob_is_stored_with_a_valid_receipt_and_fetched_once(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        client = LightClient(tmp_path / "view", transport(node.url), genesis_hash=board.genesis.hash)
        blob = client.upload(b"a model")
        path = tmp_path / "large"
        path.write_bytes(bytes(300_000))
        assert client.upload(path).length == 300_000
        assert client.attachments.read(blob.sha256) == b"a model"
    assert client.attachments.read(blob.sha256) == b"a model"  # the node is gone
    with pytest.raises(PeerUnreachable):
        client.sync()
    client.close()


def test_a_refusal_carries_the_code_of_the_rule(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        client = LightClient(tmp_path / "view", transport(node.url), genesis_hash=board.genesis.hash)
        role = board.certifier()
        first = board.posting(role)
        client.post(first)
        client.post(first)  # the same bytes again are the same posting
        with pytest.raises(Refused) as caught:
            client.post(board.posting(role))
        assert caught.value.code == "certifier-has-key"
        client.close()


def test_a_wait_ends_and_says_for_what(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        client = LightClient(tmp_path / "view", transport(node.url), genesis_hash=board.genesis.hash)
        heard: list[str] = []
        with pytest.raises(WaitedTooLong, match="for a task"):
            client.wait_for(lambda state: bool(state.tasks), "a task", seconds=0.5, on_wait=heard.append)
        assert set(heard) == {"a task"}
        client.close()


def test_a_block_that_could_not_be_verified_yet_is_taken_later(
    keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        client = LightClient(tmp_path / "view", transport(node.url), genesis_hash=board.genesis.hash)
        client.sync()
        height, seal = client.state.height, Chain.seal

        def no_blob(_chain: Chain) -> Header:
            monkeypatch.setattr(Chain, "seal", seal)
            raise PeerUnreachable("The blob cannot be fetched now.")

        monkeypatch.setattr(Chain, "seal", no_blob)
        with pytest.raises(PeerUnreachable):
            client.wait_for(lambda state: state.height > height, "a block", seconds=20)
        assert client.state.height == height
        client.wait_for(lambda state: state.height > height, "a block", seconds=20)
        client.close()


# Nodes that lie


class Histories:
    """Two histories that one validator signed, and what else a lying node may say."""

    def __init__(self, keys: KeyDirectory) -> None:
        self.world = World(keys)
        self.keys = keys
        self.genesis: Genesis = self.world.genesis
        self.honest = self._blocks(TIME)
        self.other = self._blocks(TIME + 5)
        self.blocks = self.honest
        self.raw: bytes | None = None

    def _blocks(self, time_of_blocks: int) -> list[Block]:
        board = LocalBoard(
            self.genesis,
            validator=self.world.validator,
            storage=self.world.storage,
            registration=self.keys.registration_verifier(threads=1),
            submission=self.keys.submission_verifier(threads=1),
        )
        return [board.next_block(time_of_blocks) for _ in range(4)]

    def answer(self, target: str) -> bytes | None:
        url = urlparse(target)
        if url.path == "/v1/genesis":
            return self.genesis.to_bytes()
        if url.path.startswith("/v1/keys/"):
            return self.keys.verification[url.path.rsplit("/", 1)[1]].path.read_bytes()  # type: ignore[index]
        if url.path == "/v1/status":
            return json.dumps({"height": len(self.blocks)}).encode()
        if url.path == "/v1/blocks":
            first = int(parse_qs(url.query)["from"][0])
            frames = [block.to_bytes() for block in self.blocks[first - 1 :]]
            return self.raw or b"".join(len(data).to_bytes(4, "little") + data for data in frames)
        return None


@contextmanager
def serving(histories: Histories) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = histories.answer(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_values: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def lying(keys: KeyDirectory, tmp_path: Path) -> Iterator[tuple[Histories, LightClient]]:
    histories = Histories(keys)
    with serving(histories) as url:
        histories.blocks = histories.honest[:3]
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        client.sync()
        assert client.state.height == 3
        yield histories, client
        with suppress(StoreError):  # a test may have closed it
            client.close()


def test_a_fork_is_noticed_and_both_blocks_are_kept(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = histories.other
    with pytest.raises(BoardMisbehaved, match="forked") as caught:
        client.sync()
    kept = {path.name: Block.from_bytes(path.read_bytes()) for path in caught.value.evidence.iterdir()}
    assert kept == {"fork-3-ours": histories.honest[2], "fork-3-theirs": histories.other[2]}
    assert client.state.height == 3


def test_a_shorter_history_is_noticed(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = histories.honest[:2]
    with pytest.raises(BoardMisbehaved, match="cut or rewritten"):
        client.sync()


def test_a_block_that_nobody_signed_is_refused(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    forged = replace(histories.honest[3], commit=())
    histories.blocks = [*histories.honest[:3], forged]
    with pytest.raises(BoardMisbehaved, match="0 of 1 votes") as caught:
        client.sync()
    assert Block.from_bytes((caught.value.evidence / "block-4").read_bytes()) == forged
    histories.blocks = histories.honest
    assert client.sync() == 1


def test_a_signed_block_with_a_wrong_root_is_refused(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    wrong = replace(histories.honest[3].header, clients=bytes(32))
    signature = histories.world.validator.sign(wrong.vote_bytes(histories.genesis.hash))
    commit = (replace(histories.honest[3].commit[0], signature=signature),)
    histories.blocks = [*histories.honest[:3], replace(histories.honest[3], header=wrong, commit=commit)]
    with pytest.raises(BoardMisbehaved, match="another root of clients"):
        client.sync()


def test_a_malformed_answer_is_refused(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = histories.honest  # one more than the client has
    histories.raw = b"\x05\0\0\0hello"
    with pytest.raises(BoardMisbehaved, match="malformed"):
        client.sync()


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


# Which board is meant


def test_the_board_must_be_named_once(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        with pytest.raises(InvalidInput, match="which board"):
            LightClient(tmp_path / "view", transport(url))
        with pytest.raises(StoreError, match="genesis"):
            LightClient(tmp_path / "view", transport(url), genesis_hash=bytes(32))
        LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash).close()
        with pytest.raises(StoreError, match="genesis"):
            LightClient(tmp_path / "view", transport(url), genesis_hash=bytes(32))


def test_a_key_that_genesis_does_not_pin_is_refused(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    histories.genesis = replace(histories.genesis, submission_key=bytes(32))
    with serving(histories) as url, pytest.raises(VerificationError, match="pins"):
        LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)


def test_one_process_at_a_time(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        with pytest.raises(StoreError, match="Another process"):
            LightClient(tmp_path / "view", transport(url))
        client.close()


def test_polls_are_jittered_around_the_interval(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        drawn = [client.poll_seconds() for _ in range(500)]
        assert min(drawn) >= 0.8
        assert max(drawn) <= 1.2
        assert len(set(drawn)) > 20
        client.close()


def test_a_block_that_was_half_taken_is_taken_again(keys: KeyDirectory, tmp_path: Path) -> None:
    """A blob could not be fetched while a block was verified; nothing of the block stays behind."""
    histories = Histories(keys)
    with serving(histories) as url:
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        honest = client.chain.offer_many

        def unreachable(_offered: object) -> list[object]:
            raise PeerUnreachable("The blob cannot be fetched.")

        client.chain.offer_many = unreachable  # type: ignore[method-assign,assignment]
        with pytest.raises(PeerUnreachable):
            client.sync()
        assert client.state.height == 0
        assert client.chain.offer_many != honest  # a chain made again from what is stored
        assert client.sync() == 4
        client.close()
