"""The lattice scheme through the interface: exact sums, every refusal, every attack."""

import hashlib
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anofel.committee.context import IterationContext, PostContext, TaskLimits
from anofel.committee.errors import (
    DoesNotFit,
    EnvelopeRefused,
    InvalidContext,
    KeyRefused,
    NotAgreed,
    PayloadRefused,
    PreparationUsed,
    ShareRefused,
    TooFewClients,
    TooFewShares,
    Undecodable,
    VectorRefused,
)
from anofel.committee.interface import Contribution, EncryptedSum
from anofel.committee.lattice.key import LatticeKey
from anofel.committee.lattice.total import LatticeSum
from anofel.committee.permit import DecryptedCount, SumPermit, counted
from anofel.committee.verified import VerifiedShare, of_sum
from tests.committee.world import (
    ITERATION,
    LIMITS,
    Committee,
    a_post,
    a_vector,
    add_up,
    agree,
    assume_counted,
    contribute,
    name,
    open_sum,
)

HEADER_LENGTH = len(b"anofel/1/lattice") + 6 + 32


@pytest.fixture(scope="module")
def contributions(lattice: Committee) -> dict[int, Contribution]:
    return {number: contribute(lattice, number) for number in (1, 2, 3)}


@pytest.fixture(scope="module")
def total(lattice: Committee, contributions: dict[int, Contribution]) -> EncryptedSum:
    return add_up(lattice, contributions)


@pytest.fixture(scope="module")
def permit(lattice: Committee, total: EncryptedSum) -> SumPermit:
    return assume_counted(lattice, total).permit_sum()


@pytest.fixture(scope="module")
def shares(lattice: Committee, total: EncryptedSum, permit: SumPermit) -> dict[int, bytes]:
    return {
        member: lattice.scheme.partial_decrypt(lattice.key, share, total, permit)
        for member, share in lattice.shares.items()
    }


@pytest.fixture(scope="module")
def verified(
    lattice: Committee, total: EncryptedSum, permit: SumPermit, shares: dict[int, bytes]
) -> dict[int, VerifiedShare]:
    return {m: lattice.scheme.verify_share(lattice.key, total, permit, m, s) for m, s in shares.items()}


def test_any_two_of_three_open_the_exact_sum(
    lattice: Committee, total: EncryptedSum, permit: SumPermit, verified: dict[int, VerifiedShare]
) -> None:
    expected = a_vector(1) + a_vector(2) + a_vector(3)
    for chosen in [*combinations((1, 2, 3), 2), (3, 1), (1, 2, 3)]:
        opened = lattice.scheme.combine(lattice.key, total, permit, [verified[m] for m in chosen])
        assert opened.dtype == np.int64
        assert np.array_equal(opened, expected)


def test_one_share_is_too_few(
    lattice: Committee, total: EncryptedSum, permit: SumPermit, verified: dict[int, VerifiedShare]
) -> None:
    with pytest.raises(TooFewShares, match="1 shares were given"):
        lattice.scheme.combine(lattice.key, total, permit, [verified[1]])


def test_a_share_is_combined_only_after_it_was_verified(
    lattice: Committee,
    total: EncryptedSum,
    permit: SumPermit,
    shares: dict[int, bytes],
    verified: dict[int, VerifiedShare],
) -> None:
    with pytest.raises(ShareRefused, match="verify_share only"):
        VerifiedShare(1, lattice.key.shares_id, permit.agreed, shares[1], proof_of_origin=object())
    raw = cast(list[VerifiedShare], [verified[1], shares[2]])
    with pytest.raises(ShareRefused, match="after this scheme's verify_share only"):
        lattice.scheme.combine(lattice.key, total, permit, raw)


