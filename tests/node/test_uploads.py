"""Uploads that never end keep nobody else from uploading: the attack against a real process."""

import hashlib
import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from anofel.board.rules import MAX_POSTING_BYTES
from anofel.node import lanes as lanes_module
from anofel.node.board_service import Busy
from anofel.node.files import NodeConfig
from anofel.node.lanes import Lanes
from anofel.proofs.keys import KeyDirectory
from anofel.serving import connections
from anofel.serving.connections import LEAST_RATE
from tests.node.support import LIMITS, OCTETS, SECONDS, make_board, running, wait_until

MIB = 1 << 20


@contextmanager
def slow_uploads(url: str, number: int, length: int) -> Iterator[None]:
    """So many uploads that declare a length and send two bytes per second."""
    address, stop = (urlsplit(url).hostname, urlsplit(url).port), threading.Event()
    taken: list[socket.socket] = []
    for count in range(number):
        connection = socket.create_connection(address, timeout=SECONDS)
        name = hashlib.sha256(b"%d" % count).hexdigest()
        connection.sendall(
            f"PUT /v1/blobs/{name} HTTP/1.1\r\nHost: board\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: {length}\r\n\r\n".encode()
        )
        taken.append(connection)

    def drip() -> None:
        while not stop.wait(0.5):
            for connection in list(taken):
                try:
                    connection.send(b"x")
                except OSError:
                    taken.remove(connection)
                    connection.close()

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        yield
    finally:
        stop.set()
        dripping.join()
        for connection in taken:
            connection.close()


@pytest.mark.parametrize(
    ("length", "pending"), [(MIB, 40 * MIB), (256 * MIB, 10 << 30)], ids=["small", "default"]
)
def test_forty_one_slow_uploads_do_not_stop_an_honest_one(
    tmp_path: Path, keys: KeyDirectory, length: int, pending: int
) -> None:
    """All that may be pending is declared by strangers; the honest one is of the same size class."""
    limits = replace(LIMITS, max_model_bytes=length)
    config = NodeConfig(max_pending_bytes=pending, min_free_bytes=1)
    board = make_board(tmp_path / "node", keys, limits=limits, config=config)
    data = os.urandom(min(length, 17 * MIB))
    path = f"/v1/blobs/{hashlib.sha256(data).hexdigest()}"
    with running(board.directory) as node, httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        with slow_uploads(node.url, 41, length):
            wait_until(lambda: "anofel_blob_uploading_bytes 0" not in client.get("/metrics").text)
            time.sleep(1.5)
            assert client.put(path, content=data, headers=OCTETS).status_code == 201
            assert client.get(path).content == data
        code, said = node.stop()
    assert code == 0
    assert "Traceback" not in said


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_full_lane_takes_the_place_of_the_slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(lanes_module, "time", clock)
    monkeypatch.setattr(lanes_module, "LANES", ((10, 2), (1 << 63, 1)))
    lanes = Lanes()
    with lanes.place(5, "a") as slow, lanes.place(5, "a") as slower:
        with pytest.raises(Busy), lanes.place(5, "a"):
            pass
        with lanes.place(11, "a"), pytest.raises(Busy), lanes.place(1 << 40, "a"):
            pass
        clock.now += 2
        slow.took(100, clock.now)
        with lanes.place(5, "a") as new:
            assert slower.deadline() == slower.begun, "it is called too slow at once"
            assert slow.deadline() > clock.now
            slow.took(3 * LEAST_RATE, clock.now)
            with pytest.raises(Busy), lanes.place(5, "a"):
                pass
            assert new.deadline() > clock.now


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_body_that_is_given_up_is_not_waited_for(anyio_backend: str) -> None:
    import asyncio

    pace = connections.Pace(time.monotonic())
    asyncio.get_running_loop().call_soon(pace.give_up)
    with pytest.raises(TimeoutError):
        async with pace.waiting():
            await asyncio.sleep(3600)
    with pytest.raises(TimeoutError):
        async with pace.waiting():
            await asyncio.sleep(3600)


def test_large_postings_have_places_of_their_own(keys: KeyDirectory, tmp_path: Path) -> None:
    """What waits in memory is bounded: the slowest of them gives way, and small postings need no place."""
    board, large = make_board(tmp_path / "node", keys), MAX_POSTING_BYTES
    most = next(most for longest, most in lanes_module.LANES if large <= longest)
    head = "POST /v1/postings HTTP/1.1\r\nHost: board\r\nContent-Type: application/octet-stream\r\n"
    with running(board.directory) as node, ExitStack() as stack, selectors.DefaultSelector() as selector:
        address = (urlsplit(node.url).hostname, urlsplit(node.url).port)
        client = stack.enter_context(httpx2.Client(base_url=node.url, timeout=SECONDS))
        for _ in range(most):
            connection = stack.enter_context(socket.create_connection(address, timeout=SECONDS))
            connection.sendall(f"{head}Content-Length: {large}\r\n\r\n".encode() + bytes(1000))
            selector.register(connection, selectors.EVENT_READ)
        time.sleep(1.5)
        answer = client.post("/v1/postings", content=bytes(large), headers=OCTETS)
        assert answer.status_code == 400, "it was read, and is no posting"
        answer = client.post("/v1/postings", content=board.posting().data, headers=OCTETS)
        assert answer.status_code == 202
        assert selector.select(SECONDS), "one of them was answered 408"
        assert node.stop()[0] == 0


def test_one_address_does_not_hold_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends a little faster than the least rate, for ever."""
    clock = Clock()
    monkeypatch.setattr(lanes_module, "time", clock)
    monkeypatch.setattr(lanes_module, "LANES", ((1 << 63, 4),))
    lanes = Lanes()
    with ExitStack() as stack:
        held = [stack.enter_context(lanes.place(5, "greedy")) for _ in range(4)]
        clock.now += 60
        for number, pace in enumerate(reversed(held)):
            pace.took(61 * LEAST_RATE + number, clock.now)
        with pytest.raises(Busy), lanes.place(5, "greedy"):
            pass
        with lanes.place(5, "honest"):
            assert held[3].deadline() == held[3].begun, "the slowest gave its place"
            with lanes.place(5, "another"), pytest.raises(Busy), lanes.place(5, "honest"):
                pass
