"""Who keeps a place when there are not enough: one test per rule of ``connections``."""

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Iterator

import pytest

from anofel.serving import connections as rules
from anofel.serving.connections import Acceptor, Connection, Connections, Doing, Pace, group_of
from anofel.serving.listening import FILES_PER_CONNECTION, OTHER_FILES, listen, room_for


class Clock:
    """Stands for ``time`` in the module."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(rules, "time", clock)
    return clock


class Crowd:
    """Connections whose ends are remembered in their order."""

    def __init__(self, most: int) -> None:
        self.connections = Connections(most)
        self.closed: list[str] = []

    def add(self, name: str, group: str = "a") -> Connection | None:
        return self.connections.add(group, lambda: self.closed.append(name))


def test_the_oldest_without_a_request_gives_its_place(clock: Clock) -> None:
    crowd = Crowd(3)
    first = crowd.add("first")
    assert first is not None
    crowd.connections.now_doing(first, Doing.WORKING)
    crowd.add("second")
    crowd.add("third")
    crowd.add("fourth")
    assert crowd.closed == ["second"]
    assert len(crowd.connections) == 3
    crowd.connections.now_doing(first, Doing.WAITING)
    crowd.add("fifth")
    crowd.add("sixth")
    assert crowd.closed == ["second", "third", "fourth"], "who was served is the youngest again"


def test_the_address_with_most_of_them_gives_a_place(clock: Clock) -> None:
    crowd = Crowd(5)
    crowd.add("honest", "b")
    for number in range(20):
        crowd.add(str(number), "a")
    assert "honest" not in crowd.closed
    assert len(crowd.closed) == 16


def test_addresses_stand_for_a_customer() -> None:
    assert group_of(("192.0.2.7", 1)) == group_of(("::ffff:192.0.2.7", 5, 0, 0)) == "192.0.2.7"
    assert group_of(("2001:db8:1:2::5", 1, 0, 0)) == group_of(("2001:db8:1:2:9::", 1, 0, 0))
    assert group_of(("2001:db8:1:2::5", 1, 0, 0)) != group_of(("2001:db8:1:3::5", 1, 0, 0))
    assert group_of("") == group_of(("no address",)) == ""


def test_a_slow_sender_gives_its_place_and_a_fast_one_does_not(clock: Clock) -> None:
    crowd = Crowd(2)
    fast, slow = crowd.add("fast"), crowd.add("slow")
    for connection in (fast, slow):
        assert connection is not None
        crowd.connections.now_doing(connection, Doing.SENDING)
    assert crowd.add("at once") is None, "nobody is slow in the first second"
    clock.now += 2
    assert fast is not None
    assert fast.pace is not None
    fast.pace.took(3 * rules.LEAST_RATE, clock.now)
    assert crowd.add("new") is not None
    assert crowd.closed == ["slow"]
    crowd.connections.now_doing(fast, Doing.WORKING)


class Sent:
    """Stands for what we sent to a peer."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes, self.read = num_bytes, 0

    def unread(self) -> int:
        return self.num_bytes - self.read

    def acknowledged(self) -> int:
        return self.read


def reading(crowd: Crowd, name: str, num_bytes: int = 1 << 20, group: str = "a") -> Sent:
    connection = crowd.add(name, group)
    assert connection is not None
    connection.answers = sent = Sent(num_bytes)
    crowd.connections.now_doing(connection, Doing.WAITING)
    assert connection.doing is Doing.READING
    return sent


def test_a_slow_reader_gives_its_place_and_is_closed_in_the_end(clock: Clock) -> None:
    crowd = Crowd(2)
    fast, _slow = reading(crowd, "fast"), reading(crowd, "slow")
    clock.now += rules.GRACE_SECONDS + 1
    fast.read += 20 * rules.LEAST_RATE
    crowd.connections.sweep()
    assert crowd.closed == ["slow"]
    assert crowd.add("new") is not None
    clock.now += 5
    crowd.connections.now_doing(next(iter(crowd.connections._all[Doing.WAITING])), Doing.WORKING)
    assert crowd.add("newer") is not None
    assert crowd.closed == ["slow", "fast"], "it read nothing more"


