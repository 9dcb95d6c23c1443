"""A node never signs a height twice: what it promised is noted apart from its database."""

import os
import shutil
import signal
import sqlite3
from pathlib import Path

import httpx2
import pytest

from anofel.node.embedded import AcceptedPosting, EmbeddedNode
from anofel.node.files import NodeConfig
from anofel.node.signed import (
    SIGNED,
    SLOT_BYTES,
    HistoryLost,
    PostingsLost,
    Promised,
    SignedFile,
    SignedLost,
    check_before_opening,
)
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import FILE, StoreError
from tests.node.support import OCTETS, SECONDS, BoardOfTest, height, make_board, running, wait_until
from tests.node.test_cli_node import anofel, refused

WAL = f"{FILE}-wal"


@pytest.fixture
def board(tmp_path: Path, keys: KeyDirectory) -> BoardOfTest:
    return make_board(tmp_path / "node", keys)


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def killed(board: BoardOfTest) -> tuple[int, list[bytes]]:
    """Run a node with postings in several blocks and kill it; return the height and the postings."""
    accepted = []
    with running(board.directory) as node, httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        for _ in range(4):
            data = board.posting().data
            assert client.post("/v1/postings", content=data, headers=OCTETS).status_code == 202
            accepted.append(data)
            seen = height(client)
            wait_until(lambda seen=seen: height(client) >= seen + 2)  # type: ignore[misc]
        last = height(client)
        node.stop(signal.SIGKILL)
    return last, accepted


