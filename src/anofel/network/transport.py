"""How every role talks to a board: one message, one connection, the same headers for everybody.

    board = Transport("http://board.onion", proxy="socks5h://127.0.0.1:9050")
    block = board.ask("GET", "/v1/blocks/7", Block.from_bytes, max_bytes=1 << 20)

Between here and the board anybody may answer. What counts as an answer is what the caller can read, or a
refusal with a code that the caller knows; everything else is as if nobody had answered, and is tried again.
A board may have several nodes: each message goes to one of them, drawn anew, and to the next one where that
one gives no answer. ``docs/transport.md`` says what this hides and what it does not. The library is
``httpcore2``, the lower layer of httpx2: it sends the headers it is given and no others, keeps no cookies and
reads no environment.
"""

import contextlib
import copy
import hashlib
import os
import secrets
import ssl
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import httpcore2
import msgspec
import socksio

from anofel.errors import AnofelError, InvalidInput, PeerUnreachable
from anofel.ids import BlobHash
from anofel.network.address import HTTP_PROXY_WARNING, BoardAddress, ProxyAddress
from anofel.network.deadline import DeadlineBackend
from anofel.stopping import interruptible

HEADERS: Final = ((b"Accept", b"*/*"), (b"Accept-Encoding", b"identity"), (b"Connection", b"close"))
"""Sent by every role of every version, after Host."""
OCTETS: Final = "application/octet-stream"
JSON: Final = "application/json"

CHUNK_BYTES: Final = 1 << 16
MAX_ANSWER: Final = 1 << 24
MAX_PROBLEM: Final = 1 << 16
MAX_DETAIL: Final = 500
MAX_CODE: Final = 64
MAX_PAUSE: Final = 30.0
MAX_NODES: Final = 32
HURRY: Final = 10.0
"""So long one of several nodes may keep a message waiting, twice as long in the next attempt."""
RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses that say: not now."""


@dataclass(frozen=True)
class Pieces:
    """A body that is opened again for every attempt."""

    length: int
    open: Callable[[], AbstractContextManager[Iterable[bytes]]]


Content = bytes | Path | Pieces
"""What is sent; a file is read again for every attempt."""
Believe = Callable[["Refused", int], "Refused | None"]
"""What to raise for a refusal that so many different nodes gave; None to ask the next node."""
OnRetry = Callable[[str, float], None]
"""Told what went wrong and for how many seconds we wait before we send the same bytes again."""


_Answer = httpcore2.Response
_T = TypeVar("_T")
_Raw = TypeVar("_Raw")
_FAILURES: Final = (
    httpcore2.NetworkError,
    httpcore2.TimeoutException,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    socksio.SOCKSError,
    AssertionError,  # how the library meets a proxy that speaks something else
)


class Refused(AnofelError):
    """The board answered, and the answer is no. ``code`` is the board's own."""

    code = "refused"

    def __init__(self, code: str, detail: str, status: int) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = status

    @property
    def is_passing(self) -> bool:
        """Whether it says "not now" by its status, rather than "no"."""
        return self.status in RETRIED or self.status >= 500


class _NotNow(Exception):
    """An attempt failed in a way that another may not."""

    def __init__(self, words: str, final: AnofelError | None = None, pause: float | None = None) -> None:
        super().__init__(words)
        self.final, self.pause = final, pause


def first_refusal(refusal: "Refused", _nodes: int) -> "Refused | None":
    """Believe whoever refuses."""
    return refusal


