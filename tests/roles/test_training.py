"""A committee of three and an owner, each a process of its own, train a task over a real node."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anofel.board.seat import Seat
from anofel.board.state import Position, Progress
from anofel.errors import InvalidInput
from anofel.light_client.client import LightClient
from anofel.messages import Aggregate, CountShare, Exclusion
from anofel.models.card import is_card_of
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from anofel.network.transport import Refused
from anofel.phase3_access.step6_homomorphic_sum import CollectedSum, Collector, state_aggregate
from anofel.phase3_access.step8_partial_decryption import share_of_count
from anofel.proofs.keys import KeyDirectory
from anofel.roles.aggregator.role import Aggregator, Duty
from anofel.roles.directory import RoleDirectory, unlock_with
from anofel.roles.owner import Own, Owner, initial_model
from anofel.tasks.task import Task
from tests.board.world import a_vector
from tests.node.support import SECONDS
from tests.patients import make_table
from tests.roles.own_rule import double
from tests.roles.support import Deployment, deployed, write_task

MEMBERS = ("member-a", "member-b", "member-c")


def establish(world: Deployment) -> str:
    """Key generation by three processes; one is killed in the middle and started again."""
    subjects = [world.init("aggregator", name) for name in MEMBERS]
    options = ["--name", "first", "--threshold", "2", "--json"]
    for subject in subjects:
        options += ["--member", subject]
    running = [world.start("aggregator", "keygen", name, *options) for name in MEMBERS]
    world.wait(lambda state: any(run.posted.get(0) for run in state.runs.values()), "a first message")
    running[0].kill()
    running[0] = world.start("aggregator", "keygen", MEMBERS[0], *options)
    made = {process.finish()["committee"] for process in running}
    assert len(made) == 1
    return made.pop()


class Liar(Aggregator):
    """States a sum without the first submission, and then a share that it did not compute."""

    def _send_aggregate(self, duty: Duty) -> None:
        def make() -> Aggregate:
            victim = min(duty.seat.iteration.submissions)
            collector = Collector(self.board, duty.seat)
            collector._taken.add(victim)
            collector.take(self.board, duty.seat)
            lie = CollectedSum(
                collector.finish(self.board, duty.seat).totals, (Exclusion(nullifier=victim, reason=1),)
            )
            return state_aggregate(self.board, duty.seat, duty.member, lie)

        self.send(f"aggregate/{duty.name}", make)

    def _do(self, duty: Duty) -> None:
        if duty.seat.position.agreed is None:
            super()._do(duty)
        else:
            self._send_count_share(duty)

    def _send_count_share(self, duty: Duty) -> None:
        def make() -> CountShare:
            share = share_of_count(self.board, duty.seat, self._share(duty))
            return replace(share, shares=tuple(part[:-1] + bytes([part[-1] ^ 1]) for part in share.shares))

        self.send(f"count-share/{duty.name}", make)


@pytest.fixture(scope="module")
def world(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, str]]:
    """A board with a committee and three registered clients."""
    with deployed(tmp_path_factory.mktemp("deployment"), keys) as made:
        committee = establish(made)
        made.offer_certifier_key()
        made.register(3)
        yield made, committee


def announce(world: Deployment, committee: str, name: str, *options: str) -> bytes:
    world.init("owner", name)
    task = str(world.path / f"{name}.toml")
    announced = world.run("owner", "announce", name, task, "--committee", committee, *options, "--json")
    return bytes.fromhex(announced["task"])


def check_before_announcing(world: Deployment, committee: str) -> None:
    """``--check`` says whether the board would take a task, for a committee by name or prefix."""
    world.init("owner", "careful")
    names = ["--member", *" --member ".join(f"O={name}" for name in MEMBERS).split()]

    def ask(task: str, *options: str, code: int = 0, check: bool = True) -> dict[str, object]:
        """What the command says as JSON, whether it is pleased or not."""
        words = (str(world.path / task), *options, *["--check"] * check, "--json")
        asked = world.start("owner", "announce", "careful", *words)
        out, _ = asked.process.communicate(timeout=SECONDS)
        assert asked.process.returncode == code, asked.log.read_text()
        return dict(json.loads(out))

    for text in ("first", committee[:8]):
        found = ask("owner.toml", "--committee", text, *names)
        assert (found["accepted"], found["name"], found["registered_clients"]) == (True, "test", 3)
    write_task(world.path / "crowded.toml", privacy={"max_posts": 100_000})
    for task, options, error, words in (
        ("owner.toml", ["--committee", "second"], "no-committee", "No committee called 'second'"),
        ("owner.toml", ["--committee", "first", *names[:2]], "no-committee", "did not name"),
        ("crowded.toml", ["--committee", "first"], "no-size-class", "Lower max_posts"),
    ):
        refused = ask(task, *options, code=1)
        assert refused["error"] == error
        assert words in str(refused["message"])
    late = ask("owner.toml", "--committee", "first", "--clients", "4", "--wait", "1", code=3, check=False)
    assert (late["error"], "4 clients to be registered" in str(late["message"])) == ("waited-too-long", True)
    world.view.sync()
    assert world.view.state.tasks == {}
    assert not (world.path / "careful" / "outbox").exists(), "the directory still serves a task"


def write_rows(path: Path, rows: int) -> Path:
    """Rows that the owner measures its models on."""
    table = make_table(rows)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(zip(*table.columns.values(), strict=True))
    return path


def fetch_and_check(world: Deployment, name: str, last: IntegerModel) -> None:
    """Anyone fetches the models, verified from genesis: the last one, which no posting names, and others."""

    def fetch(*options: str) -> subprocess.CompletedProcess[str]:
        words = ["model", "fetch", world.node.url, name, *options, "--json"]
        return subprocess.run(
            [sys.executable, "-m", "anofel", *words], cwd=world.path, capture_output=True, text=True
        )

    genesis = ("--genesis", world.board.genesis.hash.hex())
    newest = fetch(*genesis)
    assert newest.returncode == 0, newest.stderr
    found = json.loads(newest.stdout)
    assert (found["iteration"], found["model"]) == (4, f"{name}-4.model")
    assert IntegerModel.load(world.path / found["model"]).to_bytes() == last.to_bytes()
    card = (world.path / found["card"]).read_text()
    assert is_card_of(card, found["digest"])
    assert f"| Genesis | {world.board.genesis.hash.hex()} |" in card
    task = Task.load(world.path / found["task"])
    assert task.name == name
    models = {number: json.loads(fetch(*genesis, "--iteration", str(number)).stdout) for number in (0, 1, 2)}
    assert models[0]["digest"] == initial_model(task).digest().hex()
    assert models[1]["digest"] == models[2]["digest"], "of iteration 2 there is no sum, so the model stays"
    words = ["track", world.node.url, *genesis, "--tensorboard", str(world.path / "logs"), "--json"]
    tracked = subprocess.run([sys.executable, "-m", "anofel", *words], capture_output=True, text=True)
    assert tracked.returncode == 0, tracked.stderr
    assert json.loads(tracked.stdout)["values"] > 8
    assert list((world.path / "logs" / name).glob("events.*"))
    later = fetch(*genesis, "--iteration", "5")
    assert later.returncode == 1
    assert "has no model of iteration 5; it has those of 0 to 4" in later.stderr
    other = fetch("--genesis", "00" * 32)
    assert other.returncode != 0
    assert "Traceback" not in other.stderr


def test_a_task_is_trained_to_its_end_whatever_happens_to_its_parties(
    world: tuple[Deployment, str],
) -> None:
    world, committee = world
    task = write_task(world.path / "owner.toml")
    rows = write_rows(world.path / "rows.csv", 60)
    train = ("--end-after", "3", "--validation", str(rows), "--json")
    check_before_announcing(world, committee)
    task_id = announce(world, committee, "owner", "--early-end", "--clients", "3")
    a, b, c = (world.start("aggregator", "run", name) for name in MEMBERS)
    owner = world.start("owner", "run", "owner", *train)
    expected, rule = initial_model(task), rule_of(task)

    def post(iteration: int, num_real: int = 3) -> None:
        """Three clients post; what the plain computation makes of it is the expected model."""
        nonlocal expected
        bundle = world.wait_open(task_id, iteration)
        assert world.view.state.tasks[task_id].model == expected.digest()
        updates = [a_vector(task, 10 * iteration + place) for place in range(num_real)]
        padded = [*updates, None, None, None][:3]
        for client, update in zip(world.clients, padded, strict=True):
            world.submit(bundle, client, update)
        if num_real >= 2:
            expected = rule.apply(expected, np.sum(updates, axis=0, dtype=np.int64), num_real, iteration)

    def position(role: Aggregator) -> Position:
        """Where iteration 4 stands in the view of a role of this process."""
        seat = Seat.of(role.state, task_id)
        return seat.position if seat.number == 4 else Position(task_id)

    # 1. An aggregator is killed in the middle and started again.
    post(1)
    a.kill()
    a = world.start("aggregator", "run", MEMBERS[0])
    first = world.wait_outcome(task_id, 1)
    assert (first.progress, first.count) == (Progress.SUMMED, 3)

    # 2. Too few clients: nothing is decrypted, and the same model opens the next iteration.
    post(2, num_real=1)
    assert world.wait_outcome(task_id, 2).progress is Progress.TOO_FEW

    # 3. One of three is dead, and the owner is killed in the middle and started again.
    c.kill()
    post(3)
    owner.kill()
    owner = world.start("owner", "run", "owner", *train)
    third = world.wait_outcome(task_id, 3)
    assert third.progress is Progress.SUMMED
    assert len(third.count_shares) == 2

    # 4. One of three lies; it is named, and the iteration completes.
    assert b.stop() == 0
    with world.playing(Aggregator, MEMBERS[1]) as honest, world.playing(Liar, MEMBERS[2]) as liar:
        post(4)
        lied = f"aggregate/{task_id.hex()}/4"
        world.work(liar, lambda: liar.directory.outbox.find(lied) is not None, "a wrong aggregate")
        world.work(honest, lambda: position(honest).agreed is not None, "an agreement")
        forged = f"count-share/{task_id.hex()}/4"
        world.work(liar, lambda: liar.directory.outbox.find(forged) is not None, "a refusal")
        world.work(honest, lambda: position(honest).progress.is_outcome, "the sum")
        sent = liar.directory.outbox.find(forged)
        assert sent is not None
        assert sent.answer is not None
        assert sent.answer.refused == "bad-count-share"
        assert world.wait_outcome(task_id, 4).progress is Progress.SUMMED
        members = world.view.state.committees[bytes.fromhex(committee)].current.members
        culprit = members.index(liar.identity.subject) + 1
        assert [(entry["iteration"], entry["member"]) for entry in honest.culprits] == [(4, culprit)]

    # Three releases: the task ends, and the owner with it.
    result = owner.finish()
    outcomes = [(entry["iteration"], entry["outcome"], entry["count"]) for entry in result["iterations"]]
    assert outcomes == [(1, "summed", 3), (2, "too-few", 1), (3, "summed", 3), (4, "summed", 3)]
    assert [entry["releases"] for entry in result["epsilon"]] == [1, 2, 3]
    assert result["iterations"][3]["model"] == expected.digest().hex()
    final = world.path / "owner" / "models" / f"{task.name}-4.model"
    assert IntegerModel.from_bytes(final.read_bytes()).to_bytes() == expected.to_bytes()
    assert "the model stays" in (world.path / "owner.log").read_text()

    assert result["iterations"][3]["culprits"] == [culprit]
    named = world.status("aggregator", MEMBERS[0])["culprits"]
    assert [(entry["iteration"], entry["member"]) for entry in named] == [(4, culprit)]
    assert [entry["metrics"] is None for entry in result["iterations"]] == [False, True, False, False]
    assert set(result["iterations"][3]["metrics"]) == {"loss", "accuracy", "auc"}
    assert a.stop() == 0
    fetch_and_check(world, task.name, expected)
    audited = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", world.node.url], capture_output=True, text=True
    )
    assert audited.returncode == 0, audited.stderr


def test_without_its_committee_a_task_keeps_its_model_until_it_is_closed(
    world: tuple[Deployment, str],
) -> None:
    world, committee = world
    task = write_task(world.path / "hasty.toml", task={"name": "hasty"}, privacy={"max_posts": 4})
    task_id = announce(world, committee, "hasty", "--early-end")
    owner = world.start("owner", "run", "hasty", "--end-after", "3")
    bundle = world.wait_open(task_id, 1)
    for seed, client in enumerate(world.clients):
        world.submit(bundle, client, a_vector(task, seed))
    assert world.wait_outcome(task_id, 1).progress is Progress.FAILED
    world.wait_open(task_id, 2)
    assert world.view.state.tasks[task_id].model == initial_model(task).digest()
    assert owner.stop() == 0
    assert "did not finish in time; the model stays" in (world.path / "hasty.log").read_text()
    world.end_iteration("hasty", task_id)
    closed = world.run("owner", "close", "hasty", "--json")
    assert closed["ended"]
    assert (closed["releases"], closed["epsilon"]) == (0, [])
    outcomes = [(entry["outcome"], entry["model"]) for entry in closed["iterations"]]
    assert outcomes == [("failed", initial_model(task).digest().hex()), ("too-few", outcomes[0][1])]


def test_a_task_starts_at_the_model_that_its_owner_gives(world: tuple[Deployment, str]) -> None:
    world, committee = world
    task = write_task(world.path / "tuned.toml", task={"name": "tuned"}, privacy={"max_posts": 4})
    usual = initial_model(task)
    first = replace(usual, values=usual.values + 5)
    (world.path / "first.model").write_bytes(first.to_bytes())
    (world.path / "other.model").write_bytes(replace(first, scale_bits=9).to_bytes())
    with pytest.raises(AssertionError, match="other tensors, scale or momentum"):
        announce(world, committee, "tuned", "--first-model", str(world.path / "other.model"))
    options = ("--committee", committee, "--first-model", str(world.path / "first.model"), "--json")
    announced = world.run(
        "owner", "announce", "tuned", str(world.path / "tuned.toml"), "--early-end", *options
    )
    task_id = bytes.fromhex(announced["task"])
    owner = world.start("owner", "run", "tuned")
    world.wait_open(task_id, 1)
    assert world.view.state.tasks[task_id].model == first.digest()
    assert owner.stop() == 0
    world.end_iteration("tuned", task_id)
    world.run("owner", "close", "tuned", "--json")


def test_a_custom_task_starts_at_the_model_of_its_owners_trainer(world: tuple[Deployment, str]) -> None:
    world, committee = world
    sections = {"model": {"kind": "custom", "parameters": 6}, "training": {"algorithm": "custom"}}
    task = write_task(
        world.path / "custom.toml", task={"name": "custom"}, privacy={"max_posts": 4}, **sections
    )
    own = "tests.learning.own_trainers:logistic"
    with pytest.raises(AssertionError, match="name its own trainer"):
        announce(world, committee, "custom")
    options = ("--committee", committee, "--trainer", own, "--json")
    announced = world.run(
        "owner", "announce", "custom", str(world.path / "custom.toml"), "--early-end", *options
    )
    task_id = bytes.fromhex(announced["task"])
    assert "code that runs here with your rights" in " ".join((world.path / "custom.log").read_text().split())
    owner = world.start("owner", "run", "custom")
    world.wait_open(task_id, 1)
    assert world.view.state.tasks[task_id].model == initial_model(task, own).digest()
    assert owner.stop() == 0
    world.end_iteration("custom", task_id)
    world.run("owner", "close", "custom", "--json")


def test_an_owner_rejects_a_model_by_hand_and_by_its_rows(world: tuple[Deployment, str]) -> None:
    world, committee = world
    task = write_task(world.path / "held.toml", task={"name": "held"}, privacy={"max_releases": 4})
    rows = write_rows(world.path / "held.csv", 60)
    task_id = announce(world, committee, "held", "--early-end")
    first = initial_model(task).digest()
    members = [world.start("aggregator", "run", name) for name in MEMBERS[:2]]
    measured = ("--end-after", "3", "--validation", str(rows), "--json")

    def post(iteration: int) -> None:
        bundle = world.wait_open(task_id, iteration)
        assert world.view.state.tasks[task_id].model == first, "every model so far was rejected"
        for client in world.clients[:3]:
            world.submit(bundle, client, a_vector(task, iteration))

    # 1. By hand: the owner leaves when the sum is there, and then says no.
    owner = world.start("owner", "run", "held", *measured, "--hold")
    post(1)
    assert world.wait_outcome(task_id, 1).progress is Progress.SUMMED
    owner.finish()
    status = world.run("owner", "reject", "held", "--json")
    assert [entry["rejected"] for entry in status["iterations"]] == [True]
    assert status["releases"] == 1, "the release counts"

    # 2. By itself: whatever the sum made is worse by this measure.
    unlock = unlock_with(world.path / "held.key", None)
    with RoleDirectory.open(world.path / "held", unlock, role="owner") as directory:
        view = directory.connect()
        owner = Owner(
            directory,
            view,
            evaluate=lambda model: {"loss": float(model.digest() != first)},
            end_after=3,
            reject_rise=0.5,
        )
        post(2)
        world.work(
            owner, lambda: len(owner.iterations) == 2 and owner.iterations[1]["rejected"], "a rejection"
        )
        assert owner.iterations[1]["outcome"] == "summed"
        view.close()
    world.wait_open(task_id, 3)
    assert world.view.state.tasks[task_id].model == first
    assert world.view.state.tasks[task_id].releases == 2
    world.end_iteration("held", task_id)
    world.run("owner", "close", "held", "--json")
    for member in members:
        assert member.stop() == 0


class Refusing:
    """A board that refuses an announcement that our own check let pass."""

    def __init__(self, board: LightClient) -> None:
        self.state = board.state

    def post(self, _posting: object) -> None:
        raise Refused("committee-busy", "Somebody was faster.", 409)


def test_an_owner_with_a_rule_of_its_own_makes_each_model(world: tuple[Deployment, str]) -> None:
    world, committee = world
    path = world.path / "own.toml"
    sections = {"rule": {"kind": "owner", "momentum": 0}, "privacy": {"max_releases": 4}}
    head = {"name": "own", "insecure_unproven_contributions": True}
    task = write_task(path, task=head, **sections)
    world.init("owner", "own")
    unlock = unlock_with(world.path / "own.key", None)
    announce = ("owner", "announce", "own", str(path), "--committee", committee, "--early-end", "--json")

    # A refused announcement does not block the directory.
    with RoleDirectory.open(world.path / "own", unlock, role="owner") as directory:
        view = directory.connect()
        view.sync()
        owner = Owner(directory, view)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(view, "post", Refusing(view).post)
            with pytest.raises(InvalidInput, match="committee-busy"):
                owner.announce(task, bytes.fromhex(committee), own=Own(rule="tests.roles.own_rule:double"))
        view.close()
    refused = world.start("owner", "run", "own")
    refused.process.communicate(timeout=SECONDS)
    assert refused.process.returncode == 1
    assert "anofel owner announce" in (world.path / "own.log").read_text()
    task_id = bytes.fromhex(world.run(*announce, "--rule", "tests.roles.own_rule:double")["task"])

    members = [world.start("aggregator", "run", name) for name in MEMBERS[:2]]
    running = world.start("owner", "run", "own", "--end-after", "3", "--json")
    expected = initial_model(task)
    for iteration in (1, 2, 3):
        spoilt = iteration == 2
        bundle = world.wait_open(task_id, iteration)
        assert world.view.state.tasks[task_id].model == expected.digest()
        updates = [a_vector(task, 10 * iteration + place) for place in range(3)]
        for client, update in zip(world.clients, updates, strict=True):
            world.submit(bundle, client, update, spoilt=spoilt and client is world.clients[0])
        if not spoilt:
            expected = double(expected, np.sum(updates, axis=0, dtype=np.int64), 3)
        if iteration == 1:
            world.wait_outcome(task_id, 1)
            running.kill()  # what the rule made is kept, or made again
            running = world.start("owner", "run", "own", "--end-after", "3", "--json")
    world.wait_open(task_id, 4)
    assert world.view.state.tasks[task_id].model == expected.digest()
    assert world.outcomes[task_id, 2].progress is Progress.UNDECODABLE
    log = " ".join((world.path / "own.log").read_text().split())
    assert "Iteration 2: the sum cannot be decoded; the model stays." in log
    for process in (running, *members):
        assert process.stop() == 0
    audited = subprocess.run(
        [sys.executable, "-m", "anofel", "audit", world.node.url, "--json"], capture_output=True, text=True
    )
    assert audited.returncode == 0, audited.stderr
    report = json.loads(audited.stdout)
    assert "own: sums verified; the model is the owner's claim." in report["notes"]
    assert (
        "own: INSECURE, contributions are unproven; one client can spoil or poison its sums."
        in report["notes"]
    )
    assert {"own": "insecure-unproven"}.items() <= {
        task["name"]: task["contributions"] for task in report["tasks"]
    }.items()
