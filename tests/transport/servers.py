"""Real servers on the loopback: HTTP that records the raw requests, SOCKS5 that records what it is asked."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator


class Server:
    """One thread per connection; stops and closes everything at the end."""

    def __init__(self, listen: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", listen))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)

    def __enter__(self):
        self._accepting.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for connection in self._sockets:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.serve(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


def answer(
    status: int = 200, body: bytes = b"ok", content_type: str = "text/plain", extra: str = ""
) -> bytes:
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    )
    return head.encode() + body


def read_request(connection: socket.socket) -> bytes:
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = connection.recv(1 << 16)
        if not piece:
            raise OSError("closed")
        raw += piece
    head, _, rest = raw.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(rest) < length:
        rest += connection.recv(1 << 16)
    return head + b"\r\n\r\n" + rest


class HttpServer(Server):
    """Answers the n-th request with the n-th answer, the last one for ever."""

    def __init__(self, *answers: bytes | Callable[[socket.socket], None], tls: ssl.SSLContext | None = None):
        super().__init__()
        self.answers = list(answers) or [answer()]
        self.requests: list[bytes] = []
        self._tls = tls

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
            self._sockets.append(connection)
        while True:  # a client that wanted to could send a second request
            self.requests.append(read_request(connection))
            reply = self.answers[min(len(self.requests), len(self.answers)) - 1]
            if callable(reply):
                reply(connection)
            else:
                connection.sendall(reply)


class SocksServer(Server):
    """SOCKS5 with user names (RFC 1928, 1929); resolves every name to one local port."""

    def __init__(self, port: int, reply: int = 0, listen: int = 0) -> None:
        super().__init__(listen)
        self._target, self._reply = port, reply
        self.usernames: list[bytes] = []
        self.passwords: list[bytes] = []
        self.addresses: list[tuple[int, bytes, int]] = []

    @property
    def url(self) -> str:
        return f"socks5h://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        file = connection.makefile("rb")
        with file:
            greeting = file.read(2)
            if len(greeting) < 2:  # whoever asked was stopped
                return
            assert 2 in file.read(greeting[1])
            connection.sendall(b"\x05\x02")
            file.read(1)
            for words in (self.usernames, self.passwords):
                length = file.read(1)
                if not length:
                    return
                words.append(file.read(length[0]))
            connection.sendall(b"\x01\x00")
            request = file.read(4)
            if len(request) < 4:
                return
            kind = request[3]
            host = file.read({1: 4, 4: 16}.get(kind) or file.read(1)[0])
            asked = int.from_bytes(file.read(2))
            self.addresses.append((kind, host, asked))
            connection.sendall(bytes([5, self._reply, 0, 1, 0, 0, 0, 0, 0, 0]))
            if self._reply:
                return
            with socket.create_connection(self.onward(host, asked)) as onward:
                back = threading.Thread(target=_copy, args=(onward, connection))
                back.start()
                _copy(connection, onward)
                back.join()

    def onward(self, host: bytes, port: int) -> tuple[str, int]:
        return "127.0.0.1", self._target


class Middlebox(Server):
    """Passes requests on to a node, after it has answered each kind of them with every given nonsense."""

    def __init__(self, url: str, nonsense: Iterable[bytes]) -> None:
        super().__init__()
        host, _, port = url.removeprefix("http://").partition(":")
        self._node, self._nonsense = (host, int(port)), list(nonsense)
        self.left: dict[str, list[bytes]] = {}
        """What each kind of request is still answered with."""
        self.requests: list[tuple[str, bytes]] = []
        """Every request: its kind, such as ``GET /v1/blocks``, and its bytes."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket) -> None:
        request = read_request(connection)
        method, path, _ = request.split(b" ", 2)
        kind = f"{method.decode()} {'/'.join(path.decode().partition('?')[0].split('/')[:3])}"
        self.requests.append((kind, request))
        left = self.left.setdefault(kind, self._nonsense.copy())
        if left:
            connection.sendall(left.pop(0))
            return
        with socket.create_connection(self._node) as onward:
            onward.sendall(request)
            _copy(onward, connection)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def drip(piece: bytes, pause: float) -> Callable[[socket.socket], None]:
    """Answer a little at a time, for ever."""

    def reply(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return reply


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """A port on which nobody listens while the block runs."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
