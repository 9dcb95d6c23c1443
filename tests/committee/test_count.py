"""The count: ballots against an independent verifier, the tally, and every refusal."""

import secrets
from dataclasses import dataclass, replace
from typing import cast

import pytest

from anofel.committee import count, count_key
from anofel.committee.context import AgreedSet, digest_of_set
from anofel.committee.count import BallotStatement, BundleCommittee, TypeOpening
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.errors import (
    BallotRefused,
    InvalidContext,
    NotAgreed,
    ShareRefused,
    TooFewClients,
    TooFewShares,
)
from anofel.committee.ristretto.key_generation import RistrettoKeyGeneration
from anofel.committee.verified import VerifiedCountShare, of_sum
from anofel.errors import InvalidInput
from tests.committee import plain_ballot, plain_ristretto
from tests.committee.generators import G, H
from tests.committee.world import (
    ITERATION,
    LIMITS,
    Committee,
    a_post,
    a_run,
    add_up,
    agree,
    contribute,
    generate,
    name,
    open_count,
    open_sum,
)

BLINDING = secrets.randbelow(plain_ballot.ORDER)


def commitment(dataset_type: int) -> plain_ballot.Affine:
    on_g, on_h = plain_ballot.jub_multiply(dataset_type, G), plain_ballot.jub_multiply(BLINDING, H)
    return plain_ballot.jub_add(on_g, on_h)


def opening(dataset_type: int) -> TypeOpening:
    return TypeOpening(dataset_type=dataset_type, blinding=BLINDING.to_bytes(32, "little"))


@dataclass(frozen=True)
class KeyOfTest:
    """As much of a committee's key as counts need."""

    count_key: CountKey
    key_id: bytes = name("key")


class CountCommittee:
    """A committee that only counts, as one of another scheme would be."""

    def __init__(self, num_members: int, threshold: int) -> None:
        run = a_run(num_members, threshold)
        ends, _ = generate(RistrettoKeyGeneration(1, "count"), run)
        self.key = KeyOfTest(count_key.from_keys(run.shape, ends[0].keys, 0))
        self.shares: dict[int, SecretCountShare] = {
            end.secrets.member: count_key.from_secrets(end.secrets, 0) for end in ends
        }


@pytest.fixture(scope="module")
def small() -> CountCommittee:
    return CountCommittee(5, 3)


@pytest.fixture(scope="module")
def bundle(lattice: Committee, small: CountCommittee) -> list[BundleCommittee]:
    """A lattice committee of three and one of another kind of five: sizes and schemes mix."""
    return [
        BundleCommittee(key_id=lattice.key.key_id, count_key=lattice.key.count_key, accepted_types=(3, 7)),
        BundleCommittee(key_id=name("other key"), count_key=small.key.count_key, accepted_types=None),
    ]


def statement(bundle: list[BundleCommittee], number: int = 1, dataset_type: int = 3) -> BallotStatement:
    return BallotStatement(a_post(number), plain_ballot.jub_encode(commitment(dataset_type)), bundle)


def plain(bundle: list[BundleCommittee], number: int = 1, dataset_type: int = 3) -> plain_ballot.Statement:
    post = a_post(number)
    return plain_ballot.Statement(
        genesis=ITERATION.genesis,
        scope=ITERATION.scope,
        nullifier=post.nullifier,
        tag=post.tag,
        pk_sig=post.pk_sig,
        type_commitment=commitment(dataset_type),
        lines=[plain_ballot.Line(b.key_id, b.count_key.public, b.accepted_types) for b in bundle],
        g=G,
        h=H,
    )


@pytest.mark.parametrize(("target", "dataset_type"), [(None, 3), (0, 3), (0, 7), (1, 3), (1, 99), (None, 99)])
def test_a_ballot_verifies_here_and_by_an_independent_verifier(
    bundle: list[BundleCommittee], target: int | None, dataset_type: int
) -> None:
    ours = statement(bundle, 1, dataset_type)
    ballot = ours.cast(target, opening(dataset_type)).ballot
    assert len(ballot) == ours.ballot_bytes
    ours.verify(ballot)
    assert plain_ballot.verify(plain(bundle, 1, dataset_type), ballot)
    changed = bytearray(ballot)
    changed[-1] ^= 1
    with pytest.raises(BallotRefused):
        ours.verify(bytes(changed))
    assert not plain_ballot.verify(plain(bundle, 1, dataset_type), bytes(changed))