def test_a_verified_share_opens_only_what_it_was_verified_for(
    lattice: Committee,
    total: EncryptedSum,
    permit: SumPermit,
    shares: dict[int, bytes],
    verified: dict[int, VerifiedShare],
) -> None:
    scheme, key = lattice.scheme, lattice.key
    other = counted(agree(lattice, total, close_hash=name("other")), 3).permit_sum()
    refreshed = replace(cast(LatticeKey, key), share_epoch=1)
    foreign = of_sum(2, key.shares_id, permit.agreed, b"another scheme's")
    cases = {
        "another agreed set": (key, other, [verified[1], verified[2]], (1,)),
        "other than the current shares": (refreshed, permit, [verified[1], verified[2]], (1,)),
        "given twice": (key, permit, [verified[2], verified[1], verified[2]], (2,)),
        "this scheme's": (key, permit, [verified[1], foreign], (2,)),
    }
    for reason, (used, leave, some, culprits) in cases.items():
        with pytest.raises(ShareRefused, match=reason) as caught:
            scheme.combine(used, total, leave, some)
        assert caught.value.culprits == culprits
    assert (verified[1].member, verified[1].agreed) == (1, permit.agreed.digest)
    assert shares[1].hex() not in repr(verified[1])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.integers(1, 4200),
    bits=st.integers(1, 20),
    posts=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_sums_are_exact_for_all_lengths_bounds_and_extremes(
    lattice: Committee, length: int, bits: int, posts: int, seed: int
) -> None:
    limits = TaskLimits(length=length, bound=2**bits - 1, max_posts=8, min_clients=2)
    generator = np.random.default_rng(seed)
    vectors = [
        np.where(
            generator.random(length) < 0.3,
            limits.bound * generator.choice([-1, 1], length),
            generator.integers(-limits.bound, limits.bound, length, endpoint=True),
        ).astype(np.int64)
        for _ in range(posts)
    ]
    scheme, key = lattice.scheme, lattice.key
    accumulator = scheme.accumulator(key, ITERATION, limits)
    for number, vector in enumerate(vectors):
        post = a_post(number)
        contribution = scheme.prepare(key, post, limits).encrypt(vector)
        assert len(contribution.payload) == scheme.payload_bytes(key, limits)
        accumulator.add(scheme.verify_payload(key, post, limits, contribution.envelope, contribution.payload))
    total = scheme.read_sum(key, ITERATION, limits, accumulator.finish().to_bytes())
    permit = counted(agree(lattice, total), 2).permit_sum()
    assert np.array_equal(open_sum(lattice, total, permit, (2, 3)), np.sum(vectors, axis=0))


def test_a_preparation_is_used_once(lattice: Committee) -> None:
    prepared = lattice.scheme.prepare(lattice.key, a_post(1), LIMITS)
    with pytest.raises(VectorRefused):
        prepared.encrypt(a_vector(1)[:-1])
    prepared.encrypt(a_vector(1))
    with pytest.raises(PreparationUsed):
        prepared.encrypt(a_vector(1))
    assert "redacted" in repr(prepared.sealed)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "vector",
    [
        np.full(LIMITS.length, LIMITS.bound + 1),
        np.full(LIMITS.length, -LIMITS.bound - 1),
        np.full(LIMITS.length, np.iinfo(np.int64).min),
        np.zeros(LIMITS.length + 1, dtype=np.int64),
        np.zeros(LIMITS.length, dtype=np.int32),
        np.zeros(LIMITS.length),
        np.zeros((1, LIMITS.length), dtype=np.int64),
    ],
)
def test_a_vector_that_breaks_the_promise_is_refused(lattice: Committee, vector: np.ndarray) -> None:  # type: ignore[type-arg]
    prepared = lattice.scheme.prepare(lattice.key, a_post(1), LIMITS)
    with pytest.raises(VectorRefused):
        prepared.encrypt(vector)


def test_what_does_not_fit_is_refused_with_numbers(lattice: Committee) -> None:
    with pytest.raises(DoesNotFit, match="is 44, outside 2 to 40"):
        lattice.scheme.required_bits(replace(LIMITS, bound=2**19 - 1, max_posts=2**14))
    limits = TaskLimits(length=10, bound=2**40, max_posts=16, min_clients=2)
    with pytest.raises(DoesNotFit):
        lattice.scheme.prepare(lattice.key, a_post(1), limits)


CHANGES = {
    "genesis": {"genesis": name("other")},
    "scope": {"scope": name("other")},
    "position": {"position": 2},
    "nullifier": {"nullifier": name("other")},
    "tag": {"tag": name("other")},
    "pk_sig": {"pk_sig": name("other")},
}


