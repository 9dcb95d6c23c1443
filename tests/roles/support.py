"""A board and roles as processes, each with its own directory; the test itself plays the clients."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from anofel.board.state import Bundle, Phase, Position, State
from anofel.committee.interface import Int64Vector
from anofel.light_client.client import LightClient
from anofel.messages import Block, Class
from anofel.network.transport import Transport
from anofel.phase1_setup.step1d_announcement import end_iteration
from anofel.phase2_training.step5_submission import post_submission
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import write_role
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.role import Aggregator
from anofel.roles.directory import RoleDirectory, unlock_with
from anofel.roles.role import Role
from anofel.tasks.task import Task
from tests.board.prepared import with_garbage
from tests.board.world import ClientOfTest
from tests.node.support import LIMITS, SECONDS, BoardOfTest, NodeProcess, make_board
from tests.patients import DOCUMENT
from tests.roles.remote_world import INTERVAL_MS, RemoteBoard, RemoteWorld

NEVER = 100_000
"""Blocks: hours, so that nothing ends by the clock, however slow the machine is; what happens ends it."""
SIZE = Class(
    max_length=1000,
    max_posts=8,
    post_from=0,
    train=NEVER,
    aggregate=NEVER,
    count=NEVER,
    sum=NEVER,
    model=NEVER,
)
HASTY = replace(SIZE, max_posts=4, aggregate=5, count=5, sum=5)
"""A committee that is not there fails soon."""
WIDE = replace(LIMITS, max_key_bytes=16 << 20, max_model_bytes=16 << 20, root_window=600, grace=20)


class Process:
    """One command as a process; what it says goes to a file."""

    def __init__(self, log: Path, *command: str, at: tuple[str, str, int] | None = None) -> None:
        """Start it; with ``at`` it is killed at a point of ``dying``."""
        self.log = log
        program = ["anofel"] if at is None else ["tests.roles.dying", *map(str, at)]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *program, *command], stdout=subprocess.PIPE, stderr=errors
            )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=SECONDS)

    def finish(self, seconds: float = SECONDS) -> dict[str, Any]:
        """Wait for the end; return the JSON document."""
        out, _ = self.process.communicate(timeout=seconds)
        assert self.process.returncode == 0, self.log.read_text()
        return json.loads(out) if out else {}

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=SECONDS)
        return self.process.returncode


class Deployment:
    """Roles as processes on one board, under one path; the test plays certifier and clients."""

    def __init__(self, path: Path, keys: KeyDirectory) -> None:
        self.path, self.keys = path, keys
        self.board: BoardOfTest = make_board(
            path / "node", keys, interval_ms=INTERVAL_MS, limits=WIDE, classes=(SIZE, HASTY), bundle_wait=3
        )
        self.node = NodeProcess(self.board.directory)
        self.view = LightClient(path / "view", Transport(self.node.url), genesis_hash=self.board.genesis.hash)
        self.world = RemoteWorld(keys, self.board, RemoteBoard(self.view, self._note))
        self.clients = self.world.clients
        self.processes: list[Process] = []
        self.outcomes: dict[tuple[bytes, int], Position] = {}

    def close(self) -> None:
        for process in self.processes:
            if process.process.poll() is None:
                process.kill()
        self.view.close()
        if self.node.process.poll() is None:
            self.node.stop(signal.SIGKILL)

    # Roles as processes

    def init(self, role: str, name: str) -> str:
        """``anofel ROLE init``; returns the subject."""
        now = int(time.time())
        issued = self.board.authority.issue(Purpose(role), name, now - 3600, now + 86_400)
        write_role(self.path / f"{name}-certificate", issued)
        made = self.run(
            role, "init", name, "--board", self.node.url, "--genesis", self.board.genesis.hash.hex(),
            "--certificate", str(self.path / f"{name}-certificate" / "certificate.pem"),
            "--key", str(self.path / f"{name}-certificate" / "key.pem"), "--json",
        )  # fmt: skip
        return str(made["subject"])

    def start(
        self, role: str, command: str, name: str, *options: str, at: tuple[str, str, int] | None = None
    ) -> Process:
        words = (role, command, str(self.path / name), *options, "--key-file", str(self.path / f"{name}.key"))
        process = Process(self.path / f"{name}.log", *words, at=at)
        self.processes.append(process)
        return process

    def run(self, role: str, command: str, name: str, *options: str) -> dict[str, Any]:
        return self.start(role, command, name, *options).finish()

    @contextmanager
    def playing(self, kind: type[Aggregator], name: str) -> Iterator[Aggregator]:
        """An aggregator in this process, which takes its steps when the test says so."""
        unlock = unlock_with(self.path / f"{name}.key", None)
        with RoleDirectory.open(self.path / name, unlock, role="aggregator") as directory:
            view = directory.connect()
            try:
                yield kind(directory, view)
            finally:
                view.close()

    def work(self, role: Role, condition: Callable[[], bool], what: str) -> None:
        """Let a role of this process take steps until something holds."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"Worked for {what} in vain."
            role.work()
            time.sleep(role.board.poll_seconds())

    def status(self, role: str, name: str) -> dict[str, Any]:
        out = subprocess.run(
            [sys.executable, "-m", "anofel", role, "status", str(self.path / name), "--json"],
            check=True,
            capture_output=True,
        )
        return dict(json.loads(out.stdout))

    # The certifier and the clients

    def offer_certifier_key(self) -> None:
        self.world.offer_certifier_key()

    def register(self, number: int) -> None:
        """Register so many more clients."""
        self.world.add_clients(number)

    def submit(
        self, bundle: Bundle, client: ClientOfTest, update: Int64Vector | None, *, spoilt: bool = False
    ) -> None:
        """Post for a client; a spoilt payload of a task without proofs parses, but spoils the sum."""
        sealed = self.world.sealed(client, None if update is None else 0, update, bundle.number)
        if spoilt:
            noise = with_garbage(sealed.payloads[0], proven=False)
            sealed = replace(sealed, payloads=(noise, *sealed.payloads[1:]))
        self.world.board.post(post_submission(self.view, sealed))

    def end_iteration(self, name: str, task_id: bytes) -> None:
        """Let the owner of a task end its open iteration, in which nobody posted."""
        place = self.path / f"{name}-certificate"
        role = RoleKey.from_files(place / "certificate.pem", place / "key.pem")
        body = end_iteration(task_id, self.bundle(task_id).iterations)
        self.world.board.post_as(role, body)
        self.wait(lambda _: self.bundle(task_id).phase is not Phase.OPEN, "the end of the iteration")

    # Waiting

    def wait(self, condition: Callable[[State], bool], what: str, seconds: float = SECONDS) -> None:
        """Follow the board block by block, so that no outcome is missed."""
        self.world.remote.wait(lambda: condition(self.view.state), what, seconds=seconds)

    def _note(self, _block: Block) -> None:
        for bundle in self.view.state.bundles.values():
            for position in bundle.current.positions if bundle.current else ():
                if position.progress.is_outcome and bundle.current:
                    name = (position.task_id, bundle.current.number)
                    self.outcomes.setdefault(name, deepcopy(position))

    def bundle(self, task_id: bytes) -> Bundle:
        number = self.view.state.tasks[task_id].bundle
        assert number is not None
        return self.view.state.bundles[number]

    def wait_open(self, task_id: bytes, iteration: int) -> Bundle:
        def is_open(state: State) -> bool:
            task = state.tasks.get(task_id)
            bundle = None if task is None or task.bundle is None else state.bundles[task.bundle]
            return bundle is not None and bundle.phase is Phase.OPEN and bundle.iterations == iteration

        self.wait(is_open, f"iteration {iteration}")
        return self.bundle(task_id)

    def wait_outcome(self, task_id: bytes, iteration: int) -> Position:
        self.wait(lambda _: (task_id, iteration) in self.outcomes, f"the outcome of iteration {iteration}")
        return self.outcomes[task_id, iteration]


def write_task(path: Path, **sections: dict[str, Any]) -> Task:
    """Write the common task as a file."""
    document = deepcopy(DOCUMENT)
    document["privacy"] |= {"min_clients": 2, "max_colluders": 0, "max_posts": 8, "max_releases": 3}
    for name, values in sections.items():
        document.setdefault(name, {}).update(values)
    lines: list[str] = []
    for name, values in document.items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    path.write_text("\n".join(lines) + "\n")
    return Task.load(path)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value)


@contextmanager
def deployed(path: Path, keys: KeyDirectory) -> Iterator[Deployment]:
    made = Deployment(path, keys)
    try:
        yield made
    finally:
        made.close()
