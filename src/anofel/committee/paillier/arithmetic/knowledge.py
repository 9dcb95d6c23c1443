"""Proof of plaintext knowledge for a whole vector of ciphertexts, bound to its post (D-10).

Statement: for every c_i the prover knows m_i and r_i with c_i = (1+N)^(m_i)·r_i^N mod N².
The vector is folded with challenges x_i that depend on all of it, C = ∏ c_i^(x_i); then

    a = (1+N)^μ·ρ^N,  e = H(key, post, c, a),  z = μ + e·M mod N,  w = ρ·R^e mod N

with M = Σ x_i·m_i and R = ∏ r_i^(x_i). Accept iff (1+N)^z·w^N = a·C^e. The proof is (e, z, w).
Sound if both primes of N are above 2^CHALLENGE_BITS; no safe primes are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from anofel.committee.context import PostContext
from anofel.committee.errors import PayloadRefused
from anofel.committee.kept import Kept
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, encode, width
from anofel.committee.paillier.arithmetic.modular import (
    gcd,
    mpz,
    multi_power,
    power,
    power_secret,
)
from anofel.committee.paillier.arithmetic.parameters import CHALLENGE_BITS
from anofel.committee.paillier.arithmetic.randomness import Randomness
from anofel.committee.paillier.arithmetic.transcript import Transcript, append_post
from anofel.committee.paillier.key import PaillierKey


@dataclass(frozen=True, slots=True)
class KnowledgeProof:
    """(e, z, w)."""

    challenge: int
    z: int
    w: int

    @staticmethod
    def length(modulus_bits: int) -> int:
        """Bytes of an encoded proof."""
        return CHALLENGE_BITS // 8 + 2 * width(modulus_bits)

    def to_bytes(self, modulus_bits: int) -> bytes:
        """Encode canonically."""
        return encode([self.challenge], CHALLENGE_BITS // 8) + encode([self.z, self.w], width(modulus_bits))

    @classmethod
    def from_bytes(cls, data: bytes, modulus: int) -> "KnowledgeProof":
        """Decode; z and w are reduced modulo N."""
        reader = IntegerReader(data)
        challenge = reader.number(CHALLENGE_BITS // 8)
        z, w = reader.integers(width(modulus.bit_length()), 2, modulus)
        reader.end()
        return cls(challenge, z, w)


@dataclass(frozen=True, slots=True)
class SecretFirstMessage(Kept):
    """μ, ρ and a, made before the plaintexts are known (kept, used once)."""

    mu: int = field(repr=False)
    rho: int = field(repr=False)
    commitment: int = field(repr=False)

    @classmethod
    def draw(cls, key: PaillierKey, randomness: Randomness) -> "SecretFirstMessage":
        """Draw a first message."""
        mu, rho = randomness.below(key.modulus), randomness.below(key.modulus - 1) + 1
        commitment = (1 + mu * mpz(key.modulus)) * power(rho, key.modulus, key.square) % key.square
        return cls(mu, rho, commitment)


@dataclass(frozen=True, slots=True)
class SecretFolding(Kept):
    """What opens C = ∏ c_i^(x_i): M = Σ x_i·m_i mod N, and Σ x_i·α_i, as r_i = h^(α_i) (kept)."""

    plaintext: int = field(repr=False)
    exponent: int = field(repr=False)

    @classmethod
    def of(
        cls,
        key: PaillierKey,
        context: PostContext,
        ciphertexts: bytes,
        plaintexts: Sequence[int],
        exponents: Sequence[int],
    ) -> "SecretFolding":
        """Fold plaintexts and exponents as the verifier folds the ciphertexts."""
        folding = _transcript(key, context, ciphertexts).challenges("fold", len(plaintexts))
        folded = sum(x * m for x, m in zip(folding, plaintexts, strict=True)) % key.modulus
        return cls(folded, sum(x * a for x, a in zip(folding, exponents, strict=True)))


def prove(
    key: PaillierKey,
    context: PostContext,
    ciphertexts: bytes,
    folding: SecretFolding,
    first: SecretFirstMessage,
) -> KnowledgeProof:
    """Prove knowledge of the plaintexts; R = h^(Σ x_i·α_i)."""
    e = _transcript(key, context, ciphertexts).append("a", int(first.commitment)).challenge("e")
    z = (first.mu + e * folding.plaintext) % key.modulus
    w = first.rho * power_secret(key.h, e * folding.exponent, key.modulus)
    return KnowledgeProof(e, int(z), int(w % key.modulus))


def verify(
    key: PaillierKey,
    context: PostContext,
    ciphertexts: bytes,
    residues: Sequence[int],
    proof: KnowledgeProof,
) -> int:
    """Check a proof and return C. Raises ``PayloadRefused``.

    1. Every ciphertext is a unit: their folded product is one.
    2. w is a unit modulo N.
    3. e is the challenge for a = (1+N)^z·w^N·C^(-e).
    """
    transcript = _transcript(key, context, ciphertexts)
    folded = multi_power(residues, transcript.challenges("fold", len(residues)), key.square)
    if gcd(folded, key.modulus) != 1:  # (1)
        raise PayloadRefused("A ciphertext is not a unit.")
    if gcd(proof.w, key.modulus) != 1:  # (2)
        raise PayloadRefused("The response of the proof of knowledge is not a unit.")
    commitment = (1 + proof.z * mpz(key.modulus)) * power(proof.w, key.modulus, key.square)
    commitment = commitment * power(folded, -proof.challenge, key.square) % key.square
    if transcript.append("a", int(commitment)).challenge("e") != proof.challenge:  # (3)
        raise PayloadRefused("The proof of plaintext knowledge does not hold for this post.")
    return folded


def read_proof(data: bytes, modulus: int) -> KnowledgeProof:
    """Decode a proof. Raises ``PayloadRefused``."""
    try:
        return KnowledgeProof.from_bytes(data, modulus)
    except Malformed as error:
        raise PayloadRefused(f"The proof of knowledge is malformed: {error}") from error


def _transcript(key: PaillierKey, context: PostContext, ciphertexts: bytes) -> Transcript:
    transcript = Transcript("anofel/1/paillier/plaintext-knowledge").append("key", key.key_id)
    append_post(transcript, context)
    return transcript.append("ciphertexts", ciphertexts)
