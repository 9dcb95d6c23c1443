"""A simulation over the board: the same integers as a plain sum, and a history that an audit accepts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anofel.audit.auditor import Auditor
from anofel.audit.sources import open_source
from anofel.committee.errors import DoesNotFit, InvalidCommittee
from anofel.committee.lattice.scheme import Lattice
from anofel.learning.splits import iid
from anofel.phase1_setup.step1b_certification import fresh_nonce
from anofel.privacy import protect
from anofel.privacy.plan import Plan
from anofel.proofs.keys import KeyDirectory
from anofel.simulation import (
    CommitteeSettings,
    InsecurePlainSimulation,
    IterationResult,
    Participation,
    SimulatedTask,
    Simulation,
    board_run,
    venue,
)
from anofel.simulation.people import Applicant, Provers, SimulatedCertifier
from anofel.simulation.venue import Venue
from anofel.tasks.task import Task, read_task
from tests.patients import make_dataset, make_task
from tests.plain_path import iterate

SMALL = CommitteeSettings(members=2, threshold=2)
PARTICIPATION = Participation(dropout=0.4, seed=5)
ITERATIONS = 2


def task_named(name: str, **privacy: object) -> Task:
    numbers = {"min_clients": 2, "max_colluders": 0, "max_releases": 3}
    return make_task(task={"name": name}, rule={"momentum": 1 << 14}, privacy=numbers | privacy)


def two_tasks() -> list[SimulatedTask]:
    slots = {"names": ["accuracy", "loss"], "share": "0.5"}
    measured = read_task(task_named("first").document() | {"metrics": slots})
    first = SimulatedTask(measured, iid(make_dataset(40, seed=1), 4, 0))
    adaptive = task_named("second", adaptive=True, max_posts=9)
    return [first, SimulatedTask(adaptive, iid(make_dataset(30, seed=2), 3, 0))]


@pytest.fixture(scope="module")
def known_coins() -> Iterator[None]:
    """Noise and rounding that can be drawn again, so that two runs can be compared to the last bit."""

    def noise(plan: Plan, position: int | None = None) -> np.ndarray:
        rng = np.random.default_rng(position)
        return rng.integers(-plan.local_sigma(position), plan.local_sigma(position), plan.dimension)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protect, "draw_noise", lambda plan, position=None: noise(plan, position or 7))
        patch.setattr(protect, "round_within", lambda vector, _bound: np.rint(vector).astype(np.int64))
        yield


@dataclass
class Played:
    results: list[IterationResult]
    directory: Path


@pytest.fixture(scope="module")
def played(known_coins: None, keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp("simulation") / "board"
    with pytest.MonkeyPatch.context() as patch:
        for module in (board_run, venue):  # many blocks for few clients
            patch.setattr(module, "POSTS_PER_BLOCK", 1)
        with Simulation(
            two_tasks(), committee=SMALL, participation=PARTICIPATION, directory=directory, keys=keys
        ) as simulation:
            return Played(list(simulation.run(ITERATIONS)), directory)


def test_every_sum_and_model_is_that_of_the_plain_simulation(known_coins: None, played: Played) -> None:
    plain = InsecurePlainSimulation(two_tasks(), participation=PARTICIPATION)
    expected = list(plain.run(ITERATIONS))
    assert len(played.results) == 2 * ITERATIONS
    for ours, theirs in zip(played.results, expected, strict=True):
        assert ours.document() == theirs.document()
        assert ours.model.to_bytes() == theirs.model.to_bytes()
        assert (ours.total is None) == (theirs.total is None) == (ours.outcome != "summed")
        assert ours.total is None or np.array_equal(ours.total, theirs.total)  # type: ignore[arg-type]


def test_the_run_is_one_in_which_something_could_go_wrong(played: Played) -> None:
    assert [result.outcome for result in played.results] == ["summed", "summed", "summed", "too-few"]
    assert [result.count for result in played.results] == [4, 2, 3, 1]
    assert [result.reported is not None for result in played.results] == [True, False, True, False]
    assert all(np.any(result.model.values) for result in played.results)


def test_an_audit_accepts_the_directory_and_finds_the_same(played: Played) -> None:
    with open_source(str(played.directory)) as source:
        auditor = Auditor(
            source.genesis,
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
        )
        auditor.follow(source.blocks)
        report = auditor.finish()
    assert report.ok
    assert report.sums_recomputed == 2 * ITERATIONS
    assert report.clients == 7
    found = {(entry.task, entry.iteration, entry.outcome, entry.count) for entry in report.iterations}
    assert found == {(r.task, r.iteration, r.outcome, r.count) for r in played.results}
    last = {result.task: result.epsilon for result in played.results}
    assert {task.name: task.epsilon for task in report.tasks} == pytest.approx(last, rel=0.01)


def test_plain_sums_are_those_of_the_plain_path(known_coins: None) -> None:
    (first, _) = two_tasks()
    results = list(InsecurePlainSimulation([first]).run(3))
    for result, (model, total) in zip(results, iterate(first.task, first.clients, 3), strict=True):
        assert np.array_equal(result.total, total)
        assert result.model.to_bytes() == model.to_bytes()


class NobodyFirst(Participation):
    """Nobody takes part in the first iteration."""

    def order(self, iteration: int, sizes: Sequence[int]) -> list[tuple[int, int]]:
        return super().order(iteration, sizes) if iteration > 1 else []


def test_payloads_are_checked_once_for_all_members(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    check = Lattice.check_payloads

    def noted(self: Lattice, key: Any, limits: Any, items: Any) -> Any:
        checked.append(len(items))
        return check(self, key, limits, items)

    monkeypatch.setattr(Lattice, "check_payloads", noted)
    part = SimulatedTask(task_named("once"), iid(make_dataset(30, seed=1), 3, 0))
    with Simulation([part], committee=SMALL, keys=keys) as simulation:
        (result,) = simulation.run(1)
        current = simulation.board.state.bundles[0].current
    assert current is not None
    assert sorted(current.positions[0].aggregates) == [1, 2], "both members stated it"
    assert (result.count, sum(checked)) == (3, 3)


def test_in_memory_payloads_go_and_a_task_ends_after_its_releases(keys: KeyDirectory) -> None:
    task = task_named("short", max_releases=2)
    part = SimulatedTask(task, iid(make_dataset(20), 2, 0))
    with Simulation([part], committee=SMALL, participation=NobodyFirst(), keys=keys) as simulation:
        results = list(simulation.run(5))
        blobs = [len(data) for _, data in simulation.board.attachments.items()]  # type: ignore[union-attr]
    assert [(r.iteration, r.outcome, r.count) for r in results] == [
        (1, "too-few", None),
        (2, "summed", 2),
        (3, "summed", 2),
    ]
    current = simulation.board.state.bundles[0].current
    assert current is not None
    payload = next(iter(current.submissions.values())).payloads[0].length
    assert blobs.count(payload) <= 4, "payloads of the first iteration are still there"


@pytest.mark.parametrize(
    ("committee", "reason"),
    [
        (CommitteeSettings(members=3, threshold=1), "threshold"),
        (CommitteeSettings(scheme="none"), "no scheme none"),
    ],
)
def test_a_committee_that_cannot_be_is_refused_at_once(committee: CommitteeSettings, reason: str) -> None:
    with pytest.raises(InvalidCommittee, match=reason):
        Simulation(two_tasks(), committee=committee)


def test_sums_that_no_scheme_can_add_are_refused_at_once() -> None:
    wide = task_named("wide", clipping_norm="1000", max_posts=4096)
    with pytest.raises(DoesNotFit):
        Simulation([SimulatedTask(wide, iid(make_dataset(20), 2, 0))])


def test_two_clients_with_the_same_rows_are_refused(keys: KeyDirectory) -> None:
    rows = make_dataset(10)
    part = SimulatedTask(task_named("twins"), [rows, rows])
    certifier, provers = SimulatedCertifier(Venue([part], keys)), Provers(keys)
    nonce = fresh_nonce()
    first, second = (Applicant.of(rows, 7, certifier.key).ask(nonce, provers) for _ in range(2))
    certifier.issue(first, nonce)
    with pytest.raises(ValueError, match="same rows"):
        certifier.issue(second, nonce)
