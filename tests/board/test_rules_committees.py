"""Runs of key generation and committees: one test per rule, in which only it fails."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

import pytest
from cryptography import x509

from anofel.board import key_runs
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.rules import committees
from anofel.board.state import CommitteeShares
from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import RoundMessage
from anofel.committee.lattice.key import LatticeKey
from anofel.messages import HandoverTerms, Posting, Run
from anofel.phase1_setup.step1c_committee_key import generation_run, post_round
from anofel.pki import testing_ca
from anofel.pki.certificates import Purpose
from tests.board.prepared import (
    Stages,
    a_round,
    alone,
    follow,
    refused,
    rounds,
    signed,
    whole_run,
)
from tests.board.world import FinishedRun, Member, World


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
        handover=HandoverTerms(key_id=committee.key.key_id, dealers=tuple(dealers)),
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
        rounds(world, members, run, key_runs.max_rounds(run), (1,))


def test_a_scheme_may_try_again(stages: Stages) -> None:
    """Paillier's first batch of candidates often holds no modulus; a key counts from the shortest run on."""
    world, members, _ = begin(stages)
    run = world.make_run(members, 2, schemes.NAMES.index("paillier"))
    least, most = key_runs.min_rounds(run), key_runs.max_rounds(run)
    assert least + 7 < most
    whole_run(world, members, run)
    found = world.board.state.runs[run.run_id(world.board.genesis_hash)]
    rounds(world, members, run, least, (1, 2))
    assert key_runs.complete_rounds(found) == least
    rounds(world, members, run, least, (3,))
    assert key_runs.complete_rounds(found) == least + 1
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


def finished_run(stages: Stages, stage: str = "generated") -> tuple[World, FinishedRun]:
    """A board on which the rounds of a run are complete, and nobody has posted its key."""
    world = stages(stage)
    assert world.finished is not None
    return world, world.finished


def replay(world: World, finished: FinishedRun, members: Sequence[Member]) -> FinishedRun:
    """Others open a run of their own with the messages of a finished one."""
    run, genesis = world.make_run(members, finished.run.threshold), world.board.genesis_hash
    for number, posted in sorted(world.board.state.runs[finished.run.run_id(genesis)].posted.items()):
        for sender, sha256 in sorted(posted.items()):
            message = RoundMessage(
                run_id=run.run_id(genesis),
                round=number,
                sender=sender,
                body=world.board.attachments.read(sha256),
            )
            blob = world.board.upload(message.body)
            world.board.post_as(members[sender - 1].role, post_round(run, message, blob))
    return replace(finished, members=list(members), run=run)


def posted_messages(world: World, run: Run) -> list[list[RoundMessage]]:
    """The messages of a run, round by round."""
    run_id = run.run_id(world.board.genesis_hash)
    return [
        [
            RoundMessage(
                run_id=run_id, round=number, sender=sender, body=world.board.attachments.read(sha256)
            )
            for sender, sha256 in sorted(posted.items())
        ]
        for number, posted in sorted(world.board.state.runs[run_id].posted.items())
    ]


def enter(world: World, kind: str, organisation: str) -> tuple[Posting, Posting]:
    """How somebody with an organisation would enter a run that has been opened, and how another does."""
    members = world.make_members(3)
    role = world.authority.issue(Purpose.AGGREGATOR, "Other", organisation=organisation)
    other = replace(members[1], role=role, subject=role.subject)
    run = world.make_run([members[0], other, members[2]], 2)
    if kind == "handover":
        key = world.committees[0].key
        assert key is not None
        run = replace(run, handover=HandoverTerms(key_id=key.key_id, dealers=(1, 2)))
    rounds(world, members, run, 0, (1,))
    bad = signed(world, role, a_round(world, run, 0, 2))
    return bad, signed(world, members[2].role, a_round(world, run, 0, 3))


@pytest.mark.parametrize("kind", ["generation", "handover"])
@pytest.mark.parametrize("organisation", ["Aggregator 1", "  AGGREGATOR   1 "])
def test_the_members_of_a_run_are_of_different_organisations(
    stages: Stages, kind: str, organisation: str
) -> None:
    world = stages("established")
    refusal = alone(world, "same-organisation", *enter(world, kind, organisation))
    assert "CN=Other" in refusal.culprit