class Transport:
    """Messages to one board. Every attempt has its own connection and, through SOCKS, its own user name.

    ``base_url``: the board's address, or those of several of its nodes. Each message goes through them in an
    order of its own, drawn anew: a node that one prefers would be a mark on who asks. ``attempts`` is how
    often each is asked. ``timeout`` bounds a silence, ``patience`` a whole call with all its attempts,
    ``hurry`` how long one of several nodes may take beside a second for each ``SLOWEST`` bytes; all in
    seconds.
    """

    def __init__(
        self,
        base_url: str | Sequence[str],
        proxy: str | None = None,
        ca_file: Path | None = None,
        timeout: float = 30.0,
        *,
        patience: float = 300.0,
        attempts: int = 5,
        hurry: float = HURRY,
        on_wait: OnRetry = lambda _words, _seconds: None,
    ) -> None:
        self.addresses = parse_addresses(base_url)
        self.proxy = None if proxy is None else ProxyAddress.parse(proxy)
        if timeout <= 0 or patience <= 0 or attempts < 1 or hurry <= 0:
            raise InvalidInput("Timeout, patience, attempts and hurry must be positive.")
        self._timeout, self._patience, self._attempts, self._on_wait = timeout, patience, attempts, on_wait
        self._hurry = hurry if len(self.addresses) > 1 else None
        is_tls = any(address.scheme == "https" for address in self.addresses)
        self._tls = _tls_context(ca_file) if is_tls else None

    @property
    def name(self) -> str:
        """The board's address, or how many it has, for people."""
        many = f"The board at {len(self.addresses)} addresses"
        return str(self.addresses[0]) if len(self.addresses) == 1 else many

    def nodes(self) -> "list[Transport]":
        """Return a transport to each node alone, in an order drawn anew; one that is alone is this one."""
        if len(self.addresses) == 1:
            return [self]
        made = []
        for address in drawn_order(self.addresses):
            one = copy.copy(self)
            one.addresses, one._attempts = (address,), 1
            made.append(one)
        return made

    @property
    def warning(self) -> str | None:
        """What the user must be told about the chosen proxy, if anything."""
        return HTTP_PROXY_WARNING if self.proxy is not None and not self.proxy.is_socks else None

    def ask(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], _T],
        *,
        body: Content | None = None,
        content_type: str = OCTETS,
        max_bytes: int = MAX_ANSWER,
        codes: Container[str] | None = frozenset(),
        believe: Believe = first_refusal,
    ) -> _T:
        """Send a message and return what ``read`` makes of the answer; the same bytes may arrive twice.

        An answer for which ``read`` raises is none. Raises ``Refused`` for the ``codes`` alone, or for
        every code where they are None, if ``believe`` says so, and ``PeerUnreachable``.
        """
        message = _Message(method, path, body, None if body is None else content_type, codes, believe)
        return self._call(message, lambda answer: _collect(answer, max_bytes), read)

    def get(self, path: str, *, max_bytes: int = MAX_ANSWER) -> bytes:
        """Fetch something small into memory, from a peer whose refusals have any code."""
        return self.ask("GET", path, bytes, max_bytes=max_bytes, codes=None)

    def post(
        self, path: str, body: bytes, *, content_type: str = OCTETS, max_bytes: int = MAX_ANSWER
    ) -> bytes:
        """Send a message, to a peer whose refusals have any code, and return the answer."""
        return self.ask(
            "POST", path, bytes, body=body, content_type=content_type, max_bytes=max_bytes, codes=None
        )

    def download(
        self,
        path: str,
        target: Path,
        *,
        max_bytes: int,
        sha256: BlobHash | None = None,
        codes: Container[str] = frozenset(),
        believe: Believe = first_refusal,
    ) -> int:
        """Fetch into a file that appears whole, checked against its hash; returns its length."""
        message = _Message("GET", path, None, None, codes, believe)
        return self._call(message, lambda answer: _save(answer, target, max_bytes, sha256), int)

    def _call(self, message: "_Message", take: Callable[[_Answer], _Raw], read: Callable[[_Raw], _T]) -> _T:
        """Send a message until it is answered, refused, or the patience is over."""
        deadline = time.monotonic() + self._patience
        order, refusals = drawn_order(self.addresses), dict[str, set[BoardAddress]]()
        for attempt in range(1, self._attempts + 1):
            failures: list[_NotNow] = []
            for address in order:
                try:
                    with interruptible(), self._exchange(message, address, deadline, attempt) as answer:
                        _refuse_problems(answer, message.codes)
                        taken = take(answer)
                    return _understood(read, taken)
                except Refused as refusal:
                    refusals.setdefault(refusal.code, set()).add(address)
                    believed = message.believe(refusal, len(refusals[refusal.code]))
                    if believed is not None:
                        raise believed from None
                    failures.append(_NotNow(f"{address} refused, which is not believed ({refusal.code})"))
                except _NotNow as failure:
                    failures.append(failure)
                except PeerUnreachable as error:  # this node's certificate; others may have a good one
                    if len(order) == 1:
                        raise
                    failures.append(_NotNow(str(error).rstrip(".")))
            pause = _pause(attempt, _least_asked(failures))
            if attempt == self._attempts or time.monotonic() + pause >= deadline:
                self._give_up(failures, attempt)
            self._on_wait(f"{self.name} does not answer ({failures[-1]})", pause)
            with interruptible():
                time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _give_up(self, failures: list["_NotNow"], attempts: int) -> NoReturn:
        last = next((failure for failure in failures if failure.final is not None), failures[-1])
        if last.final is not None:
            raise last.final from last
        times = "once" if attempts == 1 else f"{attempts} times"
        raise PeerUnreachable(f"{self.name} cannot be reached: {last} (tried {times}).") from last

    @contextlib.contextmanager
    def _exchange(
        self, message: "_Message", address: BoardAddress, deadline: float, attempt: int
    ) -> Iterator[_Answer]:
        """Send once, over a connection that serves nothing else."""
        hurry = None if self._hurry is None else self._hurry * 2.0 ** (attempt - 1)
        backend = DeadlineBackend(deadline, self._timeout, hurry=hurry)
        url = httpcore2.URL(
            scheme=address.scheme,
            host=address.host,
            port=address.port,
            target=_target(address.prefix + message.path),
        )
        body = message.body
        headers = [(b"Host", address.authority.encode()), *HEADERS]
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(backend.close)
                content = None
                if body is not None:
                    content, length = _content(stack, body)
                    headers.append((b"Content-Type", str(message.content_type).encode()))
                    headers.append((b"Content-Length", str(length).encode()))
                pool = stack.enter_context(self._pool(backend))
                yield stack.enter_context(pool.stream(message.method, url, headers=headers, content=content))
        except _FAILURES as error:
            if isinstance(error.__cause__ or error.__context__, ssl.SSLCertVerificationError):
                raise PeerUnreachable(f"{address} shows a certificate that is not trusted.") from error
            raise _NotNow(_words(error)) from error

    def _pool(self, backend: DeadlineBackend) -> httpcore2.ConnectionPool:
        if self.proxy is None:
            return httpcore2.ConnectionPool(ssl_context=self._tls, network_backend=backend)
        if self.proxy.is_socks:
            return httpcore2.SOCKSProxy(
                self.proxy.url,
                proxy_auth=(secrets.token_hex(16), secrets.token_hex(16)),
                ssl_context=self._tls,
                network_backend=backend,
            )
        return httpcore2.HTTPProxy(self.proxy.url, ssl_context=self._tls, network_backend=backend)


