"""The HTTP client against real servers on the loopback."""

import hashlib
import socket
import ssl
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from anofel.errors import AnofelError, InvalidInput, PeerUnreachable
from anofel.network.transport import JSON, Refused, Transport, _pause
from tests.certificates.chains import ROOT, Draft
from tests.transport.nonsense import NONSENSE, problem
from tests.transport.servers import HttpServer, SocksServer, answer, drip, unused_port

HANG = 600
"""Seconds that no bounded wait takes on any machine."""
BOUNDS = {"timeout": 60.0, "patience": 300.0, "attempts": 3}
"""Never reached, however slow the machine is."""


@pytest.fixture
def server():
    with HttpServer() as running:
        yield running


@pytest.fixture
def no_sleep(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("anofel.network.transport.time.sleep", slept.append)
    return slept


# The bytes on the wire


def test_a_request_has_these_headers_and_no_others(server):
    board = Transport(server.url + "/prefix/", **BOUNDS)
    board.get("/v1/headers")
    board.post("/v1/postings", b"abc")
    board.ask("PUT", "/v1/blobs/00", bytes, body=b"abcd")
    host = f"Host: 127.0.0.1:{server.port}\r\n".encode()
    fixed = b"Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n"
    octets = b"Content-Type: application/octet-stream\r\n"
    assert server.requests == [
        b"GET /prefix/v1/headers HTTP/1.1\r\n" + host + fixed + b"\r\n",
        b"POST /prefix/v1/postings HTTP/1.1\r\n" + host + fixed + octets + b"Content-Length: 3\r\n\r\nabc",
        b"PUT /prefix/v1/blobs/00 HTTP/1.1\r\n" + host + fixed + octets + b"Content-Length: 4\r\n\r\nabcd",
    ]


def test_two_clients_differ_in_length_and_body_alone(server):
    Transport(server.url, **BOUNDS).post("/v1/postings", b"one")
    Transport(server.url, timeout=61.0).post("/v1/postings", b"another")
    one, another = server.requests
    assert one.replace(b"Length: 3", b"Length: 7").replace(b"one", b"another") == another


def test_every_message_has_its_own_connection(server):
    board = Transport(server.url, **BOUNDS)
    for _ in range(3):
        board.get("/")
    assert server.connections == 3


def test_cookies_are_not_kept(server):
    server.answers = [answer(extra="Set-Cookie: who=you\r\n")]
    board = Transport(server.url, **BOUNDS)
    board.get("/")
    board.get("/")
    assert server.requests[0] == server.requests[1]
    assert b"who" not in server.requests[1]


def test_the_environment_is_not_read(server, monkeypatch):
    with unused_port() as port:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        assert Transport(server.url, **BOUNDS).get("/") == b"ok"


# SOCKS


def test_two_messages_through_socks_use_two_user_names_and_two_connections(server):
    with SocksServer(server.port) as proxy:
        board = Transport("http://board.test:8080", proxy=proxy.url, **BOUNDS)
        assert board.get("/") == b"ok"
        assert board.post("/v1/postings", b"x") == b"ok"
    assert proxy.connections == server.connections == 2
    assert len(set(proxy.usernames)) == len(set(proxy.passwords)) == 2
    assert all(len(name) == 32 for name in proxy.usernames)


def test_the_proxy_alone_resolves_the_name(server, monkeypatch):
    asked: list[object] = []
    resolve = socket.getaddrinfo

    def record(host, *args, **kwargs):
        asked.append(host)
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", record)
    for name in ("gethostbyname", "gethostbyname_ex", "getfqdn"):
        monkeypatch.setattr(socket, name, lambda *a: pytest.fail("a name was resolved here"))
    with SocksServer(server.port) as proxy:
        Transport("http://board.test:8080", proxy=proxy.url, **BOUNDS).get("/")
    assert proxy.addresses == [(3, b"board.test", 8080)]
    assert set(asked) <= {"127.0.0.1"}
    assert b"Host: board.test:8080\r\n" in server.requests[0]


def test_a_retry_has_its_own_user_name_and_the_same_bytes(server, no_sleep):
    server.answers = [answer(503), answer()]
    with SocksServer(server.port) as proxy:
        Transport("http://board.test", proxy=proxy.url, **BOUNDS).post("/v1/postings", b"same")
    assert server.requests[0] == server.requests[1]
    assert len(set(proxy.usernames)) == 2


def test_a_proxy_that_cannot_connect_is_named(server, no_sleep):
    with (
        SocksServer(server.port, reply=5) as proxy,
        pytest.raises(PeerUnreachable, match="the proxy refused: .*Connection refused") as caught,
    ):
        Transport("http://board.test", proxy=proxy.url, **BOUNDS).get("/")
    assert caught.value.exit_code == 3
    assert server.connections == 0


def test_a_proxy_that_is_not_there_is_an_unreachable_peer(server, no_sleep):
    with unused_port() as port, pytest.raises(PeerUnreachable, match="Connection refused"):
        Transport(server.url, proxy=f"socks5h://127.0.0.1:{port}", **BOUNDS).get("/")
    assert server.connections == 0


@pytest.mark.parametrize("greeting", [b"HTTP/1.1 400 Bad\r\n\r\n", b"\x05\xff", b"\x05"])
def test_a_proxy_that_speaks_something_else_is_named(server, no_sleep, greeting):
    class Other(SocksServer):
        def serve(self, connection):
            connection.recv(100)
            connection.sendall(greeting)

    with Other(server.port) as proxy, pytest.raises(PeerUnreachable, match="proxy"):
        Transport(server.url, proxy=proxy.url, **BOUNDS).get("/")


def test_an_http_proxy_works_and_warns(server):
    board = Transport("http://board.test", proxy=server.url, **BOUNDS)
    assert board.get("/v1/headers") == b"ok"
    assert server.requests[0].startswith(
        b"GET http://board.test:80/v1/headers HTTP/1.1\r\nHost: board.test\r\n"
    )
    assert b"agent" not in server.requests[0].lower()
    assert "HTTP proxy" in str(board.warning)
    assert Transport(server.url).warning is None
    assert Transport(server.url, proxy="socks5h://127.0.0.1:9050").warning is None


@pytest.mark.parametrize(
    ("proxy", "sentence"),
    [
        ("socks5://127.0.0.1:9050", "socks5h://"),
        ("ftp://127.0.0.1:9050", "must begin with"),
        ("socks5h://me:secret@127.0.0.1:9050", "user name"),
        ("socks5h://127.0.0.1", "host and a port"),
        ("socks5h://127.0.0.1:9050/path", "nothing after"),
        ("socks5h://127.0.0.1:port", "malformed"),
        ("socks5h://", "malformed"),
    ],
)
def test_proxies_that_cannot_be_used_are_refused(proxy, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Transport("http://board.test", proxy=proxy)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("board.test", "malformed"),
        ("ftp://board.test", "http:// or https://"),
        ("http://me@board.test", "must not hold more"),
        ("http://board.test/?q=1", "must not hold more"),
        ("http://bo ard.test", "malformed"),
        ("http://board.test:99999", "malformed"),
        ("http://bö.test", "malformed"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused(url, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        Transport(url)


def test_paths_and_bounds_that_cannot_be_used_are_refused(server):
    for path in ("v1", "/a b", "/a\r\nX: y", "/ü"):
        with pytest.raises(InvalidInput, match="no path"):
            Transport(server.url).get(path)
    for bad in ({"timeout": 0.0}, {"patience": 0.0}, {"attempts": 0}):
        with pytest.raises(InvalidInput, match="positive"):
            Transport(server.url, **bad)
    assert server.requests == []


# Refusals


def test_a_refusal_carries_the_boards_code(server):
    server.answers = [problem("duplicate-nullifier", "The nullifier was used before.")]
    with pytest.raises(Refused, match="used before") as caught:
        Transport(server.url, **BOUNDS).post("/v1/postings", b"x")
    error = caught.value
    assert (error.code, error.detail, error.status) == (
        "duplicate-nullifier",
        "The nullifier was used before.",
        409,
    )
    assert error.exit_code == 1
    assert isinstance(error, AnofelError)
    assert Refused.code == "refused"
    assert len(server.requests) == 1


def test_a_refusal_cannot_move_the_cursor(server):
    server.answers = [problem("no", "clear\x1b[2J\nscreen" + "x" * 1000)]
    with pytest.raises(Refused) as caught:
        Transport(server.url, **BOUNDS).get("/")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) == 500


def read_ok(data: bytes) -> bytes:
    if data != b"ok":
        raise InvalidInput("It is not ok.")
    return data


TOO_LONG = {"too long": answer(body=bytes(101))}


@pytest.mark.parametrize("nonsense", [*NONSENSE.values(), *TOO_LONG.values()], ids=[*NONSENSE, *TOO_LONG])
def test_nonsense_is_tried_again_with_the_same_bytes_and_then_unreachable(server, no_sleep, nonsense):
    def once(connection):
        connection.sendall(nonsense)
        connection.shutdown(socket.SHUT_RDWR)

    board = Transport(server.url, **BOUNDS)

    def ask():
        return board.ask("POST", "/", read_ok, body=b"same", max_bytes=100, codes={"no-such-rule"})

    server.answers = [once, once, answer()]
    assert ask() == b"ok"
    assert len(set(server.requests)) == 1
    server.answers = [once]
    with pytest.raises(PeerUnreachable, match="cannot be reached: .*tried 3 times") as caught:
        ask()
    assert str(caught.value).isprintable()
    assert len(set(server.requests)) == 1
    assert len(server.requests) == 6


def test_only_the_codes_that_were_named_are_refusals(server, no_sleep):
    board = Transport(server.url, **BOUNDS)
    server.answers = [problem("known"), problem("unknown")]
    with pytest.raises(Refused) as caught:
        board.ask("GET", "/", bytes, codes={"known"})
    assert caught.value.code == "known"
    with pytest.raises(PeerUnreachable, match="status 409, No"):
        board.ask("GET", "/", bytes, codes={"known"})
    with pytest.raises(PeerUnreachable):
        board.ask("GET", "/", bytes)
    with pytest.raises(Refused):
        board.get("/")


def test_a_reader_that_meets_deep_nesting_is_told_nothing_else(server, no_sleep):
    def deep(_data):
        raise RecursionError

    with pytest.raises(PeerUnreachable, match="nested too deeply"):
        Transport(server.url, **BOUNDS).ask("GET", "/", deep)


# Retries and waits


def test_attempts_are_bounded_and_reported(server, no_sleep):
    server.answers = [answer(502)]
    told: list[tuple[str, float]] = []
    board = Transport(server.url, on_wait=lambda words, seconds: told.append((words, seconds)), **BOUNDS)
    with pytest.raises(PeerUnreachable, match=r"cannot be reached: status 502 \(tried 3 times\)"):
        board.get("/")
    assert len(server.requests) == 3
    assert [seconds for _, seconds in told] == no_sleep
    assert len(told) == 2
    assert all("status 502" in words for words, _ in told)


def test_a_board_that_stays_busy_gives_its_own_code(server, no_sleep):
    server.answers = [problem("queue-full", "Try later.", 503)]
    with pytest.raises(Refused, match="Try later") as caught:
        Transport(server.url, **BOUNDS).get("/")
    assert caught.value.code == "queue-full"
    assert len(server.requests) == 3


def test_the_board_may_ask_for_a_longer_wait(server, no_sleep):
    server.answers = [answer(429, extra="Retry-After: 4\r\n"), answer()]
    Transport(server.url, **BOUNDS).get("/")
    assert 4.0 <= no_sleep[0] <= 6.0


def test_pauses_are_jittered_and_bounded():
    for attempt in range(1, 40):
        most = min(2.0 ** (attempt - 1), 30.0)
        pauses = {_pause(attempt, None) for _ in range(50)}
        assert len(pauses) > 40
        assert all(most / 2 <= pause <= most for pause in pauses)
        asked = {_pause(attempt, 20.0) for _ in range(50)}
        assert len(asked) > 40, "the other side does not choose it exactly"
        assert all(20 <= pause <= 30 for pause in asked)


def test_a_broken_connection_is_tried_again_with_the_same_bytes(server, no_sleep):
    server.answers = [lambda connection: connection.shutdown(socket.SHUT_RDWR), answer(body=b"there")]
    assert Transport(server.url, **BOUNDS).post("/v1/postings", b"same") == b"there"
    assert server.requests[0] == server.requests[1]


def test_an_answer_cut_short_is_tried_again(server, no_sleep):
    cut = answer(body=b"0123456789")[:-5]

    def half(connection):
        connection.sendall(cut)
        connection.shutdown(socket.SHUT_RDWR)

    server.answers = [half, answer(body=b"0123456789")]
    assert Transport(server.url, **BOUNDS).get("/") == b"0123456789"


def test_nobody_there_is_an_unreachable_peer(no_sleep):
    with unused_port() as port, pytest.raises(PeerUnreachable, match="Connection refused") as caught:
        Transport(f"http://127.0.0.1:{port}", **BOUNDS).get("/")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "reply",
    [lambda connection: connection.recv(1), drip(b"X-A: b\r\n", 0.05), drip(b"\r\n", 0.05)],
    ids=["silence", "endless headers", "endless body"],
)
def test_a_wait_always_ends(server, reply):
    server.answers = [reply]
    board = Transport(server.url, timeout=0.4, patience=1.0, attempts=2)
    start = time.monotonic()
    with pytest.raises(PeerUnreachable):
        board.get("/")
    assert time.monotonic() - start < HANG


def test_an_upload_that_nobody_reads_ends(server):
    ended = threading.Event()
    server.serve = lambda connection: ended.wait(2 * HANG)
    board = Transport(server.url, timeout=0.4, patience=1.0, attempts=1)
    start = time.monotonic()
    with pytest.raises(PeerUnreachable, match="no answer in time"):
        board.ask("PUT", "/", bytes, body=bytes(32 << 20))
    assert time.monotonic() - start < HANG
    ended.set()


# Sizes and files


def test_an_answer_that_is_too_long_is_cut_off(server, no_sleep):
    server.answers = [answer(body=bytes(101))]
    board = Transport(server.url, **BOUNDS)
    assert board.get("/", max_bytes=101) == bytes(101)
    with pytest.raises(PeerUnreachable, match="longer than 100 bytes"):
        board.get("/", max_bytes=100)


def test_a_file_is_uploaded_in_pieces_and_again_on_a_retry(server, no_sleep, tmp_path: Path):
    data = bytes(range(256)) * 1000
    (tmp_path / "blob").write_bytes(data)
    server.answers = [answer(503), answer()]
    Transport(server.url, **BOUNDS).ask("PUT", "/v1/blobs/x", bytes, body=tmp_path / "blob")
    assert server.requests[0] == server.requests[1]
    assert server.requests[0].endswith(b"Content-Length: 256000\r\n\r\n" + data)
    with pytest.raises(InvalidInput, match="cannot be read"):
        Transport(server.url, **BOUNDS).ask("PUT", "/v1/blobs/x", bytes, body=tmp_path / "missing")


def test_json_is_sent_as_json(server):
    Transport(server.url, **BOUNDS).post("/v1/x", b"{}", content_type=JSON)
    assert b"Content-Type: application/json\r\n" in server.requests[0]


def test_a_download_appears_whole_and_checked(server, no_sleep, tmp_path: Path):
    server.answers = [answer(body=b"model")]
    board, target = Transport(server.url, **BOUNDS), tmp_path / "model"
    digest = hashlib.sha256(b"model").digest()
    assert board.download("/v1/blobs/x", target, max_bytes=5, sha256=digest) == 5
    assert target.read_bytes() == b"model"
    with pytest.raises(PeerUnreachable, match="does not have the hash"):
        board.download("/v1/blobs/x", tmp_path / "other", max_bytes=5, sha256=bytes(32))
    with pytest.raises(PeerUnreachable, match="longer than 4"):
        board.download("/v1/blobs/x", tmp_path / "other", max_bytes=4)
    with pytest.raises(InvalidInput, match="cannot be written"):
        board.download("/v1/blobs/x", tmp_path / "no" / "directory", max_bytes=5)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_large_download_takes_little_memory(server, tmp_path: Path):
    length = 32 << 20

    def large(connection):
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
        for _ in range(32):
            connection.sendall(bytes(1 << 20))

    server.answers = [large]
    tracemalloc.start()
    Transport(server.url, **BOUNDS).download("/", tmp_path / "large", max_bytes=length)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "large").stat().st_size == length
    assert peak < 8 << 20


# TLS


@pytest.fixture
def tls(tmp_path: Path):
    import ipaddress

    now = int(time.time())
    root = ROOT.but(not_before=now - 60, not_after=now + 3600)
    name = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    leaf = Draft("board", not_before=now - 60, not_after=now + 3600, purposes=None, extra=[(name, False)])
    der = {"root.pem": root.signed_by(root), "leaf.pem": leaf.signed_by(root)}
    for file, data in der.items():
        pem = x509.load_der_x509_certificate(data).public_bytes(Encoding.PEM)
        (tmp_path / file).write_bytes(pem)
    key = leaf.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "leaf.key").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "leaf.pem", tmp_path / "leaf.key")
    return context, tmp_path / "root.pem"


def test_tls_trusts_the_given_roots_alone(tls):
    context, ca_file = tls
    with HttpServer(tls=context) as server:
        assert Transport(server.url, ca_file=ca_file, **BOUNDS).get("/") == b"ok"
        with SocksServer(server.port) as proxy:
            board = Transport(f"https://127.0.0.1:{server.port}", proxy=proxy.url, ca_file=ca_file, **BOUNDS)
            assert board.get("/") == b"ok"
        with pytest.raises(PeerUnreachable, match="not trusted"):
            Transport(server.url, **BOUNDS).get("/")


def test_a_file_without_roots_is_refused(tmp_path: Path):
    (tmp_path / "empty.pem").write_text("nothing")
    for name in ("empty.pem", "missing.pem"):
        with pytest.raises(InvalidInput, match="no file of certificate roots"):
            Transport("https://board.test", ca_file=tmp_path / name)


def test_no_key_log_is_written(tls, tmp_path: Path, monkeypatch):
    context, ca_file = tls
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys.log"))
    with HttpServer(tls=context) as server:
        Transport(server.url, ca_file=ca_file, **BOUNDS).get("/")
    assert not (tmp_path / "keys.log").exists()