def test_the_encrypted_bits_open_in_plain_integers(
    bundle: list[BundleCommittee], small: CountCommittee
) -> None:
    shares = {m: int.from_bytes(s.scalar, "little") for m, s in list(small.shares.items())[2:]}
    secret = plain_ristretto.interpolate_at_zero(shares)
    for target, expected in ((1, plain_ristretto.BASE), (0, plain_ristretto.NEUTRAL)):
        ours = statement(bundle)
        bit = count.bit_of(ours.cast(target, opening(3)).ballot, 1)
        u, v = plain_ristretto.decode(bit[:32]), plain_ristretto.decode(bit[32:])
        opened = plain_ristretto.add(v, plain_ristretto.negate(plain_ristretto.multiply(secret, u)))
        assert plain_ristretto.encode(opened) == plain_ristretto.encode(expected)


def test_a_bit_for_a_task_that_does_not_take_the_type_is_not_cast(bundle: list[BundleCommittee]) -> None:
    with pytest.raises(InvalidInput, match="acceptance of the dataset type"):
        statement(bundle, 1, 99).cast(0, opening(99))
    with pytest.raises(InvalidInput, match="position"):
        statement(bundle).cast(2, opening(3))
    with pytest.raises(InvalidInput, match="opening"):
        statement(bundle).cast(None, opening(4))


def test_a_ballot_is_bound_to_its_post(bundle: list[BundleCommittee]) -> None:
    ballot = statement(bundle).cast(0, opening(3)).ballot
    encoded = plain_ballot.jub_encode(commitment(3))
    post = a_post(1)
    for changed in (
        replace(post, nullifier=name("x")),
        replace(post, tag=name("x")),
        replace(post, pk_sig=name("x")),
        replace(post, iteration=replace(ITERATION, genesis=name("x"))),
        replace(post, iteration=replace(ITERATION, scope=name("x"))),
    ):
        with pytest.raises(BallotRefused, match="encrypted bits"):
            BallotStatement(changed, encoded, bundle).verify(ballot)
    other_type = plain_ballot.jub_encode(commitment(4))
    with pytest.raises(BallotRefused, match="encrypted bits"):
        BallotStatement(post, other_type, bundle).verify(ballot)


def test_a_ballot_is_bound_to_its_bundle(bundle: list[BundleCommittee], small: CountCommittee) -> None:
    ballot = statement(bundle).cast(0, opening(3)).ballot
    for changed in (
        [replace(bundle[0], key_id=name("x")), bundle[1]],
        [bundle[0], replace(bundle[1], key_id=name("x"))],
        [replace(bundle[0], count_key=small.key.count_key), bundle[1]],
        [replace(bundle[0], accepted_types=(3, 8)), bundle[1]],
    ):
        with pytest.raises(BallotRefused, match="The proof of the encrypted bits does not hold"):
            statement(changed).verify(ballot)
    # A type or a committee more or less is another length.
    for changed in (
        [replace(bundle[0], accepted_types=(3, 7, 8)), bundle[1]],
        bundle[:1],
        [*bundle, bundle[1]],
    ):
        other = statement(changed)
        reason = f"The ballot has {len(ballot)} bytes instead of {other.ballot_bytes}"
        with pytest.raises(BallotRefused, match=reason):
            other.verify(ballot)


def test_a_ballot_is_bound_to_the_order_of_its_bundle(bundle: list[BundleCommittee]) -> None:
    # Same count key and types, so every equation holds in either order; only the names change places.
    twins = [bundle[1], replace(bundle[1], key_id=name("twin"))]
    ballot = statement(twins).cast(0, opening(3)).ballot
    statement(twins).verify(ballot)
    with pytest.raises(BallotRefused, match="The proof of the encrypted bits does not hold"):
        statement(twins[::-1]).verify(ballot)


def test_a_copied_or_changed_bit_is_refused(bundle: list[BundleCommittee]) -> None:
    """Copy, re-randomise, negate, scale and shift a victim's encrypted bit."""
    victim = statement(bundle).cast(0, opening(3)).ballot
    attacker = statement(bundle, 2)
    with pytest.raises(BallotRefused):
        attacker.verify(victim)
    u, v = (plain_ristretto.decode(victim[k : k + 32]) for k in (0, 32))
    key = plain_ristretto.decode(bundle[0].count_key.public)
    k = secrets.randbelow(plain_ristretto.L)
    base, add = plain_ristretto.BASE, plain_ristretto.add
    attacks = {
        "re-randomised": (
            add(u, plain_ristretto.multiply(k, base)),
            add(v, plain_ristretto.multiply(k, key)),
        ),
        "negated": (plain_ristretto.negate(u), plain_ristretto.negate(v)),
        "scaled": (add(u, u), add(v, v)),
        "shifted": (u, add(v, base)),
    }
    for changed in attacks.values():
        bit = b"".join(plain_ristretto.encode(point) for point in changed)
        for against in (attacker, statement(bundle)):
            with pytest.raises(BallotRefused):
                against.verify(bit + victim[64:])


