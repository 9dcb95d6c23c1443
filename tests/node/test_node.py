"""The embedded node without a network: admission, restart, what it keeps and what stops it."""

import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.board.attachments import AttachmentMissing
from anofel.board.rule import Rejected
from anofel.node import embedded as node_module
from anofel.node import wall_clock
from anofel.node.embedded import AcceptedPosting, EmbeddedNode, Unverifiable
from anofel.node.files import NodeConfig
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import StoreError
from tests.node.support import LIMITS, BoardOfTest, make_board


@pytest.fixture
def board(tmp_path: Path, keys: KeyDirectory) -> BoardOfTest:
    return make_board(tmp_path / "node", keys)


def test_a_posting_that_is_sent_again_gets_the_same_answer_in_the_block_and_after_it(
    board: BoardOfTest,
) -> None:
    node, data = EmbeddedNode(board.directory), board.posting().data
    first, twin = node.admit([data, data])
    assert first == twin == AcceptedPosting(node_module.posting_id(data), 1, again=False)
    assert node.admit([data]) == [replace(first, again=True)]
    node.seal()
    assert node.admit([data]) == [replace(first, again=True)]
    assert node.store.block(1).postings == (data,)
    node.close()


def test_accepted_postings_survive_a_crash_in_their_order(board: BoardOfTest) -> None:
    node = EmbeddedNode(board.directory)
    postings = [board.posting().data for _ in range(5)]
    node.admit(postings[:2])
    node.admit(postings[2:])
    node.abandon()
    node = EmbeddedNode(board.directory)
    assert all(verdict.again for verdict in node.admit(postings))
    node.seal()
    assert node.store.block(1).postings == tuple(postings)
    node.close()


def test_what_was_accepted_stays_accepted_when_its_certificate_expires_before_the_restart(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = EmbeddedNode(board.directory)
    data = board.posting(board.certifier(seconds=60)).data
    assert isinstance(node.admit([data])[0], AcceptedPosting)
    node.abandon()
    later = time.time() + 3600
    monkeypatch.setattr(wall_clock.time, "time", lambda: later)
    (board.directory / wall_clock.CLOCKS).unlink()  # the machine was off meanwhile
    node = EmbeddedNode(board.directory)
    header = node.seal()
    assert node.store.block(1).postings == (data,)
    assert header.time < later - 3000
    assert node.seal().time == int(later)
    node.close()


def test_a_refused_posting_changes_nothing_and_names_the_rule(board: BoardOfTest) -> None:
    node, role = EmbeddedNode(board.directory), board.certifier("Greedy")
    good, bad = board.posting(role).data, board.posting(role).data
    accepted, refused = node.admit([good, bad])
    assert isinstance(accepted, AcceptedPosting)
    assert isinstance(refused, Rejected)
    assert refused.code == "certifier-has-key"
    assert "Greedy" in refused.culprit
    node.seal()
    assert node.store.block(1).postings == (good,)
    node.close()


def test_a_clean_stop_leaves_nothing_to_replay(board: BoardOfTest) -> None:
    node = EmbeddedNode(board.directory)
    node.admit([board.posting().data])
    node.seal()
    waiting = board.posting().data
    node.admit([waiting])
    node.close()
    replayed: list[tuple[int, int]] = []
    node = EmbeddedNode(board.directory, on_replay=lambda *progress: replayed.append(progress))
    assert replayed == []
    assert node.state.height == 2
    node.seal()
    assert node.store.block(2).postings == (waiting,)
    node.close()


@pytest.mark.parametrize(
    ("config", "replayed"),
    [(NodeConfig(snapshot_blocks=2), 1), (NodeConfig(snapshot_postings=2), 2), (NodeConfig(), 5)],
)
def test_a_snapshot_bounds_what_a_start_verifies(
    tmp_path: Path, keys: KeyDirectory, config: NodeConfig, replayed: int
) -> None:
    board = make_board(tmp_path / "node", keys, config=config)
    node = EmbeddedNode(board.directory)
    for number in range(5):
        if number in (0, 2):
            node.admit([board.posting().data])
        node.seal()
    tip = node.state.tip
    node.abandon()
    seen: list[int] = []
    node = EmbeddedNode(board.directory, on_replay=lambda _done, total: seen.append(total))
    assert len(seen) == replayed
    assert node.state.tip == tip
    node.close()


def test_a_damaged_snapshot_is_replaced_by_a_replay(
    board: BoardOfTest, caplog: pytest.LogCaptureFixture
) -> None:
    node = EmbeddedNode(board.directory)
    node.admit([board.posting().data])
    node.seal()
    tip = node.state.tip
    node.close()
    with sqlite3.connect(board.directory / "board.sqlite") as connection:
        connection.execute("UPDATE snapshot SET data = substr(data, 2)")
    connection.close()
    node = EmbeddedNode(board.directory)
    assert node.state.tip == tip
    assert "verified from genesis" in caplog.text
    node.close()


def test_a_posting_that_cannot_be_verified_harms_no_other(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost blob raises in the middle of a batch: only what is on the disk counts then."""
    node = EmbeddedNode(board.directory)
    early, poison, late = (board.posting().data for _ in range(3))
    check = node._verifier._check_possession
    bad = node_module.Posting.from_bytes(poison).body.key

    def lose(claim):  # type: ignore[no-untyped-def]
        if claim.key == bad:
            raise AttachmentMissing(bytes(32))
        check(claim)

    monkeypatch.setattr(node._verifier, "_check_possession", lose)
    verdicts = node.admit([early, poison, late])
    assert [type(verdict) for verdict in verdicts] == [AcceptedPosting, Unverifiable, AcceptedPosting]
    monkeypatch.undo()
    assert isinstance(node.admit([poison])[0], AcceptedPosting)
    node.seal()
    assert node.store.block(1).postings == (early, late, poison)
    node.close()


def test_a_full_disk_is_one_sentence_and_nothing_is_promised(board: BoardOfTest) -> None:
    node = EmbeddedNode(board.directory)
    ((pages,),) = node.store._connection.execute("PRAGMA page_count").fetchall()
    node.store._connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(StoreError, match="The disk of .* is full"):
        for _ in range(50):
            node.admit([board.posting().data])
    promised = node.store.pending()
    node.abandon()
    node = EmbeddedNode(board.directory)
    node.seal()
    assert list(node.store.block(1).postings) == promised
    node.close()


def test_a_full_block_refuses_and_the_next_one_takes(tmp_path: Path, keys: KeyDirectory) -> None:
    board = make_board(tmp_path / "node", keys, limits=replace(LIMITS, max_postings=1))
    node = EmbeddedNode(board.directory)
    first, second = board.posting().data, board.posting().data
    assert node.admit([first, second])[1].code == "block-full"
    node.seal()
    assert isinstance(node.admit([second])[0], AcceptedPosting)
    node.close()


def test_a_node_counts_by_kind_and_by_code(board: BoardOfTest) -> None:
    node, role = EmbeddedNode(board.directory), board.certifier()
    node.admit([board.posting(role).data, board.posting(role).data, b"nonsense"])
    text = node.metrics.text([("anofel_height", "Height.", 7)])
    assert 'anofel_postings_accepted_total{kind="CertifierKeyOffer"} 1' in text
    assert 'anofel_postings_rejected_total{code="certifier-has-key"} 1' in text
    assert 'anofel_postings_rejected_total{code="malformed-posting"} 1' in text
    assert "anofel_height 7" in text
    node.close()
