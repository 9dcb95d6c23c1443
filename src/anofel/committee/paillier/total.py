"""Steps 7 and 8 for ``paillier``: the sum, its shares with a proof (D-09), and its opening.

The sum is one running product per position, whatever the number of clients.

A share is b_j = c_j^(2Δ·F(i)) for every ciphertext. Combined with λ_i, ∏ b^(2·λ_i) =
c^(4Δ²·F(0)) = (1+N)^(4Δ²·θ·m), because F(0) is a multiple of the order and θ = F(0) mod N.

The proof needs no safe primes (in the manner of Tiresias, ePrint 2023/998): it speaks about
squares, and who finds a wrong share that verifies has found a factor of N.

    g = g'^(2Δ), a = v_i²; h = (∏ c_j^(τ_j))^(4Δ), b = (∏ b_j^(τ_j))²
    u = g^r, w = h^r, e = H(key, agreed set, member, c, b, u, w), z = r + e·F(i) over the integers
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from anofel.committee.accumulation import PostAccumulator
from anofel.committee.context import DIGEST_LENGTH, IterationContext, TaskLimits
from anofel.committee.errors import PayloadRefused, ShareRefused, Undecodable
from anofel.committee.interface import Bytes, Int64Vector
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, encode, width
from anofel.committee.paillier.arithmetic.modular import (
    gcd,
    invert,
    mpz,
    multi_power,
    power,
    power_secret,
    powers,
    product,
)
from anofel.committee.paillier.arithmetic.packing import Packing
from anofel.committee.paillier.arithmetic.parallel import secret_powers
from anofel.committee.paillier.arithmetic.parameters import CHALLENGE_BITS, nonce_bits
from anofel.committee.paillier.arithmetic.randomness import Randomness, SystemRandomness
from anofel.committee.paillier.arithmetic.sharing import lagrange
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.paillier.contribution import CheckedCiphertexts, read_residues
from anofel.committee.paillier.key import PaillierKey, SecretPaillierShare
from anofel.ids import BlobHash, SetDigest


@dataclass(frozen=True)
class CiphertextSum:
    """The encrypted sum; everybody computes the same bytes."""

    iteration: IterationContext
    limits: TaskLimits
    set_digest: SetDigest
    num_posts: int
    residues: list[int] = field(repr=False)
    modulus_bits: int

    @cached_property
    def digest(self) -> BlobHash:
        """SHA-256 over ``to_bytes()``."""
        return BlobHash(hashlib.sha256(self.to_bytes()).digest())

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        head = self.set_digest + self.num_posts.to_bytes(4, "little")
        return head + encode(self.residues, 2 * width(self.modulus_bits))


class CiphertextAccumulator(PostAccumulator[CheckedCiphertexts, CiphertextSum]):
    """Adds contributions one by one."""

    payload_type = CheckedCiphertexts

    def __init__(self, key: PaillierKey, iteration: IterationContext, limits: TaskLimits) -> None:
        super().__init__(key.key_id, iteration, limits)
        self._key = key
        self._residues = [mpz(1)] * Packing.of(limits, key.modulus_bits).count

    def add_checked(self, payload: CheckedCiphertexts) -> None:
        """Multiply the ciphertexts."""
        square = self._key.square
        self._residues = [a * c % square for a, c in zip(self._residues, payload.residues, strict=True)]

    def make_sum(self, set_digest: SetDigest) -> CiphertextSum:
        """Return the sum of what was added."""
        bits = self._key.modulus_bits
        return CiphertextSum(self.iteration, self.limits, set_digest, self.num_posts, self._residues, bits)


def read_sum(key: PaillierKey, iteration: IterationContext, limits: TaskLimits, data: Bytes) -> CiphertextSum:
    """Parse a sum that somebody else published. Raises ``PayloadRefused``."""
    reader = IntegerReader(bytes(data))
    try:
        set_digest, num_posts = SetDigest(reader.raw(DIGEST_LENGTH)), reader.number(4)
        body = reader.raw(Packing.of(limits, key.modulus_bits).count * 2 * width(key.modulus_bits))
        reader.end()
    except Malformed as error:
        raise PayloadRefused(f"The sum is malformed: {error}") from error
    if num_posts > limits.max_posts:
        raise PayloadRefused(f"The sum claims {num_posts} posts; the task allows {limits.max_posts}.")
    residues = read_residues(key, body)
    if gcd(product(residues, key.square), key.modulus) != 1:
        raise PayloadRefused("A ciphertext of the sum is not a unit.")
    return CiphertextSum(iteration, limits, set_digest, num_posts, residues, key.modulus_bits)


@dataclass(frozen=True, slots=True)
class DecryptionShare:
    """b_j for every ciphertext, and the proof (e, z)."""

    values: list[int]
    challenge: int
    z: int

    def to_bytes(self, key: PaillierKey) -> bytes:
        """Encode canonically."""
        values = encode(self.values, 2 * width(key.modulus_bits))
        z = encode([self.z], width(nonce_bits(key.share_bits)))
        return values + encode([self.challenge], CHALLENGE_BITS // 8) + z

    @classmethod
    def from_bytes(cls, key: PaillierKey, count: int, data: Bytes) -> "DecryptionShare":
        """Decode; |z| is in range by its length."""
        reader = IntegerReader(bytes(data))
        values = reader.integers(2 * width(key.modulus_bits), count, key.square)
        challenge, bits = reader.number(CHALLENGE_BITS // 8), nonce_bits(key.share_bits)
        (z,) = reader.integers(width(bits), 1, 1 << bits)
        reader.end()
        return cls([mpz(value) for value in values], challenge, z)


def partial_decrypt(
    key: PaillierKey,
    share: SecretPaillierShare,
    residues: Sequence[int],
    binding: bytes,
    randomness: Randomness | None = None,
) -> DecryptionShare:
    """Make a member's share of every ciphertext, and prove it. ``binding`` is the agreed set's digest."""
    if share.shares_id != key.shares_id:
        raise ShareRefused(f"The secret share of member {share.member} is stale.", [share.member])
    exponent = 2 * key.delta * share.value
    values = secret_powers([(c, exponent, key.square) for c in residues])
    return prove(key, share, residues, values, binding, randomness or SystemRandomness())


def prove(
    key: PaillierKey,
    share: SecretPaillierShare,
    residues: Sequence[int],
    values: Sequence[int],
    binding: bytes,
    randomness: Randomness,
) -> DecryptionShare:
    """Prove that the values are the member's powers of the ciphertexts."""
    statement = _statement(key, share.member, residues, values, binding)
    bits = nonce_bits(share.share_bits)
    while True:
        r = randomness.bits(bits)
        u, w = power_secret(statement.g, r, key.square), power_secret(statement.h, r, key.square)
        e = statement.challenge(u, w)
        z = r + e * share.value
        if z < 1 << bits:  # fails with probability 2^-κ
            return DecryptionShare(list(values), e, int(z))


