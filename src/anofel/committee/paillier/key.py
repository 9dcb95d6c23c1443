"""The committee's public key, a member's share of it, and what a client checks (step 1.c).

Public: N, θ, and v_i = g'^(Δ·F(i)) mod N² for each member, with g' a public square. F is a
polynomial of degree t-1 over the integers; F(0) is a multiple of λ(N), and θ = F(0) mod N.
"""

import hashlib
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Final

from anofel._core import committee as core
from anofel.committee import count_key
from anofel.committee.context import CommitteeShape
from anofel.committee.count_key import POINT_LENGTH, SCALAR_LENGTH, CountKey, SecretCountShare
from anofel.committee.errors import InvalidCommittee, KeyRefused, ShareRefused
from anofel.committee.interface import CommitteeKey
from anofel.committee.kept import Kept
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, encode, width
from anofel.committee.paillier.arithmetic.modular import (
    FixedBase,
    gcd,
    is_perfect_power,
    is_prime,
    mpz,
    power,
    power_secret,
    primorial,
    product,
)
from anofel.committee.paillier.arithmetic.parameters import (
    MAX_SHARE_GROWTH,
    RANDOMISER_BITS,
    check_modulus_bits,
    delta,
)
from anofel.committee.paillier.arithmetic.sharing import lagrange
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.refusal import refusing
from anofel.ids import BlobHash, KeyId, RunId, SharesId

NAME: Final = "paillier"
MAGIC: Final = b"anofel/1/paillier/key\x00"
DIGEST_BYTES: Final = 32


COUNT_KEYS: Final = 1
"""Of the keys on ristretto255 a Paillier committee has one, for the count."""


class Origin(IntEnum):
    """How the key was made."""

    DISTRIBUTED = 0
    INSECURE_DEALER = 1
    """One process knew everything; for tests."""


@lru_cache(maxsize=8)
def _randomiser(modulus: int) -> tuple[int, FixedBase]:
    """Return h and the table of h_s = h^N mod N²; h = H(N)², which everybody derives alone."""
    h = Transcript("anofel/1/paillier/randomiser-base").append("modulus", modulus).residue("h", modulus)
    h = h * h % modulus
    square = modulus * modulus
    return h, FixedBase(power(h, modulus, square), square, RANDOMISER_BITS)


@lru_cache(maxsize=8)
def _verification_base(modulus: int) -> int:
    """Return g', a public square modulo N²; nobody knows its logarithm to any other base."""
    g = (
        Transcript("anofel/1/paillier/verification-base")
        .append("modulus", modulus)
        .residue("g", modulus * modulus)
    )
    return g * g % (modulus * modulus)


@dataclass(frozen=True, kw_only=True)
class PaillierKey:
    """A committee's key. ``read_key`` validates; the constructor does not."""

    modulus: int
    theta: int
    shape: CommitteeShape
    verification_keys: tuple[int, ...] = field(repr=False)
    share_bits: int
    """Every share is positive and below 2^share_bits."""
    share_epoch: int
    origin: Origin
    run: RunId
    """The run that generated the key; a handover keeps it."""
    generation: bytes
    """Transcript of the run that made the shares."""
    count_key: CountKey = field(repr=False)

    scheme: str = field(default="paillier", init=False)

    @property
    def modulus_bits(self) -> int:
        """|N|."""
        return self.modulus.bit_length()

    @cached_property
    def square(self) -> int:
        """N², the modulus of ciphertexts."""
        return mpz(self.modulus) * self.modulus

    @cached_property
    def key_id(self) -> KeyId:
        """SHA-256 over what survives a change of shares."""
        hasher = hashlib.sha256(b"anofel/1/paillier/key-id")
        hasher.update(bytes([self.origin]) + self.run + self.modulus_bits.to_bytes(4, "little"))
        hasher.update(encode([self.modulus], width(self.modulus_bits)) + self.count_key.public)
        return KeyId(hasher.digest())

    @cached_property
    def shares_id(self) -> SharesId:
        """SHA-256 over ``to_bytes()``."""
        return SharesId(BlobHash(hashlib.sha256(self.to_bytes()).digest()))

    @property
    def h(self) -> int:
        """The base of randomisers modulo N."""
        return _randomiser(self.modulus)[0]

    @property
    def randomisers(self) -> FixedBase:
        """The table for h_s^α modulo N²."""
        return _randomiser(self.modulus)[1]

    @property
    def verification_base(self) -> int:
        """Return g', the base of the verification keys."""
        return _verification_base(self.modulus)

    @property
    def delta(self) -> int:
        """Δ = n!."""
        return delta(self.shape.num_members)

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        size = width(self.modulus_bits)
        numbers = (self.modulus_bits, 4), (self.origin, 1), (self.shape.num_members, 1)
        more = (self.shape.threshold, 1), (self.share_epoch, 4), (self.share_bits, 4)
        head = b"".join(int(value).to_bytes(length, "little") for value, length in (*numbers, *more))
        keys = encode(self.verification_keys, 2 * size)
        count = _count_bytes(self.count_key)
        head += self.run + self.generation
        return MAGIC + head + encode([self.modulus, self.theta], size) + keys + count


