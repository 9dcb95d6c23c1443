"""Strangers hold thousands of connections, and the board goes on: the attack against a real process."""

import hashlib
import os
import resource
import socket
import ssl
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import httpx2
import pytest

from anofel.proofs.keys import KeyDirectory
from anofel.serving.listening import room_for
from tests.node.certificate import write_tls_files
from tests.node.crowd import Crowd
from tests.node.support import (
    LIMITS,
    OCTETS,
    SECONDS,
    BoardOfTest,
    NodeProcess,
    height,
    make_board,
    running,
    wait_until,
)


def intervals(url: str, blocks: int) -> list[float]:
    """Seconds between blocks, as an event stream shows them to one honest listener."""
    times: list[float] = []
    with httpx2.Client(base_url=url, timeout=SECONDS) as client, client.stream("GET", "/v1/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("id: "):
                times.append(time.monotonic())
            if len(times) > blocks:
                break
    return [after - before for before, after in pairwise(times)]


def served(board: BoardOfTest, url: str) -> float:
    """An honest client posts, uploads and reads on connections of its own; returns how long it took.

    It comes again when it is sent away, as every role does.
    """
    start, end = time.monotonic(), time.monotonic() + SECONDS
    posting, data = board.posting().data, os.urandom(200_000)
    requests = [
        ("POST", "/v1/postings", posting),
        ("PUT", f"/v1/blobs/{hashlib.sha256(data).hexdigest()}", data),
        ("GET", "/v1/status", None),
        ("GET", f"/v1/blobs/{hashlib.sha256(data).hexdigest()}", None),
    ]
    for method, path, content in requests:
        while True:
            assert time.monotonic() < end, "An honest client was not served."
            try:
                answer = httpx2.request(method, f"{url}{path}", content=content, headers=OCTETS, timeout=30)
                if answer.is_success:
                    break
            except httpx2.HTTPError:
                pass
            time.sleep(0.1)
    return time.monotonic() - start


def play(
    board: BoardOfTest, node: NodeProcess, *, idle: int, slow: int, blocks: int
) -> tuple[list[float], list[float], list[float]]:
    """Return the intervals without and with the crowd, and how long honest clients took in it."""
    alone = intervals(node.url, blocks)
    with Crowd(node.url, idle, slow) as crowd:
        assert crowd.complete.wait(SECONDS)
        honest = [served(board, node.url) for _ in range(5)]
        crowded = intervals(node.url, blocks)
        honest += [served(board, node.url) for _ in range(5)]
        assert crowd.cut > 0
        with httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
            assert client.get("/v1/health").status_code == 200
    served(board, node.url)
    return alone, crowded, honest


def test_a_crowd_larger_than_the_node_takes_does_not_stop_it(tmp_path: Path, keys: KeyDirectory) -> None:
    board = make_board(tmp_path / "node", keys, interval_ms=200)
    node = crowded(board, 64)
    try:
        play(board, node, idle=300, slow=60, blocks=5)
        code, said = node.stop()
    finally:
        if node.process.poll() is None:
            node.process.kill()
            node.wait()
    assert code == 0
    assert "Traceback" not in said
    assert len(said.splitlines()) < 10


@pytest.mark.slow
def test_five_thousand_idle_and_five_hundred_slow_connections(
    tmp_path: Path, keys: KeyDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    if room_for(6000) < 6000:
        pytest.skip("This machine lets a process open too few files for the crowd.")
    board = make_board(tmp_path / "node", keys, interval_ms=1000)
    with running(board.directory) as node:
        alone, crowded, honest = play(board, node, idle=5000, slow=500, blocks=20)
        code, said = node.stop()
    assert code == 0
    assert "Traceback" not in said
    assert len(said.splitlines()) < 20
    with capsys.disabled():
        print("\nseconds                      median   most")
        for name, found in (("block interval, alone", alone), ("block interval, crowd", crowded)):
            print(f"{name:28} {median(found):6.3f} {max(found):6.3f}")
        print(f"{'honest: post, put, 2 gets':28} {median(honest):6.3f} {max(honest):6.3f}")
        print(f"crowd / alone, median: {median(crowded) / median(alone):.2f}")


def raw(url: str, data: bytes) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
        connection.sendall(data)
        found = b""
        while piece := connection.recv(4096):
            found += piece
        return found


CHUNKED = b"Host: board\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n"


def test_broken_framing_is_refused_without_a_traceback(tmp_path: Path, keys: KeyDirectory) -> None:
    """A bad chunk before, during and after the answer; two lengths; nonsense."""
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        post = b"POST /v1/postings HTTP/1.1\r\n"
        assert b" 400 " in raw(node.url, post + CHUNKED + b"\r\nnonsense\r\n")
        assert b" 411 " in raw(node.url, post + CHUNKED + b"Connection: close\r\n\r\n3\r\nabc\r\n")
        two = raw(node.url, post + CHUNKED + b"Content-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        assert b" 400 " in two
        assert b"once" in two
        assert b" 400 " in raw(node.url, b"\x16\x03\x01 not http\r\n\r\n")
        host, port = node.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=SECONDS) as connection:
            connection.sendall(post + CHUNKED + b"\r\n3\r\nabc\r\n")
            assert b" 411 " in connection.recv(4096)
            connection.sendall(b"nonsense\r\n")
            while connection.recv(4096):
                pass
        with httpx2.Client(base_url=node.url) as client:
            wait_until(lambda: height(client) > 0)
        code, said = node.stop()
    assert code == 0
    assert "Traceback" not in said
    assert "rror" not in said


def test_a_node_without_descriptors_goes_on_when_it_has_some(tmp_path: Path, keys: KeyDirectory) -> None:
    """The limit of the running process falls below what it has open, and rises again."""
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        number = node.process.pid
        before = resource.prlimit(number, resource.RLIMIT_NOFILE)
        with httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
            wait_until(lambda: height(client) > 0)
            resource.prlimit(number, resource.RLIMIT_NOFILE, (10, before[1]))
            with pytest.raises(httpx2.HTTPError):
                httpx2.get(f"{node.url}/v1/status", timeout=3)
            resource.prlimit(number, resource.RLIMIT_NOFILE, before)
        served(board, node.url)
        code, said = node.stop()
    assert code == 0
    assert "Traceback" not in said
    assert said.count("Too many open files") == 1


def crowded(board: BoardOfTest, most: int, *extra: str) -> NodeProcess:
    script = [sys.executable, "-m", "tests.node.crowded_node", str(most)]
    return NodeProcess(board.directory, *extra, script=script)


def answers(client: httpx2.Client) -> bool:
    """Ask once; who is sent away comes again."""
    try:
        return client.get("/v1/status").status_code == 200
    except httpx2.HTTPError:
        return False


def test_handshakes_that_never_end_do_not_keep_others_out(tmp_path: Path, keys: KeyDirectory) -> None:
    """Below TLS a connection counts as well."""
    board = make_board(tmp_path / "node", keys)
    certificate, key = write_tls_files(tmp_path)
    node = crowded(board, 16, "--tls-certificate", str(certificate), "--tls-key", str(key))
    trust = ssl.create_default_context(cafile=str(certificate))
    host, port = node.url.removeprefix("https://").split(":")
    silent = [socket.create_connection((host, int(port)), timeout=SECONDS) for _ in range(100)]
    try:
        with httpx2.Client(base_url=node.url, verify=trust, timeout=SECONDS) as client:
            wait_until(lambda: answers(client))
            with Crowd(node.url, 100, 0, per_second=100):
                wait_until(lambda: answers(client))
        code, said = node.stop()
    finally:
        for connection in silent:
            connection.close()
        if node.process.poll() is None:
            node.process.kill()
            node.wait()
    assert code == 0
    assert "Traceback" not in said


def test_readers_who_do_not_read_give_their_place(tmp_path: Path, keys: KeyDirectory) -> None:
    limits = replace(LIMITS, max_model_bytes=64 << 20)
    board = make_board(tmp_path / "node", keys, limits=limits)
    node, readers = crowded(board, 16), []
    host, port = node.url.removeprefix("http://").split(":")
    data = os.urandom(32 << 20)
    path = f"/v1/blobs/{hashlib.sha256(data).hexdigest()}"
    try:
        assert (
            httpx2.put(f"{node.url}{path}", content=data, headers=OCTETS, timeout=SECONDS).status_code == 201
        )
        for _ in range(16):
            reader = socket.create_connection((host, int(port)), timeout=SECONDS)
            reader.sendall(f"GET {path} HTTP/1.1\r\nHost: board\r\n\r\n".encode())
            assert reader.recv(100)
            readers.append(reader)
        time.sleep(1.5)
        served(board, node.url)
        code, said = node.stop()
    finally:
        for reader in readers:
            reader.close()
        if node.process.poll() is None:
            node.process.kill()
            node.wait()
    assert code == 0
    assert "Traceback" not in said
