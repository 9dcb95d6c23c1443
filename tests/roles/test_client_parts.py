"""Parts of the client alone: times, tasks, settings, the journal, the departure."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.board.state import TaskState
from anofel.errors import InvalidInput
from anofel.keys import KeyDirectory
from anofel.learning.build import trainer_of
from anofel.learning.integer_model import IntegerModel
from anofel.messages import Task as PostedTask
from anofel.phase2_training.announce_task import announce
from anofel.primitives import DatasetType
from anofel.roles.client import Client
from anofel.roles.client_files import ClientSettings, init_client
from anofel.roles.client_journal import Journal, Turn
from anofel.roles.client_leave import AlreadyLeft, leave_board
from anofel.roles.client_task import CheckedTask, TaskRefused, check_task
from anofel.roles.client_turn import NoWindow, draw_height, read_model
from anofel.roles.directory import RoleConfig
from tests.patients import make_task
from tests.roles.people import make_client, open_client, write_schema, write_table

KEY = bytes(32)
TYPE = DatasetType(7)


# Times


def test_heights_are_drawn_uniformly() -> None:
    heights = range(120, 130)
    counts = Counter(draw_height(heights) for _ in range(20_000))
    assert set(counts) == set(heights)
    expected = 2000
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    assert statistic < 38.9  # chi-square, 9 degrees of freedom: one run in 80,000 is above


def test_no_window_is_said() -> None:
    with pytest.raises(NoWindow):
        draw_height(range(10, 10))


# Tasks


def posted(announced: PostedTask) -> TaskState:
    return TaskState(task_id=KEY, owner=KEY, task=announced, size_class=0, announced_at=1)


def checked() -> CheckedTask:
    task = make_task()
    return check_task(posted(announce(task, key_id=KEY)), task.schema, TYPE)


def test_a_task_whose_numbers_follow_from_its_document_is_taken() -> None:
    assert checked().name == "test"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bound": 1}, "states the bound 1"),
        ({"length": 3}, "do not follow"),
        ({"min_clients": 3}, "do not follow"),
        ({"max_colluders": 0}, "do not follow"),
        ({"max_releases": 99}, "do not follow"),
        ({"max_posts": 99}, "do not follow"),
        ({"types": (7,)}, "do not follow"),
    ],
)
def test_rule_1_every_number_follows_from_the_document(change: dict[str, int], words: str) -> None:
    task = make_task()
    with pytest.raises(TaskRefused, match=words):
        check_task(posted(replace(announce(task, key_id=KEY), **change)), task.schema, TYPE)  # type: ignore[arg-type]


def test_rule_2_the_schema_is_the_clients() -> None:
    task = make_task()
    other = make_task(schema={"unused": ["note", "remark"]}).schema
    with pytest.raises(TaskRefused, match="another schema"):
        check_task(posted(announce(task, key_id=KEY)), other, TYPE)


def test_rule_3_the_type_counts() -> None:
    task = make_task(task={"dataset_type": 8})
    with pytest.raises(TaskRefused, match="type 7"):
        check_task(posted(announce(task, key_id=KEY)), task.schema, TYPE)


def test_a_model_of_another_shape_is_refused() -> None:
    import numpy as np

    task = checked()
    size = task.plan.dimension
    for parameters, bits in (
        ({"w": np.zeros(size)}, task.task.model.scale_bits),
        ({"w": np.zeros(size + 1)}, task.task.model.scale_bits),
        ({"w": np.zeros(size)}, task.task.model.scale_bits + 1),
    ):
        with pytest.raises(TaskRefused):
            read_model(IntegerModel.from_parameters(parameters, bits).to_bytes(), task, trainer_of(task.task))


# Settings


@pytest.mark.parametrize(
    "change",
    [
        {"max_epsilon": "none"},
        {"max_epsilon": "-1"},
        {"max_epsilon": True},
        {"unit": "paper"},
        {"relation": "add"},
        {"min_clients": 1},
        {"min_anonymity_set": 0},
        {"first_wait": -1},
        {"dataset_type": 2**32},
        {"data": 3},
        {"trainer": 3},
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, object]) -> None:
    values = {"data": "x.csv", "keys": "keys", "max_epsilon": "2", **change}
    config = RoleConfig(role="client", board="http://b", genesis="00" * 32, settings=values)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        ClientSettings.of(config)


def test_a_client_needs_a_ceiling_for_epsilon(keys: KeyDirectory, tmp_path: Path) -> None:
    from anofel.keystore import KeyFile

    with pytest.raises(InvalidInput, match="max_epsilon"):
        init_client(
            tmp_path / "role",
            KeyFile.generate(tmp_path / "key"),
            board="http://b",
            genesis_hash=KEY,
            data=write_table(tmp_path / "patients.csv"),
            schema=write_schema(tmp_path / "schema.toml"),
            keys=keys.path,
            settings={},
        )
    assert not (tmp_path / "role").exists()


# The journal


def test_what_was_drawn_stays_drawn(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    assert (tmp_path / "journal.sqlite").stat().st_mode & 0o777 == 0o600
    assert journal.first_iteration(0, 0, 5) == 5
    assert journal.first_iteration(0, 0, 2) == 5
    assert journal.begin(Turn(0, 5, KEY, False, 40)).post_at == 40
    again = Journal(tmp_path / "journal.sqlite")
    turn = again.begin(Turn(0, 5, KEY, True, 77))
    assert (turn.post_at, turn.cover) == (40, False)
    again.skip(turn, "late", "too late")
    assert [turn.skipped for turn in journal.unfinished()] == ["late"]
    again.finish(turn, "summed")
    assert journal.unfinished() == []
    assert journal.turns()[0].post_at == 0  # nothing tells any more when the client posted


# Leaving


def test_leaving_deletes_what_can_be_deleted(keys: KeyDirectory, tmp_path: Path) -> None:
    made = make_client(tmp_path / "client", keys, board="http://b", genesis=KEY)
    with open_client(*made) as directory:
        leave_board(directory, destroy_key=False)
        assert "master-secret" in directory.secrets
        with pytest.raises(AlreadyLeft):
            leave_board(directory, destroy_key=False)
        leave_board(directory, destroy_key=True)
    with open_client(*made) as directory:
        assert list(directory.secrets) == []


def test_the_turn_that_was_taken_is_known_after_its_iteration_is_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    turns = [Turn(0, number, bytes(32), False, 5) for number in (1, 2, 3, 4)]
    for turn in turns:
        journal.begin(turn)
    journal.skip(turns[0], "late", "too late")
    journal.accept(turns[1])
    journal.finish(turns[1], "summed")
    journal.skip(turns[2], "floor-not-met", "too little")
    taken = Client.turns_taken(SimpleNamespace(journal=journal))  # type: ignore[arg-type]
    assert [turn.iteration for turn in taken] == [2, 3]
