"""Runs of key generation and committees: one test per rule, in which only it fails."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from anofel.board.rules import committees
from anofel.board.state import CommitteeShares
from anofel.committee import schemes
from anofel.messages import Handover, Run
from tests.board.prepared import (
    Stages,
    a_key_posting,
    a_round,
    alone,
    refused,
    rounds,
    signed,
    whole_run,
)
from tests.board.world import Member, World


def begin(stages: Stages) -> tuple[World, list[Member], Run]:
    world = stages("fresh")
    members = world.make_members(3)
    return world, members, world.make_run(members, 2)


def handover(world: World, number: int = 0, dealers: Sequence[int] = (1, 2)) -> tuple[list[Member], Run]:
    """A run that refreshes the shares of an established committee."""
    committee = world.committees[number]
    assert committee.key is not None
    run = replace(
        world.make_run(committee.members, 2),
        handover=Handover(key_id=committee.key.key_id, dealers=tuple(dealers)),
    )
    return committee.members, run


def hand_over_rounds(world: World, members: Sequence[Member], run: Run) -> None:
    rounds(world, members, run, 0, (1, 2, 3))
    rounds(world, members, run, 1, (1, 2))
    rounds(world, members, run, 2, (1, 2, 3))


def test_round_0_describes_the_run(stages: Stages) -> None:
    world, members, run = begin(stages)
    good, role = a_round(world, run, 0, 1), members[0].role
    alone(world, "run-description", signed(world, role, replace(good, run=None)), signed(world, role, good))
    rounds(world, members, run, 0, (2, 3))
    later = a_round(world, run, 1, 1)
    bad = signed(world, role, replace(later, run=run))
    alone(world, "run-description", bad, signed(world, role, later))


def test_a_run_is_named_by_its_description(stages: Stages) -> None:
    world, members, run = begin(stages)
    good = a_round(world, run, 0, 1)
    bad = signed(world, members[0].role, replace(good, run_id=bytes(32)))
    alone(world, "wrong-run-id", bad, signed(world, members[0].role, good))


def test_every_description_of_a_run_is_the_same(stages: Stages) -> None:
    world, members, run = begin(stages)
    rounds(world, members, run, 0, (1,))
    good, role = a_round(world, run, 0, 2), members[1].role
    other = replace(good, run=replace(run, threshold=3))
    alone(world, "wrong-run-id", signed(world, role, other), signed(world, role, good))


@pytest.mark.parametrize(
    "fault", ["scheme", "same member", "low threshold", "high threshold", "one member", "two for paillier"]
)
def test_a_run_has_a_valid_shape(stages: Stages, fault: str) -> None:
    world, members, run = begin(stages)
    changes: dict[str, dict[str, object]] = {
        "scheme": {"scheme": len(schemes.NAMES)},
        "same member": {"members": (run.members[0], run.members[1], run.members[1])},
        "low threshold": {"threshold": 1},
        "high threshold": {"threshold": 4},
        "one member": {"members": run.members[:1], "threshold": 1},
        "two for paillier": {"members": run.members[:2], "scheme": schemes.NAMES.index("paillier")},
    }
    bad, role = replace(run, **changes[fault]), members[0].role
    good = signed(world, role, a_round(world, run, 0, 1))
    alone(world, "invalid-run", signed(world, role, a_round(world, bad, 0, 1)), good)


@pytest.mark.parametrize(
    "fault", ["unknown key", "too few", "unsorted", "zero", "too large", "scheme", "pending"]
)
def test_a_handover_names_a_committee_and_its_dealers(stages: Stages, fault: str) -> None:
    world = stages("established")
    members, run = handover(world)
    assert run.handover is not None
    committee = world.board.state.committees[run.handover.key_id]
    changes = {
        "unknown key": {"key_id": bytes(32)},
        "too few": {"dealers": (1,)},
        "unsorted": {"dealers": (2, 1)},
        "zero": {"dealers": (0, 1)},
        "too large": {"dealers": (1, 4)},
    }.get(fault, {})
    bad = replace(run, handover=replace(run.handover, **changes))
    if fault == "scheme":
        bad = replace(bad, scheme=1)
    if fault == "pending":
        committee.pending = committee.current
    posting = signed(world, members[0].role, a_round(world, bad, 0, 1))
    with refused(world, "wrong-handover"):
        world.board.post(posting)
    committee.pending = None
    rounds(world, members, run, 0, (1,))


def test_the_run_is_under_way(stages: Stages) -> None:
    world, members, run = begin(stages)
    rounds(world, members, run, 0, (1, 2, 3))
    good, role = a_round(world, run, 1, 1), members[0].role
    bad = signed(world, role, replace(good, run_id=bytes(32)))
    alone(world, "run-unknown", bad, signed(world, role, good))


def test_an_old_run_has_ended_and_cannot_be_posted_again(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committees, "MAX_RUN_BLOCKS", 2)
    world, members, run = begin(stages)
    posting = signed(world, members[0].role, a_round(world, run, 0, 1))
    world.board.post(posting)
    world.board.next_block()
    rounds(world, members, run, 0, (2,))
    world.board.next_block()
    world.board.next_block()
    with refused(world, "run-unknown"):
        rounds(world, members, run, 0, (3,))
    with refused(world, "run-unknown"):
        world.board.post(posting)
    for _ in range(world.genesis.limits.max_runs):
        rounds(world, members, world.make_run(members, 2), 0, (1,))


def test_the_author_is_the_sender(stages: Stages) -> None:
    world, members, run = begin(stages)
    body = a_round(world, run, 0, 1)
    alone(world, "not-the-sender", signed(world, members[1].role, body), signed(world, members[0].role, body))


def test_only_dealers_deal(stages: Stages) -> None:
    world = stages("established")
    members, run = handover(world, dealers=(1, 3))
    rounds(world, members, run, 0, (1, 2, 3))
    bad = signed(world, members[1].role, a_round(world, run, 1, 2))
    alone(world, "not-the-sender", bad, signed(world, members[2].role, a_round(world, run, 1, 3)))


def test_rounds_come_in_order(stages: Stages) -> None:
    world, members, run = begin(stages)
    rounds(world, members, run, 0, (1, 2))
    early = signed(world, members[0].role, a_round(world, run, 1, 1))
    alone(world, "round-out-of-order", early, signed(world, members[2].role, a_round(world, run, 0, 3)))
    world.board.post(early)


def test_there_is_no_round_after_the_last(stages: Stages) -> None:
    world, members, run = begin(stages)
    whole_run(world, members, run)
    with refused(world, "too-many-rounds"):
        rounds(world, members, run, committees.max_rounds(run), (1,))


def test_a_scheme_may_try_again(stages: Stages) -> None:
    """Paillier's first batch of candidates often holds no modulus; a key counts from the shortest run on."""
    world, members, _ = begin(stages)
    run = world.make_run(members, 2, schemes.NAMES.index("paillier"))
    least, most = committees.min_rounds(run), committees.max_rounds(run)
    assert least + 7 < most
    whole_run(world, members, run)
    found = world.board.state.runs[run.run_id(world.board.genesis_hash)]
    rounds(world, members, run, least, (1, 2))
    assert committees.complete_rounds(found) == least
    rounds(world, members, run, least, (3,))
    assert committees.complete_rounds(found) == least + 1
    for number in range(least + 1, most - 1):
        found.posted[number] = dict.fromkeys((1, 2, 3), bytes(32))
    rounds(world, members, run, most - 1, (1, 2, 3))
    with refused(world, "too-many-rounds"):
        rounds(world, members, run, most, (1,))


