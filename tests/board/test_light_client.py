"""The light client of a real node: following, posting, waiting, and which board is meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from anofel.board.chain import Chain
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.light_client.client import LightClient, WaitedTooLong
from anofel.messages import Header
from anofel.network.transport import Refused
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import StoreError
from tests.board.two_histories import Histories, serving, transport
from tests.node.support import SECONDS, make_board, running

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
