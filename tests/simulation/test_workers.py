"""Workers: the same sums, secrets that stay where they are, and workers that are lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from anofel.audit.auditor import Auditor
from anofel.audit.sources import open_source
from anofel.cli import app
from anofel.cli.simulate import ORDER_SECONDS as SHOWN_SECONDS
from anofel.errors import InvalidInput
from anofel.learning.own_trainer import TrainerFailed
from anofel.privacy import protect
from anofel.proofs.keys import KeyDirectory
from anofel.simulation import (
    CommitteeSettings,
    InsecurePlainSimulation,
    IterationResult,
    Participation,
    SimulatedTask,
    Simulation,
    Workers,
    board_run,
    venue,
)
from anofel.simulation.parts import SimulatedTask as Part
from anofel.simulation.workers import orders
from anofel.simulation.workers.crew import NoWorkersLeft, WorkerFailed
from anofel.simulation.workers.links import ORDER_SECONDS, Link, WorkerLost
from anofel.simulation.workers.process import ProcessLink
from anofel.simulation.workers.worker import Worker
from tests.patients import make_dataset, make_task
from tests.simulation import coins

SMALL = CommitteeSettings(members=2, threshold=2)
TRAINER = "tests.simulation.coins:make"


def custom(name: str, clients: int, first_rows: int, **privacy: object) -> SimulatedTask:
    """A task whose clients have 3, 4, 5 … rows, so that a test can tell them apart."""
    numbers = {"min_clients": 2, "max_colluders": 0, "max_releases": 3, "clipping_norm": 4}
    task = make_task(
        task={"name": name},
        model={"kind": "custom", "parameters": 6},
        training={"algorithm": "custom"},
        privacy=numbers | privacy,
    )
    rows = [make_dataset(first_rows + place, seed=first_rows + place) for place in range(clients)]
    return SimulatedTask(task, rows, trainer_name=TRAINER)


def two_tasks() -> list[SimulatedTask]:
    return [custom("first", 4, 3), custom("second", 3, 10, adaptive=True, max_posts=9)]


@pytest.fixture(autouse=True)
def known_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the workers; the module tosses them where it makes a trainer, and this puts them back."""
    monkeypatch.setattr(protect, "draw_noise", coins.draw_noise)
    monkeypatch.setattr(protect, "round_within", coins.round_within)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a test writes down what shall happen to a client."""
    (tmp_path / "place").mkdir()
    monkeypatch.setenv(coins.PLACE, str(tmp_path / "place"))
    return tmp_path / "place"


def same(ours: list[IterationResult], theirs: list[IterationResult]) -> None:
    assert [result.document() for result in ours] == [result.document() for result in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.model.to_bytes() == other.model.to_bytes()
        assert (one.total is None) == (other.total is None)
        assert one.total is None or np.array_equal(one.total, other.total)  # type: ignore[arg-type]


# The same sums


@pytest.mark.parametrize("number", [1, 3])
def test_any_number_of_workers_gives_the_integers_of_one_process(
    number: int, keys: KeyDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (board_run, venue):  # many blocks for few clients
        monkeypatch.setattr(module, "POSTS_PER_BLOCK", 2)
    participation = Participation(dropout=0.2, seed=4)
    with Simulation(
        two_tasks(),
        committee=SMALL,
        participation=participation,
        keys=keys,
        directory=tmp_path / "board",
        workers=number,
    ) as simulation:
        results = list(simulation.run(2))
    expected = list(InsecurePlainSimulation(two_tasks(), participation=participation).run(2))
    same(results, expected)
    assert [result.outcome for result in results].count("summed") >= 3
    assert simulation.lost == []
    with open_source(str(tmp_path / "board")) as source:
        auditor = Auditor(
            source.genesis,
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
        )
        auditor.follow(source.blocks)
        assert auditor.finish().ok


# Secrets stay


class WatchedLink:
    """A worker in this process, so that a test knows its secrets, and every byte that crosses."""

    is_here = True
    made = 0

    def __init__(self, number: int) -> None:
        self.name = f"Watched worker {number}"
        self.worker = Worker()
        self.crossed: list[bytes] = []
        self.secrets: dict[str, bytes] = {}
        self.public: dict[str, bytes] = {}

    def converse(self, order: bytes, seconds: float) -> bytes:
        answer = self.worker.obey(order)
        self.crossed += [order, answer]
        for number, applicant in self.worker._applicants.items():
            self.secrets[f"client {number}: master secret"] = applicant.msk.to_secret_bytes()
            self.public[f"client {number}: master public key"] = applicant.msk.public_key().to_bytes()
        for number, client in self.worker._clients.items():
            self.secrets[f"client {number}: salt"] = client.salt.to_secret_bytes()
        for number, sealed in self.worker._sealed.items():
            member, who = sealed.membership, f"client {number}: "
            self.secrets[who + "message secret"] = member.message_secret.to_secret_bytes()
            self.public[who + "message key"] = member.message_key
            self.public[who + "nullifier"] = member.nullifier
        return answer

    def close(self) -> None:
        pass


def test_no_secret_is_in_the_bytes_that_cross(keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    links = [WatchedLink(1), WatchedLink(2)]
    monkeypatch.setattr(Workers, "start", lambda self: list(links))
    updates: list[bytes] = []
    local_update = Part.local_update

    def noted(self: Part, *arguments: object) -> np.ndarray:
        made = local_update(self, *arguments)  # type: ignore[arg-type]
        updates.append(made.tobytes())
        return made

    monkeypatch.setattr(Part, "local_update", noted)
    loaded: list[str] = []
    load = KeyDirectory.submission_prover
    monkeypatch.setattr(
        KeyDirectory, "submission_prover", lambda self, **how: (loaded.append("once"), load(self, **how))[1]
    )
    with Simulation([custom("one", 4, 3)], committee=SMALL, keys=keys, workers=2) as simulation:
        results = list(simulation.run(2))
    assert [result.count for result in results] == [4, 4]
    crossed = b"\n".join(data for link in links for data in link.crossed)
    public = [data for link in links for data in link.public.values()]
    assert len(public) == 4 * 3
    assert all(data in crossed for data in public), "what is searched is what crossed"
    secrets = {name: data for link in links for name, data in link.secrets.items()}
    assert len(secrets) == 4 * 3
    assert [name for name, data in secrets.items() if data in crossed] == []
    assert len(updates) == 8
    assert not any(update in crossed for update in updates)
    assert all(result.total is not None for result in results)
    assert len(loaded) == 2, "proving keys are loaded once for each worker"


def test_every_layout_that_a_worker_answers_with_is_public() -> None:
    """The fields of the answers are those that stand here; whoever adds one thinks of this test."""
    found = {
        layout.__name__: layout.__struct_fields__
        for layout in (orders.Done, orders.Asked, orders.Sealed, orders.Posted, orders.Failed)
    }
    assert found == {
        "Done": (),
        "Asked": ("mpk", "d", "dt", "ownership"),
        "Sealed": ("payloads", "failure"),
        "Posted": ("data",),
        "Failed": ("code", "reason"),
    }


# Workers that are lost


def test_who_is_lost_is_named_and_the_others_go_on(keys: KeyDirectory, place: Path) -> None:
    """Rows 3, 6, 9 are the first worker's, 4 and 7 the second's, 5 and 8 the third's."""
    (place / "1-5").write_text("die")
    (place / "2-4").write_text("die")
    losses: list[str] = []
    workers = Workers(number=3, on_loss=losses.append)
    with Simulation([custom("one", 7, 3)], committee=SMALL, keys=keys, workers=workers) as simulation:
        results = list(simulation.run(2))
    assert [result.outcome for result in results] == ["summed", "summed"]
    assert [result.count for result in results] == [result.posts for result in results]
    first, second = (result.posts for result in results)
    assert 5 <= first <= 6, "one died of the third's clients, the other may have posted before"
    assert 3 <= second <= 4
    assert losses == simulation.lost
    assert [loss.partition(" (process")[0] for loss in losses] == ["Worker 3", "Worker 2"]
    assert all("ended with the code -9; its 2 clients do not post any more." in loss for loss in losses)