def test_a_member_posts_once_in_a_round(stages: Stages) -> None:
    world, members, run = begin(stages)
    rounds(world, members, run, 0, (1,))
    again = signed(world, members[0].role, a_round(world, run, 0, 1))
    alone(world, "round-posted", again, signed(world, members[1].role, a_round(world, run, 0, 2)))


def test_a_member_opens_few_runs(stages: Stages) -> None:
    world, members, run = begin(stages)
    for _ in range(world.genesis.limits.max_runs):
        rounds(world, members, world.make_run(members, 2), 0, (1,))
    bad = signed(world, members[0].role, a_round(world, run, 0, 1))
    alone(world, "too-many-runs", bad, signed(world, members[1].role, a_round(world, run, 0, 2)))


def test_a_handover_begins_with_the_current_shares(stages: Stages) -> None:
    world = stages("established")
    members, run = handover(world)
    rounds(world, members, run, 0, (1,))
    assert run.handover is not None
    committee = world.board.state.committees[run.handover.key_id]
    before = committee.current
    committee.current = replace(before, shares_id=bytes(32), share_epoch=1)
    with refused(world, "handover-stale"):
        rounds(world, members, run, 0, (2,))
    committee.current, committee.pending = before, CommitteeShares(bytes(32), bytes(32), run.members, 2, 1)
    with refused(world, "handover-stale"):
        rounds(world, members, run, 0, (2,))
    committee.pending = None
    rounds(world, members, run, 0, (2,))


