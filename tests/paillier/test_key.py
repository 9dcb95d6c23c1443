"""What a client checks before it encrypts: each rule has a key in which only it fails."""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import gmpy2
import pytest

from anofel.committee.errors import InvalidCommittee, KeyRefused, ShareRefused
from anofel.committee.paillier.arithmetic.parameters import check_modulus_bits
from anofel.committee.paillier.arithmetic.randomness import SystemRandomness
from anofel.committee.paillier.arithmetic.sharing import IntegerPolynomial
from anofel.committee.paillier.key import MAGIC, Origin, PaillierKey, check_modulus_value, verification_key
from anofel.committee.paillier.scheme import PaillierScheme
from tests.paillier.dealer import InsecureToyPaillierScheme
from tests.paillier.support import SCHEME, Committee, deal_committee, shape_of

AT_MODULUS = len(MAGIC) + 4 + 1 + 1 + 1 + 4 + 4 + 32 + 32


def refused(key: PaillierKey | bytes, words: str) -> None:
    data = key if isinstance(key, bytes) else key.to_bytes()
    with pytest.raises(KeyRefused, match=words):
        SCHEME.read_key(data)


def rekeyed(committee: Committee, change: Callable[[int, int], int]) -> PaillierKey:
    """The committee's key with verification keys for changed shares."""
    n = committee.key.shape.num_members
    keys = tuple(
        int(verification_key(committee.key.modulus, n, change(m, s.value)))
        for m, s in committee.shares.items()
    )
    return replace(committee.key, verification_keys=keys)


def test_a_key_survives_its_bytes(committee: Committee) -> None:
    again = SCHEME.read_key(committee.key.to_bytes())
    assert again == committee.key
    assert (again.key_id, again.shares_id) == (committee.key.key_id, committee.key.shares_id)
    assert again.scheme == "paillier"


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: b"x" + d[1:], lambda _: b""]
)
def test_rule_1_a_key_has_one_encoding(committee: Committee, change: Callable[[bytes], bytes]) -> None:
    refused(change(committee.key.to_bytes()), "refused")


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (4, 2, "origin"),
        (5, 17, "members"),
        (6, 1, "threshold"),
    ],
)
def test_rule_1_sizes_are_in_range(committee: Committee, offset: int, value: int, words: str) -> None:
    data = bytearray(committee.key.to_bytes())
    data[len(MAGIC) + offset] = value
    refused(bytes(data), words)


@pytest.mark.parametrize("bits", [512, 5000])
def test_rule_1_the_share_length_is_in_range(committee: Committee, bits: int) -> None:
    refused(replace(committee.key, share_bits=bits), "out of range")


def test_rule_1_theta_is_reduced(committee: Committee) -> None:
    refused(replace(committee.key, theta=committee.key.modulus), "reduced")


def test_rule_2_the_modulus_has_its_stated_length(committee: Committee) -> None:
    data = bytearray(committee.key.to_bytes())
    shorter = (committee.key.modulus >> 1).to_bytes(64, "little")
    data[AT_MODULUS : AT_MODULUS + 64] = shorter
    data[AT_MODULUS + 64 : AT_MODULUS + 128] = bytes(64)
    data[AT_MODULUS + 128 : AT_MODULUS + 128 + 3 * 128] = bytes(3 * 128)
    refused(bytes(data), "511 bits")


@pytest.mark.parametrize("bits", [256, 1024, 2047, 4096])
def test_rule_2_other_lengths_are_refused_by_the_secure_scheme(bits: int) -> None:
    with pytest.raises(InvalidCommittee, match="3072"):
        PaillierScheme(bits)
    with pytest.raises(InvalidCommittee):
        check_modulus_bits(bits, insecure_toy=False)


def test_rule_2_toys_have_a_floor() -> None:
    with pytest.raises(InvalidCommittee, match="512"):
        InsecureToyPaillierScheme(256)
    for bits in (2048, 3072):
        assert PaillierScheme(bits).modulus_bits == bits


def test_a_toy_key_is_refused_by_the_secure_scheme(committee: Committee) -> None:
    with pytest.raises(KeyRefused, match="512 is refused"):
        PaillierScheme().read_key(committee.key.to_bytes())


def test_a_dealt_key_is_refused_by_the_secure_scheme() -> None:
    dealt = deal_committee(3, 2, bits=2048)
    assert InsecureToyPaillierScheme().read_key(dealt.key.to_bytes()) == dealt.key
    with pytest.raises(KeyRefused, match="dealer"):
        PaillierScheme().read_key(dealt.key.to_bytes())
    honest = replace(dealt.key, origin=Origin.DISTRIBUTED)
    assert PaillierScheme().read_key(honest.to_bytes()).modulus_bits == 2048


def prime(bits: int, residue: int) -> int:
    while True:
        candidate = int(gmpy2.next_prime(secrets.randbits(bits) | 3 << (bits - 2)))
        if candidate % 4 == residue and candidate.bit_length() == bits:
            return candidate


