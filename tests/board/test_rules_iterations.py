"""Submissions, aggregates and shares: one test per rule, in which only it fails."""

from dataclasses import replace

import pytest

from anofel.board.state import Phase, Progress
from anofel.messages import Exclusion
from tests.board.prepared import (
    Stages,
    a_count_share,
    a_submission,
    a_sum_share,
    alone,
    an_aggregate,
    everybody,
    fork,
    refused,
    signed,
    submit,
    to_height,
)
from tests.board.world import World, a_vector

# submission


def test_the_bundle_is_on_the_board(stages: Stages) -> None:
    world = stages("open")
    elsewhere = fork(world)
    elsewhere.board.state.bundles[9] = replace(elsewhere.bundle(), number=9)
    sealed = elsewhere.sealed(world.clients[0], None, None, bundle=9)
    alone(world, "bundle-unknown", submit(elsewhere, sealed), a_submission(world, 0, None))


def test_the_iteration_is_open(stages: Stages) -> None:
    world = stages("submitted")
    posting, closed = a_submission(world, 5, 0), stages("closed")
    with refused(closed, "iteration-not-open"):
        closed.board.post(posting)
    world.board.post(posting)
    ahead = stages("open")
    ahead.bundle().iterations = ahead.bundle().current.number = 2
    sealed = ahead.sealed(ahead.clients[5], None, None)
    now = stages("open")
    alone(now, "iteration-not-open", submit(ahead, sealed), a_submission(now, 5, None))


def test_a_client_posts_once(stages: Stages) -> None:
    world = stages("submitted")
    alone(world, "nullifier-spent", a_submission(world, 0, 1), a_submission(world, 5, 1))


def test_a_tag_is_used_once(stages: Stages) -> None:
    """With sound proofs no client can break this rule alone; here the tag is put on the board by hand."""
    world = stages("submitted")
    posting, current = a_submission(world, 5, 1), world.bundle().current
    assert current is not None
    current.tags.add(posting.body.tag)
    with refused(world, "tag-used"):
        world.board.post(posting)
    current.tags.remove(posting.body.tag)
    world.board.post(posting)


def test_a_submission_addresses_every_committee(stages: Stages) -> None:
    world = stages("open")
    smaller = fork(world)
    smaller.bundle().tasks = smaller.bundle().tasks[:1]
    bad = submit(smaller, smaller.sealed(world.clients[0], None, None))
    alone(world, "wrong-addressees", bad, a_submission(world, 0, None))


def test_an_iteration_has_room(stages: Stages) -> None:
    world = stages("submitted")
    current, posting = world.bundle().current, a_submission(world, 5, None)
    assert current is not None
    (entry, *_), limit = current.submissions.values(), world.genesis.classes[0].max_posts
    fillers = [bytes([number]) * 32 for number in range(limit - len(current.submissions))]
    current.submissions |= {name: replace(entry, nullifier=name) for name in fillers}
    with refused(world, "iteration-full"):
        world.board.post(posting)
    del current.submissions[fillers[0]]
    world.board.post(posting)


def test_the_membership_proof_is_for_the_root_of_the_opening(stages: Stages) -> None:
    world = stages("open")
    later = fork(world)
    later.add_clients(1)
    later.board.next_block()
    current = later.bundle().current
    assert current is not None
    current.num_clients, current.client_root = 7, later.board.state.clients.root().to_bytes()
    bad = a_submission(later, 6, None)
    later.board.post(bad)
    alone(world, "bad-submission-proof", bad, a_submission(world, 0, None))


@pytest.mark.parametrize("field", ["nullifier", "tag", "type_commitment", "proof"])
def test_the_membership_proof_is_valid(stages: Stages, field: str) -> None:
    world = stages("submitted")
    sealed, other = world.sealed(world.clients[5], None, None), a_submission(stages("open"), 0, None)
    bad = submit(world, sealed, **{field: getattr(other.body, field)})
    if field in ("nullifier", "tag"):
        world = stages("open")
    alone(world, "bad-submission-proof", bad, submit(world, sealed))


