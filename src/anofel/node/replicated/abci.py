"""A server of ABCI 2.0 on a unix socket: what CometBFT asks of the state machine, in its wire format.

By hand, since nothing maintained on the Python package index speaks ABCI 2.0. The engine opens four
connections and expects answers in the order of its requests on each. Checks of postings have a thread of
their own, and those that wait are checked as one batch, so that they neither delay a round nor each other.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from anofel.comet.wire import Fields, MalformedWire, message, number, octets, read_uvarint, text, uvarint
from anofel.ids import BlockHash

MAX_FRAME: Final = 128 << 20
MAX_BATCH: Final = 64
ECHO, FLUSH, INFO, INIT_CHAIN, QUERY, CHECK_TX, COMMIT = 1, 2, 3, 5, 6, 8, 11
LIST_SNAPSHOTS, OFFER_SNAPSHOT, LOAD_CHUNK, APPLY_CHUNK = 12, 13, 14, 15
PREPARE, PROCESS, FINALIZE = 16, 17, 20
_EXCEPTION: Final = 1
_ANSWER: Final = {kind: kind + 1 for kind in range(1, 21)}
"""The field of an answer follows from that of the request; an exception took the first."""
_FLUSHED: Final = message(_ANSWER[FLUSH], b"")
_ACCEPT, _REJECT = 1, 2
_SNAPSHOT_REJECTED: Final = 3
_RECHECK: Final = 1

log = logging.getLogger("anofel.node")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A block that is proposed or decided."""

    postings: tuple[bytes, ...]
    height: int
    time: int
    proposer: bytes = b""
    max_bytes: int = 0
    """How long the postings may be together in the engine's encoding, while it is proposed."""
    misbehaviour: int = 0
    """Of how many validators it reports evidence."""


@dataclass(frozen=True, slots=True)
class CheckedTx:
    """Whether a posting may wait for a block; ``data`` says why not."""

    code: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Decided:
    """What the engine hears of a block that was filled."""

    tip: BlockHash
    """What the next header names."""
    updates: tuple[tuple[bytes, int], ...] = ()
    """Keys of validators that change, each with its power; 0 takes it away."""


@dataclass(frozen=True, slots=True)
class InitChain:
    """How the engine begins."""

    chain_id: str
    app_state: bytes
    validators: tuple[tuple[bytes, int], ...]
    """Key and power."""


class Application(Protocol):
    """What the engine asks of the state machine. Only ``check`` is called in another thread."""

    def info(self) -> tuple[int, bytes]:
        """Return the last height and its hash; nothing before the first block."""
        ...

    def init_chain(self, begun: InitChain) -> bytes:
        """Return the hash that the first header names."""
        ...

    def check(self, offered: list[tuple[bytes, bool]]) -> list[CheckedTx]:
        """Say which postings may wait for a block; the flag says that they were checked before."""
        ...

    def prepare(self, proposal: Proposal) -> list[bytes]:
        """Choose the postings to propose."""
        ...

    def process(self, proposal: Proposal) -> bool:
        """Whether a proposal may be voted for."""
        ...

    def finalize(self, proposal: Proposal) -> Decided:
        """Take a decided block."""
        ...

    def commit(self) -> int:
        """Keep the block for good; return up to which height the engine may forget."""
        ...


class AbciServer:
    """Serves one engine."""

    def __init__(
        self, application: Application, version: int, on_failure: Callable[[Exception], None]
    ) -> None:
        """``version``: of the rules. ``on_failure`` hears of an error that ends the connection."""
        self.application, self.version, self.on_failure = application, version, on_failure
        self.rounds = ThreadPoolExecutor(1, thread_name_prefix="anofel-rounds")
        self.checks = ThreadPoolExecutor(1, thread_name_prefix="anofel-checks")
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self, path: Path) -> None:
        """Begin to answer."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self, self._connections), path)

    async def stop(self) -> None:
        """Let the engine go and finish what the threads do."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.transport.abort()
        for worker in (self.rounds, self.checks):
            await asyncio.to_thread(worker.shutdown)

    # In the threads

    def answer_checks(self, batch: list[tuple[int, bytes]]) -> list[bytes]:
        """Answer checks, with the flushes between them."""
        asked = [Fields(body) for kind, body in batch if kind == CHECK_TX]
        results = iter(self.application.check([(one.octets(1), one.number(2) == _RECHECK) for one in asked]))
        return [_FLUSHED if kind == FLUSH else _checked(next(results)) for kind, _ in batch]

    def answer(self, kind: int, body: bytes) -> bytes:
        """Answer any other request."""
        app, found = self.application, Fields(b"" if kind == ECHO else body)
        if kind == ECHO:
            content = body
        elif kind == INFO:
            height, tip = app.info()
            content = text(1, "anofel") + number(3, self.version) + number(4, height) + octets(5, tip)
        elif kind == QUERY:
            content = number(1, 1)  # nothing is asked through the engine
        elif kind == INIT_CHAIN:
            content = octets(3, app.init_chain(_init_chain(found)))
        elif kind == PREPARE:
            content = b"".join(message(1, data) for data in app.prepare(_proposal(found, postings=2)))
        elif kind == PROCESS:
            content = number(1, _ACCEPT if app.process(_proposal(found, postings=1)) else _REJECT)
        elif kind == FINALIZE:
            proposal = _proposal(found, postings=1)
            decided = app.finalize(proposal)
            updates = b"".join(message(3, _update(*update)) for update in decided.updates)
            content = message(2, b"") * len(proposal.postings) + updates + octets(5, decided.tip)
        elif kind == COMMIT:
            content = number(3, app.commit())
        elif kind in (OFFER_SNAPSHOT, APPLY_CHUNK):
            content = number(1, _SNAPSHOT_REJECTED)
        elif kind in (LIST_SNAPSHOTS, LOAD_CHUNK):
            content = b""
        else:
            raise MalformedWire(f"request {kind} is not one that this board answers")
        return message(_ANSWER[kind], content)


