"""Networks of test: a namespace for each validator that can be cut from others, and relays that are slow.

Namespaces need root and Linux. Their bridge lies in a namespace of the campaign's own, so the machine's
network does not change. A loss of packets is a rule of iptables. A delay is a relay between two engines,
since not every kernel has ``netem``.
"""

import asyncio
import ctypes
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tests.faults.cluster import Cluster
from tests.replicated.support import free_ports

_NEW_NETWORK = 0x40000000
_NET = "10.77.0"


class NoNetworks(Exception):
    """There can be no namespaces here; the message says why."""


def own() -> None:
    """Let this process and what it starts have a network of its own, as far as that is allowed here."""
    if os.geteuid() == 0 and shutil.which("ip"):
        library = ctypes.CDLL(None, use_errno=True)
        if library.unshare(_NEW_NETWORK) == 0:
            _do("ip", "link", "set", "lo", "up")


def why_not() -> str:
    """Say why there can be no namespaces; nothing if there can."""
    missing = [program for program in ("ip", "iptables") if shutil.which(program) is None]
    if missing:
        return f"{' and '.join(missing)} is not installed"
    return "" if os.geteuid() == 0 else "only root may make network namespaces"


def _do(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNetworks(f"{' '.join(words)}: {done.stderr.strip()}")


@dataclass
class Separate:
    """Namespaces that a bridge joins."""

    names: list[str]

    def join(self, cluster: Cluster) -> None:
        """Move the validators of a cluster into them."""
        for number, name in enumerate(self.names):
            cluster.hosts[number] = f"{_NET}.{number + 1}"
            cluster.before[number] = ["ip", "netns", "exec", name]
        for number in range(len(self.names)):
            path = cluster.path(number) / "network.toml"
            head, *entries = path.read_text().split("[[validator]]")
            placed = [
                entry.replace("127.0.0.1", host) for entry, host in zip(entries, cluster.hosts, strict=True)
            ]
            path.write_text("[[validator]]".join([head.replace("127.0.0.1", "0.0.0.0"), *placed]))

    def cut(self, some: Sequence[int], others: Sequence[int]) -> None:
        """Let nothing pass between two groups."""
        for number in some:
            for other in others:
                for chain, direction in (("INPUT", "-s"), ("OUTPUT", "-d")):
                    address = f"{_NET}.{other + 1}"
                    self._rule(number, "-A", chain, direction, address, "-j", "DROP")

    def lose(self, share: float) -> None:
        """Lose so much of what arrives from other validators anywhere."""
        for number in range(len(self.names)):
            random = ("-m", "statistic", "--mode", "random", "--probability", str(share))
            self._rule(number, "-A", "INPUT", "-s", f"{_NET}.0/29", *random, "-j", "DROP")

    def heal(self) -> None:
        """Let everything pass."""
        for number in range(len(self.names)):
            self._rule(number, "-F")

    def _rule(self, number: int, *words: str) -> None:
        _do("ip", "netns", "exec", self.names[number], "iptables", "-w", *words)


@contextmanager
def separate(number: int) -> Iterator[Separate]:
    """Namespaces for so many validators; this process reaches all of them. Raises ``NoNetworks``."""
    reason = why_not()
    if reason:
        raise NoNetworks(reason)
    tag = f"an{os.getpid()}"
    names = [f"{tag}-{place}" for place in range(number)]
    bridge = f"{tag}b"[-15:]
    try:
        _do("ip", "link", "add", bridge, "type", "bridge")
        _do("ip", "addr", "add", f"{_NET}.254/24", "dev", bridge)
        _do("ip", "link", "set", bridge, "up")
        for place, name in enumerate(names):
            here = f"{tag}v{place}"[-15:]
            _do("ip", "netns", "add", name)
            _do("ip", "link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", name)
            _do("ip", "link", "set", here, "master", bridge, "up")
            for words in (
                ("addr", "add", f"{_NET}.{place + 1}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                _do("ip", "netns", "exec", name, "ip", *words)
        yield Separate(names)
    finally:
        for name in names:
            with suppress(NoNetworks):
                _do("ip", "netns", "del", name)
        with suppress(NoNetworks):
            _do("ip", "link", "del", bridge)


class Relays:
    """A relay before every engine, which passes everything on after a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> "Relays":
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        for server in self._servers:
            self._loop.call_soon_threadsafe(server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def join(self, cluster: Cluster) -> None:
        """Let the engines of a cluster find each other through relays alone."""
        number = len(cluster.hosts)
        ports = free_ports(number)
        for place in range(number):
            path = cluster.path(place) / "network.toml"
            text = path.read_text()
            peers = [int(port) for port in re.findall(r'peer = "[0-9a-f]{40}@127\.0\.0\.1:(\d+)"', text)]
            if place == 0:
                for offset, peer in enumerate(peers):
                    listening = asyncio.run_coroutine_threadsafe(
                        self._listen(ports + offset, peer), self._loop
                    )
                    self._servers.append(listening.result(10))
            for offset, peer in enumerate(peers):
                text = re.sub(rf"(peer = .*@127\.0\.0\.1:){peer}\b", rf"\g<1>{ports + offset}", text)
            path.write_text(text)

    async def _listen(self, port: int, target: int) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
            except OSError:
                writer.close()
                return
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))

        return await asyncio.start_server(serve, "127.0.0.1", port)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Every piece is passed on after the delay, in order; pieces do not wait for each other."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            data = b"."
            while data:
                try:
                    data = await reader.read(1 << 16)
                except OSError:
                    data = b""
                waiting.put_nowait((loop.time() + self._seconds, data))

        reading = asyncio.ensure_future(read())
        with suppress(OSError):
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(due - loop.time())
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        reading.cancel()
        writer.close()
