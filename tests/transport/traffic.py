"""What a line shows: clients in namespaces of their own, and every packet between them and the node.

    python -m tests.transport.traffic DIRECTORY ITERATIONS

prints what each client sent and received, connection by connection, as JSON. A trainer, a cover poster and a
client that only follows the board (its floor refuses the task) run as daemons; the test plays everybody else.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from anofel.board.state import Phase
from anofel.proofs.keys import make_insecure_development_keys
from tests.faults.networks import own, separate
from tests.node.support import SECONDS
from tests.roles.people import make_client, open_client
from tests.roles.remote_world import CLASS
from tests.roles.stage import certify, staged

KINDS = ("trainer", "other trainer", "cover", "idle")
SIZE = replace(CLASS, post_from=120, train=360)
_EVERYTHING = 3
_BUFFER_FORCE = 33
"""Options of Linux without a name in Python; without room the kernel drops packets."""
_GATEWAY = "10.77.0.254"


@dataclass
class Connection:
    """One TCP connection of a client, as its packets show it."""

    client: str
    began: float
    up_from: int
    """Where the stream begins, by the client's numbers."""
    down_from: int = 0
    up: int = 0
    down: int = 0


class Capture:
    """Every TCP packet on the bridge."""

    def __init__(self, interface: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERYTHING))
        self._socket.setsockopt(socket.SOL_SOCKET, _BUFFER_FORCE, 64 << 20)
        self._socket.bind((interface, 0))
        self._socket.settimeout(0.2)
        self._port, self._ended = port, threading.Event()
        self._open: dict[tuple[str, int], Connection] = {}
        self._known: set[tuple[str, int, int]] = set()
        self.connections: list[Connection] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                frame = self._socket.recv(1 << 16)
            except TimeoutError:
                continue
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
            return
        packet = frame[14:]
        head = (packet[0] & 15) * 4
        (length,) = struct.unpack("!H", packet[2:4])
        source, target = (socket.inet_ntoa(packet[place : place + 4]) for place in (12, 16))
        from_port, to_port, place = struct.unpack("!HHI", packet[head : head + 8])
        carried = length - head - (packet[head + 12] >> 4) * 4
        opens = bool(packet[head + 13] & 0x02)
        if to_port == self._port and target == _GATEWAY:
            if opens and (source, from_port, place) not in self._known:
                self._known.add((source, from_port, place))
                made = self._open[source, from_port] = Connection(source, time.monotonic(), up_from=place + 1)
                self.connections.append(made)
            elif carried and (found := self._open.get((source, from_port))):
                found.up = max(found.up, _distance(found.up_from, place + carried))
        elif from_port == self._port and (found := self._open.get((target, to_port))):
            if opens:
                found.down_from = place + 1
            elif carried:
                found.down = max(found.down, _distance(found.down_from, place + carried))


def _distance(start: int, end: int) -> int:
    """Bytes between two places of a stream, so that what is sent twice counts once."""
    found = (end - start) % (1 << 32)
    return found if found < 1 << 31 else 0


def run(directory: Path, iterations: int) -> dict[str, Any]:
    """Let the daemons run for so many iterations."""
    own()
    keys = make_insecure_development_keys(directory / "keys")
    with separate(len(KINDS)) as networks, staged(keys, directory, size=SIZE, host="0.0.0.0") as stage:
        port = urlsplit(stage.node.url).port
        assert port is not None
        capture = Capture(f"{networks.names[0].partition('-')[0]}b"[-15:], port)
        daemons = []
        for place, kind in enumerate(KINDS):
            made = make_client(
                directory / f"client-{place}",
                keys,
                board=f"http://{_GATEWAY}:{port}",
                genesis=stage.world.genesis.hash,
                seed=place,
                rows=60 if kind == "other trainer" else 20,
                task="study 0",
                **({"max_epsilon": "0.001"} if kind == "idle" else {}),
            )
            with open_client(*made) as opened:
                certify(stage.world, opened, keys)
            words = [sys.executable, "-m", "anofel", "client", "run", str(made[0]), "--key-file"]
            cover = ["--cover"] if kind == "cover" else []
            log = (directory / f"client-{place}.log").open("ab")
            inside = ["ip", "netns", "exec", networks.names[place]]
            key = str(directory / f"client-{place}" / "key")
            daemons.append(subprocess.Popen([*inside, *words, key, *cover], stdout=log, stderr=log))
        try:
            opened_at = _play(stage, iterations)
        finally:
            for daemon in daemons:
                daemon.terminate()
            for daemon in daemons:
                daemon.wait(60)
            capture.close()
        return _report(capture, opened_at, stage)


def _play(stage: Any, iterations: int) -> list[float]:
    world, end = stage.world, time.monotonic() + SECONDS
    while len(stage.state.clients) < len(KINDS):
        assert time.monotonic() < end, "The clients did not register."
        world.remote.client.sync()
        time.sleep(0.2)
    opened_at: list[float] = []
    while True:
        world.remote.client.sync()
        bundle = world.bundle(0)
        if bundle.phase is Phase.OPEN and len(opened_at) < bundle.iterations:
            opened_at.append(time.monotonic())
        if bundle.phase is Phase.WAITING and bundle.iterations >= iterations:
            time.sleep(2)  # those who poll see the outcome
            return opened_at
        stage.pump()


def _report(capture: Capture, opened_at: list[float], stage: Any) -> dict[str, Any]:
    clients = {f"10.77.0.{place + 1}": kind for place, kind in enumerate(KINDS)}
    seen: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for found in capture.connections:
        iteration = sum(found.began >= moment for moment in opened_at)
        if iteration:
            entry = {"iteration": iteration, "after": found.began - opened_at[iteration - 1]}
            seen[clients[found.client]].append({**entry, "up": found.up, "down": found.down})
    return {"outcomes": {str(number): str(found) for number, found in stage.outcomes.items()}, "seen": seen}


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]))))
