"""Refresh and change of members: same key, new shares, old ones refused."""

from dataclasses import replace

import numpy as np
import pytest

from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed, ShareRefused
from anofel.committee.interface import (
    HandedOverKey,
    HandoverParty,
    HandoverResult,
    HandoverRun,
    ObservedKey,
    RoundMessage,
)
from anofel.committee.lattice.handover import plan_of
from anofel.committee.ristretto.verdict import Complaint
from anofel.committee.sealing import CannotOpen, SealingKey, binding
from tests.committee.world import Committee, a_vector, add_up, assume_counted, contribute, name, open_sum


def a_handover(
    committee: Committee, dealers: tuple[int, ...], num_members: int, threshold: int
) -> HandoverRun:
    return HandoverRun(
        genesis=name("genesis"),
        run_id=name("handover"),
        old_key=committee.key,
        dealers=dealers,
        shape=CommitteeShape(num_members=num_members, threshold=threshold),
        members=tuple(name(f"new member {i}") for i in range(num_members)),
    )


def parties(committee: Committee, run: HandoverRun) -> list[HandoverParty]:
    """Dealer 1 becomes new member 1; the other dealers leave; the other members are new."""
    first = HandoverParty(share=committee.shares[run.dealers[0]], member=1)
    leaving = [HandoverParty(share=committee.shares[dealer]) for dealer in run.dealers[1:]]
    joining = [HandoverParty(member=member) for member in list(run.shape.members)[1:]]
    return [first, *leaving, *joining]


def messages_of(results: list[HandoverResult]) -> list[RoundMessage]:
    return [result.message for result in results if result.message is not None]


def play(committee: Committee, run: HandoverRun, rounds: int) -> list[HandoverResult]:
    """Everybody through the first rounds, each state saved and resumed."""
    handover = committee.scheme.handover()
    results = [handover.begin(run, party) for party in parties(committee, run)]
    for _ in range(rounds):
        messages = messages_of(results)
        states = [handover.resume(result.state.to_bytes()) for result in results]
        following = [handover.advance(state, messages) for state in states]
        results = [result for result in following if isinstance(result, HandoverResult)]
        assert len(results) == len(following)
    return results


def finish(committee: Committee, results: list[HandoverResult]) -> list[HandedOverKey]:
    handover = committee.scheme.handover()
    messages = messages_of(results)
    ends = [handover.advance(result.state, messages) for result in results]
    handed_over = [end for end in ends if isinstance(end, HandedOverKey)]
    assert len(handed_over) == len(ends)
    return handed_over


@pytest.fixture(scope="module")
def grown(lattice: Committee) -> Committee:
    """The committee of three handed on to five, of whom three decrypt."""
    ends = finish(lattice, play(lattice, a_handover(lattice, (1, 3), 5, 3), 2))
    assert len({end.key.to_bytes() for end in ends}) == 1
    assert len({end.transcript for end in ends}) == 1
    shares = {end.share.member: end.share for end in ends if end.share is not None}
    assert sorted(shares) == [1, 2, 3, 4, 5]
    return Committee(lattice.scheme, ends[0].key, shares)


def test_the_key_stays_and_the_shares_change(lattice: Committee, grown: Committee) -> None:
    assert grown.key.key_id == lattice.key.key_id
    assert grown.key.shares_id != lattice.key.shares_id
    assert grown.key.share_epoch == 1
    assert grown.key.shape == CommitteeShape(num_members=5, threshold=3)
    assert grown.key.count_key.public == lattice.key.count_key.public
    assert lattice.scheme.read_key(grown.key.to_bytes()) == grown.key


def test_the_new_committee_opens_what_was_encrypted_before(lattice: Committee, grown: Committee) -> None:
    total = add_up(lattice, {n: contribute(lattice, n) for n in (1, 2)})
    permit = assume_counted(grown, total).permit_sum()
    assert np.array_equal(open_sum(grown, total, permit, (2, 4, 5)), a_vector(1) + a_vector(2))


