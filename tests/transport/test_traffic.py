"""Captured packets: what a line shows of a trainer, of a cover poster, and of who only follows the board.

1. Trainers with few rows and with many, and a cover poster, send messages of the same sizes.
2. Who only follows the board asks what they ask, and sends no post.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.faults.networks import why_not
from tests.node.support import SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

ITERATIONS = 3
LARGE = 1024
"""No question is as long; a posting and its payloads are longer."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.transport.traffic", str(tmp_path_factory.mktemp("traffic"))]
    done = subprocess.run([*command, str(ITERATIONS)], capture_output=True, timeout=4 * SECONDS)
    assert done.returncode == 0, done.stderr.decode()
    return dict(json.loads(done.stdout))


def sizes(found: dict[str, Any], kind: str, direction: str) -> list[int]:
    """The sizes of a client's large messages in all iterations but the first, in which it joined."""
    seen = [entry for entry in found["seen"][kind] if entry["iteration"] > 1]
    return sorted({entry[direction] for entry in seen if entry[direction] > LARGE})


def test_a_cover_poster_sends_what_trainers_send(found: dict[str, Any]) -> None:
    sent = sizes(found, "trainer", "up")
    assert len(sent) == 2, "a posting and payloads"  # (1)
    assert sizes(found, "other trainer", "up") == sent
    assert sizes(found, "cover", "up") == sent
    posted = {entry["iteration"] for entry in found["seen"]["cover"] if entry["up"] == sent[0]}
    assert len(posted) >= ITERATIONS - 1, "a daemon that goes on"  # once it may be late on a busy machine


def test_who_only_follows_the_board_sends_questions_alone(found: dict[str, Any]) -> None:
    assert sizes(found, "idle", "up") == []  # (2)


def test_everybody_asks_the_same_questions(found: dict[str, Any]) -> None:
    questions = {
        kind: {
            entry["up"] for entry in found["seen"][kind] if entry["iteration"] > 1 and entry["up"] <= LARGE
        }
        for kind in found["seen"]
    }
    assert questions["trainer"] == questions["other trainer"] == questions["cover"] == questions["idle"]
