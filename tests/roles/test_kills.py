"""kill -9 of every role around all that it writes down or sends: it goes on, nothing is lost or doubled."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from anofel.board.state import Phase, Progress
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import write_role
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import CertificateDocument
from tests.board.world import a_vector
from tests.node.support import SECONDS
from tests.roles.people import TYPE, make_client, write_policy, write_table
from tests.roles.stage import Stage, playing, staged
from tests.roles.support import Deployment, Process, deployed, write_task
from tests.roles.test_training import MEMBERS, announce, establish

Point = tuple[str, str, int]
"""Before or after the n-th call of a method of ``dying``."""


def points(times: dict[str, int]) -> list[Point]:
    return [
        (moment, method, number)
        for method, last in times.items()
        for number, moment in product(range(1, last + 1), ("before", "after"))
    ]


def dies(process: Process, seconds: float = SECONDS) -> None:
    """Wait until the process killed itself."""
    process.process.communicate(timeout=seconds)
    assert process.process.returncode == -signal.SIGKILL, process.log.read_text()


def stop(*processes: Process) -> None:
    """Stop them; one that was started again may have had nothing left to do, and hardly begun."""
    assert {process.stop() for process in processes} <= {0, -signal.SIGTERM}


# Aggregators and the owner


@pytest.fixture(scope="module")
def trained(
    keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Deployment, bytes]]:
    """Two of three members, so that each is needed, and an owner; the test plays three clients."""
    with deployed(tmp_path_factory.mktemp("kills"), keys) as world:
        committee = establish(world)
        world.offer_certifier_key()
        world.register(3)
        write_task(world.path / "owner.toml", privacy={"max_releases": 100})
        task_id = announce(world, committee, "owner", "--early-end")
        world.start("aggregator", "run", MEMBERS[1])
        yield world, task_id


def complete(world: Deployment, task_id: bytes) -> None:
    """Play the clients in the iteration that is open, or in the next that opens."""
    world.wait(lambda state: task_id in state.tasks and state.tasks[task_id].bundle is not None, "the bundle")
    bundle = world.bundle(task_id)
    is_new = bundle.phase is Phase.OPEN and not bundle.current.submissions  # type: ignore[union-attr]
    bundle = world.wait_open(task_id, bundle.iterations + (not is_new))
    task = write_task(world.path / "owner.toml", privacy={"max_releases": 100})
    for seed, client in enumerate(world.clients):
        world.submit(bundle, client, a_vector(task, seed))


def outcome(world: Deployment, task_id: bytes) -> None:
    current = world.bundle(task_id).current
    assert current is not None
    result = world.wait_outcome(task_id, current.number)
    assert (result.progress, result.count) == (Progress.SUMMED, 3)


@pytest.mark.slow
@pytest.mark.parametrize("point", points({"store": 3, "post": 3, "answer": 3, "upload": 2}))
def test_an_aggregator(trained: tuple[Deployment, bytes], point: Point) -> None:
    world, task_id = trained
    owner = world.start("owner", "run", "owner", "--end-after", "3")
    dying = world.start("aggregator", "run", MEMBERS[0], at=point)
    complete(world, task_id)
    dies(dying)
    again = world.start("aggregator", "run", MEMBERS[0])
    outcome(world, task_id)
    stop(again, owner)


@pytest.mark.slow
@pytest.mark.parametrize("point", points({"store": 3, "post": 3, "answer": 3, "upload": 1}))
def test_an_owner(trained: tuple[Deployment, bytes], point: Point) -> None:
    world, task_id = trained
    member = world.start("aggregator", "run", MEMBERS[0])
    dying = world.start("owner", "run", "owner", "--end-after", "3", at=point)
    died = False
    try:
        dying.process.communicate(timeout=3)  # some points come before the iteration opens
        died = True
        owner = world.start("owner", "run", "owner", "--end-after", "3")
    except subprocess.TimeoutExpired:
        pass
    complete(world, task_id)
    if not died:
        dies(dying)
        owner = world.start("owner", "run", "owner", "--end-after", "3")
    outcome(world, task_id)
    stop(member, owner)


@pytest.mark.slow
@pytest.mark.parametrize("point", points({"secrets": 3, "store": 4, "post": 4, "upload": 4}))
def test_a_member_that_makes_a_key(trained: tuple[Deployment, bytes], point: Point) -> None:
    world, _ = trained
    name = "-".join(map(str, point))
    options = ["--name", name, "--threshold", "2", "--json"]
    names = [f"{name}-{letter}" for letter in "xyz"]
    for subject in [world.init("aggregator", entry) for entry in names]:
        options += ["--member", subject]
    others = [world.start("aggregator", "keygen", entry, *options) for entry in names[1:]]
    dies(world.start("aggregator", "keygen", names[0], *options, at=point))
    again = world.start("aggregator", "keygen", names[0], *options)
    assert len({process.finish()["committee"] for process in (again, *others)}) == 1


# The client


@pytest.fixture(scope="module")
def stage(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(keys, tmp_path_factory.mktemp("stage")) as made:
        with playing(made.client()) as other:
            other.register(seconds=SECONDS)  # an anonymity set of one is none
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", points({"charge": 1, "draft": 1, "upload": 2, "store": 1, "post": 1, "answer": 1, "drop": 1})
)
def test_a_client(stage: Stage, point: Point) -> None:
    made = stage.client()
    with playing(made) as client:
        client.register(seconds=SECONDS)
    path, unlock = made
    words = ["client", "run", str(path), "--key-file", str(unlock.path)]
    dying = subprocess.Popen([sys.executable, "-m", "tests.roles.dying", *map(str, point), *words])
    pump_until(stage, lambda: dying.poll() is not None)
    assert dying.returncode == -signal.SIGKILL
    with playing(made) as client:
        end = time.monotonic() + SECONDS
        while not client.journal.turns() or not client.journal.turns()[0].outcome:
            assert time.monotonic() < end, client.waits_for
            stage.pump()
            client.work()
        first = client.journal.turns()[0]
        assert first.accepted != (first.skipped != ""), first
        assert first.accepted or first.skipped == "late", "what was charged is posted, if only with noise"
        assert len({made.occasion for made in client.ledger.charges()}) == len(client.ledger.charges())


def pump_until(stage: Stage, condition, seconds: float = SECONDS) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "What was waited for did not happen."
        stage.pump()


# The certifier: one point in every run of the tests


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_certifier(keys: KeyDirectory, tmp_path: Path, moment: str) -> None:
    from tests.board.world import Authority

    genesis = bytes(range(32))
    write_role(tmp_path / "x509", Authority(int(time.time())).issue(Purpose.CERTIFIER, "Registry"))
    write_policy(tmp_path)
    client, unlock = make_client(tmp_path / "ward", keys, board="http://127.0.0.1:1", genesis=genesis)
    board = ["--board", "http://127.0.0.1:1", "--genesis", genesis.hex(), "--keys", str(keys.path)]
    files = ["--certificate", "x509/certificate.pem", "--key", "x509/key.pem", "--policy", "policy.toml"]
    run(tmp_path, "certifier", "init", "clinic", *board, *files, "--key-file", "clinic.key")
    words = ["--subject", "Ward 3", "--type", str(TYPE), "--out", "nonce.json"]
    run(tmp_path, "certifier", "nonce", "clinic", *words)
    asked = ["--nonce", "nonce.json", "--out", "request.json", "--key-file", str(unlock.path)]
    run(tmp_path, "client", "request", str(client), *asked)
    write_table(tmp_path / "patients.csv")
    shown = ["--request", "request.json", "--data", "patients.csv", "--key-file", "clinic.key", "--out"]
    certify = ["certifier", "certify", "clinic", *shown]
    run(tmp_path, *certify, "killed.json", at=(moment, "log", 1))
    assert not (tmp_path / "killed.json").exists()
    for name in ("first.json", "second.json"):
        run(tmp_path, *certify, name)
    first, second = (CertificateDocument.read(tmp_path / f"{name}.json") for name in ("first", "second"))
    assert first.to_bytes() == second.to_bytes(), "one certificate, however often it is asked for"


def run(directory: Path, *words: str, at: Point | None = None) -> None:
    command = ["-m", "tests.roles.dying", *map(str, at)] if at else ["-m", "anofel"]
    ended = subprocess.run(
        [sys.executable, *command, *words],
        cwd=directory,
        env={"PYTHONPATH": f"{Path(__file__).parents[2]}:{os.environ.get('PYTHONPATH', '')}", "PATH": ""},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == (-signal.SIGKILL if at else 0), ended.stderr.decode()