@pytest.mark.parametrize("field", CHANGES)
def test_an_envelope_is_bound_to_every_field_of_its_post(
    lattice: Committee, contributions: dict[int, Contribution], field: str
) -> None:
    change = CHANGES[field]
    post = a_post(1)
    if hasattr(post, field):
        post = replace(post, **change)  # type: ignore[arg-type]
    else:
        post = replace(post, iteration=replace(ITERATION, **change))  # type: ignore[arg-type]
    lattice.scheme.verify_envelope(lattice.key, a_post(1), LIMITS, contributions[1].envelope)
    with pytest.raises(EnvelopeRefused, match="plaintext knowledge"):
        lattice.scheme.verify_envelope(lattice.key, post, LIMITS, contributions[1].envelope)


def test_an_envelope_is_bound_to_its_committee(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    other = lattice.scheme.read_key(_with_keys_in_reverse(lattice.key.to_bytes()))
    assert other.key_id != lattice.key.key_id
    with pytest.raises(EnvelopeRefused, match="plaintext knowledge"):
        lattice.scheme.verify_envelope(other, a_post(1), LIMITS, contributions[1].envelope)


def _with_keys_in_reverse(data: bytes) -> bytes:
    """Another valid key: the same 2049 sharings in another order."""
    header, points = data[:HEADER_LENGTH], data[HEADER_LENGTH:]
    rows = (points[at : at + 2049 * 32] for at in range(0, len(points), 2049 * 32))
    return header + b"".join(row[at : at + 32] for row in rows for at in range(2048 * 32, -1, -32))


def test_an_envelope_declares_the_one_possible_length(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    envelope = contributions[1].envelope
    for changed in (
        replace(envelope, payload_length=envelope.payload_length + 1),
        replace(envelope, payload_sha256=b""),
        replace(envelope, proof=envelope.proof[1:]),
        replace(envelope, proof=envelope.proof + b"\0"),
    ):
        with pytest.raises(EnvelopeRefused):
            lattice.scheme.verify_envelope(lattice.key, a_post(1), LIMITS, changed)


def test_a_malformed_payload_is_refused(lattice: Committee, contributions: dict[int, Contribution]) -> None:
    scheme, key, post = lattice.scheme, lattice.key, a_post(1)
    envelope, payload = contributions[1].envelope, contributions[1].payload
    for view in (bytearray(payload), memoryview(payload)):
        scheme.verify_payload(key, post, LIMITS, envelope, view)
    with pytest.raises(PayloadRefused, match="declares"):
        scheme.verify_payload(key, post, LIMITS, envelope, payload[:-1])
    with pytest.raises(PayloadRefused, match="hash"):
        scheme.verify_payload(key, post, LIMITS, envelope, payload[:-1] + b"\0")
    bad = payload[:-32] + b"\xff" * 32
    lying = replace(envelope, payload_sha256=hashlib.sha256(bad).digest())
    with pytest.raises(PayloadRefused, match="not canonical at position 2047"):
        scheme.verify_payload(key, post, LIMITS, lying, bad)


def test_a_post_is_added_once_and_not_beyond_the_cap(lattice: Committee) -> None:
    scheme, key = lattice.scheme, lattice.key
    limits = replace(LIMITS, max_posts=2)
    sized = {n: contribute(lattice, n, limits) for n in (1, 2, 3)}
    checked = [scheme.verify_payload(key, a_post(n), limits, c.envelope, c.payload) for n, c in sized.items()]
    accumulator = scheme.accumulator(key, ITERATION, limits)
    accumulator.add(checked[0])
    with pytest.raises(PayloadRefused, match="once"):
        accumulator.add(checked[0])
    accumulator.add(checked[1])
    with pytest.raises(DoesNotFit, match="holds 2 posts"):
        accumulator.add(checked[2])
    accumulator.finish()
    with pytest.raises(NotAgreed, match="finished"):
        accumulator.finish()


def test_a_payload_checked_for_something_else_is_not_added(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    scheme, key = lattice.scheme, lattice.key
    made = contributions[1]
    checked = scheme.verify_payload(key, a_post(1), LIMITS, made.envelope, made.payload)
    later = replace(ITERATION, iteration=8)
    for accumulator, checked_here in (
        (scheme.accumulator(key, later, LIMITS), checked),
        (scheme.accumulator(key, ITERATION, replace(LIMITS, min_clients=3)), checked),
        (scheme.accumulator(key, ITERATION, LIMITS), replace(cast(Any, checked), key_id=name("other"))),
    ):
        with pytest.raises(PayloadRefused, match="was checked"):
            accumulator.add(checked_here)


def test_the_order_of_posts_does_not_matter(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    forwards = add_up(lattice, contributions)
    backwards = add_up(lattice, dict(reversed(contributions.items())))
    assert forwards.to_bytes() == backwards.to_bytes()
    assert forwards.digest == backwards.digest


def test_a_sum_is_read_back_and_nothing_else_is(lattice: Committee, total: EncryptedSum) -> None:
    data = total.to_bytes()
    read = lattice.scheme.read_sum(lattice.key, ITERATION, LIMITS, memoryview(data))
    assert read.digest == total.digest
    for bad in (data[:-1], data + b"\0", data[:-32] + b"\xff" * 32, b""):
        with pytest.raises(PayloadRefused):
            lattice.scheme.read_sum(lattice.key, ITERATION, LIMITS, bad)


def test_too_few_clients_open_no_sum(lattice: Committee, total: EncryptedSum) -> None:
    for value in (0, 1):
        with pytest.raises(TooFewClients, match=f"{value} clients took part"):
            counted(agree(lattice, total), value).permit_sum()


def test_a_permit_cannot_be_made_by_hand(lattice: Committee, total: EncryptedSum) -> None:
    with pytest.raises(NotAgreed):
        DecryptedCount(agree(lattice, total), 99, proof_of_origin=object())
    with pytest.raises(NotAgreed):
        SumPermit(assume_counted(lattice, total), proof_of_origin=None)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"key_id": name("other")}, "committee key"),
        ({"iteration": replace(ITERATION, iteration=8)}, "iteration"),
        ({"set_digest": name("other")}, "set of posts"),
        ({"sum_digest": name("other")}, "sum"),
        ({"num_posts": 4}, "number of posts"),
        ({"min_clients": 3}, "smallest number of clients"),
    ],
)
def test_a_permit_opens_its_own_sum_only(
    lattice: Committee,
    total: EncryptedSum,
    shares: dict[int, bytes],
    verified: dict[int, VerifiedShare],
    change: dict[str, object],
    what: str,
) -> None:
    permit = counted(agree(lattice, total, **change), 3).permit_sum()
    scheme, key = lattice.scheme, lattice.key
    with pytest.raises(NotAgreed, match=what):
        scheme.partial_decrypt(key, lattice.shares[1], total, permit)
    with pytest.raises(NotAgreed, match=what):
        scheme.verify_share(key, total, permit, 1, shares[1])
    with pytest.raises(NotAgreed, match=what):
        scheme.combine(key, total, permit, list(verified.values()))