def test_a_batch_of_ballots_names_the_bad_ones(bundle: list[BundleCommittee]) -> None:
    items = [(ours, ours.cast(0, opening(3)).ballot) for ours in (statement(bundle, n) for n in range(4))]
    count.verify_ballots(items)
    count.verify_ballots([])
    items[1] = (items[1][0], items[2][1])
    items[3] = (items[3][0], items[3][1][:-1])
    with pytest.raises(BallotRefused, match="2 of 4 are refused; number 1: ") as caught:
        count.verify_ballots(items)
    assert caught.value.indices == (1, 3)
    for place in caught.value.indices:
        with pytest.raises(BallotRefused) as single:
            items[place][0].verify(items[place][1])
        assert caught.value.reasons[place] == str(single.value)


def test_malformed_ballots_and_commitments_are_refused(bundle: list[BundleCommittee]) -> None:
    ballot = statement(bundle).cast(None, opening(3)).ballot
    for bad in (b"", ballot[:-1], ballot + b"\0", b"\xff" * 32 + ballot[32:], ballot[:-32] + b"\xff" * 32):
        with pytest.raises(BallotRefused):
            statement(bundle).verify(bad)
    for point in (bytes(64), b"\xff" * 64, bytes(63)):
        with pytest.raises(BallotRefused):
            BallotStatement(a_post(1), point, bundle)
    with pytest.raises(BallotRefused):
        BallotStatement(a_post(1), plain_ballot.jub_encode(commitment(3)), [])


def test_count_first_then_the_sum(lattice: Committee, bundle: list[BundleCommittee]) -> None:
    """Three posts for the first task and one decoy: the count is 3 and the sum opens."""
    total = add_up(lattice, {n: contribute(lattice, n) for n in (1, 2, 3, 4)})
    bits = {}
    for number, target in ((1, 0), (2, 0), (3, 1), (4, 0)):
        ours = statement(bundle, number)
        bits[a_post(number).nullifier] = count.bit_of(ours.cast(target, opening(3)).ballot, 0)
    counted = open_count(lattice, bits, agree(lattice, total))
    assert counted.value == 3
    permit = counted.permit_sum()
    assert len(open_sum(lattice, total, permit, (1, 3))) == LIMITS.length


def test_fewer_clients_than_the_task_wants_keep_the_sum_closed(
    lattice: Committee, bundle: list[BundleCommittee]
) -> None:
    total = add_up(lattice, {n: contribute(lattice, n) for n in (1, 2)})
    bits = {}
    for number, target in ((1, 0), (2, 1)):
        ours = statement(bundle, number)
        bits[a_post(number).nullifier] = count.bit_of(ours.cast(target, opening(3)).ballot, 0)
    with pytest.raises(TooFewClients, match="1 clients took part"):
        open_count(lattice, bits, agree(lattice, total)).permit_sum()


@pytest.fixture(scope="module")
def tally(bundle: list[BundleCommittee]) -> count.EncryptedCount:
    bits = {}
    for number in (1, 2):
        ours = statement(bundle, number)
        bits[a_post(number).nullifier] = count.bit_of(ours.cast(1, opening(3)).ballot, 1)
    return count.add(bits)


def agreed_for(tally: count.EncryptedCount, **changes: object) -> AgreedSet:
    agreed = AgreedSet(
        iteration=ITERATION,
        key_id=name("key"),
        close_hash=name("close"),
        set_digest=tally.set_digest,
        sum_digest=name("sum"),
        num_posts=tally.num_posts,
        min_clients=2,
    )
    return replace(agreed, **changes)  # type: ignore[arg-type]


def verified_by(
    small: CountCommittee, tally: count.EncryptedCount, agreed: AgreedSet
) -> dict[int, VerifiedCountShare]:
    made = {m: count.partial_decrypt(small.key, share, tally, agreed) for m, share in small.shares.items()}
    return {m: count.verify_share(small.key, tally, agreed, m, share) for m, share in made.items()}


def test_any_three_of_five_open_the_count(small: CountCommittee, tally: count.EncryptedCount) -> None:
    agreed = agreed_for(tally)
    shares = verified_by(small, tally, agreed)
    for chosen in ((1, 2, 3), (1, 3, 5), (3, 4, 5), (5, 2, 1), (1, 2, 3, 4, 5)):
        opened = count.combine(small.key, tally, agreed, [shares[m] for m in chosen])
        assert opened.value == 2
    with pytest.raises(TooFewShares):
        count.combine(small.key, tally, agreed, [shares[1], shares[2]])


