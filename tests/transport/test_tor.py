"""Register, train and audit through real Tor, to a board that has an onion address only.

1. Every message has a circuit of its own, and no two messages share one.
2. A network that is blocked, or slow, makes nobody post twice in an iteration, and charges nothing twice.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from anofel.board.state import Phase
from anofel.disk.keystore import KeyFile
from anofel.privacy.ledger import Ledger
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.files import LEDGER
from anofel.roles.client.journal import Journal, Turn
from tests.node.support import SECONDS
from tests.roles.people import make_client, open_client
from tests.roles.remote_world import CLASS
from tests.roles.stage import Stage, certify, staged
from tests.transport.tor_network import TorNetwork, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

SLOW = replace(CLASS, post_from=15, train=60)
INTERVAL_MS = 2000
"""A message through Tor takes seconds here; who asks less often than once in two blocks may miss its time."""


@pytest.fixture(scope="module")
def stage(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(keys, tmp_path_factory.mktemp("stage"), size=SLOW, interval_ms=INTERVAL_MS) as made:
        yield made


@pytest.fixture(scope="module")
def tor(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorNetwork]:
    port = urlsplit(stage.node.url).port
    assert port is not None
    with TorNetwork(tmp_path_factory.mktemp("tor"), port) as network:
        yield network


@pytest.fixture(scope="module")
def clients(stage: Stage, tor: TorNetwork, keys: KeyDirectory) -> list[tuple[Path, KeyFile]]:
    """Two clients that know the board by its onion address alone, and registered through it."""
    made = []
    for number in range(2):
        client = make_client(
            stage.directory / f"onion-client-{number}",
            keys,
            board=f"http://{tor.onion}",
            genesis=stage.world.genesis.hash,
            seed=100 + number,
            proxy=tor.proxy,
            task="study 0",
        )
        with open_client(*client) as directory:
            assert directory.config.proxy == tor.proxy
            certify(stage.world, directory, keys)
        made.append(client)
    assert run(stage, "register", made) == [0, 0]
    return made


def start(made: tuple[Path, KeyFile], command: str, log: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "anofel", "client", command, str(made[0])]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*words, "--key-file", str(made[0].parent / "key")], stdout=output, stderr=output
        )


def run(stage: Stage, command: str, clients: list[tuple[Path, KeyFile]]) -> list[int]:
    """Let clients run a command, and all others do their part, until it ends; return the exit codes."""
    logs = [made[0].parent / f"{command}.log" for made in clients]
    processes = [start(made, command, log) for made, log in zip(clients, logs, strict=True)]
    end = time.monotonic() + SECONDS
    try:
        while any(process.poll() is None for process in processes):
            assert time.monotonic() < end, [log.read_text() for log in logs]
            stage.pump()
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes]


def turns_of(made: tuple[Path, KeyFile]) -> list[Turn]:
    return Journal(made[0] / "journal.sqlite").turns()


def posts_of(made: tuple[Path, KeyFile]) -> int:
    return sum(turn.accepted for turn in turns_of(made))


def train(stage: Stage, clients: list[tuple[Path, KeyFile]]) -> None:
    """Let each post once more; a message that takes longer than the margin of the window is too late."""
    left = list(clients)
    for _ in range(5):
        codes = run(stage, "train", left)
        left = [made for made, code in zip(left, codes, strict=True) if code]
        if not left:
            return
    raise AssertionError([(made[0].parent / "train.log").read_text() for made in left])


def check_nothing_twice(stage: Stage, clients: list[tuple[Path, KeyFile]]) -> None:
    for made in clients:
        turns = turns_of(made)
        places = [(turn.bundle, turn.iteration) for turn in turns]
        assert len(places) == len(set(places)), "one turn in an iteration"
        charges = Ledger(made[0] / LEDGER).charges()
        names = [(charge.occasion.bundle, charge.occasion.iteration) for charge in charges]
        assert len(names) == len(set(names)), "one charge for an iteration"


def test_register_train_and_audit_through_tor_each_message_on_a_circuit_of_its_own(
    stage: Stage, tor: TorNetwork, clients: list[tuple[Path, KeyFile]]
) -> None:
    train(stage, clients)
    assert [posts_of(made) for made in clients] == [1, 1]
    done = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", f"http://{tor.onion}", "--proxy", tor.proxy,
         "--genesis", stage.world.genesis.hash.hex(), "--json"],
        capture_output=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout)["genesis"] == stage.world.genesis.hash.hex()
    streams = tor.streams()
    assert len(streams) > 20
    assert all(stream.user for stream in streams)  # (1)
    assert len({stream.user for stream in streams}) == len(streams)
    assert max(Counter(stream.circuit for stream in streams).values()) == 1


def test_a_blocked_network_makes_nobody_post_twice(
    stage: Stage, tor: TorNetwork, clients: list[tuple[Path, KeyFile]]
) -> None:
    """The client's Tor stands still and comes back, again and again, while clients train and post."""
    before = [posts_of(made) for made in clients]
    stop = threading.Event()

    def disturb() -> None:
        while not stop.wait(6):
            tor.client.send_signal(signal.SIGSTOP)
            stop.wait(4)
            tor.client.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        train(stage, clients)
    finally:
        stop.set()
        thread.join()
        tor.client.send_signal(signal.SIGCONT)
    stage.world.remote.wait(
        lambda: stage.world.bundle(stage.bundle_number).phase is not Phase.OPEN, "the close"
    )
    assert [posts_of(made) for made in clients] == [posts + 1 for posts in before]
    check_nothing_twice(stage, clients)  # (2)
    current = stage.world.bundle(stage.bundle_number).current
    assert current is not None
    assert len(current.submissions) <= len(clients)
