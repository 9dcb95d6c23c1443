"""Committees hand their keys on over the board: new shares count, old ones are worthless."""

from dataclasses import replace

from anofel.board.state import Phase, Progress
from anofel.committee.interface import ResharedKey, ResharingParty, RoundMessage
from anofel.messages import Handover
from anofel.phase1_setup.committee_keys import handover_run, post_key, post_round
from tests.board.prepared import (
    Stages,
    a_count_share,
    a_submission,
    everybody,
    follow,
    next_iteration,
    progress,
    refused,
)
from tests.board.test_rules_committees import hand_over_rounds, handover
from tests.board.world import Member, World


def hand_over(world: World, number: int, joining: int, name: str) -> tuple[list[Member], ResharedKey]:
    """A real handover over the board: members 1 and 2 deal; member 2 stays and ``joining`` members join."""
    committee, board = world.committees[number], world.board
    assert committee.key is not None
    stays, new = committee.members[1], world.make_members(joining + 1, name)[1:]
    members = [replace(stays, number=1), *new]
    run = replace(
        world.make_run(members, 2),
        handover=Handover(key_id=committee.key.key_id, dealers=(1, 2)),
    )
    seen = handover_run(run, board.genesis_hash, committee.key)
    resharing = committee.scheme.resharing()
    parties = [
        (stays, ResharingParty(share=stays.share, member=1)),
        (committee.members[0], ResharingParty(share=committee.members[0].share)),
        *((member, ResharingParty(member=member.number)) for member in new),
    ]
    results = [(who, resharing.begin(seen, party)) for who, party in parties]
    while not isinstance(results[0][1], ResharedKey):
        for who, result in results:
            if result.message is not None:
                blob = board.store(result.message.body)
                board.post_as(who.role, post_round(run, result.message, blob))
        spoken = results[0][1].state.round
        posted = board.state.runs[run.run_id(board.genesis_hash)].posted[spoken]
        messages = [
            RoundMessage(run_id=seen.run_id, round=spoken, sender=sender, body=board.attachments.read(name_))
            for sender, name_ in sorted(posted.items())
        ]
        results = [(who, resharing.advance(result.state, messages)) for who, result in results]
    for who, end in results:
        if end.share is not None:
            member = members[end.share.member - 1]
            member.share = end.share
            body = post_key(
                run,
                member.number,
                end.key,
                end.transcript,
                board.store(end.key.to_bytes()),
                genesis=board.genesis_hash,
            )
            board.post_as(who.role, body)
    return members, results[0][1]


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


def test_a_refresh_makes_old_shares_worthless(stages: Stages) -> None:
    """The same members with new shares: a share made with an old one is refused, with its author."""
    world = stages("submitted")
    old = world.committees[0]
    refreshed = old.scheme.read_key(stages.recording.refreshed.key)
    members, run = handover(world)
    hand_over_rounds(world, members, run)
    for member in members:
        body = post_key(
            run,
            member.number,
            refreshed,
            bytes(32),
            world.board.store(refreshed.to_bytes()),
            genesis=world.board.genesis_hash,
        )
        world.board.post_as(member.role, body)
    world.board.next_block()
    assert world.board.state.committees[refreshed.key_id].current.shares_id == refreshed.shares_id
    world.board.post(a_submission(world, 5, 0))
    world.blocks_until(Phase.CLOSED)
    everybody(world, World.aggregate)
    member = members[0]
    with refused(world, "bad-count-share") as caught:
        world.board.post_as(member.role, a_count_share(world, 0, member))
    assert "Aggregator 0 1" in caught.value.culprit
    for one in members:
        one.share = old.scheme.read_share(refreshed, stages.recording.refreshed.shares[one.number])
    world.committees[0] = replace(old, key=refreshed, members=members)
    for step in (World.count_share, World.sum_share):
        everybody(world, step)
    assert progress(world) == [Progress.SUMMED] * 2
    assert world.position(world.owners[0]).count == 3