def test_who_still_reads_has_no_head_to_send(clock: Clock) -> None:
    """A reader in lumps, a little faster than the least rate, and the head clock after its last byte."""
    crowd = Crowd(2)
    sent = reading(crowd, "steady", 4 << 20)
    begun = clock.now
    while sent.unread():
        clock.now += 1
        due = int((clock.now - begun) * rules.LEAST_RATE * 1.05)
        sent.read = min(due - due % (48 << 10), sent.num_bytes)
        crowd.connections.sweep()
        assert crowd.closed == []
    clock.now += rules.HEAD_SECONDS - 1
    crowd.connections.sweep()
    assert crowd.closed == []
    clock.now += 2
    crowd.connections.sweep()
    assert crowd.closed == ["steady"]


def test_one_address_does_not_hold_every_place_by_reading_slowly(clock: Clock) -> None:
    crowd = Crowd(4)
    held = [reading(crowd, str(number), 1 << 40, "greedy") for number in range(4)]
    for _ in range(30):
        clock.now += 1
        for number, sent in enumerate(held):
            sent.read += rules.LEAST_RATE + 1000 - number
        crowd.connections.sweep()
    assert crowd.add("one more", "greedy") is None
    for name, group in (("first", "b"), ("second", "c")):
        connection = crowd.add(name, group)
        assert connection is not None
        crowd.connections.now_doing(connection, Doing.WORKING)
    assert crowd.closed == ["3", "2"], "its slowest"
    assert crowd.add("third", "b") is None, "two are not two more than one"
    clock.now += rules.BODY_SECONDS
    for sent in held:
        sent.read += int(rules.BODY_SECONDS) * rules.LEAST_RATE
    crowd.connections.sweep()
    assert crowd.closed == ["3", "2", "0", "1"], "an answer has an end as well"


def test_nobody_who_behaves_is_closed_for_somebody_new(clock: Clock) -> None:
    crowd = Crowd(1)
    working = crowd.add("working")
    assert working is not None
    crowd.connections.now_doing(working, Doing.WORKING)
    clock.now += 1e6
    crowd.connections.sweep()
    assert crowd.add("new") is None
    assert crowd.closed == []


def test_heads_have_a_deadline_that_dripping_does_not_move(clock: Clock) -> None:
    crowd = Crowd(9)
    silent, dripping, young = crowd.add("silent"), crowd.add("dripping"), None
    clock.now += rules.HEAD_SECONDS / 2
    assert dripping is not None
    crowd.connections.now_doing(dripping, Doing.WAITING)
    young = crowd.add("young")
    clock.now += rules.HEAD_SECONDS / 2
    crowd.connections.sweep()
    assert crowd.closed == ["silent", "dripping"]
    assert silent is not None
    assert young is not None
    crowd.connections.remove(silent)
    assert len(crowd.connections) == 1


def test_a_body_has_a_rate_a_silence_and_an_end() -> None:
    pace = Pace(0.0)
    assert pace.deadline() == rules.GRACE_SECONDS
    pace.took(5 * rules.LEAST_RATE, 1.0)
    assert pace.deadline() == rules.GRACE_SECONDS + 5
    pace.took(500 * rules.LEAST_RATE, 2.0)
    assert pace.deadline() == 2.0 + rules.SILENCE_SECONDS
    for second in range(3, 4000):
        pace.took(rules.LEAST_RATE, second)
    assert pace.deadline() == rules.BODY_SECONDS


@pytest.fixture
def file_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("file_limit")
def test_a_process_that_may_open_few_files_takes_few_connections(caplog: pytest.LogCaptureFixture) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    assert room_for(300) == 300
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300 * FILES_PER_CONNECTION + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        allowed = (hard - OTHER_FILES) // FILES_PER_CONNECTION
        assert Connections(allowed + 1).most == allowed
        assert "too few files" in caplog.text


def test_no_descriptor_is_no_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Accepting fails a hundred times, is said once, and goes on when the machine allows."""
    monkeypatch.setattr(rules, "RETRY_SECONDS", 0.001)
    failures = 0

    class Poor(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            nonlocal failures
            if failures < 100:
                failures += 1
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    async def play() -> bytes:
        with listen("127.0.0.1", 0) as taken:
            poor = Poor(fileno=taken.detach())
            poor.setblocking(False)
            acceptor = Acceptor(poor, Connections(10), lambda _: Greeting(), None)
            reader, writer = await asyncio.open_connection(*poor.getsockname())
            said = await asyncio.wait_for(reader.read(5), 600)
            writer.close()
            acceptor.close()
            poor.close()
            return said

    class Greeting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.WriteTransport)
            transport.write(b"hello")
            transport.close()

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(play()) == b"hello"
    assert failures == 100
    assert caplog.text.count("Too many open files") == 1
