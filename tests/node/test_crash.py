"""kill -9 of a real process under load: nothing that was accepted is lost, nothing is half-written."""

import hashlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.messages import Posting
from anofel.node.embedded import AcceptedPosting, EmbeddedNode
from anofel.proofs.keys import KeyDirectory
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import BlockStore
from tests.node.faulty_node import POINTS
from tests.node.support import LIMITS, OCTETS, SECONDS, BoardOfTest, NodeProcess, make_board

FAULTY = str(Path(__file__).with_name("faulty_node.py"))


class Load:
    """Posts and uploads from several threads, and remembers every yes."""

    def __init__(self, board: BoardOfTest, number: int) -> None:
        self.waiting = [board.posting().data for _ in range(number)]
        self.accepted: list[bytes] = []
        self.blobs: list[bytes] = []
        self._lock = threading.Lock()

    def run(self, url: str, stop: threading.Event) -> None:
        with ThreadPoolExecutor(4) as pool:
            workers = (self._post, self._post, self._post, self._upload)
            for running in [pool.submit(worker, url, stop) for worker in workers]:
                running.result()

    def _post(self, url: str, stop: threading.Event) -> None:
        with httpx2.Client(base_url=url, timeout=SECONDS) as client:
            while not stop.is_set():
                with self._lock:
                    data = self.waiting.pop() if self.waiting else None
                if data is None:
                    return
                try:
                    answer = client.post("/v1/postings", content=data, headers=OCTETS)
                    assert answer.status_code in (200, 202), answer.text
                except httpx2.HTTPError:
                    with self._lock:
                        self.waiting.append(data)  # no answer: it is sent again after the restart
                    return
                with self._lock:
                    self.accepted.append(data)

    def _upload(self, url: str, stop: threading.Event) -> None:
        with httpx2.Client(base_url=url, timeout=SECONDS) as client:
            while not stop.is_set():
                data = os.urandom(50_000)
                name = hashlib.sha256(data).digest()
                try:
                    answer = client.put(f"/v1/blobs/{name.hex()}", content=data, headers=OCTETS)
                except httpx2.HTTPError:
                    return
                assert answer.status_code == 201, answer.text
                with self._lock:
                    self.blobs.append(name)


def check_history(board: BoardOfTest, keys: KeyDirectory, load: Load) -> int:
    """Follow every block from genesis; every accepted posting is there exactly once. Returns the height."""
    verifier = Verifier(
        board.genesis.hash,
        keys.registration_verifier(threads=1),
        keys.submission_verifier(threads=1),
        DirectoryAttachments(board.directory / "blobs"),
    )
    chain, posted = Chain(State.at_genesis(board.genesis), verifier), Counter[bytes]()
    store = BlockStore(board.directory, read_only=True)
    for height, block in enumerate(store.blocks(1), start=1):
        chain.follow(block)
        store.check_names(height)
        posted.update(block.postings)
    assert chain.state.height == store.height
    store.close()
    assert set(posted.values()) <= {1}
    assert set(load.accepted) <= set(posted)
    assert set(posted) <= set(load.accepted) | set(load.waiting)
    return chain.state.height


def check_before_restart(board: BoardOfTest, load: Load) -> None:
    """Before any repair: what was accepted is in a block or pending, and in one of them only."""
    store = BlockStore(board.directory, read_only=True)
    kept = Counter(data for block in store.blocks(1) for data in block.postings)
    kept.update(store.pending())
    store.close()
    assert set(kept.values()) <= {1}
    assert set(load.accepted) <= set(kept)
    for data in kept:
        Posting.from_bytes(data)


def check_restart(board: BoardOfTest, keys: KeyDirectory, load: Load) -> None:
    """Start again in this process, send again what had no answer, and look at everything."""
    check_before_restart(board, load)
    node = EmbeddedNode(board.directory)
    assert all(verdict.again for verdict in node.admit(load.accepted))
    room = LIMITS.max_postings // 2
    for start in range(0, len(load.waiting), room):
        refused = [
            v for v in node.admit(load.waiting[start : start + room]) if not isinstance(v, AcceptedPosting)
        ]
        assert refused == []
        node.seal()
    for name in load.blobs:
        assert len(node.blobs.read(name)) == 50_000
    assert list((board.directory / "blobs" / "uploads").iterdir()) == []
    node.seal()
    node.close()
    load.accepted += load.waiting
    load.waiting = []
    check_history(board, keys, load)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_named_point(point: str, tmp_path: Path, keys: KeyDirectory) -> None:
    board = make_board(tmp_path / "node", keys)
    load = Load(board, 60)
    times = "1" if point.endswith("append") else "3"
    script = [sys.executable, FAULTY, point, times]
    node = NodeProcess(board.directory, script=script)
    load.run(node.url, threading.Event())
    code, _ = node.wait()
    assert code == -signal.SIGKILL
    check_before_restart(board, load)
    accept_and_crash(board, load)
    check_restart(board, keys, load)


def accept_and_crash(board: BoardOfTest, load: Load) -> None:
    """Start again, accept one posting more, and end without a word before the next block."""
    node = EmbeddedNode(board.directory)
    data = board.posting().data
    (verdict,) = node.admit([data])
    assert isinstance(verdict, AcceptedPosting)
    assert not verdict.again
    load.accepted.append(data)
    node.abandon()


def test_a_full_disk_stops_the_node_with_one_sentence(tmp_path: Path, keys: KeyDirectory) -> None:
    board = make_board(tmp_path / "node", keys, interval_ms=60_000)
    load = Load(board, 120)
    node = NodeProcess(board.directory, script=[sys.executable, FAULTY, "full-disk", "15"])
    with httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        while (answer := client.post("/v1/postings", content=load.waiting[-1], headers=OCTETS)).is_success:
            load.accepted.append(load.waiting.pop())
    assert answer.status_code == 503
    assert answer.json()["code"] == "node-failed"
    assert "/" not in answer.json()["detail"], "strangers need not know where the node lives"
    code, errors = node.wait()
    assert code == 4
    assert "Traceback" not in errors
    assert errors.strip().splitlines()[-1] == (
        f"anofel: The node stopped: The disk of {board.directory} is full."
    )
    assert load.accepted
    check_restart(board, keys, load)


def crash_at_random(board: BoardOfTest, keys: KeyDirectory, rounds: int, seed: int) -> None:
    generator, load = random.Random(seed), Load(board, 60 * rounds)

    def kill(node: NodeProcess, seconds: float, *, after_accepting: bool) -> None:
        deadline = time.monotonic() + SECONDS
        while after_accepting and not load.accepted and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(seconds)
        node.process.kill()

    for number in range(rounds):
        node, stop = NodeProcess(board.directory), threading.Event()
        moment, first = generator.uniform(0.05, 0.6), number == 0
        killer = threading.Thread(target=kill, args=(node, moment), kwargs={"after_accepting": first})
        killer.start()
        load.run(node.url, stop)
        killer.join()
        assert node.wait()[0] == -signal.SIGKILL
        check_before_restart(board, load)
    assert load.accepted
    check_restart(board, keys, load)


def test_killed_at_random_moments(tmp_path: Path, keys: KeyDirectory) -> None:
    crash_at_random(make_board(tmp_path / "node", keys), keys, rounds=3, seed=time.time_ns())


@pytest.mark.slow
def test_killed_at_many_random_moments(tmp_path: Path, keys: KeyDirectory) -> None:
    crash_at_random(make_board(tmp_path / "node", keys), keys, rounds=20, seed=time.time_ns())