@dataclass(frozen=True)
class _Message:
    """What is sent, and which refusals are an answer to it."""

    method: str
    path: str
    body: Content | None
    content_type: str | None
    codes: Container[str] | None
    believe: Believe


def parse_addresses(urls: str | Sequence[str]) -> tuple[BoardAddress, ...]:
    """Read the addresses of a board's nodes, each once. Raises ``InvalidInput``."""
    said = [urls] if isinstance(urls, str) else list(urls)
    found = tuple(dict.fromkeys(BoardAddress.parse(url) for url in said))
    if not 0 < len(found) <= MAX_NODES:
        raise InvalidInput(f"A board has 1 to {MAX_NODES} addresses, not {len(found)}.")
    return found


def drawn_order(items: Sequence[_T]) -> list[_T]:
    """Return the items in an order drawn from the system's randomness."""
    made = list(items)
    secrets.SystemRandom().shuffle(made)
    return made


def _least_asked(failures: list[_NotNow]) -> float | None:
    """How long to wait if every node asked for a pause; one that lies prolongs nobody's."""
    asked = [failure.pause for failure in failures if failure.pause is not None]
    return min(asked) if asked and len(asked) == len(failures) else None


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Trust the system's roots or those of a file; no key log, whatever the environment says."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"{ca_file} is no file of certificate roots in PEM.") from error
    return context


def _target(path: str) -> bytes:
    if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
        raise InvalidInput(f"{path!r} is no path on a board.")
    return path.encode()


def _content(stack: contextlib.ExitStack, body: Content) -> tuple[Iterator[bytes], int]:
    """Return the body in pieces and its length."""
    if isinstance(body, bytes):
        return iter([body]), len(body)
    if isinstance(body, Pieces):
        return iter(stack.enter_context(body.open())), body.length
    try:
        file = stack.enter_context(body.open("rb"))
    except OSError as error:
        raise InvalidInput(f"{body} cannot be read: {error.strerror or error}.") from error
    return iter(lambda: file.read(CHUNK_BYTES), b""), os.fstat(file.fileno()).st_size


