"""What stands between a role and its node may answer anything: pages, redirects, other people's JSON."""

import json

from tests.transport.servers import answer

PROBLEM = "application/problem+json"
PAGE = b"<html>Log in to the network</html>"
NESTED = b"[" * 100_000 + b"]" * 100_000


def problem(code: object, detail: object = "No.", status: int = 409) -> bytes:
    """A refusal in the form that a board writes."""
    body = json.dumps({"type": "about:blank", "code": code, "detail": detail}).encode()
    return answer(status, body, PROBLEM)


NONSENSE = {
    "redirect": answer(301, extra="Location: /elsewhere\r\n"),
    "found": answer(302, PAGE, "text/html"),
    "not modified": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "unauthorized": answer(401),
    "forbidden": answer(403, PAGE, "text/html"),
    "not found": answer(404, b""),
    "proxy authentication": answer(407),
    "server error": answer(500),
    "switching protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n",
    "another's code": problem("quota-exceeded", status=403),
    "a code of another question": problem("not-found", status=404),
    "a number as code": problem(7),
    "words as code": problem("no code!"),
    "long code": problem("x" * 65),
    "empty code": problem(""),
    "no JSON": answer(422, PAGE, PROBLEM),
    "not UTF-8": answer(422, b'{"code": "\xff"}', PROBLEM),
    "nested problem": answer(422, b'{"code": "no", "more": ' + NESTED + b"}", PROBLEM),
    "long problem": answer(422, b'{"code": "no", "detail": "' + b"x" * (1 << 17) + b'"}', PROBLEM),
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "huge length": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\nab",
    "broken chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab",
    "binary headers": b"HTTP/1.1 200 OK\r\n\x00\xff: \x01\r\n\r\nab",
    "empty": answer(body=b""),
    "a page": answer(200, PAGE, "text/html"),
    "nested": answer(200, b'{"height": 1, "more": ' + NESTED + b"}", "application/json"),
    "no height": answer(200, b'{"height": 0}', "application/json"),
    "half a block": answer(200, b"\xff\xff\xff\xff", "application/octet-stream"),
}
"""By what it is; no reader of a board's answers and no list of a board's codes takes any of it."""