def test_a_worker_that_is_silent_is_ended_and_named() -> None:
    link = ProcessLink(7)
    try:
        with pytest.raises(WorkerLost, match=r"Worker 7 \(process \d+\) did not answer within 0.01 seconds"):
            link.converse(b"", 0.01)
        with pytest.raises(ProcessLookupError):
            os.kill(link.pid, 0)
    finally:
        link.close()


@pytest.mark.slow
def test_a_trainer_that_hangs_takes_its_worker_only(keys: KeyDirectory, place: Path) -> None:
    (place / "1-4").write_text("hang")
    workers = Workers(number=2, seconds=60)
    with Simulation([custom("one", 4, 3)], committee=SMALL, keys=keys, workers=workers) as simulation:
        (result,) = simulation.run(1)
    assert result.outcome == "summed"
    assert len(simulation.lost) == 1
    assert "Worker 2 " in simulation.lost[0]
    assert "did not answer within 60 seconds" in simulation.lost[0]


class MortalLink:
    """A worker that is lost as soon as a client shall register."""

    is_here = True

    def __init__(self, number: int) -> None:
        self.name, self._worker = f"Mortal {number}", Worker()

    def converse(self, order: bytes, seconds: float) -> bytes:
        if isinstance(orders.read_order(order), orders.Ask):
            raise WorkerLost(f"{self.name} fell.")
        return self._worker.obey(order)

    def close(self) -> None:
        pass


def with_links(monkeypatch: pytest.MonkeyPatch, *links: Link) -> None:
    monkeypatch.setattr(Workers, "start", lambda self: list(links))


