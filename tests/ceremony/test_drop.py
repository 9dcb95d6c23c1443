"""The drop: turns, time, what it takes and what it refuses; and a ceremony through it over HTTP."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anofel.errors import InvalidCeremony
from anofel.proofs.ceremony.transcript import CeremonyTranscript
from anofel.roles.ceremony.drop import RECEIPT, WAIT_SECONDS, Drop, DropRefused
from tests.ceremony.conftest import BEACON
from tests.ceremony.test_cli_ceremony import anofel

KEY = "ownership.zkey"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def drop(states: list[CeremonyTranscript], tmp_path: Path, clock: Clock) -> Drop:
    return Drop(tmp_path / "drop", states[0], turn_seconds=100, clock=clock)


def next_file(state: CeremonyTranscript) -> bytes:
    return state.contribute("somebody")[0].files[KEY]


def refusal(code: str):  # type: ignore[no-untyped-def]
    return pytest.raises(DropRefused, check=lambda error: error.code == code)


def test_rule_1_one_at_a_time_and_for_a_time(drop: Drop, clock: Clock) -> None:
    first, second = drop.join(), drop.join()
    assert [drop.place(ticket)[0] for ticket in (first, second)] == [0, 1]
    with refusal("not-your-turn"):
        drop.hand_in(second, KEY, b"")
    for clock.now in (50, 99):
        drop.place(second)
    assert drop.place(first) == (0, 1)
    clock.now = 101
    assert drop.place(second) == (0, 100)
    with refusal("ticket-unknown"):
        drop.hand_in(first, KEY, b"")


def test_rule_2_who_does_not_ask_loses_its_place(drop: Drop, clock: Clock) -> None:
    drop.join()
    waiting = drop.join()
    clock.now = WAIT_SECONDS + 1
    with refusal("ticket-unknown"):
        drop.place(waiting)


def test_rule_3_only_what_is_expected_is_handed_in(drop: Drop, states: list[CeremonyTranscript]) -> None:
    ticket = drop.join()
    with refusal("unknown-file"):
        drop.hand_in(ticket, "powers.ptau", b"")
    with refusal("too-large"):
        drop.hand_in(ticket, KEY, bytes(len(states[0].files[KEY]) + 5000))
    with refusal("ticket-unknown"):
        drop.hand_in("nobody", KEY, b"")


def test_rule_4_only_a_good_contribution_is_taken(drop: Drop, states: list[CeremonyTranscript]) -> None:
    ticket = drop.join()
    for data, words in (
        (b"hello", "not a .zkey file"),
        (states[0].files[KEY], "adds 0 contributions"),
        (states[2].files[KEY], "adds 2 contributions"),
    ):
        drop.hand_in(ticket, KEY, data)
        with pytest.raises(InvalidCeremony, match=words):
            drop.take(ticket)
    drop.hand_in(ticket, KEY, next_file(states[0]))
    drop.hand_in(ticket, RECEIPT, states[1].receipts[0].to_bytes())
    with pytest.raises(InvalidCeremony, match="that is not in here"):
        drop.take(ticket)  # somebody else's receipt
    assert not drop.path.exists()


def test_rule_5_a_drop_goes_on_from_its_newest_state(
    drop: Drop, states: list[CeremonyTranscript], digest8: bytes, tmp_path: Path
) -> None:
    states[0].write(tmp_path / "start")
    ticket = drop.join()
    drop.hand_in(ticket, KEY, next_file(drop.state))
    assert drop.take(ticket) == 1
    assert drop.take(ticket) == 1  # the answer got lost
    again = Drop.open(drop.path, tmp_path / "start", other_powers=digest8)
    assert again.state.hashes == drop.state.hashes
    other = states[0].contribute("of another ceremony")[0]
    other.write(tmp_path / "other")
    with refusal("another-ceremony"):
        Drop.open(drop.path, tmp_path / "other", other_powers=digest8)


def test_nobody_joins_a_ceremony_that_has_ended(states: list[CeremonyTranscript], tmp_path: Path) -> None:
    with refusal("ceremony-ended"):
        Drop(tmp_path, states[-1]).join()


def test_contributors_come_by_http(states: list[CeremonyTranscript], digest8: bytes, tmp_path: Path) -> None:
    states[0].write(tmp_path / "c0")
    other = ("--other-powers-of-tau", digest8.hex())
    command = [sys.executable, "-m", "anofel", "setup", "ceremony", "serve", tmp_path / "c0"]
    options = ["--drop", tmp_path / "drop", "--port", "0", "--json", *other]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            printed = "".join(iter(server.stdout.readline, "}\n")) + "}"
            url = json.loads(printed)["url"]
            for name in ("Clinic A", "Clinic B"):
                done = anofel("contribute", url, tmp_path / name, "--name", name, *other)
                assert "It is your turn" in done.stderr
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(600)
    newest = tmp_path / "drop" / "0002"
    anofel("finish", newest, "--beacon", BEACON.hex(), "--out", tmp_path / "end", *other)
    mine = tmp_path / "Clinic A.receipt.json"
    assert "is in." in anofel("verify", tmp_path / "end", "--mine", mine, *other).stdout