def _collect(answer: _Answer, max_bytes: int) -> bytes:
    return b"".join(_bounded(answer, max_bytes))


def _bounded(answer: _Answer, max_bytes: int) -> Iterator[bytes]:
    """Give the body in pieces; stop with an error as soon as it is too long."""
    received = 0
    for piece in answer.iter_stream():
        received += len(piece)
        if received > max_bytes:
            raise _NotNow(f"the answer is longer than {max_bytes} bytes")
        yield piece


def _save(answer: _Answer, target: Path, max_bytes: int, sha256: BlobHash | None) -> int:
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    found, length = hashlib.sha256(), 0
    try:
        with _file_errors(target), partial.open("xb") as file:
            for piece in _bounded(answer, max_bytes):
                found.update(piece)
                file.write(piece)
                length += len(piece)
            file.flush()
            os.fsync(file.fileno())
        if sha256 is not None and found.digest() != sha256:
            raise _NotNow("the answer does not have the hash that was asked for")
        with _file_errors(target):
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return length


@contextlib.contextmanager
def _file_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error.strerror or error}.") from error


def _understood(read: Callable[[_Raw], _T], taken: _Raw) -> _T:
    """Read an answer; one that cannot be read came from somebody else."""
    try:
        return read(taken)
    except AnofelError as error:
        raise _NotNow(f"the answer is not the board's: {_printable(str(error)).rstrip('.')}") from error
    except RecursionError as error:
        raise _NotNow("the answer is not the board's: it is nested too deeply") from error


def _refuse_problems(answer: _Answer, codes: Container[str] | None) -> None:
    """Raise what an answer other than success says (RFC 9457 where the board wrote it)."""
    if 200 <= answer.status < 300:
        return
    headers = {name.lower(): value for name, value in answer.headers}
    problem, pause = _problem(answer, headers), None
    words = f"status {answer.status}" if problem is None else f"status {answer.status}, {problem}"
    known = problem is not None and (codes is None or problem.code in codes)
    if answer.status in RETRIED:
        pause = _retry_after(headers)
    elif problem is not None and known:
        raise problem
    raise _NotNow(words.rstrip("."), problem if known else None, pause)


class _Problem(msgspec.Struct):
    code: str
    detail: str = ""


def _problem(answer: _Answer, headers: dict[bytes, bytes]) -> Refused | None:
    """Return what the board refused with; None if the answer is in no form that a board writes."""
    if not headers.get(b"content-type", b"").startswith(b"application/problem+json"):
        return None
    try:
        problem = msgspec.json.decode(_collect(answer, MAX_PROBLEM), type=_Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, _NotNow):
        return None
    code = problem.code
    if not code.isascii() or not code.replace("-", "a").isalnum() or len(code) > MAX_CODE:
        return None
    return Refused(code, _printable(problem.detail) or f"The board refused ({code}).", answer.status)


def _printable(text: str) -> str:
    """Return a sentence of somebody else without what moves a cursor, and not too long."""
    return "".join(c for c in text if c.isprintable())[:MAX_DETAIL]


def _retry_after(headers: dict[bytes, bytes]) -> float | None:
    value = headers.get(b"retry-after", b"")
    return min(float(value), MAX_PAUSE) if value.isdigit() and len(value) < 10 else None


def _pause(attempt: int, asked: float | None) -> float:
    """Between half and all of 1, 2, 4 … seconds; of what the board asked for, between all and half more.

    Drawn in every case: a pause that the other side can choose exactly would be a mark on who waits.
    """
    drawn = secrets.SystemRandom().random() / 2
    most = min(2.0 ** (attempt - 1), MAX_PAUSE)
    return max((asked or 0.0) * (1 + drawn), most * (0.5 + drawn))


def _words(error: BaseException) -> str:
    """Say in a few words why an attempt failed; nothing of the message is in it."""
    if isinstance(error, httpcore2.ProxyError):
        return f"the proxy refused: {str(error).rstrip('.')}"
    if isinstance(error, AssertionError | socksio.ProtocolError | socksio.SOCKSError):
        return "the proxy does not speak SOCKS5"
    if isinstance(error, httpcore2.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpcore2.ConnectError):
        cause = error.__cause__ or error.__context__
        return str(getattr(cause, "strerror", None) or error).rstrip(".") or "no connection"
    return "the connection broke"
