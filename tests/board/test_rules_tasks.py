"""Tasks, models, early ends and the ε ledger: one test per rule, in which only it fails."""

from dataclasses import fields, replace

import numpy as np
import pytest

from anofel.board.announcement import facts_of
from anofel.board.state import Committee, Phase
from anofel.messages import (
    EndIteration,
    EndTask,
    Model,
    Posting,
    PrivacyLedger,
    RejectModel,
    TaskAnnouncement,
)
from anofel.phase1_setup.step1d_announcement import announce
from anofel.pki.certificates import Purpose, RoleKey
from tests.board.prepared import Stages, alone, refused, signed
from tests.board.world import World, a_task


def begin(
    stages: Stages, number: int = 0, **sections: dict[str, object]
) -> tuple[World, RoleKey, TaskAnnouncement]:
    """An owner that has not announced its task yet."""
    world = stages("established")
    key = world.committees[number].key
    assert key is not None
    return world, an_owner(world), announce(a_task(**sections), key_id=key.key_id)


def an_owner(world: World, name: str = "Owner") -> RoleKey:
    return world.authority.issue(Purpose.OWNER, name)


# task


def test_the_task_is_on_the_board(stages: Stages) -> None:
    world = stages("waiting")
    owner = world.owners[0]
    bad, good = (signed(world, owner.role, EndTask(task=name)) for name in (bytes(32), owner.task_id))
    alone(world, "task-unknown", bad, good)


def test_the_author_announced_the_task(stages: Stages) -> None:
    world = stages("waiting")
    body = EndTask(task=world.owners[0].task_id)
    bad, good = (signed(world, owner.role, body) for owner in reversed(world.owners))
    alone(world, "not-the-owner", bad, good)


# announcement


def test_a_task_is_announced_once(stages: Stages) -> None:
    world, role, body = begin(stages)
    world.board.post_as(role, body)
    (task_id,) = world.board.state.tasks
    world.board.post_as(role, EndTask(task=task_id))
    again = signed(world, role, body)
    alone(world, "task-known", again, signed(world, an_owner(world, "Other"), body))


def test_the_document_is_a_task_file(stages: Stages) -> None:
    world, role, body = begin(stages)
    for document in (
        body.document + b" ",
        b"",
        b"[" * 60_000,
        b"9" * 60_000,
        b'{"a":1e999}',
        b"\xff",
        b"null",
    ):
        with refused(world, "task-malformed"):
            world.board.post_as(role, replace(body, document=document))
    world.board.post_as(role, body)


def test_the_facts_are_those_of_the_document(stages: Stages) -> None:
    """An announcement states no numbers that an owner could choose."""
    world, role, body = begin(stages)
    world.board.post_as(role, body)
    (task,) = world.board.state.tasks.values()
    assert {field.name for field in fields(body)} == {"document", "key_id", "early_end"}
    assert task.facts == facts_of(a_task(), world.board.genesis.classes[0])


def test_a_task_has_a_size_class(stages: Stages) -> None:
    world, role, good = begin(stages)
    bad = announce(a_task(privacy={"max_posts": 16}), key_id=good.key_id)
    alone(world, "no-size-class", signed(world, role, bad), signed(world, role, good))


