"""Nodes that lie: each stands before an honest node and changes what it says."""

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from anofel.board.framing import frame, unframe
from anofel.errors import MalformedMessage
from anofel.messages import Block, Posting
from tests.transport.servers import Server, answer, read_request

OCTETS: Final = "application/octet-stream"
PROBLEM: Final = "application/problem+json"

Lie = Callable[["LyingNode", str, bytes], bytes | None]
"""From the node, the kind of a request and its bytes to an answer; None to pass the request on."""


class LyingNode(Server):
    """Passes on what it does not lie about."""

    def __init__(self, url: str, lie: Lie) -> None:
        super().__init__()
        host, _, port = url.removeprefix("http://").partition(":")
        self._node, self._lie = (host, int(port)), lie
        self.asked: list[str] = []
        """Every request line without its version."""
        self.lies = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        request = read_request(connection)
        method, path, _ = request.decode("latin-1").split(" ", 2)
        self.asked.append(f"{method} {path}")
        kind = f"{method} {'/'.join(path.partition('?')[0].split('/')[:3])}"
        lie = self._lie(self, kind, request)
        self.lies += lie is not None
        connection.sendall(self.truth(request) if lie is None else lie)

    def truth(self, request: bytes) -> bytes:
        """What the honest node answers."""
        with socket.create_connection(self._node) as onward:
            onward.sendall(request)
            return b"".join(iter(lambda: onward.recv(1 << 16), b""))

    def body(self, request: bytes) -> bytes:
        """What the honest node answers, without its head and out of its chunks."""
        head, _, rest = self.truth(request).partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" not in head.lower():
            return rest
        found = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            found, rest = found + rest[:length], rest[length + 2 :]
        return found


def octets(body: bytes) -> bytes:
    return answer(body=body, content_type=OCTETS, extra="Connection: close\r\n")


def refuses(_node: LyingNode, kind: str, _request: bytes) -> bytes | None:
    """Refuse every posting, with a code that has consequences."""
    body = json.dumps({"code": "unknown-certifier-root", "detail": "No."}).encode()
    return answer(422, body, PROBLEM) if kind == "POST /v1/postings" else None


def keeps_waiting(_node: LyingNode, kind: str, request: bytes) -> bytes | None:
    """Take every posting and give it to nobody."""
    if kind != "POST /v1/postings":
        return None
    posting = Posting.from_bytes(request.partition(b"\r\n\r\n")[2])
    body = json.dumps({"id": posting.id.hex(), "height": None}).encode()
    return answer(202, body, "application/json")


def lags(_node: LyingNode, kind: str, _request: bytes) -> bytes | None:
    """Stand at the first block for ever."""
    if kind == "GET /v1/status":
        return answer(body=b'{"height": 1}', content_type="application/json")
    return octets(b"") if kind in ("GET /v1/blocks", "GET /v1/headers") else None


def claims_more(_node: LyingNode, kind: str, _request: bytes) -> bytes | None:
    """Claim a height that nobody has."""
    return answer(body=b'{"height": 1000000}') if kind == "GET /v1/status" else None


def forges(node: LyingNode, kind: str, request: bytes) -> bytes | None:
    """Change what blocks say, under the same signatures."""
    if kind not in ("GET /v1/blocks", "GET /v1/headers"):
        return None
    return octets(b"".join(frame(_forged(block)) for block in unframe(node.body(request))))


def _forged(block: Block) -> Block:
    return replace(block, header=replace(block.header, time=block.header.time + 1))


def replaces_roots(node: LyingNode, kind: str, request: bytes) -> bytes | None:
    """Say that the last block is another one, and show it: its roots are others, under its own seal."""
    if kind == "GET /v1/status":
        said = json.loads(node.body(request)) | {"tip": "ab" * 32}
        return answer(body=json.dumps(said).encode(), content_type="application/json")
    if kind not in ("GET /v1/blocks", "GET /v1/headers", "GET /v1/names"):
        return None
    try:
        blocks = unframe(node.body(request))
    except MalformedMessage:  # the node itself says no
        return None
    others = [replace(last, header=replace(last.header, tasks=bytes(32))) for last in blocks[-1:]]
    return octets(b"".join(map(frame, [*blocks[:-1], *others])))


def spoils_blobs(_node: LyingNode, kind: str, _request: bytes) -> bytes | None:
    """Hand out other bytes."""
    return octets(b"no such blob") if kind == "GET /v1/blobs" else None


def hides_blobs(_node: LyingNode, kind: str, _request: bytes) -> bytes | None:
    """Say that no blob is here, and that every one is too large."""
    if kind == "GET /v1/blobs":
        return answer(404, b'{"code": "blob-unknown", "detail": "No."}', PROBLEM)
    too_large = answer(413, b'{"code": "blob-too-large", "detail": "No."}', PROBLEM)
    return too_large if kind == "PUT /v1/blobs" else None


def is_silent(_node: LyingNode, _kind: str, _request: bytes) -> bytes | None:
    """Keep everybody waiting."""
    time.sleep(1.5)
    return b""


def talks_nonsense(_node: LyingNode, _kind: str, _request: bytes) -> bytes | None:
    """Answer like a portal."""
    return answer(body=b"<html>Please log in</html>", content_type="text/html")


LIES: Final[dict[str, Lie]] = {
    lie.__name__: lie
    for lie in (
        refuses,
        keeps_waiting,
        lags,
        claims_more,
        forges,
        replaces_roots,
        spoils_blobs,
        hides_blobs,
        is_silent,
        talks_nonsense,
    )
}