def test_a_share_for_another_agreement_is_refused(
    lattice: Committee, total: EncryptedSum, shares: dict[int, bytes]
) -> None:
    other = counted(agree(lattice, total, close_hash=name("other")), 3).permit_sum()
    with pytest.raises(ShareRefused, match="equality") as caught:
        lattice.scheme.verify_share(lattice.key, total, other, 1, shares[1])
    assert caught.value.culprits == (1,)


def test_foreign_malformed_and_wrong_shares_name_their_author(
    lattice: Committee, total: EncryptedSum, permit: SumPermit, shares: dict[int, bytes]
) -> None:
    scheme, key = lattice.scheme, lattice.key
    for member, share in shares.items():
        scheme.verify_share(key, total, permit, member, share)
    bad = {
        "no member": (4, shares[1]),
        "other than the current": (2, bytes(32) + shares[2][32:]),
        "instead of": (2, shares[2][:-1]),
        "not canonical": (2, shares[2][:32] + b"\xff" * 32 + shares[2][64:]),
        "equality": (2, shares[1]),
    }
    for reason, (member, share) in bad.items():
        with pytest.raises(ShareRefused, match=reason) as caught:
            scheme.verify_share(key, total, permit, member, share)
        assert caught.value.culprits == (member,)


def test_a_key_that_does_not_validate_is_refused(lattice: Committee) -> None:
    data = lattice.key.to_bytes()
    header = HEADER_LENGTH
    first, second = data[header : header + 32], data[header + 32 : header + 64]
    for bad in (
        b"",
        data[:-1],
        data + b"\0",
        b"another/1/scheme" + data[16:],
        data[:16] + b"\x03\x01" + data[18:],
        data[:header] + second + first + data[header + 64 :],
        data[:header] + bytes(32) + data[header + 32 :],
        data[:header] + b"\xff" * 32 + data[header + 32 :],
    ):
        with pytest.raises(KeyRefused):
            lattice.scheme.read_key(bad)