def test_without_workers_the_simulation_ends_with_a_name(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_links(monkeypatch, MortalLink(1), MortalLink(2))
    with (
        pytest.raises(NoWorkersLeft, match="Every worker is lost"),
        Simulation([custom("one", 4, 3)], committee=SMALL, keys=keys, workers=2) as simulation,
    ):
        list(simulation.run(1))
    assert [loss.partition(" fell")[0] for loss in simulation.lost] == ["Mortal 1", "Mortal 2"]


class NonsenseLink:
    """A worker that answers what no worker says."""

    is_here = True
    name = "Babbler"

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def converse(self, order: bytes, seconds: float) -> bytes:
        return self._answer

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"\xc1", WorkerLost, "Babbler answered what no worker says"),
        (orders.encode(orders.Posted(b"")), WorkerFailed, "Posted instead of Done"),
        (orders.encode(orders.Failed("x", "No keys.")), WorkerFailed, "No keys"),
    ],
)
def test_a_worker_that_does_not_start_is_refused(
    answer: bytes, error: type[Exception], words: str, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_links(monkeypatch, NonsenseLink(answer))
    with pytest.raises(error, match=words):
        Simulation([custom("one", 4, 3)], committee=SMALL, keys=keys, workers=1)


def test_another_version_is_refused() -> None:
    order = orders.Start(orders.VERSION + 1, b"", (), "", ())
    answer = orders.read_answer(Worker().obey(orders.encode(order)))
    assert isinstance(answer, orders.Failed)
    assert "another version of anofel" in answer.reason
    nonsense = orders.read_answer(Worker().obey(b"\xc1"))
    assert isinstance(nonsense, orders.Failed)
    assert "another version of anofel" in nonsense.reason


def test_what_fails_in_a_worker_ends_the_simulation_as_in_one_process(
    keys: KeyDirectory, place: Path
) -> None:
    (place / "1-5").write_text("fail")
    with (
        pytest.raises(TrainerFailed, match="'tests.simulation.coins:make' failed: RuntimeError: no such"),
        Simulation([custom("one", 4, 3)], committee=SMALL, keys=keys, workers=2) as simulation,
    ):
        list(simulation.run(1))


# Mistakes


def test_a_trainer_that_only_this_process_has_is_refused(keys: KeyDirectory) -> None:
    part = custom("one", 4, 3)
    unnamed = SimulatedTask(part.task, part.clients, own_trainer=coins.Mean(6))
    with pytest.raises(InvalidInput, match="name it with trainer_name"):
        Simulation([unnamed], keys=keys, workers=2)


@pytest.mark.parametrize("wrong", [{"number": 0}, {"number": -1}, {"number": 1, "seconds": 0}])
def test_no_workers_and_no_time_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        Workers(**wrong)  # type: ignore[arg-type]


def test_the_command_waits_as_long_as_the_library() -> None:
    assert SHOWN_SECONDS == ORDER_SECONDS


def test_plain_simulations_have_no_workers() -> None:
    words = ["simulate", "--study", "support2", "--insecure-plain", "--made-up-rows", "200", "--workers", "2"]
    with pytest.raises(InvalidInput, match="are for real cryptography"):
        CliRunner().invoke(app, words, catch_exceptions=False)


# The command


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "task.toml"
    path.write_text(
        (Path(__file__).parents[2] / "src/anofel/tasks/examples/custom.toml")
        .read_text()
        .replace("min_clients = 6", "min_clients = 2")
        .replace("max_colluders = 1", "max_colluders = 0")
    )
    return path


def test_ctrl_c_ends_the_workers_and_resume_goes_on(
    keys: KeyDirectory, place: Path, tmp_path: Path, task_file: Path
) -> None:
    """A worker interrupts the simulation while it trains the second iteration."""
    words = ["simulate", str(task_file), "--made-up-rows", "100", "--clients", "4", "--split", "sizes:9"]
    words += ["--iterations", "2", "--trainer", TRAINER, "--workers", "2", "--committee", "2"]
    words += ["--keys", str(keys.path), "--out", str(tmp_path / "run")]

    def run(*more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "anofel", *words, *more],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=900,
            # whoever runs the tests in the background may ignore the signal, and children inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    for rows in range(1, 100):
        (place / f"2-{rows}").write_text("interrupt")
    done = run()
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert [entry["iteration"] for entry in kept["iterations"]] == [1]
    workers = {int(path.read_text()) for path in place.glob("trained-*")}
    assert len(workers) == 2, "both trained"
    for pid in workers:
        wait_for_end(pid)
    for path in place.glob("2-*"):
        path.unlink()
    again = run("--resume")
    assert again.returncode == 0, again.stderr
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert [(entry["iteration"], entry["count"]) for entry in kept["iterations"]] == [(1, 4), (2, 4)]


def wait_for_end(pid: int) -> None:
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} is still there")


@pytest.fixture
def orphan() -> Iterator["subprocess.Popen[bytes]"]:
    """A worker whose simulation can be ended without a word."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "anofel.simulation.workers.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        yield process
        process.kill()


def test_a_worker_ends_when_its_simulation_is_gone(orphan: "subprocess.Popen[bytes]") -> None:
    assert orphan.stdin is not None
    orphan.stdin.close()
    assert orphan.wait(timeout=300) == -signal.SIGKILL