def test_a_key_is_posted_after_the_last_round(stages: Stages) -> None:
    world, members, run = begin(stages)
    key = schemes.by_name("lattice").read_key(stages.recording.committees[0].key)
    last = committees.min_rounds(run) - 1
    for number in range(last):
        rounds(world, members, run, number, (1, 2, 3))
    rounds(world, members, run, last, (1, 2))
    posting = a_key_posting(world, run, members[0], key)
    with refused(world, "run-not-finished"):
        world.board.post(posting)
    rounds(world, members, run, last, (3,))
    world.board.post(posting)


def test_a_member_posts_the_key_once(stages: Stages) -> None:
    world, members, run = begin(stages)
    key = schemes.by_name("lattice").read_key(stages.recording.committees[0].key)
    whole_run(world, members, run)
    posting = a_key_posting(world, run, members[0], key)
    world.board.post(posting)
    alone(world, "key-posted", posting, a_key_posting(world, run, members[1], key))
    assert key.key_id in world.board.state.committees


@pytest.mark.parametrize("fault", ["garbage", "another name", "another shape", "another generation"])
def test_the_blob_is_a_key(stages: Stages, fault: str) -> None:
    world, members, run = begin(stages)
    scheme = schemes.by_name("lattice")
    key = scheme.read_key(stages.recording.committees[0].key)
    if fault == "another shape":
        run = replace(run, threshold=3)
    whole_run(world, members, run)
    good = a_key_posting(world, run, members[0], key).body
    bad = good
    if fault == "garbage":
        blob = world.board.store(b"garbage")
        bad = replace(good, key=blob, shares_id=blob.sha256)
    elif fault == "another name":
        bad = replace(good, key_id=bytes(32))
    elif fault == "another generation":
        refreshed = scheme.read_key(stages.recording.refreshed.key)
        bad = a_key_posting(world, run, members[0], refreshed).body
    if fault == "another shape":
        with refused(world, "key-refused-by-board"):
            world.board.post_as(members[0].role, bad)
        return
    role = members[0].role
    alone(world, "key-refused-by-board", signed(world, role, bad), signed(world, role, good))


def test_a_key_of_one_scheme_is_none_of_another(stages: Stages) -> None:
    """Also after it was read as a key of its own scheme."""
    world, members, run = begin(stages)
    key = schemes.by_name("lattice").read_key(stages.recording.committees[0].key)
    whole_run(world, members, run)
    world.board.post(a_key_posting(world, run, members[0], key))
    other = replace(run, scheme=1)
    whole_run(world, members, other)
    body = a_key_posting(world, run, members[0], key).body
    with refused(world, "key-refused-by-board"):
        world.board.post_as(members[0].role, replace(body, run_id=other.run_id(world.board.genesis_hash)))


def test_a_handover_keeps_the_key(stages: Stages) -> None:
    world = stages("established")
    refreshed = schemes.by_name("lattice").read_key(stages.recording.refreshed.key)
    members, run = handover(world, 1)
    hand_over_rounds(world, members, run)
    with refused(world, "key-changed"):
        world.board.post(a_key_posting(world, run, members[0], refreshed))
    members, run = handover(world, 0)
    hand_over_rounds(world, members, run)
    world.board.post(a_key_posting(world, run, members[0], refreshed))


def test_a_late_vote_for_a_handed_over_key_is_still_taken(stages: Stages) -> None:
    world = stages("established")
    refreshed = schemes.by_name("lattice").read_key(stages.recording.refreshed.key)
    members, run = handover(world)
    hand_over_rounds(world, members, run)
    for member in members[:2]:
        world.board.post(a_key_posting(world, run, member, refreshed))
    world.board.next_block()
    committee = world.board.state.committees[refreshed.key_id]
    assert committee.current.shares_id == refreshed.shares_id
    assert committee.current.share_epoch == 1
    world.board.post(a_key_posting(world, run, members[2], refreshed))


def test_only_members_post_the_key(stages: Stages) -> None:
    world, members, run = begin(stages)
    key = schemes.by_name("lattice").read_key(stages.recording.committees[0].key)
    whole_run(world, members, run)
    good = a_key_posting(world, run, members[0], key)
    alone(world, "not-a-member", signed(world, members[1].role, good.body), good)
