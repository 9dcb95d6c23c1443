"""The models of a task, read from a verified board: one test for each rule."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.ids import BlobHash, TaskId
from anofel.learning.build import trainer_of
from anofel.learning.splits import iid
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from anofel.proofs.keys import KeyDirectory
from anofel.roles import model_reader
from anofel.roles.model_reader import ModelReader, NoSuchModel
from anofel.simulation import SimulatedTask, Simulation
from tests.patients import make_dataset, make_task

FEW = {"min_clients": 3, "max_colluders": 0}
TASK = make_task()


@pytest.fixture(scope="module")
def trained(keys: KeyDirectory) -> Iterator[tuple[Simulation, list[IntegerModel]]]:
    """A board with two iterations of one task."""
    task = make_task(task={"name": "wards"}, privacy=FEW)
    part = SimulatedTask(task, iid(make_dataset(12), 3, 0))
    with Simulation([part], keys=keys) as simulation:
        models = [part.first_model(), *(result.model for result in simulation.run(2))]
        yield simulation, models


def reader(simulation: Simulation, name: str) -> ModelReader:
    made = ModelReader(simulation.board, name)
    simulation.board._shown = 0  # from genesis on
    simulation.board.sync(on_block=made.observe)
    return made


def test_a_task_is_meant_by_its_name_or_the_beginning_of_its_id(
    trained: tuple[Simulation, list[IntegerModel]],
) -> None:
    simulation, _ = trained
    (task_id,) = simulation.board.state.tasks
    for name in ("wards", task_id.hex()[:4], task_id.hex()):
        assert reader(simulation, name).fetch().task_id == task_id
    with pytest.raises(NoSuchModel, match="no task 'ward' .did you mean 'wards'.*; it has wards"):
        reader(simulation, "ward").fetch()
    with pytest.raises(NoSuchModel, match="no task"):
        reader(simulation, task_id.hex()[:3]).fetch()


def test_a_task_called_like_an_id_does_not_pass_for_it(
    trained: tuple[Simulation, list[IntegerModel]],
) -> None:
    """An owner names its task as the id of another: whoever asks for the id gets the task that has it."""
    simulation, _ = trained
    (task_id,) = simulation.board.state.tasks
    for digits in (64, 16, 4):
        found = reader(simulation, task_id.hex()[:digits])
        named = make_task(task={"name": task_id.hex()[:digits]}, privacy=FEW)
        found._tasks[type(task_id)(bytes(32))] = named
        if digits == 4:  # too short to be safe: nothing is guessed
            with pytest.raises(NoSuchModel, match="Several tasks"):
                found.fetch()
        else:
            assert found.fetch().task_id == task_id


def test_two_tasks_of_one_name_are_told_apart_by_their_ids(
    trained: tuple[Simulation, list[IntegerModel]],
) -> None:
    simulation, _ = trained
    found = reader(simulation, "wards")
    (task,) = found._tasks.values()
    found._tasks[type(next(iter(found._tasks)))(bytes(32))] = task
    with pytest.raises(NoSuchModel, match="Several tasks are called 'wards'; name one by its id: "):
        found.fetch()


def test_the_model_of_an_iteration_stands_after_it(trained: tuple[Simulation, list[IntegerModel]]) -> None:
    simulation, models = trained
    found = reader(simulation, "wards")
    assert found.fetch().iteration == found.fetch().newest == 2
    for number, model in enumerate(models):
        assert found.fetch(number).model.to_bytes() == model.to_bytes()
    with pytest.raises(NoSuchModel, match="no model of iteration 3; it has those of 0 to 2"):
        found.fetch(3)


def test_nobody_sees_from_requests_which_model_of_a_bundle_is_wanted() -> None:
    """Two who want the models of two tasks ask a node for the same, in the same order."""
    model = rule_of(TASK).initial(trainer_of(TASK).initial(), TASK.model.scale_bits)
    here, beside, elsewhere = (TaskId(bytes([number]) * 32) for number in range(3))
    posted = {
        (task_id, n): BlobHash(task_id[:31] + bytes([n]))
        for task_id in (here, beside, elsewhere)
        for n in (0, 1)
    }
    asked: list[BlobHash] = []
    bundles = {0: SimpleNamespace(tasks=(here, beside)), 1: SimpleNamespace(tasks=(elsewhere,))}
    tasks = {name: SimpleNamespace(bundle=n) for n, bundle in bundles.items() for name in bundle.tasks}
    board = SimpleNamespace(
        state=SimpleNamespace(tasks=tasks, bundles=bundles),
        attachments=SimpleNamespace(read=lambda name: asked.append(name) or model.to_bytes()),
    )
    seen = []
    for name in ("wards", "other"):
        found = ModelReader(board, name)  # type: ignore[arg-type]
        names = {here: "wards", beside: "other", elsewhere: "third"}
        found._tasks = {task_id: make_task(task={"name": called}) for task_id, called in names.items()}
        found._posted = posted
        assert found.fetch(1).task_id == (here if name == "wards" else beside)
        seen.append(asked[:])
        asked.clear()
    assert seen[0] == seen[1] == [posted[here, 1], posted[beside, 1]]


def test_a_task_without_a_model_says_so(trained: tuple[Simulation, list[IntegerModel]]) -> None:
    found = reader(trained[0], "wards")
    found._posted.clear()
    with pytest.raises(NoSuchModel, match="no model yet"):
        found.fetch()


def test_the_rules_are_in_the_same_words_in_the_page() -> None:
    assert model_reader.__doc__ is not None
    rules = re.findall(r"^\d\. (.+?)(?=^\d\. |\Z)", model_reader.__doc__, re.M | re.S)
    page = " ".join((Path(__file__).parents[2] / "docs" / "owner.md").read_text().split())
    assert len(rules) == 4
    for number, rule in enumerate(rules, start=1):
        assert f"{number}. {' '.join(rule.split())}" in page
