"""kill -9 of a node under load, at random moments and at named points; everything accepted is found again."""

import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from anofel.proofs.keys import KeyDirectory
from tests.faults.node_process import Findings
from tests.node.faulty_node import POINTS
from tests.node.support import SECONDS, NodeProcess, make_board
from tests.node.test_crash import FAULTY, Load, check_before_restart, check_restart

KILLS_PER_BOARD = 12
"""A board has room for 4,096 certifier keys, which are the postings of the load."""
BOARDS_AT_ONCE = 4
"""Most of the time a node starts, or the disk is waited for."""


def _kill_when(node: NodeProcess, load: Load, accepted: int, pause: float) -> None:
    deadline = time.monotonic() + SECONDS
    while len(load.accepted) < accepted and node.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(pause)
    node.process.kill()


def kill_at_random(keys: KeyDirectory, kills: int, accepted: int, seed: int) -> Findings:
    """Kill one board's node so many times, each time after a share of the postings was accepted."""
    findings, chance = Findings(), random.Random(seed)
    share = -(-accepted // kills)
    with tempfile.TemporaryDirectory() as directory:
        board = make_board(Path(directory) / "node", keys)
        load = Load(board, 2 * share * kills + 40)
        for _ in range(kills):
            node = NodeProcess(board.directory)
            wanted = len(load.accepted) + share + chance.randrange(10)
            killer = threading.Thread(target=_kill_when, args=(node, load, wanted, chance.uniform(0, 0.2)))
            killer.start()
            load.run(node.url, threading.Event())
            killer.join()
            code, errors = node.wait()
            if code != -signal.SIGKILL:
                findings.violations.append(f"The node ended by itself with code {code}: {errors}")
            _check(findings, lambda: check_before_restart(board, load))
            findings.add("kills")
        findings.add("accepted postings", len(load.accepted))
        _check(findings, lambda: check_restart(board, keys, load))
    return findings


def kill_at_point(keys: KeyDirectory, point: str) -> Findings:
    """Kill a node at a named point of an admission or of a block."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as directory:
        board = make_board(Path(directory) / "node", keys)
        load = Load(board, 60)
        times = "1" if point.endswith("append") else "3"
        node = NodeProcess(board.directory, script=[sys.executable, FAULTY, point, times])
        load.run(node.url, threading.Event())
        if node.wait()[0] != -signal.SIGKILL:
            findings.violations.append(f"The node was not killed at {point}.")
        findings.add("kills")
        findings.add("accepted postings", len(load.accepted))
        _check(findings, lambda: check_restart(board, keys, load))
    return findings


def _check(findings: Findings, check: Callable[[], None]) -> None:
    try:
        check()
    except AssertionError as error:
        findings.violations.append(f"Something accepted was lost, doubled or damaged: {error}")


def attack(keys: KeyDirectory, kills: int, accepted: int, seed: int) -> Findings:
    """Kill at every named point, and at random moments on boards of their own."""
    jobs: list[Callable[[], Findings]] = [partial(kill_at_point, keys, point) for point in POINTS]
    left = max(1, kills - len(jobs))
    boards = -(-left // KILLS_PER_BOARD)
    for place in range(boards):
        number = left // boards + (place < left % boards)
        share = -(-accepted * number // left)
        jobs.append(partial(kill_at_random, keys, number, share, seed + place))
    findings = Findings()
    with ThreadPoolExecutor(BOARDS_AT_ONCE) as pool:
        for result in pool.map(_run, jobs):
            findings.take(result)
    return findings


def _run(job: Callable[[], Findings]) -> Findings:
    """A node that does not get ready again after a kill is a violation, and the other boards go on."""
    try:
        return job()
    except AssertionError as error:
        return Findings(violations=[f"A board could not go on: {error}"])