@dataclass(frozen=True, kw_only=True)
class SecretPaillierShare(Kept):
    """A member's F(i) and its share of the count key (kept)."""

    member: int
    shares_id: SharesId
    value: int = field(repr=False)
    share_bits: int
    count_share: SecretCountShare = field(repr=False)

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        value = encode([self.value], width(self.share_bits))
        return bytes([self.member]) + self.shares_id + value + self.count_share.scalar


def decode_key(data: bytes, *, insecure_toy: bool) -> PaillierKey:
    """Parse and validate a key. The checks, in order (1-9 as in ``docs/paillier.md``).

    1. The encoding is canonical and sizes are in range.
    2. The modulus has exactly the length it states, and the policy allows it.
    3. N is 1 modulo 4.
    4. N has no prime factor up to SMALL_FACTOR_BOUND.
    5. N is not a prime and not a perfect power.
    6. θ is a unit modulo N.
    7. Every verification key is a unit modulo N².
    8. The verification keys lie on a polynomial of degree t-1 in the exponent.
    9. The shared secret is a multiple of the order modulo N: ∏ v_i^(2·λ_i) = 1 mod N.

    THE CALLER MUST check that at least t members posted this very key.
    """
    try:
        key = _parse(data, insecure_toy=insecure_toy)
    except (Malformed, InvalidCommittee) as error:
        raise KeyRefused(f"The Paillier key is refused: {error}") from error
    _check_modulus(key)
    check_verification_keys(key)
    if key.origin is not Origin.DISTRIBUTED and not insecure_toy:
        raise KeyRefused("The Paillier key was made by an insecure dealer.")
    return key


def _parse(data: bytes, *, insecure_toy: bool) -> PaillierKey:
    reader = IntegerReader(data)
    if reader.raw(len(MAGIC)) != MAGIC:
        raise Malformed("it does not begin as a key.")
    bits, origin, members = reader.number(4), reader.number(1), reader.number(1)
    threshold, epoch, share_bits = reader.number(1), reader.number(4), reader.number(4)
    check_modulus_bits(bits, insecure_toy=insecure_toy)
    shape = CommitteeShape(num_members=members, threshold=threshold)
    if origin not in (Origin.DISTRIBUTED, Origin.INSECURE_DEALER):
        raise Malformed("its origin is unknown.")
    if not bits < share_bits <= (2 + MAX_SHARE_GROWTH) * bits:
        raise Malformed(f"shares of {share_bits} bits are out of range.")
    run, generation, size = reader.raw(DIGEST_BYTES), reader.raw(DIGEST_BYTES), width(bits)
    (modulus,) = reader.integers(size, 1, 1 << bits)
    (theta,) = reader.integers(size, 1, max(modulus, 1))
    keys = reader.integers(2 * size, members, max(modulus * modulus, 1))
    count_keys = read_count_keys(shape, reader.raw(POINT_LENGTH * (members + 1)))
    reader.end()
    if modulus.bit_length() != bits:
        raise Malformed(f"its modulus has {modulus.bit_length()} bits instead of {bits}.")
    return PaillierKey(
        modulus=modulus,
        theta=theta,
        shape=shape,
        verification_keys=tuple(keys),
        share_bits=share_bits,
        share_epoch=epoch,
        origin=Origin(origin),
        run=RunId(run),
        generation=generation,
        count_key=count_key.from_keys(shape, count_keys, 0),
    )