@pytest.mark.parametrize("kind", ["generation", "handover"])
def test_a_member_names_its_organisation(stages: Stages, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, named = stages("established"), testing_ca._test_name

    def nameless(request: testing_ca.SigningRequest) -> x509.Name:
        whole = named(request)
        return x509.Name(list(whole)[1:]) if request.name == "Other" else whole

    monkeypatch.setattr(testing_ca, "_test_name", nameless)
    refusal = alone(world, "no-organisation", *enter(world, kind, ""))
    assert "CN=Other" in refusal.culprit


def test_one_organisation_may_sit_in_several_committees(stages: Stages) -> None:
    world, members, run = begin(stages)
    rounds(world, members, run, 0, (1, 2, 3))
    rounds(world, members, world.make_run(members, 2), 0, (1, 2, 3))


def test_a_key_is_posted_after_the_last_round(stages: Stages) -> None:
    world, finished = finished_run(stages)
    run_id, last = finished.run.run_id(world.board.genesis_hash), key_runs.min_rounds(finished.run) - 1
    message = world.board.attachments.read(world.board.state.runs[run_id].posted[last].pop(3))
    posting = world.key_posting(finished, finished.members[0])
    with refused(world, "run-not-finished"):
        world.board.post(posting)
    body = a_round(world, finished.run, last, 3)
    world.board.post_as(finished.members[2].role, replace(body, body=world.board.upload(message)))
    world.board.post(posting)


def test_a_member_posts_the_key_once(stages: Stages) -> None:
    world, finished = finished_run(stages)
    posting = world.key_posting(finished, finished.members[0])
    world.board.post(posting)
    alone(world, "key-posted", posting, world.key_posting(finished, finished.members[1]))
    assert finished.key.key_id in world.board.state.committees


@pytest.mark.parametrize("fault", ["garbage", "another name", "another shape", "another generation"])
def test_the_blob_is_a_key(stages: Stages, fault: str) -> None:
    world, finished = finished_run(stages, "handed_over" if fault == "another generation" else "generated")
    members = finished.members
    if fault in ("another shape", "another generation"):
        run = replace(
            world.make_run(members, 3 if fault == "another shape" else 2), nonce=bytes(32), handover=None
        )
        whole_run(world, members, run)
        with refused(world, "key-refused-by-board") as caught:
            world.board.post(world.key_posting(replace(finished, run=run), members[0]))
        assert "another committee" in str(caught.value)
        return
    good = world.key_posting(finished, members[0])
    if fault == "garbage":
        blob = world.board.upload(b"garbage")
        bad = replace(good.body, key=blob, shares_id=blob.sha256)
    else:
        bad = replace(good.body, key_id=bytes(32))
    refusal = alone(world, "key-refused-by-board", signed(world, members[0].role, bad), good)
    assert "Aggregator 0 1" in refusal.culprit


def test_a_key_of_one_scheme_is_none_of_another(stages: Stages) -> None:
    """Also after it was read as a key of its own scheme."""
    world, finished = finished_run(stages)
    world.board.post(world.key_posting(finished, finished.members[0]))
    other = replace(finished.run, scheme=1)
    whole_run(world, finished.members, other)
    body = world.key_posting(finished, finished.members[1]).body
    with refused(world, "key-refused-by-board"):
        world.board.post_as(
            finished.members[1].role, replace(body, run_id=other.run_id(world.board.genesis_hash))
        )


@pytest.mark.parametrize("kind", ["generated", "handed_over"])
@pytest.mark.parametrize("fault", ["other messages", "another transcript"])
def test_the_messages_of_the_run_made_the_key(stages: Stages, kind: str, fault: str) -> None:
    world, finished = finished_run(stages, kind)
    member = finished.members[0]
    good = world.key_posting(finished, member)
    if fault == "another transcript":
        bad = signed(world, member.role, replace(good.body, transcript=bytes(32)))
        refusal = alone(world, "key-not-of-its-run", bad, good)
    else:
        run = replace(finished.run, nonce=bytes(32))
        hand_over_rounds(world, finished.members, run) if run.handover else whole_run(
            world, finished.members, run
        )
        refusal = alone(
            world, "key-not-of-its-run", world.key_posting(replace(finished, run=run), member), good
        )
    assert "Aggregator 0 1" in refusal.culprit


@pytest.mark.parametrize("kind", ["generated", "handed_over"])
def test_a_run_is_recomputed_once_whatever_is_claimed_of_it(
    stages: Stages, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that posts the key with one made-up transcript after another costs the board one run."""
    world, finished = finished_run(stages, kind)
    monkeypatch.setattr(world.board.chain.verifier, "keys", CommitteeKeys(world.board.attachments))
    scheme, observed = schemes.by_name("lattice"), []
    ceremony = type(scheme.key_generation() if kind == "generated" else scheme.handover())
    honest = ceremony.observe

    def observe(*values: object) -> object:
        observed.append(values)
        return honest(*values)

    monkeypatch.setattr(ceremony, "observe", observe)
    member = finished.members[0]
    good = world.key_posting(finished, member)
    for _ in range(3):
        with refused(world, "key-not-of-its-run"):
            world.board.post(
                signed(world, member.role, replace(good.body, transcript=secrets.token_bytes(32)))
            )
    world.board.post(good)
    assert len(observed) == 1


def test_a_committee_is_not_hijacked_with_its_own_messages(stages: Stages) -> None:
    """Others post what an honest committee posted, and its key before it does; they become nobody."""
    world, finished = finished_run(stages)
    false = replay(world, finished, world.make_members(3, "Thief"))
    for member in false.members:
        with refused(world, "key-not-of-its-run") as caught:
            world.board.post(world.key_posting(false, member))
        assert "Thief" in caught.value.culprit
    with pytest.raises(KeyGenerationFailed, match="made for this run") as failed:
        schemes.by_name("lattice").key_generation().observe(
            generation_run(false.run, world.board.genesis_hash), posted_messages(world, false.run)
        )
    assert failed.value.culprits == (1,)
    world.post_keys(finished)
    world.board.next_block()
    (committee,) = world.board.state.committees.values()
    assert committee.current.members == finished.run.members
    follow(world)


def test_two_runs_never_make_the_same_key(stages: Stages) -> None:
    """A key carries the name of its run, so its own name is another even with the same points."""
    world, finished = finished_run(stages)
    key = finished.key
    assert isinstance(key, LatticeKey)
    assert key.run == finished.run.run_id(world.board.genesis_hash)
    other = replace(key, run=bytes(32))
    assert other.count_key == key.count_key
    assert other.key_id != key.key_id
    refreshed = finished_run(stages, "handed_over")[1].key
    assert (refreshed.run, refreshed.key_id) == (key.run, key.key_id)


def test_a_handover_keeps_the_key(stages: Stages) -> None:
    world, finished = finished_run(stages, "handed_over")
    member, other = finished.members[0], world.committees[1].key
    assert other is not None
    good = world.key_posting(finished, member)
    bad = signed(world, member.role, replace(good.body, key_id=other.key_id))
    alone(world, "key-changed", bad, good)


def test_a_late_vote_for_a_handed_over_key_is_still_taken(stages: Stages) -> None:
    world, finished = finished_run(stages, "handed_over")
    for member in finished.members[:2]:
        world.board.post(world.key_posting(finished, member))
    world.board.next_block()
    committee = world.board.state.committees[finished.key.key_id]
    assert committee.current.shares_id == finished.key.shares_id
    assert committee.current.share_epoch == 1
    world.board.post(world.key_posting(finished, finished.members[2]))


def test_only_members_post_the_key(stages: Stages) -> None:
    world, finished = finished_run(stages)
    good = world.key_posting(finished, finished.members[0])
    alone(world, "not-a-member", signed(world, finished.members[1].role, good.body), good)
