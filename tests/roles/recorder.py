"""Stands between a client and its node and writes down what a node sees of a request."""

import http.client
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlparse

from tests.node.support import SECONDS

Head = tuple[str, str, tuple[tuple[str, str], ...]]
"""Method, path without numbers and hashes, headers."""


class Recorder:
    """The requests of one client."""

    def __init__(self, node: str) -> None:
        self.node = urlparse(node)
        self.url = ""
        self.paths: list[tuple[str, str]] = []
        self.heads: list[Head] = []
        self.height: Callable[[], int] = lambda: 0
        """What height the client knows; asked at every request."""
        self.sent_at: list[int] = []
        """That height at each request which sends something."""

    def note(self, handler: BaseHTTPRequestHandler) -> None:
        self.paths.append((handler.command, handler.path))
        path = re.sub(r"[0-9a-f]{64}", "<hash>", handler.path)
        path = re.sub(r"from=\d+", "from=<height>", path)
        path = re.sub(r"ticket=[\w=-]+", lambda found: f"ticket=<{len(found[0])}>", path)
        headers = tuple((name, value) for name, value in handler.headers.items() if name != "Host")
        self.heads.append((handler.command, path, headers))
        if handler.command != "GET":
            self.sent_at.append(self.height())

    def forward(self, handler: BaseHTTPRequestHandler) -> None:
        self.note(handler)
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        connection = http.client.HTTPConnection(str(self.node.hostname), self.node.port, timeout=SECONDS)
        headers = {name: value for name, value in handler.headers.items() if name != "Host"}
        connection.request(handler.command, handler.path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        handler.send_response(answer.status)
        handler.send_header("Content-Type", answer.headers.get("Content-Type", ""))
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        connection.close()


@contextmanager
def recording(node: str) -> Iterator[Recorder]:
    recorder = Recorder(node)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            recorder.forward(self)

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    recorder.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
