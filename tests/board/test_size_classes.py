"""A genesis and a task meet before anybody starts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anofel.board.announcement import check_fits, facts_of
from anofel.board.size_classes import DEFAULT_SIZES, NoSizeClass, default_classes, size_class_of
from anofel.cli import app
from anofel.committee.errors import DoesNotFit
from anofel.phase1_setup.step1d_announcement import announce
from anofel.pki.certificates import Purpose
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import write_genesis
from anofel.tasks.task import Task
from tests.board.prepared import Stages, refused
from tests.board.world import CLASS, LIMITS, MAX_POSTS, World, a_task

EXAMPLES = sorted((Path(__file__).parents[2] / "src" / "anofel" / "tasks" / "examples").glob("*.toml"))


def test_a_board_of_default_numbers_takes_every_example(keys: KeyDirectory) -> None:
    world = World(keys, classes=default_classes(), limits=replace(LIMITS, max_runs=len(EXAMPLES)))
    for path in EXAMPLES:
        committee = world.establish(2, 2, name=path.stem)
        world.announce(committee, Task.load(path))
    world.board.next_block()
    announced = {task.facts.name: task for task in world.board.state.tasks.values()}
    assert set(announced) == {Task.load(path).name for path in EXAMPLES}
    for task in announced.values():
        size = world.genesis.classes[task.size_class]
        assert task.facts.limits.max_posts == size.max_posts, "what is posted is padded to the class"


def test_the_class_with_the_fewest_posts_is_taken() -> None:
    classes = [replace(CLASS, max_posts=posts) for posts in (64, 8, 16)]
    for posts, number in ((5, 1), (8, 1), (9, 2), (17, 0)):
        assert size_class_of(classes, a_task(privacy={"max_posts": posts})) == number
    longer = [replace(CLASS, max_length=length) for length in (500, 100)]
    assert size_class_of(longer, a_task()) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_posts": 9}, "Lower max_posts to 8 or less, or make the board with --size-class"),
        ({"adaptive": True, "max_posts": 7}, "Adaptive noise follows from max_posts: set it to 8"),
        ({"adaptive": True, "max_posts": 9}, "Adaptive noise follows from max_posts: set it to 8"),
    ],
)
def test_a_refusal_names_the_classes_and_the_number(
    stages: Stages, changes: dict[str, object], words: str
) -> None:
    world = stages("established")
    key = world.committees[0].key
    assert key is not None
    role, task = world.authority.issue(Purpose.OWNER, "Owner"), a_task(privacy=changes)
    with refused(world, "no-size-class"):
        world.board.post_as(role, announce(task, key_id=key.key_id))
    with pytest.raises(NoSizeClass, match=words) as caught:
        size_class_of(world.genesis.classes, task)
    assert "up to 1000 values and 8 posts" in str(caught.value)
    assert f"max_posts = {changes['max_posts']}" in str(caught.value)


def test_a_model_that_is_too_long_is_named() -> None:
    with pytest.raises(
        NoSizeClass, match=r"No class is long enough: make the model smaller.*--size-class \d+:8"
    ):
        size_class_of([replace(CLASS, max_length=2)], a_task())


def test_adaptive_noise_takes_the_class_of_its_number() -> None:
    """In a larger class the last posts would bring less noise than the task promises."""
    classes = [replace(CLASS, max_posts=posts) for posts in (16, MAX_POSTS)]
    assert size_class_of(classes, a_task(privacy={"adaptive": True})) == 1


def test_sums_are_held_against_the_class_not_the_task() -> None:
    task = a_task(model={"scale_bits": 24})
    check_fits(task, CLASS)
    assert facts_of(task, CLASS).limits.max_posts == MAX_POSTS
    with pytest.raises(DoesNotFit, match="Sums of 16384 posts need room: lower scale_bits"):
        check_fits(task, replace(CLASS, max_posts=1 << 14))


def test_privacy_and_simulate_say_it_beforehand(stages: Stages, tmp_path: Path) -> None:
    world = stages("established")
    write_genesis(tmp_path, world.genesis)
    many = next(str(path) for path in EXAMPLES if path.stem == "support2")
    for arguments in (["privacy", many], ["simulate", many, "--made-up-rows", "9", "--insecure-plain"]):
        found = CliRunner().invoke(app, [*arguments, "--board", str(tmp_path)])
        assert isinstance(found.exception, NoSizeClass)
        assert "Lower max_posts to 8 or less" in str(found.exception)
    held = CliRunner().invoke(app, ["privacy", many, "--json"])
    assert json.loads(held.stdout)["board"] == {
        "board": "a board of default numbers",
        "max_length": 100_000,
        "max_posts": 1024,
    }


def test_the_help_shows_the_default_classes() -> None:
    shown = CliRunner().invoke(app, ["node", "init", "--help"], env={"COLUMNS": "300"}).output
    assert ", ".join(f"{length}:{posts}" for length, posts in DEFAULT_SIZES) in shown


def test_a_committee_that_proves_no_ranges_takes_no_task_that_asks_for_them() -> None:
    asking = a_task(metrics={"names": ["accuracy"], "share": "0.5", "proven_ranges": True})
    check_fits(asking, CLASS, "lattice")
    with pytest.raises(DoesNotFit, match="paillier proves no ranges"):
        check_fits(asking, CLASS, "paillier")
    check_fits(a_task(metrics={"names": ["accuracy"], "share": "0.5"}), CLASS, "paillier")