@pytest.mark.parametrize("fault", ["changed", "of another post", "swapped", "other payload length", "empty"])
def test_every_envelope_is_valid(stages: Stages, fault: str) -> None:
    world = stages("open")
    sealed = world.sealed(world.clients[0], 0, a_vector(world.owners[0].task, 1))
    good = submit(world, sealed)
    first, second = good.body.contributions
    other = submit(world, world.sealed(world.clients[0], 0, a_vector(world.owners[0].task, 1)))
    changed = {
        "changed": (replace(first, envelope=bytes([first.envelope[0] ^ 1]) + first.envelope[1:]), second),
        "of another post": (other.body.contributions[0], second),
        "swapped": (second, first),
        "other payload length": (replace(first, payload=world.board.upload(b"short")), second),
        "empty": (replace(first, envelope=b""), second),
    }[fault]
    bad = submit(world, sealed, contributions=changed)
    alone(world, "bad-envelope", bad, good)


@pytest.mark.parametrize("fault", ["changed", "of another post", "too long", "empty"])
def test_the_ballot_is_valid(stages: Stages, fault: str) -> None:
    world = stages("open")
    sealed = world.sealed(world.clients[0], 1, a_vector(world.owners[1].task, 1))
    good = submit(world, sealed)
    ballot = good.body.ballot
    bad = {
        "changed": ballot[:-1] + bytes([ballot[-1] ^ 1]),
        "of another post": a_submission(world, 1, 1).body.ballot,
        "too long": ballot + b"\0",
        "empty": b"",
    }[fault]
    alone(world, "bad-ballot", submit(world, sealed, ballot=bad), good)


# member


def test_a_member_speaks_for_itself(stages: Stages) -> None:
    world = stages("closed")
    first, second = world.committees[0].members[:2]
    body = an_aggregate(world, 0, first)
    rejected = alone(world, "not-a-member", signed(world, second.role, body), signed(world, first.role, body))
    assert "Aggregator 0 2" in rejected.culprit
    for number in (0, 4):
        with refused(world, "not-a-member"):
            world.board.post_as(second.role, replace(body, member=number))
    stranger = world.committees[1].members[1]
    with refused(world, "not-a-member"):
        world.board.post_as(stranger.role, replace(body, member=2))


# aggregate


def test_an_aggregate_is_due(stages: Stages) -> None:
    world = stages("aggregated")
    current, late = world.bundle().current, world.committees[0].members[2]
    assert current is not None
    posting = signed(world, late.role, an_aggregate(world, 0, late))
    fork(world).board.post(posting)
    to_height(world, current.aggregate_by)
    fork(world).board.post(posting)
    world.board.next_block()
    assert world.position(world.owners[0]).progress is Progress.AGGREGATED
    with refused(world, "aggregate-not-due"):
        world.board.post(posting)
    for stage in ("submitted", "summed"):
        other = stages(stage)
        with refused(other, "aggregate-not-due"):
            other.board.post(posting)


def test_a_member_posts_one_aggregate(stages: Stages) -> None:
    world = stages("closed")
    first, second = world.committees[0].members[:2]
    posting = signed(world, first.role, an_aggregate(world, 0, first))
    world.board.post(posting)
    alone(world, "aggregate-posted", posting, signed(world, second.role, an_aggregate(world, 0, second)))


def test_an_aggregate_names_the_closing_block(stages: Stages) -> None:
    world = stages("closed")
    member = world.committees[0].members[0]
    good = an_aggregate(world, 0, member)
    bad = signed(world, member.role, replace(good, close_hash=bytes(32)))
    alone(world, "wrong-close-hash", bad, signed(world, member.role, good))