def test_old_shares_stop_working(lattice: Committee, grown: Committee) -> None:
    scheme = lattice.scheme
    total = add_up(lattice, {n: contribute(lattice, n) for n in (1, 2)})
    permit = assume_counted(lattice, total).permit_sum()
    stale = scheme.partial_decrypt(lattice.key, lattice.shares[1], total, permit)
    with pytest.raises(ShareRefused, match="other than the current shares") as caught:
        scheme.verify_share(grown.key, total, permit, 1, stale)
    assert caught.value.culprits == (1,)
    with pytest.raises(ShareRefused, match="older shares"):
        scheme.partial_decrypt(grown.key, lattice.shares[1], total, permit)
    with pytest.raises(ShareRefused, match="older shares"):
        scheme.read_share(grown.key, lattice.shares[1].to_bytes())
    # Even with the current id in front, the proof of a stale share does not hold.
    disguised = grown.key.shares_id + stale[32:]
    with pytest.raises(ShareRefused, match="equality"):
        scheme.verify_share(grown.key, total, permit, 1, disguised)


def test_a_refresh_keeps_members_and_key(lattice: Committee) -> None:
    run = a_handover(lattice, (2, 3), 3, 2)
    ends = finish(lattice, play(lattice, run, 2))
    assert ends[0].key.key_id == lattice.key.key_id
    assert ends[0].key.shares_id != lattice.key.shares_id


def test_an_observer_reaches_the_same_end(lattice: Committee) -> None:
    handover = lattice.scheme.handover()
    run = a_handover(lattice, (1, 2), 3, 2)
    rounds, results = [], play(lattice, run, 0)
    for _ in range(2):
        rounds.append(messages_of(results))
        following = [handover.advance(result.state, rounds[-1]) for result in results]
        results = [result for result in following if isinstance(result, HandoverResult)]
    rounds.append(messages_of(results))
    end = finish(lattice, results)[0]
    assert handover.observe(run, rounds) == ObservedKey(end.key, end.transcript)
    for unfinished in (rounds[:0], rounds[:1], rounds[:2]):
        with pytest.raises(KeyGenerationFailed, match="not finished"):
            handover.observe(run, unfinished)
    with pytest.raises(KeyGenerationFailed, match="after the end"):
        handover.observe(run, [*rounds, []])
    with pytest.raises(InvalidCommittee):
        handover.observe(replace(run, dealers=(2, 1)), rounds)
    broken = replace(rounds[1][1], body=rounds[1][1].body[:-1] + b"\0")
    for changed, dealers, culprits in (
        ([[replace(rounds[0][2], body=b"")]], (), (1, 2, 3)),
        ([[*rounds[0][:2], replace(rounds[0][2], body=b"")]], (), (3,)),
        ([rounds[0], rounds[1][:1]], (2,), ()),
        ([rounds[0], [rounds[1][1], replace(rounds[1][0], body=b"")]], (1,), ()),
        ([rounds[0], [rounds[1][0], broken], rounds[2]], (), (1, 2, 3)),
        ([*rounds[:2], [replace(rounds[2][0], body=b""), *rounds[2][1:]]], (), (1,)),
    ):
        with pytest.raises(KeyGenerationFailed) as caught:
            handover.observe(run, changed)
        assert set(caught.value.dealers) == set(dealers)
        assert set(caught.value.culprits) <= set(culprits)
        assert caught.value.culprits or caught.value.dealers


def test_a_dealer_who_deals_another_secret_is_named(lattice: Committee) -> None:
    run = a_handover(lattice, (1, 2), 3, 2)
    results = play(lattice, run, 1)
    messages = messages_of(results)
    # Dealer 1 sends commitments of dealer 2, which do not commit to its own share.
    body = messages[1].body[: 2049 * 2 * 32] + messages[0].body[2049 * 2 * 32 :]
    forged = [replace(messages[0], body=body), messages[1]]
    for result in results:
        with pytest.raises(KeyGenerationFailed, match="own share") as caught:
            lattice.scheme.handover().advance(result.state, forged)
        assert caught.value.dealers == (1,)
        assert caught.value.culprits == ()


