"""Roles as processes behind something that answers in place of their node: they go on when it stops.

Every kind of request gets every kind of nonsense once, in the middle of whatever the role is doing. The
process is started again only as its unit would be: after exit code 3.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from anofel.board.state import Progress
from anofel.proofs.keys import KeyDirectory
from anofel.roles.directory import CONFIG, read_status
from tests.board.world import a_vector
from tests.node.support import SECONDS
from tests.roles.stage import playing, staged
from tests.roles.support import Deployment, deployed, write_task
from tests.roles.test_training import announce
from tests.transport.nonsense import NONSENSE
from tests.transport.servers import Middlebox

UNREACHABLE = 3
START = ("GET /v1/genesis", "GET /v1/keys")
"""What is asked for before the role runs; more nonsense than attempts only starts the process again."""


class Unit:
    """A role as its unit runs it: started again after exit code 3, and after no other."""

    def __init__(self, log: Path, *words: str) -> None:
        self._log, self._words = log, words
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as errors:
            command = [sys.executable, "-m", "tests.transport.hasty", *self._words]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)

    def is_over(self) -> bool:
        if self.process.poll() == UNREACHABLE:
            self.process.communicate()
            self.process = self._start()
        return self.process.poll() is not None

    def finish(self, meanwhile: Callable[[], None] = lambda: time.sleep(0.1)) -> bytes:
        """Wait until it has done its work; return what it printed."""
        end = time.monotonic() + SECONDS
        while not self.is_over():
            assert time.monotonic() < end, self.said()
            meanwhile()
        out, _ = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, self.said()
        return out

    def said(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def wrong(box: Middlebox) -> None:
    """Let everything be answered with nonsense from here on."""
    box.left.clear()
    box.left.update({kind: list(NONSENSE.values())[:3] for kind in START})


def check(box: Middlebox, unit: Unit, *kinds: str) -> None:
    """All nonsense was answered to each kind of request, and was met by one sentence at a time."""
    assert {kind: len(box.left[kind]) for kind in kinds} == dict.fromkeys(kinds, 0)
    assert "Traceback" not in unit.said()
    assert "Waiting for the board" in unit.said()


def test_an_aggregator_goes_on_after_nonsense(keys: KeyDirectory, tmp_path: Path) -> None:
    with deployed(tmp_path, keys) as world, Middlebox(world.node.url, NONSENSE.values()) as box:
        names = ("member-a", "member-b")
        options = ["--name", "first", "--threshold", "2", "--json"]
        for name in names:
            options += ["--member", world.init("aggregator", name)]
        behind(box, world, "member-a")
        wrong(box)
        other = world.start("aggregator", "keygen", "member-b", *options)
        committee = unit(world, "keygen", *options).finish()
        assert json.loads(committee) == other.finish()

        world.offer_certifier_key()
        world.register(2)
        task = write_task(world.path / "owner.toml")
        task_id = announce(world, json.loads(committee)["committee"], "owner", "--early-end")
        world.start("aggregator", "run", "member-b")
        world.start("owner", "run", "owner", "--end-after", "2")
        wrong(box)
        member = unit(world, "run")
        try:
            bundle = world.wait_open(task_id, 1)
            for seed, client in enumerate(world.clients):
                world.submit(bundle, client, a_vector(task, seed))
            result = outcome(world, task_id, member)
            assert (result.progress, result.count) == (Progress.SUMMED, 2)
            check(box, member, "GET /v1/status", "GET /v1/blocks", "POST /v1/postings", "PUT /v1/blobs")
            refused = world.status("aggregator", "member-a")["refused"]
            assert refused == [], "nonsense is not kept as the board's refusal"
        finally:
            member.close()


def unit(world: Deployment, command: str, *options: str) -> Unit:
    words = ["aggregator", command, str(world.path / "member-a"), *options]
    return Unit(world.path / "member-a.log", *words, "--key-file", str(world.path / "member-a.key"))


def behind(box: Middlebox, world: Deployment, name: str) -> None:
    path = world.path / name / CONFIG
    path.write_text(path.read_text().replace(world.node.url, box.url))


def outcome(world: Deployment, task_id: bytes, member: Unit):  # type: ignore[no-untyped-def]
    end = time.monotonic() + SECONDS
    while (task_id, 1) not in world.outcomes:
        assert not member.is_over(), member.said()
        assert time.monotonic() < end, member.said()
        world.view.sync(on_block=world._note)
        time.sleep(world.view.poll_seconds())
    return world.outcomes[task_id, 1]


def test_a_client_goes_on_after_nonsense(keys: KeyDirectory, tmp_path: Path) -> None:
    """It registers, trains and posts; what it sends again is what it sent."""
    with staged(keys, tmp_path) as stage:
        with playing(stage.client()) as other:
            other.register(seconds=SECONDS)  # an anonymity set of one is none
        with Middlebox(stage.node.url, NONSENSE.values()) as box:
            made, unlock = stage.client(box.url)
            wrong(box)
            client = Unit(tmp_path / "run.log", "client", "run", str(made), "--key-file", str(unlock.path))
            try:
                end = time.monotonic() + SECONDS
                while not num_posted(made):
                    assert not client.is_over(), client.said()
                    assert time.monotonic() < end, client.said()
                    stage.pump()
            finally:
                client.close()
            check(box, client, "GET /v1/status", "GET /v1/blocks", "GET /v1/blobs", "POST /v1/postings")
            posted = {request for kind, request in box.requests if kind == "POST /v1/postings"}
            turns = read_status(made, role="client")["iterations"]
            late = sum(turn["skipped"] == "iteration-not-open" for turn in turns)  # on a slow machine
            assert len(posted) == 2 + late, "a registration and a submission, each always the same bytes"


def num_posted(path: Path) -> int:
    return int(read_status(path, role="client").get("posted", 0))
