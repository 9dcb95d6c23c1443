"""Validators that serve blobs over real HTTP and run no engine: blobs need none."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from anofel.node.api import make_app
from anofel.node.replicated.engine import find_engine
from anofel.node.replicated.files import read_transport_key
from anofel.node.replicated.node import ReplicatedNode
from anofel.node.replicated.service import ReplicatedService
from anofel.serving.server import GuardedServer
from tests.node.support import SECONDS
from tests.replicated.support import Validators


class Serving:
    """One validator and the thread in which it serves."""

    def __init__(self, directory: Path, port: int) -> None:
        self.node = ReplicatedNode(directory)
        self._port, self._ready = port, threading.Event()
        self.service: ReplicatedService
        self.loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(SECONDS)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(1))  # as small as threads can be
        key = read_transport_key(self.node.files.directory)
        self.service = ReplicatedService(self.node, find_engine(), key)
        self._server = GuardedServer(make_app(self.service), max_connections=512, on_ready=self._ready.set)
        taken = socket.create_server(("127.0.0.1", self._port), backlog=512)
        taken.setblocking(False)
        await self._server.serve([taken])
        await self.service.stop()

    def stop(self) -> None:
        self._server.stop()
        self._thread.join()


@contextmanager
def serving(validators: Validators, directory: Path, *numbers: int) -> Iterator[dict[int, Serving]]:
    """Copies of validators that serve blobs to each other."""
    with ExitStack() as stack:
        found = {}
        for number in numbers:
            copied = validators.copy(number, directory / f"node{number}")
            found[number] = Serving(copied, validators.ports[number])
            stack.callback(found[number].stop)
        yield found


@contextmanager
def dead(port: int) -> Iterator[list[socket.socket]]:
    """A holder that takes every connection and never answers."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", port), backlog=512) as server:

        def accept() -> None:
            while True:
                try:
                    taken.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        yield taken
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in taken:
        connection.close()
