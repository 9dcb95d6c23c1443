"""A wrong clock never gets into a block."""

import re
import signal
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from anofel.node import wall_clock
from anofel.node.embedded import EmbeddedNode
from anofel.node.wall_clock import MAX_GAP_SECONDS, MAX_JUMP_SECONDS, ClockJumped, TimeGap, WallClock
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import BlockStore
from tests.node.support import SECONDS, BoardOfTest, NodeProcess, height, make_board, wait_until
from tests.node.test_cli_node import anofel, refused

FIVE_YEARS = 5 * 365 * 86_400


@pytest.fixture
def board(tmp_path: Path, keys: KeyDirectory) -> BoardOfTest:
    return make_board(tmp_path / "node", keys)


def times(board: BoardOfTest) -> list[int]:
    store = BlockStore(board.directory, read_only=True)
    found = [block.header.time for block in store.blocks(1)]
    store.close()
    return found


@pytest.mark.parametrize("jump", [FIVE_YEARS, -FIVE_YEARS, 60])
def test_a_clock_that_is_set_while_the_node_runs_stops_it_and_is_in_no_block(
    board: BoardOfTest, jump: int
) -> None:
    script = [sys.executable, "-m", "tests.node.jumping_clock", str(jump), "node", "run"]
    before = int(time.time())
    node = NodeProcess(board.directory, script=script)
    with httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        wait_until(lambda: height(client) >= 2)
        node.process.send_signal(signal.SIGUSR1)
        code, said = node.wait()
    assert code == 4
    assert "Traceback" not in said
    way = "ahead" if jump > 0 else "back"
    assert re.search(rf"anofel: The node stopped: The clock .* was set {way} by \d+ seconds", said)
    assert before <= min(times(board))
    assert max(times(board)) <= time.time()
    again = EmbeddedNode(board.directory)
    assert again.seal().time <= time.time()
    again.close()


def test_small_corrections_are_no_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, real = WallClock(), time.time
    for shift in (MAX_JUMP_SECONDS - 1, 1 - MAX_JUMP_SECONDS):
        monkeypatch.setattr(wall_clock.time, "time", lambda shift=shift: real() + shift)
        assert abs(clock.now() - real() - shift) < 2
    for shift in (MAX_JUMP_SECONDS + 1, -1 - MAX_JUMP_SECONDS):
        monkeypatch.setattr(wall_clock.time, "time", lambda shift=shift: real() + shift)
        with pytest.raises(ClockJumped):
            clock.now()


def test_jumps_that_are_small_each_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, real = WallClock(), time.time
    for step in range(1, 4):
        monkeypatch.setattr(wall_clock.time, "time", lambda step=step: real() + step * MAX_JUMP_SECONDS * 0.4)
        if step < 3:
            clock.now()
    with pytest.raises(ClockJumped):
        clock.now()


@pytest.mark.parametrize("shift", [FIVE_YEARS, -FIVE_YEARS, MAX_GAP_SECONDS + 60])
def test_a_node_does_not_go_on_over_a_gap_in_time_unless_its_operator_confirms_the_date(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    node = EmbeddedNode(board.directory)
    last = node.seal().time
    node.close()
    real = time.time
    monkeypatch.setattr(wall_clock.time, "time", lambda: real() + shift)
    refused(anofel("run", board.directory, "--port", "0"), "say so once: --today")
    today = datetime.fromtimestamp(real() + shift, UTC).date()
    for wrong in (None, today - timedelta(days=2), today + timedelta(days=2), date(1970, 1, 1)):
        with pytest.raises(TimeGap, match="The last block is of .* and the clock of this machine says"):
            EmbeddedNode(board.directory, today=wrong)
    node = EmbeddedNode(board.directory, today=today)
    node.seal()
    assert node.seal().time == max(last, int(real() + shift)) or shift > 0
    node.close()


def test_the_first_block_is_compared_with_genesis(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(wall_clock.time, "time", lambda: real() + FIVE_YEARS)
    with pytest.raises(TimeGap):
        EmbeddedNode(board.directory)
    monkeypatch.setattr(wall_clock.time, "time", lambda: real() + MAX_GAP_SECONDS / 2)
    EmbeddedNode(board.directory).close()


def test_a_slow_board_has_a_larger_gap(tmp_path: Path) -> None:
    clock, day = WallClock(), 86_400
    clock.check_start(int(time.time()) - 9 * day, interval_ms=day * 1000, directory=tmp_path, today=None)
    with pytest.raises(TimeGap):
        clock.check_start(int(time.time()) - 11 * day, day * 1000, tmp_path, None)


def test_a_clock_behind_the_last_block_is_asked_about(tmp_path: Path) -> None:
    """After a reboot, so that nothing is known of the clock before."""
    clock, now = WallClock(), int(time.time())
    clock.check_start(now + MAX_JUMP_SECONDS - 2, 1000, tmp_path, None)
    with pytest.raises(TimeGap, match="The last block is of"):
        clock.check_start(now + MAX_JUMP_SECONDS + 2, 1000, tmp_path, None)


@pytest.mark.parametrize("shift", [MAX_JUMP_SECONDS + 2, MAX_GAP_SECONDS - 600])
def test_a_clock_that_was_set_by_less_than_a_day_between_two_starts_is_asked_about(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    """What stopped a node as a jump must not be taken by the next start, which comes ten seconds later."""
    EmbeddedNode(board.directory).close()
    real = time.time
    monkeypatch.setattr(wall_clock.time, "time", lambda: real() + shift)
    for _ in range(2):  # a refused start does not make it the truth
        with pytest.raises(TimeGap, match=rf"set ahead by {shift} seconds; .* --today"):
            EmbeddedNode(board.directory)
    assert not times(board)
    EmbeddedNode(board.directory, today=datetime.fromtimestamp(real() + shift, UTC).date()).close()
    EmbeddedNode(board.directory).close()  # said once


def test_small_jumps_between_starts_do_not_add_up(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, step = time.time, MAX_JUMP_SECONDS * 0.4
    for number in range(3):
        monkeypatch.setattr(wall_clock.time, "time", lambda number=number: real() + number * step)
        EmbeddedNode(board.directory).close()
    monkeypatch.setattr(wall_clock.time, "time", lambda: real() + 3 * step)
    with pytest.raises(TimeGap, match="was set ahead"):
        EmbeddedNode(board.directory)


def test_after_a_reboot_the_clock_is_compared_with_the_last_block_alone(
    board: BoardOfTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    EmbeddedNode(board.directory).close()
    real = time.time
    monkeypatch.setattr(wall_clock.time, "time", lambda: real() + 600)
    with pytest.raises(TimeGap, match="was set ahead"):
        EmbeddedNode(board.directory)
    other = tmp_path / "boot_id"
    other.write_text("00000000-0000-4000-8000-000000000000")
    monkeypatch.setattr(wall_clock, "_BOOT_ID", other)
    EmbeddedNode(board.directory).close()