def test_rules_3_to_5_the_modulus_is_a_plausible_product(committee: Committee) -> None:
    check_modulus_value(committee.key.modulus)
    p, q = prime(256, 3), prime(256, 1)
    with pytest.raises(KeyRefused, match="1 modulo 4"):
        check_modulus_value(p * q)
    small = 1048573
    with pytest.raises(KeyRefused, match="small prime factor"):
        check_modulus_value(small * prime(492, small % 4))
    with pytest.raises(KeyRefused, match="is a prime"):
        check_modulus_value(prime(512, 1))
    with pytest.raises(KeyRefused, match="perfect power"):
        check_modulus_value(p * p)


def over(committee: Committee, factors: Sequence[int]) -> PaillierKey:
    """The committee's key over another modulus; the shared secret is a multiple of its order."""
    modulus, distinct = math.prod(factors), math.prod(set(factors))
    order = modulus // distinct * math.prod(p - 1 for p in set(factors))
    shape = committee.key.shape
    line = IntegerPolynomial.deal(order, 1024, shape, shape.threshold - 1, SystemRandomness())
    keys = tuple(int(verification_key(modulus, shape.num_members, int(line.at(m)))) for m in shape.members)
    return replace(committee.key, modulus=modulus, theta=1, verification_keys=keys)


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        (lambda: [prime(256, 3), prime(256, 1)], "1 modulo 4"),
        (lambda: [1048573, prime(492, 1)], "small prime factor"),
        (lambda: [prime(512, 1)], "is a prime"),
        (lambda: [prime(256, 3)] * 2, "perfect power"),
    ],
)
def test_rules_3_to_5_are_part_of_reading(
    committee: Committee, monkeypatch: pytest.MonkeyPatch, factors: Callable[[], list[int]], words: str
) -> None:
    bad = over(committee, factors())
    refused(bad, words)
    # Nothing else is wrong with it.
    monkeypatch.setattr("anofel.committee.paillier.key.check_modulus_value", lambda _: None)
    assert SCHEME.read_key(bad.to_bytes()) == bad


def test_rule_6_theta_is_a_unit(committee: Committee) -> None:
    refused(replace(committee.key, theta=0), "θ")


def test_rule_7_verification_keys_are_units(committee: Committee) -> None:
    keys = (committee.key.modulus, *committee.key.verification_keys[1:])
    refused(replace(committee.key, verification_keys=keys), "unit")


def test_rule_8_verification_keys_lie_on_a_polynomial(committee: Committee) -> None:
    # Member 3 is outside the first t = 2, so only the degree is wrong.
    refused(rekeyed(committee, lambda m, s: s + (m == 3)), "polynomial of degree 1")


def test_rule_9_the_secret_is_a_multiple_of_the_order(committee: Committee) -> None:
    line = IntegerPolynomial.deal(12345, 1024, shape_of(3, 2), 1, SystemRandomness())
    refused(rekeyed(committee, lambda m, _: int(line.at(m))), "does not decrypt")


def test_the_count_key_is_validated(committee: Committee) -> None:
    data = bytearray(committee.key.to_bytes())
    data[-32:] = b"\xff" * 32
    refused(bytes(data), "committee keys")


# Stored shares


def test_a_share_survives_its_bytes(committee: Committee) -> None:
    for share in committee.shares.values():
        assert SCHEME.read_share(committee.key, share.to_bytes()) == share


def test_a_stale_share_is_refused(committee: Committee) -> None:
    refreshed = replace(committee.key, share_epoch=1)
    with pytest.raises(ShareRefused, match="other shares") as caught:
        SCHEME.read_share(refreshed, committee.shares[2].to_bytes())
    assert caught.value.culprits == (2,)


def test_a_wrong_share_is_refused(committee: Committee) -> None:
    wrong = replace(committee.shares[2], value=committee.shares[2].value + 1)
    with pytest.raises(ShareRefused, match="verification key") as caught:
        SCHEME.read_share(committee.key, wrong.to_bytes())
    assert caught.value.culprits == (2,)
    zero = replace(committee.shares[2], value=0)
    with pytest.raises(ShareRefused, match="verification key"):
        SCHEME.read_share(committee.key, zero.to_bytes())


def test_a_wrong_count_share_is_refused(committee: Committee) -> None:
    wrong = replace(committee.shares[2], count_share=committee.shares[1].count_share)
    with pytest.raises(ShareRefused):
        SCHEME.read_share(committee.key, wrong.to_bytes())


@pytest.mark.parametrize(
    "change", [lambda d: d[:-1], lambda d: d + b"\0", lambda d: b"\x09" + d[1:], lambda _: b""]
)
def test_a_malformed_share_is_refused(committee: Committee, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ShareRefused, match="malformed"):
        SCHEME.read_share(committee.key, change(committee.shares[1].to_bytes()))