def forged_sum(lattice: Committee, honest: Contribution, payload: bytes) -> EncryptedSum:
    """An honest post and an attacker's, which has an own, valid envelope for a chosen payload."""
    own = contribute(lattice, 2)
    envelope = replace(own.envelope, payload_sha256=hashlib.sha256(payload).digest())
    return add_up(lattice, {1: honest, 2: Contribution(envelope, payload)})


def test_a_batch_of_envelopes_names_the_bad_ones(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    scheme, key = lattice.scheme, lattice.key
    good = [(a_post(number), made.envelope) for number, made in contributions.items()]
    scheme.verify_envelopes(key, LIMITS, good * 3)
    scheme.verify_envelopes(key, LIMITS, [])
    bad = {
        1: (a_post(2), contributions[1].envelope),
        4: (a_post(2), replace(contributions[2].envelope, payload_length=7)),
        5: (a_post(3), replace(contributions[3].envelope, payload_sha256=b"")),
        8: (a_post(3), replace(contributions[3].envelope, proof=b"")),
    }
    items = [bad.get(place, item) for place, item in enumerate(good * 3)]
    with pytest.raises(EnvelopeRefused, match="4 of 9 are refused; number 1: ") as caught:
        scheme.verify_envelopes(key, LIMITS, items)
    assert caught.value.indices == (1, 4, 5, 8)
    for place, (post, envelope) in bad.items():
        with pytest.raises(EnvelopeRefused) as single:
            scheme.verify_envelope(key, post, LIMITS, envelope)
        assert caught.value.reasons[place] == str(single.value)


def test_a_copied_contribution_is_refused_at_admission(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    with pytest.raises(EnvelopeRefused, match="plaintext knowledge"):
        lattice.scheme.verify_envelope(lattice.key, a_post(2), LIMITS, contributions[1].envelope)


def test_a_copied_payload_under_an_own_envelope_opens_nothing(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    total = forged_sum(lattice, contributions[1], contributions[1].payload)
    permit = assume_counted(lattice, total).permit_sum()
    with pytest.raises(Undecodable):
        open_sum(lattice, total, permit, (1, 2))


def test_garbage_words_make_the_sum_undecodable(
    lattice: Committee, contributions: dict[int, Contribution]
) -> None:
    own = contribute(lattice, 2).payload
    garbage = np.random.default_rng(5).bytes(len(own) - 2048 * 32) + own[-2048 * 32 :]
    total = forged_sum(lattice, contributions[1], garbage)
    permit = assume_counted(lattice, total).permit_sum()
    with pytest.raises(Undecodable):
        open_sum(lattice, total, permit, (1, 2))


@pytest.mark.parametrize("change", [{"genesis": name("other")}, {"task": name("other")}, {"iteration": 8}])
def test_another_board_task_or_iteration_removes_another_mask(
    lattice: Committee, total: EncryptedSum, change: dict[str, Any]
) -> None:
    """Everybody agrees on the wrong place, so only the mask is wrong."""
    misplaced = replace(cast(LatticeSum, total), iteration=replace(ITERATION, **change))
    permit = assume_counted(lattice, misplaced).permit_sum()
    with pytest.raises(Undecodable):
        open_sum(lattice, misplaced, permit, (1, 2))


def test_a_context_has_fixed_lengths() -> None:
    with pytest.raises(InvalidContext, match="genesis has 32 bytes, not 3"):
        IterationContext(genesis=b"abc", task=name("t"), iteration=0, scope=name("s"), position=0)
    with pytest.raises(InvalidContext, match="position"):
        replace(ITERATION, position=1 << 16)
    with pytest.raises(InvalidContext, match="tag"):
        PostContext(iteration=ITERATION, nullifier=name("n"), tag=b"", pk_sig=name("p"))


@pytest.mark.parametrize(
    "change",
    [
        {"length": 0},
        {"bound": 0},
        {"max_posts": 0},
        {"max_posts": 2**14 + 1},
        {"min_clients": 1},
        {"min_clients": 17},
    ],
)
def test_limits_outside_their_ranges_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(DoesNotFit):
        replace(LIMITS, **change)
