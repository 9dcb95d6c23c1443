"""Step 5 - encrypt an update for one committee, in two parts: before and after training.

c_i = (1 + m_i·N)·h_s^(α_i) mod N². Everything but m_i is made by ``prepare``.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from anofel._core.count import CastBit
from anofel.committee.accumulation import PostPayload
from anofel.committee.context import PostContext, TaskLimits
from anofel.committee.errors import (
    EnvelopeRefused,
    InvalidContext,
    PayloadRefused,
    PreparationUsed,
    VectorRefused,
)
from anofel.committee.interface import Bytes, Contribution, Envelope, Int64Vector
from anofel.committee.kept import Kept
from anofel.committee.paillier.arithmetic import knowledge, zero
from anofel.committee.paillier.arithmetic.integers import Malformed, decode, encode, width
from anofel.committee.paillier.arithmetic.knowledge import (
    KnowledgeProof,
    SecretFirstMessage,
    SecretFolding,
)
from anofel.committee.paillier.arithmetic.modular import mpz
from anofel.committee.paillier.arithmetic.packing import Packing
from anofel.committee.paillier.arithmetic.parameters import RANDOMISER_BITS
from anofel.committee.paillier.arithmetic.randomness import Randomness, SystemRandomness
from anofel.committee.paillier.arithmetic.transcript import Transcript, append_post
from anofel.committee.paillier.arithmetic.zero import SecretZeroWitness, ZeroProof, ZeroStatement
from anofel.committee.paillier.key import PaillierKey
from anofel.committee.refusal import refuse_batch
from anofel.ids import BlobHash


class SecretPreparation(Kept):
    """All that does not depend on the update (kept, used once)."""

    __slots__ = ("_randomisers", "context", "first", "key", "packing", "witness")

    def __init__(
        self,
        key: PaillierKey,
        context: PostContext,
        packing: Packing,
        randomisers: tuple[list[int], list[int]],
        first: SecretFirstMessage,
        witness: SecretZeroWitness | None,
    ) -> None:
        self.key, self.context, self.packing, self.first = key, context, packing, first
        self.witness = witness
        self._randomisers: tuple[list[int], list[int]] | None = randomisers

    def __repr__(self) -> str:
        return "SecretPreparation(<redacted>)"

    def encrypt(self, values: Int64Vector) -> Contribution:
        """Encrypt and prove a vector. Raises ``VectorRefused``."""
        self.packing.check(values)
        witness = self.witness
        if witness is not None and not witness.is_one and values.any():
            raise VectorRefused("The ballot's bit is 0, so the vector must be zero.")
        exponents, masks = self._consume()
        key, modulus, square = self.key, mpz(self.key.modulus), self.key.square
        plaintexts = self.packing.pack(values)
        residues = [
            (1 + m % modulus * modulus) * mask % square for m, mask in zip(plaintexts, masks, strict=True)
        ]
        ciphertexts = encode(residues, 2 * width(key.modulus_bits))
        folding = SecretFolding.of(key, self.context, ciphertexts, plaintexts, exponents)
        proof = knowledge.prove(key, self.context, ciphertexts, folding, self.first)
        payload, bit = ciphertexts + proof.to_bytes(key.modulus_bits), b""
        if witness is not None:
            bit = witness.bit
            statement = ZeroStatement(key, self.context, bit, payload, zero.fold(key, folding))
            payload += zero.prove(statement, folding, witness).to_bytes(key.modulus_bits)
        digest = BlobHash(hashlib.sha256(payload).digest())
        binding = _binding(key, self.context, len(payload), digest)
        envelope = Envelope(proof=binding, payload_length=len(payload), payload_sha256=digest, bit=bit)
        return Contribution(envelope, payload)

    def _consume(self) -> tuple[list[int], list[int]]:
        """Return exponents and masks, once: a mask used twice shows the difference of two updates."""
        if self._randomisers is None:
            raise PreparationUsed("This preparation has encrypted a vector already.")
        taken, self._randomisers = self._randomisers, None
        return taken


@dataclass(frozen=True, slots=True)
class CheckedCiphertexts(PostPayload):
    """A payload that passed ``verify_payload``, parsed."""

    residues: list[int]


def payload_bytes(key: PaillierKey, limits: TaskLimits) -> int:
    """Return the exact length of a payload: ciphertexts, proof of knowledge, proof of zero."""
    count = Packing.of(limits, key.modulus_bits).count
    known = count * 2 * width(key.modulus_bits) + KnowledgeProof.length(key.modulus_bits)
    return known + zero_proof_bytes(key, limits)


def zero_proof_bytes(key: PaillierKey, limits: TaskLimits) -> int:
    """Return the length of the proof of zero; nothing if the task does without."""
    return ZeroProof.length(key.modulus_bits) if limits.proven else 0


def prepare(
    key: PaillierKey,
    context: PostContext,
    limits: TaskLimits,
    bit: CastBit | None,
    randomness: Randomness | None = None,
) -> SecretPreparation:
    """Make the randomisers h_s^α and the proofs' first messages. Raises ``InvalidContext``."""
    if limits.proven and bit is None:
        raise InvalidContext("A proven contribution needs the ballot's bit.")
    source = randomness or SystemRandomness()
    packing = Packing.of(limits, key.modulus_bits)
    witness = SecretZeroWitness.draw(key, bit, source) if limits.proven and bit is not None else None
    exponents = [source.bits(RANDOMISER_BITS) for _ in range(packing.count)]
    table = key.randomisers
    masks = [table.power(exponent) for exponent in exponents]
    first = SecretFirstMessage.draw(key, source)
    return SecretPreparation(key, context, packing, (exponents, masks), first, witness)


