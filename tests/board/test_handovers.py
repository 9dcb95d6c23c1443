"""Committees hand their keys on over the board: new shares count, old ones are worthless."""

from dataclasses import replace

import pytest

from anofel.board.state import Phase, Progress
from anofel.committee import count
from anofel.committee.interface import HandedOverKey
from anofel.messages import CountShare
from anofel.privacy.ledger import FloorNotMet
from anofel.roles.client.trust import Aggregators, Trust
from tests.board.prepared import (
    Stages,
    a_count_share,
    a_submission,
    everybody,
    follow,
    next_iteration,
    progress,
    refused,
    run_handover,
)
from tests.board.world import Member, World


def hand_over(world: World, number: int, joining: int, name: str) -> tuple[list[Member], HandedOverKey]:
    """A real handover over the board: members 1 and 2 deal; member 2 stays and ``joining`` members join."""
    committee, board = world.committees[number], world.board
    assert committee.key is not None
    stays, new = committee.members[1], world.make_members(joining + 1, name)[1:]
    members = [replace(stays, number=1), *new]
    finished = run_handover(world, number, members)
    for member, end in zip(members, finished.ends, strict=True):
        assert isinstance(end, HandedOverKey)
        member.share = end.share
        board.post(world.key_posting(finished, member))
    assert isinstance(finished.ends[0], HandedOverKey)
    return members, finished.ends[0]


def test_a_handover_waits_for_the_outcome_and_then_new_shares_count(stages: Stages) -> None:
    world = stages("aggregated")
    old = world.committees[0]
    members, end = hand_over(world, 0, 2, "Successor")
    world.board.next_block()
    committee = world.board.state.committees[end.key.key_id]
    assert committee.pending is not None, "the iteration between close and outcome keeps its shares"
    for step in (World.count_share, World.sum_share):
        everybody(world, step)
    assert progress(world) == [Progress.SUMMED] * 2
    assert committee.pending is None
    assert committee.current.members == tuple(member.subject for member in members)

    world.committees[0] = replace(old, members=members, key=end.key)
    next_iteration(world)
    for client, target in enumerate((0, 0, 1, 1)):
        world.board.post(a_submission(world, client, target))
    world.blocks_until(Phase.CLOSED)
    with refused(world, "not-a-member"):
        world.aggregate(world.owners[0], old, old.members[0])
    everybody(world, World.aggregate)
    with refused(world, "not-a-member"):
        world.board.post_as(old.members[0].role, a_count_share(world, 0, members[0]))
    for step in (World.count_share, World.sum_share):
        everybody(world, step)
    assert progress(world) == [Progress.SUMMED] * 2
    assert [world.position(owner).count for owner in world.owners] == [2, 2]
    follow(world)


def test_a_handover_waits_while_an_iteration_is_open(stages: Stages) -> None:
    """Its clients looked at the old members before they posted."""
    world = stages("submitted")
    old = world.committees[0].members
    _, end = hand_over(world, 0, 2, "Successor")
    world.board.next_block()
    assert world.bundle().phase is Phase.OPEN
    committee = world.board.state.committees[end.key.key_id]
    assert committee.pending is not None
    assert committee.current.members == tuple(member.subject for member in old)
    world.blocks_until(Phase.CLOSED)
    for step in (World.aggregate, World.count_share, World.sum_share):
        everybody(world, step)
    assert progress(world) == [Progress.SUMMED] * 2, "the old members opened it"
    assert committee.pending is None
    follow(world)


def test_a_refresh_makes_old_shares_worthless(stages: Stages) -> None:
    """The same members with new shares: a share made with an old one is refused, with its author."""
    world = stages("summed")
    old = world.committees[0]
    finished = run_handover(world, 0, old.members)
    members, refreshed = old.members, finished.key
    for member in members:
        world.board.post(world.key_posting(finished, member))
    world.board.next_block()
    assert world.board.state.committees[refreshed.key_id].current.shares_id == refreshed.shares_id
    next_iteration(world)
    for client, target in enumerate((0, 0, 0, 1, 1)):
        world.board.post(a_submission(world, client, target))
    world.blocks_until(Phase.CLOSED)
    everybody(world, World.aggregate)
    member, seat = members[0], world.seat(world.owners[0])
    assert old.key is not None
    assert member.share is not None
    (tally,), (agreed,) = world.board.openings.tallies(seat), seat.agreed
    stale = CountShare(
        task=seat.task_id,
        iteration=seat.number,
        member=member.number,
        agreed=seat.agreed_digest,
        shares=(count.partial_decrypt(old.key, member.share.count_share, tally, agreed),),
    )
    with refused(world, "bad-count-share") as caught:
        world.board.post_as(member.role, stale)
    assert "Aggregator 0 1" in caught.value.culprit
    for one, end in zip(members, finished.ends, strict=True):
        one.share = end.share
    world.committees[0] = replace(old, key=refreshed, members=members)
    for step in (World.count_share, World.sum_share):
        everybody(world, step)
    assert progress(world) == [Progress.SUMMED] * 2
    assert world.position(world.owners[0]).count == 3


def test_a_client_looks_at_everybody_who_held_the_key(stages: Stages) -> None:
    """Strangers make a committee, hand it to members whom a client allows, and keep their shares."""
    world = stages("summed")
    state = world.board.state
    task = state.tasks[world.owners[0].task_id]
    others = state.members_of(state.committee_of(state.tasks[world.owners[1].task_id]).current)
    before = state.members_of(state.committee_of(task).current)
    reputable = [
        replace(member, number=n) for n, member in enumerate(world.make_members(3, "Reputable"), start=1)
    ]
    finished = run_handover(world, 0, reputable)
    for member in reputable:
        world.board.post(world.key_posting(finished, member))
    world.board.next_block()
    committee = state.committee_of(task)
    after = state.members_of(committee.current)
    assert not {member.name for member in before} & {member.name for member in after}
    allowed = tuple(Aggregators.parse(member.name) for member in (*after, *others))
    next_iteration(world)
    with pytest.raises(FloorNotMet, match="epoch 0.* does not allow"):
        Trust(allowed=allowed, max_colluders=0).check_bundle(state, world.bundle())
    required = tuple(Aggregators.parse(member.name) for member in (*after, *others))
    with pytest.raises(FloorNotMet, match="epoch 0.* none that this client requires"):
        Trust(required=required, max_colluders=0).check_bundle(state, world.bundle())
    everyone = (*allowed, *(Aggregators.parse(member.name) for member in before))
    Trust(allowed=everyone, required=everyone, max_colluders=0).check_bundle(state, world.bundle())
