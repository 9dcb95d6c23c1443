"""Who may stay connected, decided at accept and below TLS.

1. At most a fixed number of connections is open at a time, fewer if the process may open fewer files.
2. When all are taken, a new one takes the place of the oldest without a complete request, among those of
   the network address that has most of them; else that of a sender or reader slower than the least rate.
   If nobody is slow, that of the slowest of the address that holds most places, if those are at least two
   more than the newcomer's address holds. Else the new one is closed.
3. A connection has 10 seconds for its TLS handshake and for the head of each request.
4. A body comes at 16 KiB per second or faster after its first 10 seconds, without 30 seconds of silence,
   and within an hour.
5. An answer is read at 16 KiB per second or faster, or its connection is closed. Read is what the peer's
   machine has acknowledged; the time for the next head begins when that is all, within an hour.
6. When the machine has no descriptors or memory left, the server waits a second and tries again.

An address is known only while its connection is open, and is never logged. Rule 4 is that of whoever reads
bodies (``Pace``), who answers 408; here a slow body only loses its place to somebody new.
"""

import asyncio
import errno
import ipaddress
import logging
import math
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from itertools import islice
from typing import Final, Protocol

from anofel.serving.listening import room_for
from anofel.serving.rare_log import RareLog
from anofel.serving.wire import bound_send_buffer

HEAD_SECONDS: Final = 10.0
LEAST_RATE: Final = 16 << 10
"""Bytes per second, of a body that is sent and of an answer that is read."""
GRACE_SECONDS: Final = 10.0
"""How long a body or an answer may be slower than that."""
LUMP_BYTES: Final = 64 << 10
"""A slow peer acknowledges in pieces of about that size."""
SILENCE_SECONDS: Final = 30.0
BODY_SECONDS: Final = 3600.0
YOUNG_SECONDS: Final = 1.0
"""Nobody is called slow before."""
RETRY_SECONDS: Final = 1.0
ACCEPTS: Final = 32
"""Connections that are accepted in a row, before others have their turn."""
FEWER: Final = 2
"""Who holds so many places fewer than another address may take one of its places."""
LOOKED_AT: Final = 64
"""Slow connections that are looked for among so many."""
TRANSIENT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})
"""What the machine refuses now and may grant in a moment."""

log = logging.getLogger("anofel.serving")


class Doing(Enum):
    """What a connection is doing."""

    WAITING = "no complete head of a request yet, or none since the last answer"
    SENDING = "the body of its request is coming"
    WORKING = "its request is being answered"
    READING = "it has not yet read what we answered"