def verify_share(
    key: PaillierKey, member: int, residues: Sequence[int], binding: bytes, data: Bytes
) -> DecryptionShare:
    """Check a member's share. Raises ``ShareRefused`` with the member as culprit.

    1. The member is in the committee and the encoding is canonical.
    2. Every value is a unit.
    3. e is the challenge for u = g^z·a^(-e) and w = h^z·b^(-e).
    """
    if member not in key.shape.members:  # (1)
        raise ShareRefused(f"Member {member} is not in the committee.", [member])
    try:
        share = DecryptionShare.from_bytes(key, len(residues), data)
    except Malformed as error:
        raise ShareRefused(f"The share of member {member} is malformed: {error}", [member]) from error
    if gcd(product(share.values, key.square), key.modulus) != 1:  # (2)
        raise ShareRefused(f"The share of member {member} holds a value that is not a unit.", [member])
    statement = _statement(key, member, residues, share.values, binding)
    u = power(statement.g, share.z, key.square) * power(statement.a, -share.challenge, key.square)
    w = power(statement.h, share.z, key.square) * power(statement.b, -share.challenge, key.square)
    if statement.challenge(u % key.square, w % key.square) != share.challenge:  # (3)
        raise ShareRefused(f"The proof of member {member}'s share does not hold.", [member])
    return share


def combine(key: PaillierKey, total: CiphertextSum, shares: Mapping[int, DecryptionShare]) -> Int64Vector:
    """Return the sum from t members' verified shares."""
    columns = {member: share.values for member, share in shares.items()}
    plaintexts = list(open_ciphertexts(key, columns))
    return Packing.of(total.limits, key.modulus_bits).unpack(plaintexts, total.num_posts)


def open_ciphertexts(key: PaillierKey, columns: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """Yield centred plaintexts from t members' verified values."""
    modulus, square = mpz(key.modulus), key.square
    raised = []
    for member, weight in lagrange(tuple(columns), key.shape.num_members).items():
        values = columns[member] if weight > 0 else [invert(value, square) for value in columns[member]]
        raised.append(powers(values, 2 * abs(weight), square))
    scale = invert(4 * key.delta * key.delta * key.theta, modulus)
    for row in zip(*raised, strict=True):
        quotient, remainder = divmod(product(row, square) - 1, modulus)
        if remainder:
            raise Undecodable("The shares do not open the sum.")
        plaintext = quotient * scale % modulus
        yield int(plaintext - modulus if plaintext > modulus // 2 else plaintext)


@dataclass(frozen=True, slots=True)
class _Statement:
    """log_g(a) = log_h(b), with the transcript of everything it depends on."""

    transcript: Transcript
    g: int
    a: int
    h: int
    b: int

    def challenge(self, u: int, w: int) -> int:
        return self.transcript.fork().append("u", int(u)).append("w", int(w)).challenge("e")


def _statement(
    key: PaillierKey, member: int, residues: Sequence[int], values: Sequence[int], binding: bytes
) -> _Statement:
    size = 2 * width(key.modulus_bits)
    transcript = (
        Transcript("anofel/1/paillier/decryption-share")
        .append("shares", key.shares_id)
        .append("agreed", binding)
    )
    transcript.append("member", member)
    transcript.append("ciphertexts", encode(residues, size)).append("values", encode(values, size))
    folding = transcript.challenges("fold", len(residues))
    folded_c = multi_power(residues, folding, key.square)
    folded_b = multi_power(values, folding, key.square)
    return _Statement(
        transcript,
        g=power(key.verification_base, 2 * key.delta, key.square),
        a=power(key.verification_keys[member - 1], 2, key.square),
        h=power(folded_c, 4 * key.delta, key.square),
        b=power(folded_b, 2, key.square),
    )
