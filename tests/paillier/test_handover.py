"""Refresh and change of members: the same modulus, new shares, and who is named when it fails."""

import secrets
from dataclasses import replace

import numpy as np
import pytest

from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed, ShareRefused
from anofel.committee.interface import HandedOverKey, HandoverParty, HandoverRun, ObservedKey, RoundMessage
from anofel.committee.paillier.arithmetic.dealing import PaillierPlan
from anofel.committee.ristretto.verdict import Complaint
from anofel.committee.sealing import DealerKeys, SealingKey
from anofel.framing import Reader, Writer
from tests.paillier.support import ITERATION, SCHEME, Committee, deal_committee, shape_of

HANDOVER = SCHEME.handover()


def plan_run(committee: Committee, dealers: tuple[int, ...], n: int, t: int) -> HandoverRun:
    return HandoverRun(
        genesis=b"g" * 32,
        run_id=secrets.token_bytes(32),
        old_key=committee.key,
        dealers=dealers,
        shape=shape_of(n, t),
        members=tuple(bytes([40 + i]) * 32 for i in range(n)),
    )


def parties(committee: Committee, run: HandoverRun) -> list[HandoverParty]:
    """The first dealer stays as new member 1; the others leave; the rest are new."""
    first, *others = run.dealers
    both = HandoverParty(share=committee.shares[first], member=1)
    leaving = [HandoverParty(share=committee.shares[d]) for d in others]
    return [both, *leaving, *(HandoverParty(member=m) for m in run.shape.members if m != 1)]


def check_observer(run: HandoverRun, rounds: list[list[RoundMessage]], failure: KeyGenerationFailed) -> None:
    with pytest.raises(KeyGenerationFailed) as seen:
        HANDOVER.observe(run, rounds)
    assert (seen.value.culprits, seen.value.dealers) == (failure.culprits, failure.dealers)


def hand_over(committee: Committee, run: HandoverRun, tamper=None, *, save: bool = False):
    """Everybody through all rounds; an observer must reach the same end, or name the same culprits."""
    results = [HANDOVER.begin(run, party) for party in parties(committee, run)]
    rounds: list[list[RoundMessage]] = []
    for number in range(3):
        messages = [result.message for result in results if result.message]
        states = [result.state for result in results]
        if tamper:
            messages = tamper(number, messages, states)
        if save:
            states = [HANDOVER.resume(state.to_bytes()) for state in states]
        rounds.append(messages)
        try:
            results = [HANDOVER.advance(state, messages) for state in states]
        except KeyGenerationFailed as failure:
            check_observer(run, rounds, failure)
            raise
    assert HANDOVER.observe(run, rounds) == ObservedKey(results[0].key, results[0].transcript)
    assert all(isinstance(result, HandedOverKey) for result in results)
    assert len({result.key.to_bytes() for result in results}) == 1
    assert len({result.transcript for result in results}) == 1
    assert sum(result.share is None for result in results) == len(run.dealers) - 1
    shares = {result.share.member: result.share for result in results if result.share}
    return Committee(results[0].key, shares)


@pytest.mark.parametrize(
    ("dealers", "n", "t"), [((1, 2), 3, 2), ((1, 3), 3, 2), ((2, 3), 5, 3), ((1, 3), 4, 3), ((1, 2), 2, 2)]
)
def test_the_new_committee_decrypts_and_the_key_stays(
    committee: Committee, dealers: tuple[int, ...], n: int, t: int
) -> None:
    group = hand_over(committee, plan_run(committee, dealers, n, t), save=True)
    assert group.key.key_id == committee.key.key_id
    assert group.key.shares_id != committee.key.shares_id
    assert group.key.share_epoch == 1
    assert SCHEME.read_key(group.key.to_bytes()) == group.key
    for share in group.shares.values():
        assert SCHEME.read_share(group.key, share.to_bytes()) == share
    total = group.add([group.vector(1), group.vector(2)])
    assert np.array_equal(group.decrypt(total, range(n - t + 1, n + 1)), group.vector(1) + group.vector(2))


