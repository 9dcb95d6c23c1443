"""A dealer for tests and benchmarks: one process makes the primes, all shares and the key, and says so.

The key's ``origin`` is ``INSECURE_DEALER``; it is part of the key's bytes and identity, and the
``paillier`` scheme refuses such a key. ``InsecureToyPaillierScheme`` reads it.
"""

from collections.abc import Sequence

from anofel.committee.context import CommitteeShape
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.paillier.arithmetic.modular import invert, is_prime
from anofel.committee.paillier.arithmetic.parameters import dealt_bits, delta
from anofel.committee.paillier.arithmetic.randomness import Randomness, SystemRandomness
from anofel.committee.paillier.arithmetic.sharing import IntegerPolynomial
from anofel.committee.paillier.key import Origin, PaillierKey, SecretPaillierShare, verification_key
from anofel.committee.paillier.scheme import PaillierScheme
from anofel.ids import RunId


class InsecureToyPaillierScheme(PaillierScheme):
    """Also reads and makes toy moduli, and reads keys of the insecure dealer."""

    insecure_toy = True


def insecure_deal(
    modulus_bits: int,
    count_key: CountKey,
    count_shares: Sequence[SecretCountShare],
    randomness: Randomness | None = None,
) -> tuple[PaillierKey, list[SecretPaillierShare]]:
    """Return a dealt key and all its shares."""
    source = randomness or SystemRandomness()
    shape = count_key.shape
    p = q = _blum_prime(modulus_bits // 2, source)
    while p == q:
        q = _blum_prime(modulus_bits // 2, source)
    modulus, order = p * q, (p - 1) * (q - 1)
    secret = order * invert(order, modulus)  # 0 modulo the order, 1 modulo N
    degree = shape.threshold - 1
    polynomial = IntegerPolynomial.deal(secret, 2 * modulus_bits, shape, degree, source)
    values = [int(polynomial.at(member)) for member in shape.members]
    return _package(modulus, shape, values, count_key, count_shares)


def _package(
    modulus: int,
    shape: CommitteeShape,
    values: Sequence[int],
    count_key: CountKey,
    count_shares: Sequence[SecretCountShare],
) -> tuple[PaillierKey, list[SecretPaillierShare]]:
    bits = dealt_bits(2 * modulus.bit_length(), shape, shape.threshold - 1)
    key = PaillierKey(
        modulus=modulus,
        theta=delta(shape.num_members) % modulus,
        shape=shape,
        verification_keys=tuple(int(verification_key(modulus, shape.num_members, v)) for v in values),
        share_bits=bits,
        share_epoch=0,
        origin=Origin.INSECURE_DEALER,
        run=RunId(bytes(32)),
        generation=bytes(32),
        count_key=count_key,
    )
    shares = [
        SecretPaillierShare(
            member=count.member, shares_id=key.shares_id, value=value, share_bits=bits, count_share=count
        )
        for value, count in zip(values, count_shares, strict=True)
    ]
    return key, shares


def _blum_prime(bits: int, randomness: Randomness) -> int:
    """Return a prime p = 3 mod 4 with √2·2^(bits-1) < p < 2^bits, so that pq has exactly 2·bits bits."""
    while True:
        candidate = randomness.bits(bits) | 3 | (1 << (bits - 1))
        if candidate * candidate >> (2 * bits - 1) and is_prime(candidate):
            return candidate