def verify_envelope(key: PaillierKey, context: PostContext, limits: TaskLimits, envelope: Envelope) -> None:
    """Check what admission can check without the payload. Raises ``EnvelopeRefused``.

    1. The payload has the one length that the task allows.
    2. The digest binds this key, this post and this payload.
    """
    if envelope.payload_length != payload_bytes(key, limits):  # (1)
        raise EnvelopeRefused(
            f"The payload has {envelope.payload_length} bytes; this task's have {payload_bytes(key, limits)}."
        )
    expected = _binding(key, context, envelope.payload_length, envelope.payload_sha256)
    if envelope.proof != expected:  # (2)
        raise EnvelopeRefused("The envelope is bound to another key, post or payload.")


def verify_envelopes(
    key: PaillierKey, limits: TaskLimits, items: Sequence[tuple[PostContext, Envelope]]
) -> None:
    """Check many envelopes, one by one: each is a hash. Raises ``EnvelopeRefused``."""
    refused: dict[int, str] = {}
    for index, (context, envelope) in enumerate(items):
        try:
            verify_envelope(key, context, limits, envelope)
        except EnvelopeRefused as error:
            refused[index] = str(error)
    refuse_batch(EnvelopeRefused, len(items), refused)


def verify_payload(
    key: PaillierKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
) -> CheckedCiphertexts:
    """Check and parse a payload. Raises ``PayloadRefused``.

    1. Length and SHA-256 are those of the envelope.
    2. Every ciphertext is a canonical residue modulo N², not zero.
    3. The proof of plaintext knowledge holds for this post (``knowledge.verify``).
    4. The proof of zero holds for this post and the ballot's bit (``zero.verify``), unless the task
       does without.
    """
    data = bytes(payload)
    if len(data) != payload_bytes(key, limits) or len(data) != envelope.payload_length:  # (1)
        raise PayloadRefused(
            f"The payload has {len(data)} bytes; this task's have {payload_bytes(key, limits)}."
        )
    if hashlib.sha256(data).digest() != envelope.payload_sha256:
        raise PayloadRefused("The payload is not the one that the envelope names.")
    end = len(data) - zero_proof_bytes(key, limits)
    start = end - KnowledgeProof.length(key.modulus_bits)
    residues = read_residues(key, data[:start])  # (2)
    proof = knowledge.read_proof(data[start:end], key.modulus)
    folded = knowledge.verify(key, context, data[:start], residues, proof)  # (3)
    if limits.proven:  # (4)
        statement = ZeroStatement(key, context, envelope.bit, data[:end], folded)
        zero.verify(statement, zero.read_proof(data[end:], key.modulus))
    return CheckedCiphertexts(context, key.key_id, limits, residues)


def read_residues(key: PaillierKey, data: bytes) -> list[int]:
    """Read ciphertexts: canonical and not zero. Raises ``PayloadRefused``."""
    size = 2 * width(key.modulus_bits)
    try:
        residues = [mpz(c) for c in decode(data, size, len(data) // size, key.square)]
    except Malformed as error:
        raise PayloadRefused(f"A ciphertext is malformed: {error}") from error
    if not all(residues):
        raise PayloadRefused("A ciphertext is zero.")
    return residues


def _binding(key: PaillierKey, context: PostContext, length: int, digest: bytes) -> bytes:
    transcript = Transcript("anofel/1/paillier/envelope").append("key", key.key_id)
    append_post(transcript, context)
    return transcript.append("length", length).append("payload", digest).digest("envelope")