@pytest.mark.parametrize("fault", ["reason", "unknown", "unsorted", "twice"])
def test_exclusions_are_accepted_submissions(stages: Stages, fault: str) -> None:
    world = stages("closed")
    member, current = world.committees[0].members[0], world.bundle().current
    assert current is not None
    left_out = sorted(current.submissions)[:2]
    good = an_aggregate(world, 0, member, leave_out=left_out)
    first, second = good.excluded
    changed = {
        "reason": (first, replace(second, reason=9)),
        "unknown": (Exclusion(nullifier=bytes(32), reason=1), first, second),
        "unsorted": (second, first),
        "twice": (first, first, second),
    }[fault]
    bad = signed(world, member.role, replace(good, excluded=changed))
    alone(world, "wrong-exclusions", bad, signed(world, member.role, good))


@pytest.mark.parametrize("changes", [{"num_posts": 4}, {"set_digest": bytes(32)}, "none", "two"])
def test_the_set_is_what_is_left(stages: Stages, changes: dict[str, object] | str) -> None:
    world = stages("closed")
    member = world.committees[0].members[0]
    good = an_aggregate(world, 0, member)
    (group,) = good.groups
    groups = {"none": (), "two": (group, group)}[changes] if isinstance(changes, str) else None
    changed = (replace(group, **changes),) if isinstance(changes, dict) else groups
    bad = signed(world, member.role, replace(good, groups=changed))
    alone(world, "wrong-set", bad, signed(world, member.role, good))


@pytest.mark.parametrize("fault", ["garbage", "cut short", "another set"])
def test_the_blob_is_a_sum_over_the_set(stages: Stages, fault: str) -> None:
    world = stages("closed")
    member, current = world.committees[0].members[0], world.bundle().current
    assert current is not None
    good = an_aggregate(world, 0, member)
    some = sorted(current.submissions)[:1]
    blob = {
        "garbage": world.board.upload(b"garbage"),
        "cut short": world.board.upload(world.board.attachments.read(good.groups[0].sum.sha256)[:-1]),
        "another set": an_aggregate(world, 0, member, leave_out=some).groups[0].sum,
    }[fault]
    bad = signed(world, member.role, replace(good, groups=(replace(good.groups[0], sum=blob),)))
    alone(world, "sum-malformed", bad, signed(world, member.role, good))


# count


def test_a_count_share_is_due(stages: Stages) -> None:
    world = stages("counted")
    current, late = world.bundle().current, world.committees[0].members[2]
    assert current is not None
    posting = signed(world, late.role, a_count_share(world, 0, late))
    before = stages("closed")
    with refused(before, "count-not-due"):
        before.board.post(posting)
    to_height(world, current.count_by)
    fork(world).board.post(posting)
    world.board.next_block()
    assert world.position(world.owners[0]).progress is Progress.COUNTED
    with refused(world, "count-not-due"):
        world.board.post(posting)


def test_a_count_share_is_for_the_agreed_set(stages: Stages) -> None:
    world = stages("aggregated")
    member = world.committees[0].members[0]
    good = a_count_share(world, 0, member)
    for wrong in ({"agreed": bytes(32)}, {"shares": ()}, {"shares": good.shares * 2}):
        with refused(world, "count-not-agreed"):
            world.board.post(signed(world, member.role, replace(good, **wrong)))
    bad = signed(world, member.role, replace(good, agreed=bytes(32)))
    alone(world, "count-not-agreed", bad, signed(world, member.role, good))


def test_a_member_posts_one_count_share(stages: Stages) -> None:
    world = stages("aggregated")
    first, second = world.committees[0].members[:2]
    world.board.post_as(first.role, a_count_share(world, 0, first))
    again = signed(world, first.role, a_count_share(world, 0, first))
    alone(world, "count-posted", again, signed(world, second.role, a_count_share(world, 0, second)))


