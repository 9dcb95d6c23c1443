"""A board that stands still, and clocks that differ, are named; by clocks of the test."""

import pytest

from anofel.light_client import watch
from anofel.light_client.watch import Watch

NOW = 1_800_000_000
DAY = 86_400


class Clock:
    """Both clocks of a machine."""

    def __init__(self) -> None:
        self.uptime, self.wall = 1000.0, float(NOW)

    def monotonic(self) -> float:
        return self.uptime

    def time(self) -> float:
        return self.wall

    def pass_by(self, seconds: float) -> None:
        self.uptime += seconds
        self.wall += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watch, "time", made)
    return made


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def eye(clock: Clock, heard: list[str]) -> Watch:
    return Watch(5000, heard.append)


def test_an_honest_board_is_not_talked_about(eye: Watch, clock: Clock, heard: list[str]) -> None:
    for height in range(1, 100):
        clock.pass_by(5)
        eye.note_block()
        eye.look(height, int(clock.wall) - 5)
    clock.pass_by(55)
    eye.look(99, int(clock.wall) - 60)
    assert heard == []
    assert eye.trouble is None


def test_a_board_that_stands_still_is_named_with_how_long(eye: Watch, clock: Clock, heard: list[str]) -> None:
    eye.note_block()
    last = int(clock.wall)
    for _ in range(60):
        clock.pass_by(10)
        eye.look(7, last)
    assert [sentence.split(",")[0] for sentence in heard] == [
        "Waiting for block 8 for 70 seconds",
        "Waiting for block 8 for 2 minutes",
        "Waiting for block 8 for 5 minutes",
        "Waiting for block 8 for 9 minutes",
    ]
    assert "one is due every 5 seconds: the board stands still, or its node withholds" in heard[0]
    assert eye.trouble is not None
    eye.note_block()
    eye.look(8, int(clock.wall))
    assert eye.trouble is None
    clock.pass_by(61)
    eye.look(8, int(clock.wall) - 61)
    assert len(heard) == 5, "it is named again when it begins again"


def test_a_long_interval_has_a_longer_patience(clock: Clock, heard: list[str]) -> None:
    slow = Watch(60_000, heard.append)
    clock.pass_by(599)
    slow.look(1, int(clock.wall))
    assert heard == []
    clock.pass_by(2)
    slow.look(1, int(clock.wall))
    assert len(heard) == 1


def test_a_block_of_the_future_is_named_with_both_times(eye: Watch, clock: Clock, heard: list[str]) -> None:
    for height in (1, 2, 3):
        eye.note_block()
        eye.look(height, NOW + 5 * 365 * DAY)
    assert heard == [
        "Block 1 is of 2032-01-14 08:00 UTC and the clock here says 2027-01-15 08:00 UTC, 1825 days apart: "
        "one of the clocks is wrong. The board judges certificates by the time of its blocks."
    ]


def test_a_block_of_the_past_may_be_withheld(eye: Watch, heard: list[str]) -> None:
    eye.note_block()
    eye.look(1, NOW - 3 * DAY)
    assert "3 days apart: the board stands still, its node withholds blocks, or one of the clocks" in heard[0]


@pytest.mark.parametrize("moment", [0, (1 << 64) - 1])
def test_a_time_beyond_the_calendar_is_still_a_sentence(eye: Watch, heard: list[str], moment: int) -> None:
    eye.look(1, moment)
    assert len(heard) == 1