def test_a_post_made_before_a_refresh_counts_after_it(committee: Committee) -> None:
    total = committee.add([committee.vector(1), committee.vector(2)])
    group = hand_over(committee, plan_run(committee, (1, 2), 3, 2))
    again = SCHEME.read_sum(group.key, ITERATION, group.limits, total.to_bytes())
    assert np.array_equal(group.decrypt(again, [2, 3]), committee.vector(1) + committee.vector(2))


def test_old_shares_stop_working(committee: Committee) -> None:
    group = hand_over(committee, plan_run(committee, (1, 2), 3, 2))
    total = group.add([group.vector(1), group.vector(2)])
    permit = group.permit(total)
    with pytest.raises(ShareRefused, match="older shares"):
        SCHEME.partial_decrypt(group.key, committee.shares[1], total, permit)
    with pytest.raises(ShareRefused, match="other shares"):
        SCHEME.read_share(group.key, committee.shares[1].to_bytes())
    forged = replace(committee.shares[1], shares_id=group.key.shares_id, share_bits=group.key.share_bits)
    share = SCHEME.partial_decrypt(group.key, forged, total, permit)
    with pytest.raises(ShareRefused) as caught:
        SCHEME.verify_share(group.key, total, permit, 1, share)
    assert caught.value.culprits == (1,)


def test_shares_grow_and_a_new_key_falls_due(committee: Committee) -> None:
    group, lengths = committee, [committee.key.share_bits]
    for _ in range(3):
        group = hand_over(group, plan_run(group, (1, 2), 3, 2))
        lengths.append(group.key.share_bits)
    assert lengths == sorted(set(lengths))
    last = plan_run(group, (1, 2), 3, 2)
    with pytest.raises(InvalidCommittee, match="new key is due"):
        HANDOVER.begin(replace(last, old_key=replace(group.key, share_bits=1950)), HandoverParty(member=1))
    total = group.add([group.vector(1), group.vector(2)])
    assert np.array_equal(group.decrypt(total, [1, 3]), group.vector(1) + group.vector(2))


# Refusals before anything is sent


def test_a_run_that_does_not_fit_is_refused(committee: Committee) -> None:
    good = plan_run(committee, (1, 2), 3, 2)
    other = deal_committee(3, 2)
    cases = [
        (replace(good, dealers=(1,)), HandoverParty(member=1)),
        (replace(good, dealers=(2, 1)), HandoverParty(member=1)),
        (replace(good, dealers=(1, 9)), HandoverParty(member=1)),
        (replace(good, members=good.members[:2]), HandoverParty(member=1)),
        (replace(good, members=(good.members[0],) * 3), HandoverParty(member=1)),
        (good, HandoverParty()),
        (good, HandoverParty(member=4)),
        (good, HandoverParty(share=committee.shares[3])),
        (good, HandoverParty(share=other.shares[1])),
    ]
    for run, party in cases:
        with pytest.raises(InvalidCommittee):
            HANDOVER.begin(run, party)


# Cheating dealers and receivers


def failing(committee: Committee, tamper) -> KeyGenerationFailed:
    with pytest.raises(KeyGenerationFailed) as caught:
        hand_over(committee, plan_run(committee, (1, 2), 3, 2), tamper)
    return caught.value


def change(message: RoundMessage, edit) -> RoundMessage:
    reader = Reader(message.body)
    count, own = reader.framed(), reader.framed()
    return replace(message, body=Writer().framed(count).framed(edit(own)).done())


def in_round(number: int, index: int, edit):
    def tamper(current: int, messages: list[RoundMessage], _states) -> list[RoundMessage]:
        if current == number:
            messages[index] = change(messages[index], edit)
        return messages

    return tamper


def flip(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda own: own[:-1], "malformed"),
        (lambda own: b"\xff" * 128 + own[128:], "malformed"),
        (lambda own: own[:128] + bytes(128) + own[256:], "unit"),
        (lambda own: flip(own, 0), "other than its share"),
    ],
)
def test_a_bad_commitment_names_the_dealer(committee: Committee, edit, words: str) -> None:
    failure = failing(committee, in_round(1, 1, edit))
    assert failure.dealers == (2,)
    assert failure.culprits == ()
    assert words in str(failure)


