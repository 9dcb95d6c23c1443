"""Requests that are none: changed, cut, contradictory, endless. A real node answers 4xx or hangs up."""

import contextlib
import random
import re
import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2

from anofel.proofs.keys import KeyDirectory
from tests.board.test_fuzz import mutate
from tests.faults.node_process import Findings, LoggedNode, post
from tests.node.support import SECONDS, make_board

CONNECTIONS = 16
ANSWER_SECONDS = 0.5
"""How long an answer is waited for: most of these requests are incomplete and get none."""
_HOST = b"Host: 127.0.0.1\r\n"
_BODY = b"Content-Type: application/octet-stream\r\nContent-Length: 64\r\n"
_CHUNKED = b"Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n"


def _get(path: bytes, *headers: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\n" + _HOST + b"".join(headers) + b"\r\n"


def _write(start: bytes, headers: bytes, body: bytes) -> bytes:
    return start + b" HTTP/1.1\r\n" + _HOST + headers + b"\r\n" + body


_BLOB = b"PUT /v1/blobs/" + b"ab" * 32
"""Its name fits no content that is sent here."""
_POST = b"POST /v1/postings"

READS = [
    *(_get(b"/v1/" + name) for name in (b"genesis", b"status", b"health", b"metrics", b"openapi.json")),
    *(
        _get(b"/v1/keys/" + name)
        for name in (b"registration", b"submission.proving", b"..%2f..%2fnode.key", b"%00")
    ),
    *(
        _get(b"/v1/blocks?from=" + first + b"&limit=" + limit)
        for first in (b"1", b"0", b"-1", b"1e9", b"9" * 40, b"", b"%31", b"\xd9\xa1", b"1&from=2")
        for limit in (b"1", b"0", b"-1", b"99999999999999999999", b"x")
    ),
    *(_get(b"/v1/headers/" + height) for height in (b"1", b"0", b"-1", b"99999999999999999999999", b"..")),
    _get(b"/v1/blobs/" + b"00" * 32),
    _get(b"/v1/blobs/" + b"00" * 32, b"Range: bytes=0-0,5-9\r\n"),
    _get(b"/v1/blobs/" + b"zz" * 32),
    _get(b"/" + b"a" * 70_000),
    _get(b"/v1/status", b"X: " + b"y" * 200_000 + b"\r\n"),
    _get(b"/v1/status", b"X: y\r\n" * 2_000),
    _get(b"/v1/status", b"Content-Length: -1\r\n"),
    _get(b"/v1/status", b"Expect: 100-continue\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"),
    b"GET /v1/status HTTP/9.9\r\n\r\n",
    b"GET http://elsewhere/v1/status HTTP/1.1\r\n" + _HOST + b"\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    b"\r\n" * 50,
    b"\0" * 50,
]
WRITES = [
    *(_write(start, _BODY, bytes(64)) for start in (_POST, _BLOB)),
    *(_write(start, _BODY, b"\x01\x03" + bytes(62)) for start in (_POST, _BLOB)),
    *(_write(start, _CHUNKED, b"40\r\n" + bytes(64) + b"\r\n0\r\n\r\n") for start in (_POST, _BLOB)),
    *(_write(start, _CHUNKED, b"ZZ\r\nnot hex\r\n0\r\n\r\n") for start in (_POST, _BLOB)),
    *(_write(start, _CHUNKED, b"ffffffffffffffffff\r\nx") for start in (_POST, _BLOB)),
    *(_write(start, _BODY + _CHUNKED, b"40\r\n" + bytes(64) + b"\r\n0\r\n\r\n") for start in (_POST, _BLOB)),
    *(_write(start, _BODY + _BODY.replace(b"64", b"65"), bytes(65)) for start in (_POST, _BLOB)),
    *(_write(start, _BODY.replace(b"64", b"9" * 25), bytes(64)) for start in (_POST, _BLOB)),
    *(_write(start, _BODY.replace(b"64", b"0x40"), bytes(64)) for start in (_POST, _BLOB)),
    *(_write(start, b"", b"") for start in (_POST, _BLOB)),
    _write(_POST, b"Content-Type: text/html\r\nContent-Length: 64\r\n", bytes(64)),
    _write(_POST, b"Content-Type: application/json\r\nContent-Length: 6000\r\n", b"[" * 6000),
    _write(b"DELETE /v1/postings", _BODY, bytes(64)),
    _write(b"PUT /v1/postings", _BODY, bytes(64)),
    _write(b"POST /v1/blobs/" + b"ab" * 32, _BODY, bytes(64)),
    _write(b"PUT /v1/blobs/" + b"ab" * 31, _BODY, bytes(64)),
]


def malformed(chance: random.Random) -> bytes:
    """A request of the lists above, most often changed once or more."""
    everything = READS + WRITES
    data = chance.choice(READS if chance.random() < 0.5 else WRITES)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        head = data[:400]  # where the changes matter
        data = mutate(head, chance, everything) + data[400:]
    return data


def _exchange(address: tuple[str, int], data: bytes) -> int:
    """Send bytes and return the status of the first answer; 0 if there is none."""
    try:
        with socket.create_connection(address, timeout=SECONDS) as connection:
            with contextlib.suppress(
                ConnectionError
            ):  # refused before it was all sent: the answer may be there
                connection.sendall(data)
            connection.settimeout(ANSWER_SECONDS)
            answer = b""
            while b"\r\n" not in answer and (piece := connection.recv(4096)):
                answer += piece
    except (TimeoutError, ConnectionResetError, BrokenPipeError):
        return 0
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else 0


def _send(address: tuple[str, int], requests: list[bytes]) -> Findings:
    findings = Findings()
    for data in requests:
        findings.add("malformed requests")
        try:
            status = _exchange(address, data)
        except OSError as error:
            findings.violations.append(f"The node cannot be reached: {error}")
            continue
        reads = data.split(b" ", 1)[0].strip().upper() in (b"GET", b"HEAD", b"OPTIONS")
        findings.add(f"answer: {f'{status // 100}xx' if status else 'none'}")
        if 200 <= status < 300 and not reads and b"GET " not in data:
            findings.violations.append(f"False accept ({status}): {data[:600]!r}")
        elif status == 500:
            findings.violations.append(f"An error inside the node: {data[:600]!r}")
    return findings


def attack(keys: KeyDirectory, number: int, seed: int) -> Findings:
    """Send so many malformed requests to one node, and a good posting after them."""
    findings, chance = Findings(), random.Random(seed)
    requests = (READS + WRITES)[:number]
    requests += [malformed(chance) for _ in range(number - len(requests))]
    with tempfile.TemporaryDirectory() as directory:
        board = make_board(Path(directory) / "node", keys, interval_ms=1000)
        node = LoggedNode(board.directory)
        host, _, port = node.url.removeprefix("http://").rpartition(":")
        parts = [requests[start::CONNECTIONS] for start in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for result in pool.map(_send, [(host, int(port))] * CONNECTIONS, parts):
                findings.take(result)
        if node.process.poll() is None:
            with httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
                answer = post(client, board.posting().data)
            findings.add("good postings")
            if answer.status_code != 202:
                findings.violations.append(f"A good posting was refused: {answer.text}")
        node.end(findings)
    return findings
