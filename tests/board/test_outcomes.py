"""How iterations, tasks and bundles end: every outcome, at every deadline."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from anofel.board import roots
from anofel.board.state import Outcome, Phase, Progress
from anofel.committee.errors import TooFewClients
from anofel.messages import CountShare, EndIteration, EndTask, Posting, RevokeCertifier
from anofel.models.rules import rule_of
from anofel.phase1_setup.step1d_announcement import announce
from anofel.pki.certificates import Purpose
from tests.board.prepared import (
    Stages,
    a_count_share,
    a_submission,
    a_sum_share,
    an_aggregate,
    everybody,
    follow,
    fork,
    next_iteration,
    phase3,
    progress,
    refused,
    signed,
    submit,
    to_height,
    with_garbage,
)
from tests.board.world import CLASS, World, a_task, a_vector

# Counts


def test_too_few_clients_open_no_sum(stages: Stages) -> None:
    world = stages("open")
    for client, target in enumerate((0, 1, None)):
        world.board.post(a_submission(world, client, target))
    world.blocks_until(Phase.CLOSED)
    for step in (World.aggregate, World.count_share):
        everybody(world, step)
    assert progress(world) == [Progress.TOO_FEW] * 2
    assert [world.position(owner).count for owner in world.owners] == [1, 1]
    assert [world.task_state(owner).releases for owner in world.owners] == [0, 0]
    next_iteration(world)
    assert (world.bundle().phase, world.bundle().iterations) == (Phase.OPEN, 2)
    follow(world)


def test_no_submissions_are_too_few(stages: Stages) -> None:
    world = stages("open")
    world.blocks_until(Phase.WAITING)
    assert progress(world) == [Progress.TOO_FEW] * 2
    assert [world.position(owner).count for owner in world.owners] == [None, None]
    member = world.committees[0].members[0]
    body = an_aggregate(stages("closed"), 0, member)
    with refused(world, "aggregate-not-due"):
        world.board.post_as(member.role, body)


def test_enough_clients_for_one_task_are_not_enough_for_another(stages: Stages) -> None:
    world = stages("open")
    for client, target in enumerate((0, 0, 1)):
        world.board.post(a_submission(world, client, target))
    world.blocks_until(Phase.CLOSED)
    phase3(world)
    assert progress(world) == [Progress.SUMMED, Progress.TOO_FEW]


def test_the_outcomes_of_iterations_stay_in_the_state_and_under_the_root(stages: Stages) -> None:
    world = stages("open")
    for client, target in enumerate((0, 0, 1)):
        world.board.post(a_submission(world, client, target))
    world.blocks_until(Phase.CLOSED)
    phase3(world)
    next_iteration(world)
    outcomes = [world.task_state(owner).outcomes for owner in world.owners]
    first = [stated for (stated,) in outcomes]
    assert [(one.iteration, one.progress, one.posts, one.excluded) for one in first] == [
        (1, Progress.SUMMED, 3, 0),
        (1, Progress.TOO_FEW, 3, 0),
    ]
    assert [(one.count, one.releases) for one in first] == [(2, 1), (1, 0)]
    assert all(one.opened_at < one.closed_at < one.over_at for one in first)
    task = world.task_state(world.owners[0])
    before = roots.tasks(world.board.state)
    for name in Outcome.__dataclass_fields__:
        changed = {"progress": Progress.FAILED, "reported": (77,)}.get(name, 77)
        task.outcomes = (replace(first[0], **{name: changed}),)
        assert roots.tasks(world.board.state) != before, name
    task.outcomes = (first[0],)
    assert roots.tasks(world.board.state) == before


# Payloads


def forged(world: World, client: int, lie: Callable[[bytes], bytes]) -> Posting:
    """A submission whose other proofs are valid and whose first payload is chosen by the client."""
    sealed = world.sealed(world.clients[client], 0, a_vector(world.owners[0].task, client))
    payload = lie(sealed.payloads[0])
    assert len(payload) == len(sealed.payloads[0])
    return submit(world, replace(sealed, payloads=(payload, sealed.payloads[1])))


def test_unproven_garbage_makes_the_sum_undecodable_and_is_charged(stages: Stages) -> None:
    world = stages("unproven")
    world.board.post(forged(world, 5, lambda payload: with_garbage(payload, proven=False)))
    world.blocks_until(Phase.CLOSED)
    phase3(world)
    assert progress(world) == [Progress.UNDECODABLE, Progress.SUMMED]
    first = world.task_state(world.owners[0])
    assert (first.releases, first.summed, first.next_model) == (1, False, None)
    owner, before = world.owners[0], world.owners[0].model
    assert before is not None
    other = rule_of(owner.task).apply(before, np.ones(before.layout.size, np.int64), 1, 1)
    with refused(world, "wrong-model"):
        owner.model = other
        world.post_model(owner)
    owner.model = before
    next_iteration(world)
    assert world.bundle().iterations == 2
    follow(world)


@pytest.mark.parametrize(
    "lie",
    [lambda payload: b"\xff" * len(payload), with_garbage],
    ids=["malformed", "words that its proof is not about"],
)
def test_a_refused_payload_is_excluded_by_all_alike(stages: Stages, lie: Callable[[bytes], bytes]) -> None:
    world = stages("submitted")
    posting = forged(world, 5, lie)
    world.board.post(posting)
    world.blocks_until(Phase.CLOSED)
    phase3(world)
    assert progress(world) == [Progress.SUMMED] * 2
    position = world.position(world.owners[0])
    assert position.agreed is not None
    assert position.agreed.excluded == ((posting.body.nullifier, 1),)
    assert position.count == 2, "the excluded one is not counted"
    other = world.position(world.owners[1])
    assert other.agreed is not None
    assert other.agreed.excluded == (), "its payload for the other committee is good"
    follow(world)


# Aggregators


def test_a_lying_aggregator_is_outvoted_and_can_be_named(stages: Stages) -> None:
    world = stages("closed")
    liar, *honest = world.committees[0].members
    current = world.bundle().current
    assert current is not None
    victim = min(current.submissions)
    world.board.post_as(liar.role, an_aggregate(world, 0, liar, leave_out=[victim]))
    for member in honest:
        world.aggregate(world.owners[0], world.committees[0], member)
    everybody(world, World.aggregate, (1,))
    position = world.position(world.owners[0])
    assert position.progress is Progress.AGGREGATED
    assert position.agreed is not None
    assert position.agreed.excluded == ()
    assert [m for m, stated in position.aggregates.items() if stated != position.agreed] == [liar.number]

    bad = replace(a_count_share(world, 0, liar), shares=a_count_share(world, 0, honest[0]).shares)
    with refused(world, "bad-count-share") as caught:
        world.board.post_as(liar.role, bad)
    assert "Aggregator 0 1" in caught.value.culprit
    for member in honest:
        world.count_share(world.owners[0], world.committees[0], member)
    everybody(world, World.count_share, (1,))
    for member in honest:
        world.sum_share(world.owners[0], world.committees[0], member)
    everybody(world, World.sum_share, (1,))
    assert progress(world) == [Progress.SUMMED] * 2
    follow(world)


def test_members_who_disagree_agree_on_nothing(stages: Stages) -> None:
    world = stages("closed")
    current = world.bundle().current
    assert current is not None
    names = sorted(current.submissions)
    for number, member in enumerate(world.committees[0].members):
        world.board.post_as(member.role, an_aggregate(world, 0, member, leave_out=names[:number]))
    to_height(world, current.aggregate_by + 1)
    assert progress(world)[0] is Progress.FAILED


@pytest.mark.parametrize(
    ("stage", "deadline"), [("closed", "aggregate_by"), ("aggregated", "count_by"), ("counted", "sum_by")]
)
def test_what_is_missing_at_a_deadline_fails(stages: Stages, stage: str, deadline: str) -> None:
    world = stages(stage)
    before, current = progress(world), world.bundle().current
    assert current is not None
    height = getattr(current, deadline)
    to_height(world, height)
    assert progress(world) == before
    member = world.committees[0].members[0]
    make = {"closed": an_aggregate, "aggregated": a_count_share, "counted": a_sum_share}[stage]
    posting = signed(world, member.role, make(world, 0, member))
    world.board.post(posting)
    world.board.next_block()
    assert progress(world) == [Progress.FAILED] * 2, "one share of two is not enough"
    assert world.bundle().phase is Phase.WAITING
    released = 1 if stage == "counted" else 0  # (D-21)
    assert [world.task_state(owner).releases for owner in world.owners] == [released] * 2
    nullifiers = world.board.state.nullifiers.size
    next_iteration(world)
    assert world.bundle().phase is Phase.OPEN
    assert world.board.state.nullifiers.size == nullifiers
    with refused(world, {"closed": "aggregate", "aggregated": "count", "counted": "sum"}[stage] + "-not-due"):
        world.board.post(posting)


def test_shares_after_the_threshold_are_recorded_and_change_nothing(stages: Stages) -> None:
    world = stages("counted")
    late = world.committees[0].members[2]
    count = world.position(world.owners[0]).count
    world.count_share(world.owners[0], world.committees[0], late)
    everybody(world, World.sum_share, (0,))
    position = world.position(world.owners[0])
    total = position.total
    assert position.progress is Progress.SUMMED
    world.sum_share(world.owners[0], world.committees[0], late)
    world.board.next_block()
    assert len(position.count_shares) == len(position.sum_shares) == 3
    assert (position.count, position.total, position.progress) == (count, total, Progress.SUMMED)
    assert world.task_state(world.owners[0]).releases == 1
    follow(world)


# Tasks


def test_a_task_ends_with_its_releases(stages: Stages) -> None:
    world = stages("counted")
    for owner in world.owners:
        task = world.task_state(owner)
        task.facts = replace(task.facts, max_releases=1)
    everybody(world, World.sum_share)
    assert all(world.task_state(owner).ended for owner in world.owners)
    assert world.bundle().phase is Phase.ENDED
    assert [c.task for c in world.board.state.committees.values()] == [None, None]
    with refused(world, "model-not-due"):
        world.recover(world.owners[0])
        world.post_model(world.owners[0])


def test_an_ended_task_is_absent_and_the_others_go_on(stages: Stages) -> None:
    world = stages("submitted")
    first, second = world.owners
    world.board.post_as(first.role, EndTask(task=first.task_id))
    world.blocks_until(Phase.CLOSED)
    phase3(world)
    assert progress(world) == [Progress.SUMMED] * 2, "the iteration under way gets its outcome"
    next_iteration(world)
    assert world.bundle().phase is Phase.OPEN
    assert progress(world) == [Progress.ABSENT, Progress.COLLECTING]
    for client in (0, 1):
        world.board.post(a_submission(world, client, 1))
    world.blocks_until(Phase.CLOSED)
    with refused(world, "aggregate-not-due"):
        member = world.committees[0].members[0]
        world.board.post_as(member.role, an_aggregate(world, 0, member))
    phase3(world, (1,))
    assert progress(world) == [Progress.ABSENT, Progress.SUMMED]
    world.board.post_as(second.role, EndTask(task=second.task_id))
    world.board.next_block()
    assert world.bundle().phase is Phase.ENDED
    key = world.committees[0].key
    assert key is not None
    role = world.authority.issue(Purpose.OWNER, "Next")
    world.board.post_as(role, announce(a_task("next"), key_id=key.key_id))
    follow(world)


def test_a_task_whose_first_model_never_comes_has_ended(stages: Stages) -> None:
    world = stages("waiting")
    world.post_first_model(world.owners[0])
    to_height(world, world.bundle().model_by + 1)
    assert [world.task_state(owner).ended for owner in world.owners] == [False, True]
    assert progress(world) == [Progress.COLLECTING, Progress.ABSENT]
    silent = stages("waiting")
    to_height(silent, silent.bundle().model_by + 1)
    assert silent.bundle().phase is Phase.ENDED


def test_a_model_that_is_late_leaves_the_last_one(stages: Stages) -> None:
    world = stages("summed")
    before = [world.task_state(owner).model for owner in world.owners]
    to_height(world, world.bundle().model_by + 1)
    assert (world.bundle().phase, world.bundle().iterations) == (Phase.OPEN, 2)
    assert [world.task_state(owner).model for owner in world.owners] == before
    assert [world.task_state(owner).next_model for owner in world.owners] == [None, None]


def test_an_early_end_needs_every_owner(stages: Stages) -> None:
    world = stages("open")
    first, second = world.owners
    world.board.post_as(first.role, EndIteration(task=first.task_id, iteration=1))
    world.board.next_block()
    assert world.bundle().phase is Phase.OPEN
    ended = fork(world)
    ended.board.post_as(second.role, EndTask(task=second.task_id))
    ended.board.next_block()
    assert ended.bundle().phase is not Phase.OPEN, "an owner whose task ended is not asked"
    world.board.post_as(second.role, EndIteration(task=second.task_id, iteration=1))
    world.board.next_block()
    assert progress(world) == [Progress.TOO_FEW] * 2, "nobody had posted"
    follow(world)


def test_an_empty_iteration_does_not_end_before_posts_could_come(stages: Stages) -> None:
    """Openings are what newcomers wait for; owners could make many of them in no time."""
    size = replace(CLASS, post_from=3, train=6)
    world = World(stages.keys, classes=(size,))
    world.set_up(num_clients=2, committees=((2, 2, 0), (2, 2, 0)), early_end=True)
    current = world.bundle().current
    assert current is not None
    for owner in world.owners:
        world.board.post_as(owner.role, EndIteration(task=owner.task_id, iteration=1))
    open_at = []
    while world.bundle().phase is Phase.OPEN:
        open_at.append(world.board.state.height)
        world.board.next_block()
    assert open_at[-1] == current.opened_at + size.post_from
    assert current.closed_at is not None
    assert current.closed_at < current.close_by, "it ended early all the same"
    follow(world)


def test_owners_cannot_choose_the_post_after_which_an_iteration_ends(stages: Stages) -> None:
    """With posts of their own around a single one of somebody else, the counts would name its task."""
    world = stages("submitted")
    for owner in world.owners:
        world.board.post_as(owner.role, EndIteration(task=owner.task_id, iteration=1))
    world.board.next_block()
    current = world.bundle().current
    assert current is not None
    assert world.bundle().phase is Phase.OPEN
    assert len(current.submissions) == current.num_clients - 1
    world.board.post(a_submission(world, len(current.submissions), 0))
    world.board.next_block()
    assert world.bundle().phase is Phase.CLOSED, "nobody can post any more"
    follow(world)


def test_a_set_below_the_minimum_ends_without_opening_its_count(stages: Stages) -> None:
    """One post alone: its bits, opened by every committee, would name its task."""
    world = stages("open")
    world.board.post(a_submission(world, 0, 0))
    world.blocks_until(Phase.WAITING)
    assert progress(world) == [Progress.TOO_FEW] * 2
    assert [world.position(owner).count for owner in world.owners] == [None, None]
    follow(world)


def test_exclusions_cannot_bring_a_count_below_the_minimum(stages: Stages) -> None:
    """Members that agree to leave out all posts but one get no count of it, and honest ones give no share."""
    world = stages("closed")
    current = world.bundle().current
    assert current is not None
    victims = sorted(current.submissions)[1:]
    committee = world.committees[0]
    for liar in committee.members[: committee.threshold]:
        world.board.post_as(liar.role, an_aggregate(world, 0, liar, leave_out=victims))
    world.board.next_block()
    position = world.position(world.owners[0])
    assert (position.progress, position.count) == (Progress.TOO_FEW, None)
    liar, seat = committee.members[0], world.seat(world.owners[0])
    with pytest.raises(TooFewClients):
        a_count_share(world, 0, liar)
    share = CountShare(
        task=seat.task_id, iteration=1, member=liar.number, agreed=seat.agreed_digest, shares=(b"made",)
    )
    with refused(world, "count-not-due"):
        world.board.post_as(liar.role, share)


# Bundles


def test_tasks_that_wait_too_long_form_a_smaller_bundle(stages: Stages) -> None:
    world = stages("established")
    owner = world.announce(world.committees[0], a_task("lonely"))
    announced = world.task_state(owner).announced_at
    to_height(world, announced + world.genesis.bundle_wait)
    assert world.board.state.bundles == {}
    world.board.next_block()
    assert world.bundle().tasks == (owner.task_id,)
    assert not world.bundle().early_end


def test_tasks_of_one_owner_do_not_share_a_bundle(stages: Stages) -> None:
    world = stages("established")
    owner = world.announce(world.committees[0], a_task("one"))
    key = world.committees[1].key
    assert key is not None
    world.board.post_as(owner.role, announce(a_task("two"), key_id=key.key_id))
    world.board.next_block()
    assert world.board.state.bundles == {}
    to_height(world, world.task_state(owner).announced_at + world.genesis.bundle_wait + 1)
    assert [len(bundle.tasks) for bundle in world.board.state.bundles.values()] == [1, 1]


def test_tasks_of_one_organisation_do_not_share_a_bundle(stages: Stages) -> None:
    """Two certified keys of one house would be company for nobody."""
    world = stages("established")
    for number, committee in enumerate(world.committees):
        role = world.authority.issue(Purpose.OWNER, f"Study {number}", organisation="One House")
        assert committee.key is not None
        world.board.post_as(role, announce(a_task(f"study {number}"), key_id=committee.key.key_id))
    world.board.next_block()
    assert world.board.state.bundles == {}
    other = world.authority.issue(Purpose.OWNER, "Study 2", organisation="Another House")
    world.committees.append(world.establish())
    key = world.committees[-1].key
    assert key is not None
    world.board.post_as(other, announce(a_task("study 2"), key_id=key.key_id))
    world.board.next_block()
    (bundle,) = world.board.state.bundles.values()
    assert {world.board.state.tasks[name].organisation for name in bundle.tasks} == {
        "one house",
        "another house",
    }


@pytest.fixture(scope="module")
def pair(stages: Stages) -> World:
    """Two bundles of one task each, both open."""
    world = stages.world(2, bundle_size=1)
    for number in range(2):
        world.announce(world.establish(name=f"Aggregator {number}"), a_task(f"study {number}"))
    world.board.next_block()
    for owner in world.owners:
        world.post_first_model(owner)
    world.board.next_block()
    return world


def test_two_bundles_run_at_once(pair: World) -> None:
    world = fork(pair)
    assert [bundle.phase for bundle in world.board.state.bundles.values()] == [Phase.OPEN] * 2
    for number, owner in enumerate(world.owners):
        for client in world.clients:
            world.board.post(world.submission(client, 0, a_vector(owner.task, number), bundle=number))
    world.blocks_until(Phase.CLOSED)
    phase3(world)
    assert progress(world) == [Progress.SUMMED] * 2
    assert [world.position(owner).count for owner in world.owners] == [2, 2]
    follow(world)


# Epochs


def test_a_new_epoch_leaves_an_open_iteration_alone(stages: Stages) -> None:
    world = stages("submitted")
    revocation = RevokeCertifier(key=world.certifier_secret.public_key().to_bytes(), new_epoch=True)
    world.board.post_as(world.operator, revocation)
    world.board.post(a_submission(world, 5, 1))
    world.board.next_block()
    assert set(world.board.state.client_trees) == {0, 1}
    world.blocks_until(Phase.CLOSED)
    world.board.next_block()
    assert set(world.board.state.client_trees) == {1}
    phase3(world)
    assert progress(world) == [Progress.SUMMED] * 2
    assert world.position(world.owners[1]).count == 3
    next_iteration(world)
    current = world.bundle().current
    assert current is not None
    assert (current.epoch, current.num_clients) == (1, 0)
    follow(world)
