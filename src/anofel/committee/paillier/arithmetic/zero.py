"""Proof that a contribution is zero where its ballot's bit is 0 (D-23).

U = k·G, V = k·Y + b·G is the ballot's bit for this committee, and C = ∏ c_i^(x_i) the folded
vector of the proof of plaintext knowledge. The statement has two branches:

0. *zero*: U = k·G, V = k·Y and C = W^N mod N², or
1. *one*: U = k·G and V - G = k·Y.

A vector of which one plaintext is not 0 modulo N folds to an N-th residue with probability below
2^-127, so *zero* is true of vectors of zeros alone. The branches' challenges have 128 bits and
add up to e modulo 2^128; a branch's challenge is the same integer in both groups:

    b = 0: a = ω^N, e = H(key, post, bit, payload, first messages, a), w = ω·W^(e₀) mod N
    b = 1: a = w^N·C^(-e₀) for a w and an e₀ that are drawn before e is known

Accept iff e₀ + e₁ = e for the first messages that the answers belong to, among them
a = w^N·C^(-e₀). Sound if both primes of N and the order of ristretto255 are above
2^CHALLENGE_BITS; no safe primes are needed (``docs/paillier.md``). The responses are uniform, so
they hide perfectly which branch is true.
"""

from dataclasses import dataclass, field

from anofel._core import count as core
from anofel.committee.context import PostContext
from anofel.committee.errors import InvalidContext, PayloadRefused
from anofel.committee.kept import Kept
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, encode, width
from anofel.committee.paillier.arithmetic.knowledge import SecretFolding
from anofel.committee.paillier.arithmetic.modular import gcd, mpz, power, power_secret
from anofel.committee.paillier.arithmetic.parameters import CHALLENGE_BITS
from anofel.committee.paillier.arithmetic.randomness import Randomness
from anofel.committee.paillier.arithmetic.transcript import Transcript, append_post
from anofel.committee.paillier.key import PaillierKey
from anofel.committee.refusal import refusing

BRANCHES_BYTES = 96
"""e₀ ‖ z₀ ‖ e₁ ‖ z₁, on ristretto255."""


@dataclass(frozen=True, slots=True)
class ZeroStatement:
    """What the proof is about."""

    key: PaillierKey
    context: PostContext
    bit: bytes
    """U ‖ V."""
    payload: bytes
    """The payload before this proof: ciphertexts and proof of knowledge."""
    folded: int
    """C, as the proof of knowledge folds the ciphertexts."""

    def challenge(self, first_messages: bytes, residue: int) -> int:
        """Return e; the key's name covers N and Y."""
        transcript = Transcript("anofel/1/paillier/zero").append("key", self.key.key_id)
        append_post(transcript, self.context)
        transcript.append("bit", self.bit).append("payload", self.payload)
        return transcript.append("first", first_messages).append("a", residue).challenge("e")


@dataclass(frozen=True, slots=True)
class ZeroProof:
    """Both branches on ristretto255, and w."""

    branches: bytes
    w: int

    @staticmethod
    def length(modulus_bits: int) -> int:
        """Bytes of an encoded proof."""
        return BRANCHES_BYTES + width(modulus_bits)

    def to_bytes(self, modulus_bits: int) -> bytes:
        """Encode canonically."""
        return self.branches + encode([self.w], width(modulus_bits))

    @classmethod
    def from_bytes(cls, data: bytes, modulus: int) -> "ZeroProof":
        """Decode; w is reduced modulo N."""
        reader = IntegerReader(data)
        branches = reader.raw(BRANCHES_BYTES)
        (w,) = reader.integers(width(modulus.bit_length()), 1, modulus)
        reader.end()
        return cls(branches, w)


@dataclass(frozen=True, slots=True)
class SecretZeroWitness(Kept):
    """What opens the bit, and what was drawn for it before the vector is known (kept, used once)."""

    bit: bytes
    branches: core.SecretBranches = field(repr=False)
    omega: int = field(repr=False)
    residue: int = field(repr=False)
    """ω^N."""

    @classmethod
    def draw(cls, key: PaillierKey, bit: core.CastBit, randomness: Randomness) -> "SecretZeroWitness":
        """Draw both branches. Raises ``InvalidContext`` for another committee's bit."""
        with refusing(InvalidContext):
            branches = bit.begin(key.count_key.public)
        omega = randomness.below(key.modulus - 1) + 1
        return cls(bit.ciphertext, branches, omega, power(omega, key.modulus, key.square))

    @property
    def is_one(self) -> bool:
        """Whether the bit is 1."""
        return self.branches.simulated_zero is not None


def fold(key: PaillierKey, folding: SecretFolding) -> int:
    """Return C = (1+N)^M·h_s^(Σ x_i·α_i) from what opens it."""
    masked = power_secret(key.randomisers.base, folding.exponent, key.square)
    return (1 + folding.plaintext * mpz(key.modulus)) * masked % key.square


def prove(statement: ZeroStatement, folding: SecretFolding, witness: SecretZeroWitness) -> ZeroProof:
    """Prove the branch that the bit makes true; W = h^(Σ x_i·α_i)."""
    key, branches = statement.key, witness.branches
    simulated = branches.simulated_zero
    residue, w = witness.residue, mpz(witness.omega)
    if simulated is not None:
        residue = residue * power(statement.folded, -simulated, key.square) % key.square
    e = statement.challenge(branches.first_messages, int(residue))
    answered = branches.respond(e)
    if simulated is None:
        e_zero = int.from_bytes(answered[: CHALLENGE_BITS // 8], "little")
        w = w * power_secret(key.h, e_zero * folding.exponent, key.modulus)
    return ZeroProof(answered, int(w % key.modulus))


def verify(statement: ZeroStatement, proof: ZeroProof) -> None:
    """Check a proof for a unit C. Raises ``PayloadRefused``.

    1. The bit, and the branches on ristretto255, are canonical.
    2. w is a unit modulo N.
    3. e₀ + e₁ = e modulo 2^128, where e is the challenge for z₀·G - e₀·U, z₀·Y - e₀·V,
       z₁·G - e₁·U, z₁·Y - e₁·(V - G) and a = w^N·C^(-e₀).
    """
    key = statement.key
    with refusing(PayloadRefused):  # (1)
        answered = core.answered_branches(key.count_key.public, statement.bit, proof.branches)
    if gcd(proof.w, key.modulus) != 1:  # (2)
        raise PayloadRefused("The response of the proof of zero is not a unit.")
    residue = power(proof.w, key.modulus, key.square) * power(statement.folded, -answered.zero, key.square)
    e = statement.challenge(answered.first_messages, int(residue % key.square))
    if (answered.zero + answered.one - e) % (1 << CHALLENGE_BITS):  # (3)
        raise PayloadRefused("The proof that the vector is zero where its bit is 0 does not hold.")


def read_proof(data: bytes, modulus: int) -> ZeroProof:
    """Decode a proof. Raises ``PayloadRefused``."""
    try:
        return ZeroProof.from_bytes(data, modulus)
    except Malformed as error:
        raise PayloadRefused(f"The proof of zero is malformed: {error}") from error