def test_a_flipped_bit_in_the_middle_of_the_log_stops_the_node_instead_of_forking(board: BoardOfTest) -> None:
    last, _ = killed(board)
    wal = board.directory / WAL
    flip(wal, wal.stat().st_size // 2)
    damaged = wal.read_bytes()
    refused(anofel("run", board.directory, "--port", "0"), "Going on would fork the board")
    assert wal.read_bytes() == damaged, "what is left of the log stays for whoever repairs it"
    with pytest.raises(HistoryLost, match=r"signed block \d+"):
        EmbeddedNode(board.directory)
    assert last > 0


def test_a_flipped_bit_anywhere_in_the_log_loses_nothing_in_silence(
    board: BoardOfTest, tmp_path: Path
) -> None:
    last, accepted = killed(board)
    size, outcomes = (board.directory / WAL).stat().st_size, set()
    for number in range(24):
        copy = tmp_path / str(number)
        shutil.copytree(board.directory, copy)
        flip(copy / WAL, number * size // 24 + 5)
        try:
            node = EmbeddedNode(copy)
        except StoreError as error:
            outcomes.add(type(error))
            continue
        assert node.store.height >= last
        assert all(isinstance(verdict, AcceptedPosting) and verdict.again for verdict in node.admit(accepted))
        node.close()
        outcomes.add(EmbeddedNode)
    assert HistoryLost in outcomes


def test_a_posting_that_was_answered_is_not_lost_in_silence(board: BoardOfTest) -> None:
    node = EmbeddedNode(board.directory)
    node.seal()
    postings = [board.posting().data for _ in range(3)]
    for data in postings:
        node.admit([data])
    node.abandon()
    with sqlite3.connect(board.directory / FILE) as connection:
        connection.execute("DELETE FROM pending WHERE place = 2")
    connection.close()
    with pytest.raises(PostingsLost, match="some of the 3 postings .* after block 1"):
        EmbeddedNode(board.directory)
    with pytest.raises(PostingsLost):
        EmbeddedNode(board.directory, last_signed=1)
    (board.directory / SIGNED).unlink()
    node = EmbeddedNode(board.directory, last_signed=1)
    assert [verdict.again for verdict in node.admit(postings)] == [True, False, True]
    node.close()


@pytest.mark.parametrize("accepted_before", [False, True])
def test_an_old_copy_of_the_database_is_refused(board: BoardOfTest, accepted_before: bool) -> None:
    node = EmbeddedNode(board.directory)
    node.seal()
    node.close()
    old = (board.directory / FILE).read_bytes()
    node = EmbeddedNode(board.directory)
    if accepted_before:
        node.admit([board.posting().data])
    node.seal()
    node.close()
    newest = (board.directory / FILE).read_bytes()
    (board.directory / FILE).write_bytes(old)
    with pytest.raises(HistoryLost, match="signed block 2"):
        EmbeddedNode(board.directory)
    (board.directory / FILE).unlink()
    with pytest.raises(HistoryLost, match="is missing"):
        EmbeddedNode(board.directory)
    assert not (board.directory / FILE).exists()
    (board.directory / FILE).write_bytes(newest)
    node = EmbeddedNode(board.directory)
    assert node.seal().height == 3
    node.close()


def test_another_block_of_the_same_height_is_refused(board: BoardOfTest, tmp_path: Path) -> None:
    shutil.copytree(board.directory, tmp_path / "twin")
    for directory in (board.directory, tmp_path / "twin"):
        node = EmbeddedNode(directory)
        node.admit([board.posting().data])
        node.seal()
        node.close()
    shutil.copy(tmp_path / "twin" / FILE, board.directory / FILE)
    with pytest.raises(HistoryLost, match="end at 1 or are others"):
        EmbeddedNode(board.directory)


def test_a_lost_note_is_made_again_only_when_the_operator_names_the_last_block(board: BoardOfTest) -> None:
    node = EmbeddedNode(board.directory)
    for _ in range(3):
        node.seal()
    node.close()
    signed = board.directory / SIGNED
    for damage in (signed.unlink, lambda: signed.write_bytes(b"")):
        damage()
        refused(anofel("run", board.directory, "--port", "0"), "start once with --last-signed 3")
        with pytest.raises(HistoryLost, match="end at 3, not at 4"):
            EmbeddedNode(board.directory, last_signed=4)
        EmbeddedNode(board.directory, last_signed=3).close()
        EmbeddedNode(board.directory).close()


def test_a_note_that_was_half_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / SIGNED
    file = SignedFile.make(path, Promised(1, b"a" * 32))
    file.write(Promised(2, b"b" * 32))
    file.write(Promised(3, b"c" * 32))
    file.close()
    assert path.stat().st_size == 2 * SLOT_BYTES
    flip(path, 40)
    file = SignedFile(path)
    assert file.promised == Promised(2, b"b" * 32)
    file.close()
    flip(path, SLOT_BYTES + 40)
    with pytest.raises(SignedLost, match="is damaged"):
        SignedFile(path)


def test_the_note_is_on_the_disk_before_a_block_is_shown_and_a_posting_is_answered(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = EmbeddedNode(board.directory)
    order: list[str] = []
    sync, append, add = os.fdatasync, node.store.append, node.store.add_pending
    monkeypatch.setattr(os, "fdatasync", lambda file: (order.append("noted"), sync(file))[1])
    monkeypatch.setattr(node.store, "append", lambda *a: (order.append("block"), append(*a))[1])
    monkeypatch.setattr(node.store, "add_pending", lambda *a: (order.append("posting"), add(*a))[1])
    node.admit([board.posting().data])
    node.seal()
    assert order == ["posting", "noted", "block", "noted"]
    node.close()


def test_an_orderly_stop_leaves_everything_in_the_main_file(tmp_path: Path, keys: KeyDirectory) -> None:
    board = make_board(tmp_path / "node", keys, config=NodeConfig(snapshot_blocks=5))
    with running(board.directory) as node, httpx2.Client(base_url=node.url) as client:
        wait_until(lambda: height(client) >= 3)
        assert client.get("/v1/blocks?from=1").status_code == 200
        assert (board.directory / WAL).exists()
        assert node.stop()[0] == 0
    assert [path for name in ("*-wal", "*-shm") for path in board.directory.rglob(name)] == []
    with sqlite3.connect(f"file:{board.directory / FILE}?immutable=1", uri=True) as connection:
        assert connection.execute("SELECT max(height) FROM block").fetchone()[0] >= 3
    connection.close()


class Killed(BaseException):
    """Stands for kill -9."""


@pytest.mark.parametrize("point", ["accepting", "sealing"])
def test_two_crashes_with_nothing_lost_leave_a_node_that_starts(
    board: BoardOfTest, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first between the database and the note, the second after one more accepted posting."""

    def die(*_: object) -> None:
        raise Killed

    node = EmbeddedNode(board.directory)
    node.seal()
    postings = [board.posting().data for _ in range(2)]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        if point == "sealing":
            node.admit(postings[:1])
        patch.setattr(SignedFile, "write", die)
        if point == "sealing":
            node.seal()
        node.admit(postings[:1])
    node.abandon()
    node = EmbeddedNode(board.directory)
    node.admit(postings[1:])
    node.abandon()
    node = EmbeddedNode(board.directory)
    assert all(isinstance(verdict, AcceptedPosting) and verdict.again for verdict in node.admit(postings))
    node.close()


@pytest.mark.parametrize("length", [0, 100, SLOT_BYTES, 2 * SLOT_BYTES - 1, 2 * SLOT_BYTES + 1])
def test_a_note_of_another_length_is_lost(length: int, tmp_path: Path) -> None:
    """The slot that is left whole may be the older one."""
    path = tmp_path / SIGNED
    file = SignedFile.make(path, Promised(1, b"a" * 32))
    file.write(Promised(2, b"b" * 32))
    file.close()
    os.truncate(path, length)
    with pytest.raises(SignedLost, match="is damaged"):
        SignedFile(path)


def test_a_check_opens_the_note_for_reading_alone(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    EmbeddedNode(board.directory).close()
    modes: list[int] = []
    opened = os.open

    def watched(path: object, mode: int, *rest: int) -> int:
        if Path(str(path)).name == SIGNED:
            modes.append(mode & os.O_ACCMODE)
        return opened(path, mode, *rest)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(os, "open", watched)
    check_before_opening(board.directory)
    assert modes == [os.O_RDONLY]
