"""A light client of several nodes, of which some lie: none of them is believed, and none holds it up."""

import hashlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from anofel.board.attachments import AttachmentMissing
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.light_client import nodes as asking
from anofel.light_client.client import BoardMisbehaved, LightClient
from anofel.messages import Block
from anofel.network.transport import Refused, Transport
from anofel.proofs.keys import KeyDirectory
from tests.board.lying import LIES, LyingNode, hides_blobs, is_silent, keeps_waiting, lags, refuses
from tests.board.two_histories import Histories, serving
from tests.node.support import SECONDS, BoardOfTest, NodeProcess, make_board, running
from tests.transport.servers import HttpServer, answer

ASKED_SOON = 0.5


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a node that is silent; and one of the nodes may lie, though genesis has one."""
    monkeypatch.setattr(asking, "SLOW_SECONDS", ASKED_SOON)
    monkeypatch.setattr(LightClient, "faulty", 1)


@pytest.fixture(scope="module")
def node(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BoardOfTest, str]]:
    board = make_board(tmp_path_factory.mktemp("board") / "node", keys)
    with running(board.directory) as process:
        yield board, process.url


def client_of(board: BoardOfTest, view: Path, *urls: str) -> LightClient:
    transport = Transport(urls, attempts=2, timeout=SECONDS, patience=SECONDS, hurry=30.0)
    return LightClient(view, transport, genesis_hash=board.genesis.hash)


@pytest.mark.parametrize("lie", LIES)
def test_a_client_works_beside_a_lying_node(node: tuple[BoardOfTest, str], tmp_path: Path, lie: str) -> None:
    """It follows, stores a blob, reads it back and posts; whatever the other node says."""
    board, url = node
    with LyingNode(url, LIES[lie]) as liar:
        client = client_of(board, tmp_path / "view", liar.url, url)
        blob = client.upload(lie.encode())
        assert client.attachments.read(blob.sha256) == lie.encode()
        posting = board.posting()
        holds: list[bool] = []
        client.post(posting)
        for _ in range(1000):
            client.sync(on_block=lambda block: holds.append(posting.data in block.postings))
            if any(holds):
                break
        assert any(holds), "the posting came through the honest node"
        client.close()
        assert client_of(board, tmp_path / "view", liar.url, url).state.height == len(holds)
    assert not (tmp_path / "view" / "evidence").exists(), "what nobody signed is evidence of nothing"


def test_most_nodes_may_lie_if_one_honest_one_is_reachable(
    node: tuple[BoardOfTest, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, url = node
    monkeypatch.setattr(LightClient, "faulty", 3)
    with ExitStack() as stack:
        liars = [stack.enter_context(LyingNode(url, lie)) for lie in (lags, keeps_waiting, refuses)]
        client = client_of(board, tmp_path / "view", *(liar.url for liar in liars), url)
        posting = board.posting()
        client.post(posting)
        found: list[bytes] = []
        while posting.data not in found:
            client.sync(on_block=lambda block: found.extend(block.postings))
        client.close()


def test_a_refusal_counts_if_the_own_rules_say_so(node: tuple[BoardOfTest, str], tmp_path: Path) -> None:
    board, url = node
    with LyingNode(url, keeps_waiting) as liar:
        client = client_of(board, tmp_path / "view", url, liar.url)
        role = board.certifier("Twice")
        client.post(board.posting(role))
        client.wait_for(lambda state: any(c.holder for c in state.certifiers.values()), "it", seconds=SECONDS)
        height = client.state.height
        client.wait_for(lambda state: state.height > height + 2, "blocks", seconds=SECONDS)
        with pytest.raises(Refused) as caught:  # the other node takes everything
            for _ in range(20):
                client.post(board.posting(role))
        assert caught.value.code == "certifier-has-key"
        client.close()


def test_two_refusals_of_different_nodes_count_and_two_of_one_do_not(
    node: tuple[BoardOfTest, str], tmp_path: Path
) -> None:
    board, url = node
    with LyingNode(url, refuses) as one, LyingNode(url, refuses) as other:
        both = client_of(board, tmp_path / "both", one.url, other.url)
        both.sync()
        with pytest.raises(Refused) as caught:
            both.post(board.posting())
        assert caught.value.code == "unknown-certifier-root"
        both.close()
        alone = client_of(board, tmp_path / "alone", one.url)
        alone.sync()
        for _ in range(2):
            with pytest.raises(PeerUnreachable, match="neither the rules as they are known here"):
                alone.post(board.posting())
        alone.close()


def test_a_blob_is_missing_only_if_no_node_has_it(node: tuple[BoardOfTest, str], tmp_path: Path) -> None:
    board, url = node
    with LyingNode(url, hides_blobs) as liar:
        client = client_of(board, tmp_path / "view", liar.url, url)
        with pytest.raises(AttachmentMissing):
            client.attachments.read(hashlib.sha256(b"nobody has it").digest())
        client.close()
        alone = client_of(board, tmp_path / "view", liar.url)
        with pytest.raises(PeerUnreachable, match="not believed"):
            alone.upload(b"small")
        alone.close()


def test_a_message_goes_to_a_node_that_is_drawn_for_it(node: tuple[BoardOfTest, str], tmp_path: Path) -> None:
    """No node is preferred, also not after another one failed: a preference would be a mark."""
    board, url = node
    with ExitStack() as stack:
        passed = [stack.enter_context(LyingNode(url, lambda *_: None)) for _ in range(3)]
        client = client_of(board, tmp_path / "view", *(one.url for one in passed))
        for number in range(40):
            client.upload(b"%d" % number)
        asked = [sum(line.startswith("PUT") for line in one.asked) for one in passed]
        assert sum(asked) == 40
        assert min(asked) > 0, "with 2^-22 at most it is chance"
        client.close()
    with HttpServer(answer(500)) as broken, LyingNode(url, lambda *_: None) as good:
        client = client_of(board, tmp_path / "view", broken.url, good.url)
        before = len(broken.requests)
        for number in range(40):
            client.upload(b"%d" % number)
        assert before < len(broken.requests) < before + 40, "asked again and again, and not each time"
        client.close()


def test_what_is_asked_does_not_depend_on_who_asks(node: tuple[BoardOfTest, str], tmp_path: Path) -> None:
    """A poll asks two nodes for the height and any for blocks, whatever the client waits for."""
    board, url = node
    with LyingNode(url, lambda *_: None) as one, LyingNode(url, lambda *_: None) as other:
        client = client_of(board, tmp_path / "view", one.url, other.url)
        one.asked.clear()
        other.asked.clear()
        client.sync()
        for proxy in (one, other):
            assert proxy.asked[0] == "GET /v1/status"
        kinds = {line.partition("?")[0] for proxy in (one, other) for line in proxy.asked}
        assert kinds == {"GET /v1/status", "GET /v1/blocks"}
        client.close()


def test_two_commits_for_one_height_are_evidence_that_a_person_can_show(
    keys: KeyDirectory, tmp_path: Path
) -> None:
    """A node of another history is met although it is not ahead of us."""
    histories = Histories(keys)
    other = Histories.__new__(Histories)
    other.__dict__ = {**histories.__dict__, "blocks": histories.other[:2], "said": {}}
    histories.blocks = histories.honest
    tip = histories.name(histories.other[1]).hex()
    other.said["/v1/status"] = json.dumps({"height": 2, "tip": tip}).encode()
    other.said["/v1/headers"] = _framed(histories.other[1])
    with serving(histories) as url, serving(other) as theirs:
        client = LightClient(
            tmp_path / "view", Transport([url, theirs], attempts=1), genesis_hash=histories.genesis.hash
        )
        with pytest.raises(BoardMisbehaved, match="two different blocks") as caught:
            for _ in range(5):
                client.sync()
        client.close()
    kept = {path.name: Block.from_bytes(path.read_bytes()) for path in caught.value.evidence.iterdir()}
    assert len(kept) == 2
    ours, named = (kept[name] for name in sorted(kept))
    assert ours.header != named.header


def _framed(block: Block) -> bytes:
    data = block.to_bytes()
    return len(data).to_bytes(4, "little") + data


def test_a_false_tip_is_no_evidence(keys: KeyDirectory, tmp_path: Path) -> None:
    histories = Histories(keys)
    histories.said["/v1/status"] = json.dumps({"height": 4, "tip": "00" * 32}).encode()
    with serving(histories) as url:
        client = LightClient(
            tmp_path / "view", Transport(url, attempts=1), genesis_hash=histories.genesis.hash
        )
        client.sync()
        client.sync()
        assert client.state.height == 4
        client.close()


def test_addresses_are_read_and_refused(tmp_path: Path) -> None:
    assert len(Transport(["http://a", "http://a/", "http://b"]).addresses) == 2
    for wrong in ([], ["ftp://a"], [f"http://a{number}" for number in range(33)]):
        with pytest.raises(InvalidInput):
            Transport(wrong)


def test_an_audit_reads_any_node(node: tuple[BoardOfTest, str]) -> None:
    board, url = node
    with LyingNode(url, is_silent) as silent, LyingNode(url, lags) as liar:
        command = [sys.executable, "-m", "anofel", "audit", liar.url, "--board", url, "--json"]
        made = subprocess.run(
            [*command, "--board", silent.url], check=False, capture_output=True, timeout=SECONDS
        )
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["genesis"] == board.genesis.hash.hex()


def test_a_silent_node_costs_its_hurry_alone(node: tuple[BoardOfTest, str], tmp_path: Path) -> None:
    """One that drips for ever is left after its time; the patience of the call is not spent on it."""
    board, url = node
    with HttpServer(_drip) as slow:
        transport = Transport([slow.url, url], patience=SECONDS, timeout=SECONDS, hurry=0.3)
        for _ in range(4):
            assert transport.ask("GET", "/v1/genesis", bytes) == board.genesis.to_bytes()


def _drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def test_a_node_that_is_gone_is_passed_over(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    live = NodeProcess(board.directory)
    try:
        client = client_of(board, tmp_path / "view", "http://127.0.0.1:9", live.url)
        client.sync()
        height = client.state.height
        client.wait_for(lambda state: state.height > height, "a block", seconds=SECONDS)
        client.close()
    finally:
        live.stop()