def _update(key: bytes, power: int) -> bytes:
    return message(1, octets(1, key)) + number(2, power)


def _checked(result: CheckedTx) -> bytes:
    body = number(1, result.code) + octets(2, result.data) + number(5, 1)
    return message(_ANSWER[CHECK_TX], body)


def _init_chain(found: Fields) -> InitChain:
    validators = []
    for entry in map(Fields, found.every(4)):
        validators.append((entry.message(1).octets(1), entry.number(2)))
    return InitChain(found.text(2), found.octets(5), tuple(validators))


def _proposal(found: Fields, *, postings: int) -> Proposal:
    """Read PrepareProposal, ProcessProposal or FinalizeBlock, whose fields differ little."""
    preparing = postings == 2
    time, _ = found.timestamp(6)
    return Proposal(
        postings=tuple(found.every(postings)),
        height=found.number(5),
        time=time,
        proposer=found.octets(8),
        max_bytes=found.number(1) if preparing else 0,
        misbehaviour=len(found.every(4 if preparing else 3)),
    )


class _Connection(asyncio.Protocol):
    def __init__(self, server: AbciServer, all_of_them: "set[_Connection]") -> None:
        self._server, self._all = server, all_of_them
        self._buffer = bytearray()
        self._waiting: list[tuple[int, bytes]] = []
        self._work: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._all.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._all.discard(self)
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            self._take_frames()
        except MalformedWire as error:
            log.warning("The engine sent what is no request: %s.", error)
            self.transport.abort()
            return
        if self._waiting and self._work is None:
            self._work = asyncio.ensure_future(self._answer_waiting())

    def _take_frames(self) -> None:
        at = 0
        while True:
            try:
                length, start = read_uvarint(self._buffer, at)
            except IndexError:
                break
            if length > MAX_FRAME:
                raise MalformedWire(f"a request has {length} bytes")
            if start + length > len(self._buffer):
                break
            self._waiting.append(Fields(bytes(self._buffer[start : start + length])).only())
            at = start + length
        del self._buffer[:at]

    async def _answer_waiting(self) -> None:
        loop, server = asyncio.get_running_loop(), self._server
        try:
            while self._waiting:
                if self._waiting[0][0] == FLUSH:  # nothing before it waits: no thread is asked
                    self._waiting.pop(0)
                    answers = [_FLUSHED]
                elif self._waiting[0][0] == CHECK_TX:
                    batch = self._next_checks()
                    answers = await loop.run_in_executor(server.checks, server.answer_checks, batch)
                else:
                    kind, body = self._waiting.pop(0)
                    answers = [await loop.run_in_executor(server.rounds, server.answer, kind, body)]
                self.transport.write(b"".join(uvarint(len(one)) + one for one in answers))
        except Exception as error:
            log.exception("The state machine failed.")
            failure = message(_EXCEPTION, text(1, type(error).__name__))
            self.transport.write(uvarint(len(failure)) + failure)
            server.on_failure(error)
        finally:
            self._work = None

    def _next_checks(self) -> list[tuple[int, bytes]]:
        end = 0
        while end < min(len(self._waiting), MAX_BATCH) and self._waiting[end][0] in (CHECK_TX, FLUSH):
            end += 1
        batch, self._waiting = self._waiting[:end], self._waiting[end:]
        return batch