@pytest.mark.parametrize("fault", ["of another member", "of another committee", "changed", "empty"])
def test_a_count_share_is_proven(stages: Stages, fault: str) -> None:
    world = stages("aggregated")
    first, second = world.committees[0].members[:2]
    good = a_count_share(world, 0, second)
    share = {
        "of another member": a_count_share(world, 0, first).shares[0],
        "of another committee": a_count_share(world, 1, world.committees[1].members[1]).shares[0],
        "changed": good.shares[0][:-1] + bytes([good.shares[0][-1] ^ 1]),
        "empty": b"",
    }[fault]
    bad = signed(world, second.role, replace(good, shares=(share,)))
    rejected = alone(world, "bad-count-share", bad, signed(world, second.role, good))
    assert "Aggregator 0 2" in rejected.culprit


def test_a_verified_share_vouches_for_no_other(stages: Stages) -> None:
    """A member's valid share that found no room does not let an invalid one of the same member in."""
    for stage, make in (("aggregated", a_count_share), ("counted", a_sum_share)):
        world = stages(stage)
        member, full = world.committees[0].members[0], world.genesis.limits.max_postings
        good = make(world, 0, member)
        fork(world).board.post_as(member.role, good)
        world.board.state.num_postings = full
        with refused(world, "block-full"):
            world.board.post_as(member.role, good)
        world.board.state.num_postings = 0
        if stage == "aggregated":
            with refused(world, "bad-count-share"):
                world.board.post_as(member.role, replace(good, shares=(b"invalid",)))
        else:
            with refused(world, "bad-sum-share"):
                world.board.post_as(member.role, replace(good, shares=(world.board.upload(b"invalid"),)))


# sum


def test_a_sum_share_is_due(stages: Stages) -> None:
    world = stages("counted")
    members, current = world.committees[0].members, world.bundle().current
    assert current is not None
    posting = signed(world, members[2].role, a_sum_share(world, 0, members[2]))
    before = stages("aggregated")
    with refused(before, "sum-not-due"):
        before.board.post(posting)
    fork(world).board.post(posting)
    after = stages("summed")
    with refused(after, "sum-not-due"):
        after.board.post(posting)
    everybody(world, World.sum_share, owners=(0,))
    to_height(world, current.sum_by)
    assert world.bundle().phase is Phase.CLOSED
    fork(world).board.post(posting)


def test_a_sum_share_is_for_the_counted_set(stages: Stages) -> None:
    world = stages("counted")
    member = world.committees[0].members[0]
    good = a_sum_share(world, 0, member)
    for wrong in ({"agreed": bytes(32)}, {"shares": ()}, {"shares": good.shares * 2}):
        with refused(world, "sum-not-agreed"):
            world.board.post(signed(world, member.role, replace(good, **wrong)))
    bad = signed(world, member.role, replace(good, agreed=bytes(32)))
    alone(world, "sum-not-agreed", bad, signed(world, member.role, good))


def test_a_member_posts_one_sum_share(stages: Stages) -> None:
    world = stages("counted")
    first, second = world.committees[0].members[:2]
    world.board.post_as(first.role, a_sum_share(world, 0, first))
    again = signed(world, first.role, a_sum_share(world, 0, first))
    alone(world, "sum-posted", again, signed(world, second.role, a_sum_share(world, 0, second)))


@pytest.mark.parametrize("fault", ["of another member", "of another committee", "changed", "garbage"])
def test_a_sum_share_is_proven(stages: Stages, fault: str) -> None:
    world = stages("counted")
    first, second = world.committees[0].members[:2]
    good = a_sum_share(world, 0, second)
    data = world.board.attachments.read(good.shares[0].sha256)
    blob = {
        "of another member": a_sum_share(world, 0, first).shares[0],
        "of another committee": a_sum_share(world, 1, world.committees[1].members[1]).shares[0],
        "changed": world.board.upload(data[:-1] + bytes([data[-1] ^ 1])),
        "garbage": world.board.upload(b"garbage"),
    }[fault]
    bad = signed(world, second.role, replace(good, shares=(blob,)))
    rejected = alone(world, "bad-sum-share", bad, signed(world, second.role, good))
    assert "Aggregator 0 2" in rejected.culprit
