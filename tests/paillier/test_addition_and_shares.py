"""Steps 7 and 8: adding, partial decryption with proofs, combination."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anofel.committee.context import AgreedSet
from anofel.committee.errors import (
    DoesNotFit,
    NotAgreed,
    PayloadRefused,
    ShareRefused,
    TooFewClients,
    TooFewShares,
    Undecodable,
)
from anofel.committee.paillier import total as sums
from anofel.committee.paillier.total import DecryptionShare, partial_decrypt, verify_share
from anofel.committee.permit import counted
from anofel.committee.verified import VerifiedShare
from tests.paillier.support import ITERATION, SCHEME, Committee, deal_committee, post


@pytest.fixture(scope="module")
def total(committee: Committee):
    return committee.add([committee.vector(1), committee.vector(2)])


@pytest.fixture(scope="module")
def made(committee: Committee, total) -> dict[int, bytes]:
    permit = committee.permit(total)
    return {m: SCHEME.partial_decrypt(committee.key, s, total, permit) for m, s in committee.shares.items()}


@given(st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_decrypted_sum_is_the_integer_sum(committee: Committee, data: st.DataObject) -> None:
    bound = committee.limits.bound
    value = st.one_of(st.sampled_from([-bound, 0, bound]), st.integers(-bound, bound))
    vectors = data.draw(st.lists(st.lists(value, min_size=40, max_size=40), min_size=1, max_size=4))
    arrays = [np.array(v, dtype=np.int64) for v in vectors]
    assert committee.decrypt(committee.add(arrays), [1, 3]).tolist() == sum(arrays).tolist()


def test_the_sum_is_the_same_in_any_order_and_survives_its_bytes(committee: Committee) -> None:
    checked = []
    for number in range(3):
        context, made = committee.contribute(number, committee.vector(number))
        checked.append(
            SCHEME.verify_payload(committee.key, context, committee.limits, made.envelope, made.payload)
        )
    sums = []
    for order in (checked, checked[::-1]):
        accumulator = SCHEME.accumulator(committee.key, ITERATION, committee.limits)
        for one in order:
            accumulator.add(one)
        sums.append(accumulator.finish())
    assert sums[0].to_bytes() == sums[1].to_bytes()
    again = SCHEME.read_sum(committee.key, ITERATION, committee.limits, sums[0].to_bytes())
    assert again.digest == sums[0].digest
    assert again.num_posts == 3


def test_a_post_is_added_once_and_no_more_than_max_posts(committee: Committee) -> None:
    limits = replace(committee.limits, max_posts=2)
    accumulator = SCHEME.accumulator(committee.key, ITERATION, limits)
    checked = []
    for number in range(3):
        made = SCHEME.prepare(committee.key, post(number), limits).encrypt(committee.vector())
        checked.append(
            SCHEME.verify_payload(committee.key, post(number), limits, made.envelope, made.payload)
        )
    accumulator.add(checked[0])
    with pytest.raises(PayloadRefused, match="once"):
        accumulator.add(checked[0])
    accumulator.add(checked[1])
    with pytest.raises(DoesNotFit):
        accumulator.add(checked[2])
    accumulator.finish()
    with pytest.raises(NotAgreed, match="finished"):
        accumulator.add(checked[2])


def test_a_payload_of_another_iteration_is_not_added(committee: Committee) -> None:
    context, made = committee.contribute(1, committee.vector())
    checked = SCHEME.verify_payload(committee.key, context, committee.limits, made.envelope, made.payload)
    later = replace(ITERATION, iteration=8)
    with pytest.raises(PayloadRefused, match="iteration"):
        SCHEME.accumulator(committee.key, later, committee.limits).add(checked)


@pytest.mark.parametrize("case", ["short", "long", "posts", "zero", "not a unit"])
def test_a_malformed_sum_is_refused(committee: Committee, total, case: str) -> None:
    data = bytearray(total.to_bytes())
    if case == "short":
        data = data[:-1]
    elif case == "long":
        data += b"\0"
    elif case == "posts":
        data[32:36] = (65).to_bytes(4, "little")
    elif case == "zero":
        data[36 : 36 + 128] = bytes(128)
    else:
        data[36 : 36 + 128] = committee.key.modulus.to_bytes(128, "little")
    with pytest.raises(PayloadRefused):
        SCHEME.read_sum(committee.key, ITERATION, committee.limits, bytes(data))


# Shares


@pytest.fixture(scope="module")
def verified(committee: Committee, total, made) -> dict[int, VerifiedShare]:
    permit = committee.permit(total)
    return {m: SCHEME.verify_share(committee.key, total, permit, m, share) for m, share in made.items()}


def test_every_share_verifies(committee: Committee, total, verified) -> None:
    for member, share in verified.items():
        assert (share.member, share.agreed) == (member, committee.permit(total).agreed.digest)


def test_a_share_is_combined_only_after_it_was_verified(committee: Committee, total, made, verified) -> None:
    key, permit = committee.key, committee.permit(total)
    parts = parsed(committee, total, made[2])
    with pytest.raises(ShareRefused, match="verify_share only"):
        VerifiedShare(2, key.shares_id, permit.agreed, parts, proof_of_origin=object())
    for raw in (made[2], parts):
        with pytest.raises(ShareRefused, match="verify_share only"):
            SCHEME.combine(key, total, permit, [verified[1], raw])


def test_a_verified_share_opens_only_what_it_was_verified_for(committee: Committee, total, verified) -> None:
    key, permit = committee.key, committee.permit(total)
    other = counted(replace(permit.agreed, close_hash=b"x" * 32), 2).permit_sum()
    cases = {
        "another agreed set": (key, other, [verified[1], verified[2]], (1,)),
        "other than the current": (replace(key, share_epoch=1), permit, [verified[1], verified[2]], (1,)),
        "given twice": (key, permit, [verified[2], verified[1], verified[2]], (2,)),
    }
    for reason, (used, leave, some, culprits) in cases.items():
        with pytest.raises(ShareRefused, match=reason) as caught:
            SCHEME.combine(used, total, leave, some)
        assert caught.value.culprits == culprits


def refused(committee: Committee, total, member: int, share: bytes, words: str) -> None:
    with pytest.raises(ShareRefused, match=words) as caught:
        SCHEME.verify_share(committee.key, total, committee.permit(total), member, share)
    assert caught.value.culprits == (member,)


def parsed(committee: Committee, total, share: bytes) -> DecryptionShare:
    return DecryptionShare.from_bytes(committee.key, len(total.residues), share)


def test_a_wrong_value_is_refused(committee: Committee, total, made) -> None:
    for index in range(2):
        share = parsed(committee, total, made[1])
        share.values[index] = share.values[index] * (1 + committee.key.modulus) % committee.key.square
        refused(committee, total, 1, share.to_bytes(committee.key), "does not hold")


def test_a_value_that_is_not_a_unit_is_refused(committee: Committee, total, made) -> None:
    share = parsed(committee, total, made[1])
    share.values[0] = committee.key.modulus
    refused(committee, total, 1, share.to_bytes(committee.key), "unit")


@pytest.mark.parametrize("part", ["challenge", "z"])
def test_each_part_of_the_share_proof_counts(committee: Committee, total, made, part: str) -> None:
    share = parsed(committee, total, made[1])
    changed = replace(share, **{part: getattr(share, part) ^ 1})
    refused(committee, total, 1, changed.to_bytes(committee.key), "does not hold")


def test_both_equations_of_the_share_proof_are_checked(committee: Committee, total) -> None:
    """Values of another exponent with a proof that satisfies exactly one equation."""
    key, share = committee.key, committee.shares[1]
    binding = committee.permit(total).agreed.digest
    cheat = partial_decrypt(key, replace(share, value=share.value + 1), total.residues, binding)
    statement = sums._statement(key, 1, total.residues, cheat.values, binding)
    r = 1 << 900
    u, w = (pow(int(base), r, int(key.square)) for base in (statement.g, statement.h))
    e = statement.challenge(u, w)
    only_g = DecryptionShare(cheat.values, e, r + e * share.value)
    only_h = DecryptionShare(cheat.values, e, r + e * (share.value + 1))
    for proof, holds in ((only_g, (True, False)), (only_h, (False, True))):
        square = int(key.square)
        first = pow(int(statement.g), proof.z, square) == u * pow(int(statement.a), e, square) % square
        second = pow(int(statement.h), proof.z, square) == w * pow(int(statement.b), e, square) % square
        assert (first, second) == holds
        with pytest.raises(ShareRefused, match="does not hold"):
            verify_share(key, 1, total.residues, binding, proof.to_bytes(key))


def test_a_flipped_sign_is_harmless(committee: Committee, total, made) -> None:
    """The statement is about squares: -b may verify, and combination squares it away."""
    key, binding = committee.key, committee.permit(total).agreed.digest
    honest = [parsed(committee, total, made[m]).values for m in (1, 2)]
    flipped = [int(key.square) - int(v) for v in honest[0]]
    expected = list(sums.open_ciphertexts(key, {1: honest[0], 2: honest[1]}))
    assert list(sums.open_ciphertexts(key, {1: flipped, 2: honest[1]})) == expected
    assert binding


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_malformed_shares_are_refused(committee: Committee, total, made, cut: int) -> None:
    refused(committee, total, 1, made[1][:-1] if cut == 1 else made[1][:cut], "malformed")
    refused(committee, total, 1, made[1] + b"\0", "malformed")


def test_the_share_of_another_member_is_refused(committee: Committee, total, made) -> None:
    refused(committee, total, 2, made[1], "does not hold")


def test_a_member_outside_the_committee_is_refused(committee: Committee, total, made) -> None:
    with pytest.raises(ShareRefused, match="no member 4") as caught:
        SCHEME.verify_share(committee.key, total, committee.permit(total), 4, made[1])
    assert caught.value.culprits == (4,)


def test_a_share_of_another_sum_is_refused(committee: Committee, made) -> None:
    other = committee.add([committee.vector(5), committee.vector(6)])
    refused(committee, other, 1, made[1], "does not hold")


def test_what_only_the_proof_sees_of_the_agreed_set_is_bound(committee: Committee, total, made) -> None:
    agreed = replace(committee.permit(total).agreed, close_hash=b"x" * 32)
    permit = counted(agreed, 5).permit_sum()
    with pytest.raises(ShareRefused, match="does not hold"):
        SCHEME.verify_share(committee.key, total, permit, 1, made[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key_id", b"x" * 32),
        ("iteration", replace(ITERATION, iteration=8)),
        ("set_digest", b"x" * 32),
        ("sum_digest", b"x" * 32),
        ("num_posts", 3),
        ("min_clients", 3),
    ],
)
def test_a_permit_for_something_else_opens_nothing(
    committee: Committee, total, made, verified, name: str, value
) -> None:
    agreed = replace(committee.permit(total).agreed, **{name: value})
    permit = counted(agreed, 3).permit_sum()
    with pytest.raises(NotAgreed):
        SCHEME.partial_decrypt(committee.key, committee.shares[1], total, permit)
    with pytest.raises(NotAgreed):
        SCHEME.verify_share(committee.key, total, permit, 1, made[1])
    with pytest.raises(NotAgreed):
        SCHEME.combine(committee.key, total, permit, list(verified.values()))


def test_too_few_clients_give_no_permit(committee: Committee, total) -> None:
    agreed: AgreedSet = committee.permit(total).agreed
    with pytest.raises(TooFewClients):
        counted(agreed, 1).permit_sum()


def test_the_shares_epoch_is_bound(committee: Committee, total) -> None:
    key, binding = committee.key, b"b" * 32
    share = partial_decrypt(key, committee.shares[1], total.residues, binding).to_bytes(key)
    refreshed = replace(key, share_epoch=1)
    with pytest.raises(ShareRefused, match="does not hold"):
        verify_share(refreshed, 1, total.residues, binding, share)
    with pytest.raises(ShareRefused, match="stale") as caught:
        partial_decrypt(refreshed, committee.shares[1], total.residues, binding)
    assert caught.value.culprits == (1,)


def test_too_few_shares_open_nothing(committee: Committee, total, verified) -> None:
    with pytest.raises(TooFewShares):
        SCHEME.combine(committee.key, total, committee.permit(total), [verified[1]])


def test_garbage_in_the_sum_is_undecodable_not_garbage_out(committee: Committee) -> None:
    total = committee.add([committee.vector(1), committee.vector(2)])
    key = committee.key
    total.residues[0] = (
        total.residues[0] * pow(1 + key.modulus, key.modulus // 3, int(key.square)) % key.square
    )
    fresh = replace(total)
    with pytest.raises(Undecodable):
        committee.decrypt(fresh, [1, 2])


def test_the_share_can_be_extracted_from_two_answers(committee: Committee, total) -> None:
    """Special soundness over the integers: two accepting answers to one first message give s."""
    key, share, square = committee.key, committee.shares[1], int(committee.key.square)
    statement = sums._statement(key, 1, total.residues, total.residues, b"")
    g, a, r = int(statement.g), int(statement.a), 1 << 1500
    answers = {e: r + e * share.value for e in (17, 40)}
    for e, z in answers.items():
        assert pow(g, z, square) == pow(g, r, square) * pow(a, e, square) % square
    quotient, remainder = divmod(answers[40] - answers[17], 40 - 17)
    assert (quotient, remainder) == (share.value, 0)


def test_secrets_are_not_printed(committee: Committee) -> None:
    share = committee.shares[1]
    assert str(share.value) not in repr(share)
    assert share.count_share.scalar.hex() not in repr(share)


def test_a_larger_committee_needs_more_shares() -> None:
    group = deal_committee(5, 4)
    total = group.add([group.vector(1), group.vector(2)])
    with pytest.raises(TooFewShares):
        group.decrypt(total, [1, 2, 3])
    assert np.array_equal(group.decrypt(total, [2, 3, 4, 5]), group.vector(1) + group.vector(2))
