"""A node's process whose log is read while it runs, and its directory at a point of a board's history."""

import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from anofel.node.files import BLOBS, NodeConfig, write_node
from anofel.storage.blobs.store import BlobStore
from anofel.storage.blocks import BlockStore
from tests.board.world import TIME, World
from tests.node.support import OCTETS, SECONDS, NodeProcess

FOR_EVER = 1 << 40


@dataclass
class Findings:
    """What one part of the campaign did and what went wrong."""

    counts: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    slowest: float = 0.0
    """The longest wait for a block, where that is measured."""
    healed: float = 0.0
    """The longest time until all were equal again."""
    waits: int = 0
    """How often a block, or that all are equal, was waited for."""
    late: int = 0
    """How many of these waits were longer than wanted."""

    def add(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def take(self, other: "Findings") -> None:
        for name, number in other.counts.items():
            self.add(name, number)
        self.violations += other.violations
        self.slowest, self.healed = max(self.slowest, other.slowest), max(self.healed, other.healed)
        self.waits, self.late = self.waits + other.waits, self.late + other.late


class LoggedNode(NodeProcess):
    """A node whose standard error is read all the time: a full pipe would stop it."""

    def __init__(self, directory: Path, script: list[str] | None = None) -> None:
        super().__init__(directory, script=script)
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace"))

    def end(self, findings: Findings) -> None:
        """Check that the node lives, answers and has not stumbled; then end it."""
        died = self.process.poll()
        if died is not None:
            findings.violations.append(f"The node ended with code {died}: {''.join(self.log[-3:])}")
        else:
            try:
                with httpx2.Client(base_url=self.url, timeout=SECONDS) as client:
                    health = client.get("/v1/health").status_code
            except httpx2.HTTPError as error:
                health = 0
                findings.violations.append(f"The node does not answer: {error!r}.")
            if health not in (0, 200):
                findings.violations.append(f"The node's health is {health}.")
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=SECONDS)
        self._reader.join(timeout=SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        tracebacks = sum("Traceback" in line for line in self.log)
        if tracebacks:
            findings.violations.append(f"The node's log has {tracebacks} tracebacks: {self._first()}")

    def _first(self) -> str:
        start = next(place for place, line in enumerate(self.log) if "Traceback" in line)
        return "".join(self.log[start : start + 40])


def node_at(world: World, directory: Path) -> LoggedNode:
    """Start a node where a world's board stands, at the world's time."""
    if world.board._postings:
        world.board.next_block()
    write_node(directory, world.genesis, world.validator, world.storage, world.keys, NodeConfig())
    store = BlockStore(directory, world.genesis)
    for block in world.board.blocks:
        store.append(block)
    store.close()
    with BlobStore(directory / BLOBS, 1 << 34, 1 << 34) as blobs:
        for name, data in world.board.attachments.items():
            upload = blobs.begin(name, len(data), expires=FOR_EVER)
            upload.write(data)
            upload.finish()
    shift = str(TIME - int(time.time()))
    return LoggedNode(directory, [sys.executable, "-m", "tests.node.shifted_clock", shift, "node", "run"])


def post(client: httpx2.Client, data: bytes) -> httpx2.Response:
    """Post, again while the node says that it is busy."""
    while True:
        answer = client.post("/v1/postings", content=data, headers=OCTETS)
        if answer.status_code not in (429, 503):
            return answer
        time.sleep(0.05)
