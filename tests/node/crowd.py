"""Strangers who hold connections: silent ones, slow ones, and readers who do not read."""

import contextlib
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

SLOW_HEAD = b"GET /v1/status HTTP/1.1\r\nHost: board\r\nX-Slow: " + b"a" * 100_000
SLOW_BODY = (
    b"POST /v1/postings HTTP/1.1\r\nHost: board\r\nContent-Type: application/octet-stream\r\n"
    b"Content-Length: 60000\r\n\r\n" + bytes(60000)
)


@dataclass(eq=False)
class Stranger:
    """A connection that sends its bytes one by one; silent if it has none."""

    connection: socket.socket
    words: bytes
    head: int = 0
    """How many of its bytes it sends at once, in the beginning."""
    sent: int = field(default=0)


class Crowd:
    """Keeps so many connections open against a node until it is told to stop; who is cut comes again."""

    def __init__(self, url: str, idle: int, slow: int, *, per_second: int = 2000) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)
        self._wanted = {"idle": idle, "head": slow // 2, "body": slow - slow // 2}
        self._per_second = per_second
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.opened = self.cut = 0
        self.complete = threading.Event()
        """Set when as many were opened as are wanted."""

    def __enter__(self) -> "Crowd":
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _open(self, kind: str) -> Stranger | None:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(self._address)
        self.opened += 1
        words = {"idle": b"", "head": SLOW_HEAD, "body": SLOW_BODY}[kind]
        return Stranger(connection, words, len(SLOW_BODY) - 60000 if kind == "body" else 20)

    def _run(self) -> None:
        strangers: dict[str, set[Stranger]] = {kind: set() for kind in self._wanted}
        with selectors.DefaultSelector() as selector:
            while not self._stop.is_set():
                turn = time.monotonic()
                self._fill(strangers, selector)
                for key, _ in selector.select(0):
                    self._look(key.data, strangers, selector)
                for kind in ("head", "body"):
                    for stranger in list(strangers[kind]):
                        self._drip(stranger)
                if self.opened >= sum(self._wanted.values()):
                    self.complete.set()
                self._stop.wait(max(0.0, turn + 0.5 - time.monotonic()))
            for stranger in set.union(*strangers.values()):
                stranger.connection.close()

    def _fill(self, strangers: dict[str, set[Stranger]], selector: selectors.BaseSelector) -> None:
        room = self._per_second // 2
        for kind, wanted in self._wanted.items():
            for _ in range(min(room, wanted - len(strangers[kind]))):
                stranger = self._open(kind)
                if stranger is not None:
                    strangers[kind].add(stranger)
                    selector.register(stranger.connection, selectors.EVENT_READ, (kind, stranger))
                    room -= 1

    def _look(
        self, who: tuple[str, Stranger], strangers: dict[str, set[Stranger]], selector: selectors.BaseSelector
    ) -> None:
        kind, stranger = who
        try:
            if stranger.connection.recv(4096):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.cut += 1
        selector.unregister(stranger.connection)
        stranger.connection.close()
        strangers[kind].discard(stranger)

    def _drip(self, stranger: Stranger) -> None:
        end = stranger.head if not stranger.sent else stranger.sent + 1
        with contextlib.suppress(OSError):  # not connected yet, or cut: the selector sees it
            stranger.sent += stranger.connection.send(stranger.words[stranger.sent : end])