def _count_bytes(key: CountKey) -> bytes:
    return key.public + b"".join(key.verification_shares)


def read_count_keys(shape: CommitteeShape, data: bytes) -> core.Keys:
    """Parse and validate the count key. Raises ``KeyRefused``."""
    with refusing(KeyRefused):
        return core.Keys.read(core.Shape(COUNT_KEYS, shape.num_members, shape.threshold), data)


def count_keys_of(key: CountKey) -> core.Keys:
    """Return a count key as the core's keys."""
    return read_count_keys(key.shape, _count_bytes(key))


def check_modulus_value(modulus: int) -> None:
    """Make checks 3 to 5. Raises ``KeyRefused``."""
    if modulus % 4 != 1:
        raise KeyRefused("The modulus is not 1 modulo 4.")
    if gcd(modulus, primorial()) != 1:
        raise KeyRefused("The modulus has a small prime factor.")
    if is_prime(modulus):
        raise KeyRefused("The modulus is a prime.")
    if is_perfect_power(modulus):
        raise KeyRefused("The modulus is a perfect power.")


def _check_modulus(key: PaillierKey) -> None:
    check_modulus_value(key.modulus)
    if gcd(key.theta, key.modulus) != 1:
        raise KeyRefused("θ is not a unit modulo the modulus.")


def check_verification_keys(key: PaillierKey) -> None:
    """Make checks 7 to 9. Raises ``KeyRefused``."""
    keys, n, t = key.verification_keys, key.shape.num_members, key.shape.threshold
    if gcd(product(keys, key.square), key.modulus) != 1:
        raise KeyRefused("A verification key is not a unit.")
    base = range(1, t + 1)
    for member in range(t + 1, n + 1):
        weights = lagrange(base, n, member)
        expected = product((power(keys[i - 1], 2 * weights[i], key.square) for i in base), key.square)
        if power(keys[member - 1], 2 * key.delta, key.square) != expected:
            raise KeyRefused(f"The verification keys do not lie on a polynomial of degree {t - 1}.")
    weights = lagrange(base, n)
    if (
        product((power(keys[i - 1] % key.modulus, 2 * weights[i], key.modulus) for i in base), key.modulus)
        != 1
    ):
        raise KeyRefused("The shared secret does not decrypt under this modulus.")


def verification_key(key_modulus: int, num_members: int, share: int) -> int:
    """Return v_i = g'^(Δ·share) for a secret share."""
    base = _verification_base(key_modulus)
    return power_secret(base, delta(num_members) * share, key_modulus * key_modulus)


def decode_share(key: PaillierKey, data: bytes) -> SecretPaillierShare:
    """Read a stored share and check it against the key. Raises ``ShareRefused``."""
    reader = IntegerReader(data)
    try:
        member, shares_id = reader.number(1), reader.raw(DIGEST_BYTES)
        if member not in key.shape.members:
            raise Malformed(f"Member {member} is not in the committee.")
        if shares_id != key.shares_id:
            raise ShareRefused(
                f"The stored share of member {member} belongs to other shares of the key.", [member]
            )
        (value,) = reader.integers(width(key.share_bits), 1, 1 << key.share_bits)
        scalar = reader.raw(SCALAR_LENGTH)
        reader.end()
    except Malformed as error:
        raise ShareRefused(f"The stored share is malformed: {error}") from error
    expected = key.verification_keys[member - 1]
    if value == 0 or verification_key(key.modulus, key.shape.num_members, value) != expected:
        raise ShareRefused(
            f"The stored share of member {member} does not fit its verification key.", [member]
        )
    with refusing(ShareRefused):
        core.Secrets.read(count_keys_of(key.count_key), member, scalar)
    count = SecretCountShare(member=member, scalar=scalar)
    return SecretPaillierShare(
        member=member, shares_id=key.shares_id, value=value, share_bits=key.share_bits, count_share=count
    )


def own(key: CommitteeKey) -> PaillierKey:
    """Return the key as this scheme's. Raises ``KeyRefused`` for another scheme's key."""
    if not isinstance(key, PaillierKey):
        raise KeyRefused(f"The key is one of the {key.scheme} scheme, not of {NAME}.")
    return key