class Pace:
    """Whether a body comes fast enough (rule 4)."""

    def __init__(self, now: float) -> None:
        self.begun, self.received, self._last = now, 0, now
        self._given_up = False
        self._waiting: asyncio.Timeout | None = None

    def took(self, num_bytes: int, now: float) -> None:
        """Count bytes that came."""
        self.received += num_bytes
        self._last = now

    def give_up(self) -> None:
        """Call it too slow at once, also while somebody waits for more of it."""
        self._given_up = True
        if self._waiting is not None:
            self._waiting.reschedule(self.begun)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Wait for more of it, but not beyond the deadline. Raises ``TimeoutError``."""
        async with asyncio.timeout_at(self.deadline()) as self._waiting:
            try:
                yield
            finally:
                self._waiting = None

    def deadline(self) -> float:
        """Return the moment at which it is too slow unless more has come by then."""
        if self._given_up:
            return self.begun
        rate = self.begun + GRACE_SECONDS + self.received / LEAST_RATE
        return min(rate, self._last + SILENCE_SECONDS, self.begun + BODY_SECONDS)

    def is_slow(self, now: float) -> bool:
        """Whether it has been slower than the least rate so far, without any grace."""
        age = now - self.begun
        return age > YOUNG_SECONDS and self.received < age * LEAST_RATE


class Answers(Protocol):
    """What we sent to a peer."""

    def unread(self) -> int:
        """Return how many bytes it has not acknowledged."""

    def acknowledged(self) -> int:
        """Return how many bytes it has acknowledged."""


class Connection:
    """One accepted connection and what it is doing."""

    __slots__ = (
        "abort",
        "answers",
        "begun",
        "doing",
        "group",
        "pace",
        "read",
        "read_before",
        "since",
        "then",
    )

    def __init__(self, group: str, abort: Callable[[], object], now: float) -> None:
        self.group = group
        self.abort = abort
        self.doing = Doing.WAITING
        self.begun = self.since = now
        """When it began to do this, and since when its reading is measured."""
        self.pace: Pace | None = None
        self.answers: Answers | None = None
        self.then = Doing.WAITING
        """What it does when it has read everything."""
        self.read = self.read_before = 0
        """Bytes that it had read at ``since``, and at ``begun``."""

    def has_unread(self) -> bool:
        """Whether it has yet to read something."""
        return self.answers is not None and self.answers.unread() > 0

    def rate(self, now: float) -> float:
        """Return how many bytes per second it sends or reads; of one that is being answered, no bound."""
        if self.doing is Doing.WORKING:
            return math.inf
        if self.pace is not None:
            return self.pace.received / max(now - self.pace.begun, YOUNG_SECONDS)
        read = 0 if self.answers is None else self.answers.acknowledged() - self.read_before
        return read / max(now - self.begun, YOUNG_SECONDS)

    def reads_slowly(self, now: float) -> bool:
        """Whether it has read less than the least rate since ``since``, and a lump does not explain it."""
        read = 0 if self.answers is None else self.answers.acknowledged() - self.read
        return read + LUMP_BYTES < (now - self.since) * LEAST_RATE


class Connections:
    """All connections of one server, on its event loop."""

    def __init__(self, most: int) -> None:
        self.most = room_for(most)
        self._all: dict[Doing, dict[Connection, None]] = {doing: {} for doing in Doing}
        self._groups: dict[str, dict[Connection, None]] = {}
        """Those that wait, oldest first, by network address."""
        self._places: dict[str, dict[Connection, None]] = {}
        """All of them, by network address."""
        self._rare = RareLog(log)
        if self.most < most:
            log.warning(
                "This process may open too few files for %d connections; it takes %d.", most, self.most
            )

    def __len__(self) -> int:
        return sum(map(len, self._all.values()))

    def add(self, group: str, abort: Callable[[], object]) -> Connection | None:
        """Take a connection in, if need be in the place of another one; None if there is no place."""
        if len(self) >= self.most and not self.make_room(group):
            return None
        connection = Connection(group, abort, time.monotonic())
        self._put(connection)
        return connection

    def remove(self, connection: Connection) -> None:
        """Forget a connection; harmless if that was done."""
        self._all[connection.doing].pop(connection, None)
        for groups in (self._groups, self._places):
            those = groups.get(connection.group, {})
            those.pop(connection, None)
            if not those:
                groups.pop(connection.group, None)

    def now_doing(self, connection: Connection, doing: Doing) -> None:
        """Note what a connection does from now on, or does when it has read what we sent."""
        if connection not in self._all[connection.doing]:
            return
        connection.then = doing
        if doing is not Doing.SENDING and connection.has_unread():
            doing = Doing.READING
        if connection.doing is not doing:
            self._move(connection, doing)

    def make_room(self, group: str | None = None) -> bool:
        """Close one connection in favour of a new one (rule 2); say whether there was one to close.

        Without the newcomer's address nobody who behaves is closed.
        """
        for connection in list(islice(self._all[Doing.READING], LOOKED_AT)):
            if not connection.has_unread():
                self._move(connection, connection.then)
        now = time.monotonic()
        victim = self._longest_waiting() or self._slow(now)
        if victim is None and group is not None:
            victim = self._greedy(group, now)
        if victim is None:
            return False
        self._close(victim)
        return True

    def sweep(self) -> None:
        """Close what is over its time (rules 3 and 5). Called once a second."""
        now = time.monotonic()
        for connection in list(self._all[Doing.READING]):
            if not connection.has_unread():
                self._move(connection, connection.then)
            elif now - connection.begun >= BODY_SECONDS:
                self._close(connection)
            elif now - connection.since >= GRACE_SECONDS:
                if connection.reads_slowly(now):
                    self._close(connection)
                else:
                    self._measure(connection, now)
        for connection in list(self._all[Doing.WAITING]):
            if now - connection.since < HEAD_SECONDS:
                break
            self._close(connection)

    def close_all(self) -> None:
        """Close every connection, because the server stops."""
        for connection in [connection for those in self._all.values() for connection in those]:
            self._close(connection)

    def out_of_resources(self, error: OSError) -> None:
        """Say, once a minute, that the machine refuses what we need (rule 6)."""
        self._rare.warn("resources", f"No connection can be accepted now: {error.strerror or error}.")

    def trouble(self, sentence: str) -> None:
        """Say, once a minute, that something went wrong that nobody waits for."""
        self._rare.warn("trouble", sentence)

    def _move(self, connection: Connection, doing: Doing) -> None:
        self.remove(connection)
        connection.doing = doing
        connection.begun = time.monotonic()
        self._measure(connection, connection.begun)
        connection.read_before = connection.read
        connection.pace = Pace(connection.since) if doing is Doing.SENDING else None
        self._put(connection)

    @staticmethod
    def _measure(connection: Connection, now: float) -> None:
        """Measure from now on."""
        connection.since = now
        connection.read = 0 if connection.answers is None else connection.answers.acknowledged()

    def _put(self, connection: Connection) -> None:
        self._all[connection.doing][connection] = None
        self._places.setdefault(connection.group, {})[connection] = None
        if connection.doing is Doing.WAITING:
            self._groups.setdefault(connection.group, {})[connection] = None

    def _close(self, connection: Connection) -> None:
        self.remove(connection)
        connection.abort()

    def _longest_waiting(self) -> Connection | None:
        if not self._groups:
            return None
        largest = max(self._groups.values(), key=len)
        return next(iter(largest))

    def _greedy(self, group: str, now: float) -> Connection | None:
        largest = max(self._places.values(), key=len, default={})
        if len(largest) < len(self._places.get(group, ())) + FEWER:
            return None
        return min(largest, key=lambda connection: connection.rate(now))

    def _slow(self, now: float) -> Connection | None:
        for connection in islice(self._all[Doing.SENDING], LOOKED_AT):
            if connection.pace is not None and connection.pace.is_slow(now):
                return connection
        for connection in islice(self._all[Doing.READING], LOOKED_AT):
            if connection.reads_slowly(now):
                return connection
        return None


def group_of(address: object) -> str:
    """Return what stands for one network address: of IPv6, the network that one customer gets."""
    host = address[0] if isinstance(address, tuple) and address else ""
    try:
        found = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return ""
    if found.version == 4:
        return str(found)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or ipaddress.ip_network((found, 64), strict=False))


class Acceptor:
    """Accepts on one socket for ``Connections``: below TLS, so that a handshake counts as well."""

    def __init__(
        self,
        taken: socket.socket,
        connections: Connections,
        make_protocol: Callable[[Connection], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._socket, self._connections = taken, connections
        self._make_protocol, self._tls = make_protocol, tls
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._sweeper = self._loop.call_later(1.0, self._sweep)
        self._start()

    def close(self) -> None:
        """Accept nobody any more, and end what is not yet a connection."""
        self._loop.remove_reader(self._socket)
        self._sweeper.cancel()
        if self._retry is not None:
            self._retry.cancel()
        for task in self._handshakes:
            task.cancel()

    def _start(self) -> None:
        self._retry = None
        self._loop.add_reader(self._socket, self._accept)

    def _sweep(self) -> None:
        self._connections.sweep()
        self._sweeper = self._loop.call_later(1.0, self._sweep)

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._connections.out_of_resources(error)
                self._connections.make_room()
                self._loop.remove_reader(self._socket)
                self._retry = self._loop.call_later(RETRY_SECONDS, self._start)
                return
            self._take(accepted, group_of(address))

    def _take(self, accepted: socket.socket, group: str) -> None:
        accepted.setblocking(False)
        bound_send_buffer(accepted)
        connection = self._connections.add(group, lambda: None)
        if connection is None:
            accepted.close()
            return
        task = self._loop.create_task(self._connect(accepted, connection))
        connection.abort = task.cancel  # until the handshake is over, then the protocol sets its own
        self._handshakes.add(task)

        def done(ended: asyncio.Task[None]) -> None:
            self._handshakes.discard(ended)
            if ended.cancelled():
                self._give_up(accepted, connection)

        task.add_done_callback(done)

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(connection),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=HEAD_SECONDS if self._tls else None,
                ssl_shutdown_timeout=BODY_SECONDS if self._tls else None,  # rule 5 ends it before
            )
        except OSError as error:  # also every failed handshake
            if error.errno in TRANSIENT:
                self._connections.out_of_resources(error)
            self._give_up(accepted, connection)

    def _give_up(self, accepted: socket.socket, connection: Connection) -> None:
        self._connections.remove(connection)
        accepted.close()