def test_a_task_for_very_many_clients_is_refused_before_its_bound_is_computed(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of adaptive noise is a sum over all honest clients."""
    world, role, good = begin(stages)
    many: dict[str, object] = {"adaptive": True, "min_clients": 1 << 10, "max_posts": 1 << 10}
    bad = announce(a_task(privacy=many), key_id=good.key_id)

    def compute(*_: object) -> int:
        raise AssertionError("the bound was computed")

    with monkeypatch.context() as patched, refused(world, "no-size-class"):
        patched.setattr("anofel.board.announcement.value_bound", compute)
        world.board.post(signed(world, role, bad))


def test_the_committee_is_established(stages: Stages) -> None:
    world, role, good = begin(stages)
    bad = signed(world, role, replace(good, key_id=bytes(32)))
    alone(world, "committee-unknown", bad, signed(world, role, good))


def test_a_committee_serves_one_task(stages: Stages) -> None:
    world, role, body = begin(stages)
    world.board.post_as(role, body)
    other, key = an_owner(world, "Other"), world.committees[1].key
    assert key is not None
    good = signed(world, other, replace(body, key_id=key.key_id))
    alone(world, "committee-busy", signed(world, other, body), good)


def test_a_committee_is_busy_until_its_bundle_has_ended(stages: Stages) -> None:
    world = stages("open")
    owner = world.owners[0]
    world.board.post_as(owner.role, EndTask(task=owner.task_id))
    key = world.committees[0].key
    assert key is not None
    with refused(world, "committee-busy"):
        world.board.post_as(an_owner(world), announce(a_task("new"), key_id=key.key_id))


def test_the_scheme_adds_such_vectors(stages: Stages) -> None:
    privacy: dict[str, object] = {"unit": "record", "records_per_client": 1 << 32, "clipping_norm": 1}
    world, role, body = begin(stages, privacy=privacy, model={"scale_bits": 30})
    good = announce(a_task(), key_id=body.key_id)
    alone(world, "task-does-not-fit", signed(world, role, body), signed(world, role, good))


@pytest.mark.parametrize(
    "sections",
    [
        {"privacy": {"noise_multiplier": "0.0003"}},
        {"privacy": {"noise_multiplier": "0.0003", "adaptive": True}},
        {"privacy": {"clipping_norm": 1 << 15, "noise_multiplier": "0.01"}, "model": {"scale_bits": 16}},
    ],
    ids=["coarse", "coarse for the last", "large"],
)
def test_the_noise_fits_integers(stages: Stages, sections: dict[str, dict[str, object]]) -> None:
    world, role, good = begin(stages)
    bad = replace(good, document=a_task(**sections).to_bytes())
    alone(world, "noise-does-not-fit", signed(world, role, bad), signed(world, role, good))


def test_an_owner_has_few_tasks(stages: Stages) -> None:
    world, role, body = begin(stages)
    shares = world.board.state.committees[body.key_id].current
    for number in range(world.genesis.limits.max_tasks):
        name = bytes([number]) * 32
        world.board.state.committees[name] = Committee(name, 0, shares)
        world.board.post_as(role, replace(body, key_id=name))
    bad = signed(world, role, body)
    alone(world, "too-many-tasks", bad, signed(world, an_owner(world, "Other"), body))


# model


def a_model(world: World, number: int, iteration: int) -> Model:
    owner = world.owners[number]
    if owner.model is None:
        world.post_first_model(owner)
        raise AssertionError
    return Model(task=owner.task_id, iteration=iteration, model=world.board.upload(owner.model.to_bytes()))


def first_model(stages: Stages) -> tuple[World, Model]:
    world = stages("waiting")
    for mine, theirs in zip(world.owners, stages("open").owners, strict=True):
        mine.model = theirs.model
    return world, a_model(world, 0, 1)


def test_the_bundle_waits_for_the_model(stages: Stages) -> None:
    world, good = first_model(stages)
    role = world.owners[0].role
    bad = signed(world, role, replace(good, iteration=2))
    alone(world, "model-not-due", bad, signed(world, role, good))
    opened = stages("open")
    with refused(opened, "model-not-due"):
        opened.board.post_as(opened.owners[0].role, a_model(opened, 0, 1))
    with refused(opened, "model-not-due"):
        opened.board.post_as(opened.owners[0].role, a_model(opened, 0, 2))


def test_a_task_without_a_bundle_waits_for_no_model(stages: Stages) -> None:
    _, good = first_model(stages)
    lonely, role, body = begin(stages)
    lonely.board.post_as(role, body)
    (task_id,) = lonely.board.state.tasks
    with refused(lonely, "model-not-due"):
        lonely.board.post_as(role, replace(good, task=task_id, model=lonely.board.upload(b"model")))


def test_a_task_posts_one_model(stages: Stages) -> None:
    world, first = first_model(stages)
    world.board.post_as(world.owners[0].role, first)
    again = signed(world, world.owners[0].role, replace(first, model=world.board.upload(owner_bytes(world))))
    alone(world, "model-posted", again, signed(world, world.owners[1].role, a_model(world, 1, 1)))


def owner_bytes(world: World) -> bytes:
    model = world.owners[0].model
    assert model is not None
    return model.to_bytes()


@pytest.mark.parametrize("fault", ["garbage", "scale", "length", "velocity"])
def test_a_model_has_the_shape_of_its_task(stages: Stages, fault: str) -> None:
    world, good = first_model(stages)
    model, role = world.owners[0].model, world.owners[0].role
    assert model is not None
    bad = {
        "garbage": b"garbage",
        "scale": replace(model, scale_bits=model.scale_bits + 1).to_bytes(),
        "velocity": replace(model, velocity=np.zeros_like(model.values)).to_bytes(),
        "length": model.to_bytes()[:-8],
    }[fault]
    posting = signed(world, role, replace(good, model=world.board.upload(bad)))
    alone(world, "model-malformed", posting, signed(world, role, good))


@pytest.mark.parametrize("kind", ["integer-mean", "owner"])
def test_no_parameter_of_a_model_is_beyond_its_bound(stages: Stages, kind: str) -> None:
    """With weights of 2^54 rows of the owner's choice would overflow; the first model is checked too."""
    world, good = first_model(stages)
    model, owner = world.owners[0].model, world.owners[0]
    assert model is not None
    if kind == "owner":
        world.task_state(owner).facts = replace(world.task_state(owner).facts, rule="owner")
    data = bytearray(model.to_bytes())
    data[-8:] = (model.limit + 1).to_bytes(8, "little")
    posting = signed(world, owner.role, replace(good, model=world.board.upload(bytes(data))))
    alone(world, "model-too-large", posting, signed(world, owner.role, good))


def test_after_a_sum_the_model_is_what_the_rule_makes(stages: Stages) -> None:
    world = stages("summed")
    owner, before = world.owners[0], world.owners[0].model
    unchanged = a_model(world, 0, 2)
    world.recover(owner)
    assert before is not None
    alone(
        world,
        "wrong-model",
        signed(world, owner.role, unchanged),
        signed(world, owner.role, a_model(world, 0, 2)),
    )


# rejection


def a_rejection(world: World, iteration: int = 1, owner: int = 0) -> Posting:
    author, task = world.owners[owner].role, world.owners[0].task_id
    return signed(world, author, RejectModel(task=task, iteration=iteration))


@pytest.mark.parametrize("stage", ["waiting", "open", "closed", "counted"])
def test_only_a_sum_before_the_next_iteration_is_rejected(stages: Stages, stage: str) -> None:
    world = stages(stage)
    for iteration in (0, 1):
        with refused(world, "nothing-to-reject"):
            world.board.post(a_rejection(world, iteration))


@pytest.mark.parametrize("iteration", [0, 2])
def test_only_the_last_iteration_is_rejected(stages: Stages, iteration: int) -> None:
    world = stages("summed")
    alone(world, "nothing-to-reject", a_rejection(world, iteration), a_rejection(world))


def test_an_iteration_without_a_sum_and_an_ended_task_have_nothing_to_reject(stages: Stages) -> None:
    world = stages("summed")
    task = world.task_state(world.owners[0])
    for name, value in (("summed", False), ("ended", True)):
        before = getattr(task, name)
        setattr(task, name, value)
        with refused(world, "nothing-to-reject"):
            world.board.post(a_rejection(world))
        setattr(task, name, before)
    world.board.post(a_rejection(world))


def test_only_the_owner_rejects(stages: Stages) -> None:
    world = stages("summed")
    alone(world, "not-the-owner", a_rejection(world, owner=1), a_rejection(world))


def test_a_model_is_posted_or_rejected_once(stages: Stages) -> None:
    world = stages("summed")
    owner = world.owners[0]
    world.board.post(a_rejection(world))
    with refused(world, "model-decided"):
        world.board.post(a_rejection(world))
    world.recover(owner)
    with refused(world, "model-posted"):
        world.board.post_as(owner.role, a_model(world, 0, 2))
    world = stages("summed")
    world.recover(world.owners[0])
    world.board.post_as(world.owners[0].role, a_model(world, 0, 2))
    with refused(world, "model-decided"):
        world.board.post(a_rejection(world))


def test_after_a_rejection_the_former_model_opens_and_the_release_counts(stages: Stages) -> None:
    world = stages("summed")
    first, second = world.owners
    before, task = world.task_state(first).model, world.task_state(first)
    releases = task.releases
    world.board.post(a_rejection(world))
    world.recover(second)
    world.board.post_as(second.role, a_model(world, 1, 2))
    world.board.next_block()
    task = world.task_state(first)
    assert (world.bundle().phase, world.bundle().iterations) == (Phase.OPEN, 2), "nothing else is waited for"
    assert (task.model, task.releases) == (before, releases)
    assert not task.summed
    with refused(world, "nothing-to-reject"):
        world.board.post(a_rejection(world))


# ending


def test_a_bundle_without_leave_does_not_end_early(stages: Stages) -> None:
    world = stages("open")
    posting = signed(world, world.owners[0].role, EndIteration(task=world.owners[0].task_id, iteration=1))
    world.bundle().early_end = False
    with refused(world, "no-early-end"):
        world.board.post(posting)
    world.bundle().early_end = True
    world.board.post(posting)


@pytest.mark.parametrize("stage", ["waiting", "closed", "summed"])
def test_only_an_open_iteration_ends(stages: Stages, stage: str) -> None:
    world = stages(stage)
    with refused(world, "nothing-to-end"):
        world.board.post_as(world.owners[0].role, EndIteration(task=world.owners[0].task_id, iteration=1))
    world = stages("open")
    bad, good = (
        signed(world, world.owners[0].role, EndIteration(task=world.owners[0].task_id, iteration=number))
        for number in (2, 1)
    )
    alone(world, "nothing-to-end", bad, good)


def test_an_owner_asks_once(stages: Stages) -> None:
    world = stages("open")
    mine, other = (
        signed(world, owner.role, EndIteration(task=owner.task_id, iteration=1)) for owner in world.owners
    )
    world.board.post(mine)
    alone(world, "end-posted", mine, other)


def test_a_task_ends_once(stages: Stages) -> None:
    world = stages("waiting")
    mine, other = (signed(world, owner.role, EndTask(task=owner.task_id)) for owner in world.owners)
    world.board.post(mine)
    alone(world, "task-ended", mine, other)


# ledger


def an_entry(world: World, number: int, releases: int) -> PrivacyLedger:
    return PrivacyLedger(task=world.owners[number].task_id, releases=releases, zero_out=5, replace=9)


def test_the_ledger_states_the_releases_so_far(stages: Stages) -> None:
    world = stages("summed")
    role = world.owners[0].role
    for releases in (0, 2):
        with refused(world, "wrong-releases"):
            world.board.post_as(role, an_entry(world, 0, releases))
    world.board.post_as(role, an_entry(world, 0, 1))
    before = stages("open")
    with refused(before, "wrong-releases"):
        before.board.post_as(before.owners[0].role, an_entry(before, 0, 0))


def test_there_is_one_entry_for_a_number_of_releases(stages: Stages) -> None:
    world = stages("summed")
    role = world.owners[0].role
    world.board.post_as(role, an_entry(world, 0, 1))
    again = signed(world, role, replace(an_entry(world, 0, 1), zero_out=6))
    alone(world, "ledger-entered", again, signed(world, world.owners[1].role, an_entry(world, 1, 1)))