def test_a_verified_share_opens_only_the_count_it_was_verified_for(
    small: CountCommittee, tally: count.EncryptedCount
) -> None:
    agreed = agreed_for(tally)
    shares = list(verified_by(small, tally, agreed).values())
    other = CountCommittee(5, 3)
    doubled = count.add({name("one"): tally.ciphertext, name("two"): tally.ciphertext})
    cases: list[tuple[str, KeyOfTest, count.EncryptedCount, AgreedSet, list[VerifiedCountShare]]] = [
        ("another agreed set", small.key, tally, agreed_for(tally, close_hash=name("x")), shares),
        ("other than the current shares", other.key, tally, agreed, shares),
        ("another count", small.key, replace(tally, ciphertext=doubled.ciphertext), agreed, shares),
        ("given twice", small.key, tally, agreed, [*shares, shares[0]]),
    ]
    for reason, key, total, where, given in cases:
        with pytest.raises(ShareRefused, match=reason) as caught:
            count.combine(key, total, where, given)
        assert caught.value.culprits == (1,)
    with pytest.raises(ShareRefused, match="verify_share only"):
        VerifiedCountShare(1, small.key.count_key.shares_id, agreed, shares[0].content, proof_of_origin=None)
    of_a_sum = cast(VerifiedCountShare, of_sum(1, small.key.count_key.shares_id, agreed, shares[0].content))
    with pytest.raises(ShareRefused, match="verify_share only"):
        count.combine(small.key, tally, agreed, [of_a_sum, *shares[1:]])
    with pytest.raises(NotAgreed):
        count.combine(small.key, tally, agreed_for(tally, num_posts=3), shares)


def test_a_bad_share_of_the_count_names_its_author(
    small: CountCommittee, tally: count.EncryptedCount
) -> None:
    agreed = agreed_for(tally)
    good = {m: count.partial_decrypt(small.key, s, tally, agreed) for m, s in small.shares.items()}
    other = CountCommittee(5, 3)
    foreign = count.partial_decrypt(other.key, other.shares[2], tally, agreed)
    bad = {
        "no member": (6, good[1]),
        "other than the current": (2, foreign),
        "instead of": (2, good[2][:-1]),
        "not canonical": (2, good[2][:32] + b"\xff" * 32 + good[2][64:]),
        "equality": (2, good[1]),
    }
    for reason, (member, share) in bad.items():
        with pytest.raises(ShareRefused, match=reason) as caught:
            count.verify_share(small.key, tally, agreed, member, share)
        assert caught.value.culprits == (member,)


@pytest.mark.parametrize(
    "change",
    [
        {"iteration": replace(ITERATION, genesis=name("x"))},
        {"iteration": replace(ITERATION, task=name("x"))},
        {"iteration": replace(ITERATION, iteration=1)},
        {"iteration": replace(ITERATION, scope=name("x"))},
        {"iteration": replace(ITERATION, position=0)},
        {"close_hash": name("x")},
        {"sum_digest": name("x")},
    ],
)
def test_a_share_of_the_count_is_bound_to_the_agreed_set(
    small: CountCommittee, tally: count.EncryptedCount, change: dict[str, object]
) -> None:
    share = count.partial_decrypt(small.key, small.shares[1], tally, agreed_for(tally))
    with pytest.raises(ShareRefused, match="equality"):
        count.verify_share(small.key, tally, agreed_for(tally, **change), 1, share)


def test_a_set_below_the_minimum_is_not_counted(small: CountCommittee, tally: count.EncryptedCount) -> None:
    share = count.partial_decrypt(small.key, small.shares[1], tally, agreed_for(tally))
    few = agreed_for(tally, min_clients=tally.num_posts + 1)
    with pytest.raises(TooFewClients):
        count.partial_decrypt(small.key, small.shares[1], tally, few)
    with pytest.raises(TooFewClients):
        count.verify_share(small.key, tally, few, 1, share)


@pytest.mark.parametrize("change", [{"set_digest": name("x")}, {"num_posts": 3}])
def test_a_count_of_another_set_is_not_opened(
    small: CountCommittee, tally: count.EncryptedCount, change: dict[str, object]
) -> None:
    with pytest.raises(NotAgreed):
        count.partial_decrypt(small.key, small.shares[1], tally, agreed_for(tally, **change))


def test_a_set_is_named_by_its_posts_in_any_order() -> None:
    assert digest_of_set([b"a" * 32, b"b" * 32]) == digest_of_set([b"b" * 32, b"a" * 32])
    assert digest_of_set([b"a" * 32]) != digest_of_set([b"b" * 32])
    with pytest.raises(InvalidContext):
        digest_of_set([b"a" * 32, b"a" * 32])


def test_a_secret_share_does_not_show_itself(small: CountCommittee) -> None:
    share = small.shares[1]
    assert "scalar" not in repr(share)
    assert "blinding" not in repr(opening(3))