def test_another_coefficient_is_shown_by_a_complaint(committee: Committee) -> None:
    n = committee.key.modulus

    def edit(own: bytes) -> bytes:
        value = int.from_bytes(own[128:256], "little") * (1 + n) % (n * n)
        return own[:128] + value.to_bytes(128, "little") + own[256:]

    failure = failing(committee, in_round(1, 0, edit))
    assert 1 in failure.dealers


def test_a_bad_sealed_part_names_the_dealer(committee: Committee) -> None:
    failure = failing(committee, in_round(1, 1, lambda own: flip(own, -1)))
    assert failure.dealers == (2,)
    assert failure.culprits == ()


def test_a_false_complaint_names_the_receiver(committee: Committee) -> None:
    def tamper(number: int, messages: list[RoundMessage], _states) -> list[RoundMessage]:
        if number == 0:
            keys = DealerKeys.generate((1, 2))
            kept.append(keys)
            messages[1] = replace(messages[1], body=keys.public())
        if number == 2:
            complaint = Complaint(1, kept[0].for_dealer(1).to_bytes()).to_bytes()
            messages[1] = change(messages[1], lambda _: complaint)
        return messages

    kept: list[DealerKeys] = []
    failure = failing(committee, tamper)
    assert failure.culprits == (2,)


def test_a_complaint_opens_the_part_of_the_accused_alone(committee: Committee) -> None:
    """The dealt secret outlives a failed run, so an honest dealer's part stays sealed."""
    opened = []

    def tamper(number: int, messages: list[RoundMessage], states) -> list[RoundMessage]:
        if number == 1:
            messages[1] = change(messages[1], lambda own: flip(own, -1))
        if number == 2:
            reader = Reader(messages[2].body)
            reader.framed()
            opened.append((reader.framed(), states[2].history[0][3]))
        return messages

    failing(committee, tamper)
    verdict, posted = opened[0]
    assert verdict[:3] == b"\x01\x02\x00"
    public = SealingKey.from_bytes(verdict[3:]).public()
    assert public == posted[32:]
    assert public != posted[:32]


@pytest.mark.parametrize("body", [b"", b"\x00" + bytes(64), b"\x07"])
def test_a_wrong_confirmation_names_the_receiver(committee: Committee, body: bytes) -> None:
    failure = failing(committee, in_round(2, 2, lambda _: body))
    assert failure.culprits == (3,)
    assert failure.dealers == ()


def test_an_unusable_sealing_key_names_the_receiver(committee: Committee) -> None:
    def tamper(number: int, messages: list[RoundMessage], _states) -> list[RoundMessage]:
        if number == 0:
            messages[2] = replace(messages[2], body=bytes(64))
        return messages

    assert failing(committee, tamper).culprits == (3,)


@pytest.mark.parametrize(("number", "dealers", "culprits"), [(1, (2,), ()), (2, (), (2,))])
def test_a_malformed_message_names_its_sender(committee: Committee, number: int, dealers, culprits) -> None:
    def tamper(current: int, messages: list[RoundMessage], _states) -> list[RoundMessage]:
        if current == number:
            messages[1] = replace(messages[1], body=b"\x01")
        return messages

    failure = failing(committee, tamper)
    assert (failure.dealers, failure.culprits) == (dealers, culprits)


def test_a_damaged_state_is_refused(committee: Committee) -> None:
    run = plan_run(committee, (1, 2), 3, 2)
    data = HANDOVER.begin(run, HandoverParty(member=1)).state.to_bytes()
    with pytest.raises(KeyGenerationFailed, match="damaged"):
        HANDOVER.resume(data[:-1])


def test_the_run_is_bound(committee: Committee) -> None:
    run = plan_run(committee, (1, 2), 3, 2)
    digests = {PaillierPlan(run, committee.key).digest}
    for changed in (
        replace(run, genesis=b"x" * 32),
        replace(run, run_id=b"x" * 32),
        replace(run, dealers=(1, 3)),
        replace(run, members=run.members[::-1]),
        replace(run, shape=shape_of(3, 3)),
        replace(run, old_key=replace(committee.key, share_epoch=4)),
    ):
        digests.add(PaillierPlan(changed, changed.old_key).digest)
    assert len(digests) == 7
