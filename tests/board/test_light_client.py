"""The light client against a real node, and against nodes that lie."""

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from anofel.board import roots
from anofel.board.chain import Chain
from anofel.board.rules.committees import KEY
from anofel.board.verification import _under
from anofel.disk.keystore import KeyFile
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.light_client.client import BoardMisbehaved, LightClient, WaitedTooLong
from anofel.messages import Block, Genesis, Header, Receipt
from anofel.network.transport import Refused, Transport
from anofel.proofs.keys import KeyDirectory
from anofel.roles.directory import RoleDirectory
from anofel.simulation.local_board import LocalBoard
from anofel.storage.blocks import BlockStore, StoreError
from tests.board.prepared import Stages
from tests.board.world import TIME, World
from tests.node.support import SECONDS, make_board, running


def transport(url: str) -> Transport:
    return Transport(url, attempts=1, timeout=SECONDS, patience=SECONDS)


# A real node


def test_a_client_posts_follows_and_resumes(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        client = LightClient(tmp_path / "view", transport(node.url), genesis_hash=board.genesis.hash)
        client.post(board.posting())
        client.wait_for(lambda state: len(state.certifiers) == 1, "the posting", seconds=SECONDS)
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
        assert heard, "it is said at least once, however late"
        assert all(sentence.startswith("Waiting for a task;") for sentence in heard)
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
        heard: list[str] = []
        client.wait_for(lambda state: state.height > height, "a block", seconds=SECONDS, on_wait=heard.append)
        assert any("the board: The blob cannot be fetched now." in sentence for sentence in heard)
        client.close()


# Nodes that lie


class Histories:
    """Two histories that one validator signed, and what else a lying node may say."""

    def __init__(self, keys: KeyDirectory, num_blocks: int = 4) -> None:
        self.world = World(keys)
        self.num_blocks = num_blocks
        self.keys = keys
        self.genesis: Genesis = self.world.genesis
        self.honest = self._blocks(TIME)
        self.other = self._blocks(TIME + 5)
        self.blocks = self.honest
        self.said: dict[str, bytes] = {}
        """What is answered in place of the node, by path."""

    def _blocks(self, time_of_blocks: int) -> list[Block]:
        board = LocalBoard(
            self.genesis,
            validator=self.world.validator,
            storage=self.world.storage,
            registration=self.keys.registration_verifier(threads=1),
            submission=self.keys.submission_verifier(threads=1),
        )
        return [board.next_block(time_of_blocks) for _ in range(self.num_blocks)]

    def resigned(self, block: Block, **changes: bytes) -> Block:
        """Another block that the validator signed."""
        header = replace(block.header, **changes)
        signature = self.world.validator.sign(header.vote_bytes(self.genesis.hash))
        return replace(block, header=header, commit=(replace(block.commit[0], signature=signature),))

    def name(self, block: Block) -> bytes:
        return block.header.hash(self.genesis.hash)

    def answer(self, target: str) -> bytes | None:
        url = urlparse(target)
        if url.path in self.said:
            return self.said[url.path]
        if url.path == "/v1/genesis":
            return self.genesis.to_bytes()
        if url.path.startswith("/v1/keys/"):
            name, _, proving = url.path.rsplit("/", 1)[1].partition(".")
            role = "proving" if proving else "verification"
            return self.keys.file(name, role).path.read_bytes()  # type: ignore[arg-type]
        if url.path == "/v1/status":
            return json.dumps({"height": len(self.blocks)}).encode()
        if url.path == "/v1/blocks":
            first = int(parse_qs(url.query)["from"][0])
            frames = [block.to_bytes() for block in self.blocks[first - 1 :]]
            return b"".join(len(data).to_bytes(4, "little") + data for data in frames)
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

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        do_PUT = do_POST  # noqa: N815 - the name that the library looks for

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


def test_a_fork_is_noticed_when_the_node_hides_the_other_block(lying: tuple[Histories, LightClient]) -> None:
    """A signed block that does not follow our signed one is evidence without the block between."""
    histories, client = lying
    histories.blocks = [*histories.honest[:3], histories.other[3]]
    with pytest.raises(BoardMisbehaved, match="forked") as caught:
        client.sync()
    kept = {path.name: Block.from_bytes(path.read_bytes()) for path in caught.value.evidence.iterdir()}
    assert kept == {"fork-3-ours": histories.honest[2], "fork-3-theirs": histories.other[3]}


def test_a_fork_inside_one_answer_is_noticed(keys: KeyDirectory, tmp_path: Path) -> None:
    """Our side of the evidence is on disk, although the answer that holds it was never finished."""
    histories = Histories(keys)
    with serving(histories) as url:
        histories.blocks = [*histories.honest[:3], histories.other[3]]
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        shown: list[int] = []
        with pytest.raises(BoardMisbehaved, match="forked") as caught:
            client.sync(on_block=lambda block: shown.append(block.header.height))
        assert (caught.value.evidence / "fork-3-ours").exists()
        assert shown == [1, 2, 3]
        assert client.state.height == client._store.height == 3
        client.close()


def test_a_signed_block_with_a_wrong_root_is_refused(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = [*histories.honest[:3], histories.resigned(histories.honest[3], clients=bytes(32))]
    with pytest.raises(BoardMisbehaved, match="another root of clients") as caught:
        client.sync()
    assert Block.from_bytes((caught.value.evidence / "block-4").read_bytes()) == histories.blocks[3]
    histories.blocks = histories.honest
    assert client.sync() == 1


def test_a_first_block_of_another_board_is_refused(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        histories.blocks = [histories.resigned(histories.honest[0], previous=bytes(32))]
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        with pytest.raises(BoardMisbehaved, match="does not follow"):
            client.sync()
        client.close()


# Nonsense: nobody signed it, so it is nobody's fault and no evidence


def unsigned(honest: list[Block]) -> list[Block]:
    return [*honest[:3], replace(honest[3], commit=())]


def other_postings(honest: list[Block]) -> list[Block]:
    """The signed header of a block with postings that it does not name."""
    return [*honest[:3], replace(honest[3], postings=(b"something",))]


def too_low(honest: list[Block]) -> list[Block]:
    return [*honest[:3], honest[1]]


@pytest.mark.parametrize("change", [unsigned, other_postings, too_low])
def test_a_block_that_nobody_signed_is_no_evidence(
    lying: tuple[Histories, LightClient], change: Callable[[list[Block]], list[Block]]
) -> None:
    histories, client = lying
    histories.blocks, chain = change(histories.honest), client.chain
    with pytest.raises(PeerUnreachable, match="did not sign|other blocks"):
        client.sync()
    assert not (client.directory / "evidence").exists()
    assert client.chain is chain, "nothing is loaded again for nonsense"
    histories.blocks = histories.honest
    assert client.sync() == 1


NESTED = b'{"more": ' + b"[" * 100_000 + b"]" * 100_000 + b', "height": 4}'
PAGE = b"<html>Log in to the network</html>"


@pytest.mark.parametrize("path", ["/v1/status", "/v1/blocks"])
@pytest.mark.parametrize(
    "said",
    [
        *(b"", PAGE, NESTED, b"\xff\xfe", b"\x05\0\0\0hello", b"\xff\xff\xff\xff"),
        *(f'{{"height": {height}}}'.encode() for height in ("0", "-1", "1e9", "null", "9" * 30, '"4"')),
    ],
)
def test_nonsense_is_an_unreachable_board(
    lying: tuple[Histories, LightClient], path: str, said: bytes
) -> None:
    histories, client = lying
    histories.blocks = histories.honest  # one more than the client has
    histories.said[path] = said
    with pytest.raises(PeerUnreachable):
        client.sync()
    assert client.state.height == 3
    assert not (client.directory / "evidence").exists()
    del histories.said[path]
    assert client.sync() == 1


def test_a_shorter_history_is_waited_for(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.blocks = histories.honest[:2]
    with pytest.raises(PeerUnreachable, match="states 2 blocks, and 3 are verified here"):
        client.sync()
    heard: list[str] = []

    def come_back(what: str) -> None:
        heard.append(what)
        histories.blocks = histories.honest

    client.wait_for(lambda state: state.height == 4, "block 4", seconds=SECONDS, on_wait=come_back)
    assert "3 are verified here" in heard[0]


def test_a_withheld_tip_is_named(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    histories.said["/v1/status"] = b'{"height": 9}'
    with pytest.raises(PeerUnreachable, match=r"have block 4 and does not hand it out; .* \d+ seconds ago"):
        client.sync()
    histories.blocks = histories.honest
    with pytest.raises(PeerUnreachable, match="have block 5"):
        client.sync()
    assert client.state.height == 4, "what it did hand out is taken"


@pytest.mark.parametrize("said", [PAGE, b"", NESTED, b'{"id": "00", "height": 5}', b'{"height": 5}'])
def test_a_posting_is_taken_when_the_node_says_its_name(
    lying: tuple[Histories, LightClient], said: bytes
) -> None:
    histories, client = lying
    posting = histories.world.offer_certifier_key()
    histories.said["/v1/postings"] = said
    with pytest.raises(PeerUnreachable):
        client.post(posting)
    histories.said["/v1/postings"] = json.dumps({"id": posting.id.hex(), "height": 5}).encode()
    client.post(posting)


def test_a_receipt_that_the_holder_did_not_sign_is_none(lying: tuple[Histories, LightClient]) -> None:
    histories, client = lying
    forged = Receipt(holder=0, expires=9, signature=bytes(64))
    for said in (PAGE, b"", forged.to_bytes(), replace(forged, holder=7).to_bytes()):
        histories.said[f"/v1/blobs/{hashlib.sha256(b'blob').hexdigest()}"] = said
        with pytest.raises(PeerUnreachable):
            client.upload(b"blob")


def test_a_blob_in_the_way_of_nonsense_does_not_accuse_the_board() -> None:
    """A key, sum or share whose blob cannot be fetched now is not refused under its rule."""

    def fetch() -> None:
        raise PeerUnreachable("Somebody else answers.")

    with pytest.raises(PeerUnreachable):
        _under(KEY, fetch)


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
    histories.world = world = stages("summed")
    histories.genesis = world.genesis
    for _ in range(30):
        world.board.next_block()
    histories.blocks = world.board.blocks
    for name, data in world.board.attachments.items():
        histories.said[f"/v1/blobs/{name.hex()}"] = data
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
    histories.world = world = stages("summed")
    histories.genesis = world.genesis
    for _ in range(30):
        world.board.next_block()
    histories.blocks = world.board.blocks
    for name, data in world.board.attachments.items():
        histories.said[f"/v1/blobs/{name.hex()}"] = data
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


# Which board is meant


def test_the_board_must_be_named_once(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    with serving(histories) as url:
        with pytest.raises(InvalidInput, match="which board"):
            LightClient(tmp_path / "view", transport(url))
        with pytest.raises(PeerUnreachable, match="has the genesis"):
            LightClient(tmp_path / "view", transport(url), genesis_hash=bytes(32))
        LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash).close()
        with pytest.raises(StoreError, match="genesis"):
            LightClient(tmp_path / "view", transport(url), genesis_hash=bytes(32))


def test_a_key_that_genesis_does_not_pin_is_refused(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    histories.genesis = replace(histories.genesis, submission_key=bytes(32))
    with serving(histories) as url, pytest.raises(PeerUnreachable, match="pins"):
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