def test_a_bad_share_or_a_false_complaint_names_its_author(lattice: Committee) -> None:
    handover = lattice.scheme.handover()
    run = a_handover(lattice, (1, 2), 3, 2)
    results = play(lattice, run, 1)
    messages = messages_of(results)
    broken = bytearray(messages[1].body)
    broken[-1] ^= 1
    tampered = [messages[0], replace(messages[1], body=bytes(broken))]
    confirmed = [handover.advance(result.state, tampered) for result in results]
    last = messages_of([result for result in confirmed if isinstance(result, HandoverResult)])
    for result in confirmed:
        assert isinstance(result, HandoverResult)
        with pytest.raises(KeyGenerationFailed, match="bad share") as caught:
            handover.advance(result.state, last)
        assert (caught.value.dealers, caught.value.culprits) == ((2,), ())
    complaint = Complaint(1, results[0].state.sealing[:32]).to_bytes()  # type: ignore[attr-defined]
    honest = [handover.advance(result.state, messages) for result in results]
    last = messages_of([result for result in honest if isinstance(result, HandoverResult)])
    last = [replace(m, body=complaint) if m.sender == 1 else m for m in last]
    for result in honest:
        assert isinstance(result, HandoverResult)
        with pytest.raises(KeyGenerationFailed, match="good") as caught:
            handover.advance(result.state, last)
        assert (caught.value.dealers, caught.value.culprits) == ((), (1,))


def test_a_complaint_opens_the_part_of_the_accused_alone(lattice: Committee) -> None:
    """The secret outlives a failed handover, so no honest dealer's point may become public."""
    handover = lattice.scheme.handover()
    run = a_handover(lattice, (1, 2), 3, 2)
    results = play(lattice, run, 1)
    messages = messages_of(results)
    broken = bytearray(messages[1].body)
    broken[-1] ^= 1
    tampered = [messages[0], replace(messages[1], body=bytes(broken))]
    last = handover.advance(results[-1].state, tampered)
    assert isinstance(last, HandoverResult)
    assert last.message is not None
    assert last.message.body[0] == 1
    opened = SealingKey.from_bytes(last.message.body[3:])
    posted = results[-1].state.history[0][3]  # type: ignore[attr-defined]
    assert opened.public() == posted[32:]
    part = 2049 * 32 + 48
    for dealer, message in enumerate(tampered, start=1):
        with pytest.raises(CannotOpen):
            opened.open(message.body[-part:], binding(plan_of(run).digest, dealer, 3))
    opened.open(messages[1].body[-part:], binding(plan_of(run).digest, 2, 3))


def test_missing_and_malformed_messages_name_their_sender(lattice: Committee) -> None:
    handover = lattice.scheme.handover()
    run = a_handover(lattice, (1, 2), 3, 2)
    first = play(lattice, run, 0)
    messages = messages_of(first)
    with pytest.raises(KeyGenerationFailed) as caught:
        handover.advance(first[0].state, messages[1:])
    assert caught.value.culprits == (1,)
    with pytest.raises(KeyGenerationFailed, match="sealing key") as caught:
        handover.advance(first[0].state, [replace(messages[0], body=bytes(64)), *messages[1:]])
    assert caught.value.culprits == (1,)
    second = play(lattice, run, 1)
    dealt = messages_of(second)
    for changed in (dealt[:1], [dealt[0], replace(dealt[1], body=b"short")]):
        with pytest.raises(KeyGenerationFailed) as caught:
            handover.advance(second[0].state, changed)
        assert caught.value.dealers == (2,)


def test_who_may_take_part(lattice: Committee) -> None:
    handover = lattice.scheme.handover()
    good = a_handover(lattice, (1, 2), 3, 2)
    bad_runs = [replace(good, dealers=dealers) for dealers in ((1,), (2, 1), (1, 2, 3), (1, 1), (1, 4))]
    bad_runs.append(replace(good, members=good.members[:2]))
    for run in bad_runs:
        with pytest.raises(InvalidCommittee):
            handover.begin(run, HandoverParty(member=1))
    for party in (
        HandoverParty(),
        HandoverParty(member=4),
        HandoverParty(share=lattice.shares[3]),
    ):
        with pytest.raises(InvalidCommittee):
            handover.begin(good, party)
