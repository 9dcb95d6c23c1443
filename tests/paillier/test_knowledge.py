"""The proof of plaintext knowledge: completeness, one negative per check and field, attacks."""

import hashlib
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from anofel.committee.context import PostContext
from anofel.committee.errors import EnvelopeRefused, PayloadRefused, PreparationUsed, VectorRefused
from anofel.committee.interface import Contribution, Envelope
from anofel.committee.paillier import contribution
from anofel.committee.paillier.arithmetic import knowledge
from anofel.committee.paillier.arithmetic.knowledge import KnowledgeProof, SecretFolding
from anofel.committee.paillier.arithmetic.transcript import Transcript, append_post
from anofel.committee.paillier.key import PaillierKey
from anofel.committee.paillier.total import open_ciphertexts, partial_decrypt
from tests.paillier.support import ITERATION, SCHEME, Committee, deal_committee, post

SIZE = 128  # bytes of a ciphertext at toy size


def repack(context: PostContext, key, payload: bytes) -> Contribution:
    """Make an envelope that fits the payload, as a cheating client would."""
    digest = hashlib.sha256(payload).digest()
    proof = contribution._binding(key, context, len(payload), digest)
    return Contribution(Envelope(proof=proof, payload_length=len(payload), payload_sha256=digest), payload)


def verify(committee: Committee, context: PostContext, made: Contribution) -> None:
    SCHEME.verify_envelope(committee.key, context, committee.limits, made.envelope)
    SCHEME.verify_payload(committee.key, context, committee.limits, made.envelope, made.payload)


def residues(made: Contribution) -> list[int]:
    data = made.payload[: -KnowledgeProof.length(512)]
    return [int.from_bytes(data[i : i + SIZE], "little") for i in range(0, len(data), SIZE)]


def with_residues(made: Contribution, changed: list[int], proof: bytes | None = None) -> bytes:
    tail = made.payload[-KnowledgeProof.length(512) :] if proof is None else proof
    return b"".join(int(c).to_bytes(SIZE, "little") for c in changed) + tail


def proof_of(made: Contribution, key) -> KnowledgeProof:
    return KnowledgeProof.from_bytes(made.payload[-KnowledgeProof.length(512) :], key.modulus)


def test_an_honest_contribution_verifies(committee: Committee) -> None:
    context, made = committee.contribute(1, committee.vector())
    verify(committee, context, made)
    assert len(made.payload) == SCHEME.payload_bytes(committee.key, committee.limits)


def test_a_batch_of_envelopes_names_the_bad_ones(committee: Committee) -> None:
    made = [committee.contribute(number, committee.vector()) for number in range(3)]
    items = [(context, one.envelope) for context, one in made]
    SCHEME.verify_envelopes(committee.key, committee.limits, items)
    items[0] = (items[1][0], items[0][1])
    items[2] = (items[2][0], replace(items[2][1], payload_length=3))
    with pytest.raises(EnvelopeRefused, match="2 of 3 are refused; number 0: The envelope is") as caught:
        SCHEME.verify_envelopes(committee.key, committee.limits, items)
    assert caught.value.indices == (0, 2)
    assert "3 bytes" in caught.value.reasons[2]


def test_a_decoy_looks_like_an_update(committee: Committee) -> None:
    zero = committee.contribute(1, np.zeros(40, dtype=np.int64))
    verify(committee, *zero)
    assert len(zero[1].payload) == len(committee.contribute(1, committee.vector())[1].payload)


def test_a_preparation_is_used_once_and_not_by_a_refused_vector(committee: Committee) -> None:
    prepared = SCHEME.prepare(committee.key, post(1), committee.limits)
    with pytest.raises(VectorRefused):
        prepared.encrypt(np.zeros(3, dtype=np.int64))
    prepared.encrypt(committee.vector())
    with pytest.raises(PreparationUsed):
        prepared.encrypt(committee.vector())
    assert "redacted" in repr(prepared)
    assert str(prepared.first.mu) not in repr(prepared.first)


def test_two_preparations_of_one_post_differ(committee: Committee) -> None:
    assert residues(committee.contribute(1, committee.vector())[1]) != residues(
        committee.contribute(1, committee.vector())[1]
    )


# Checks of the payload


def test_a_payload_of_another_length_is_refused(committee: Committee) -> None:
    context, made = committee.contribute(1, committee.vector())
    longer = repack(context, committee.key, made.payload + b"\0")
    with pytest.raises(EnvelopeRefused, match="bytes"):
        SCHEME.verify_envelope(committee.key, context, committee.limits, longer.envelope)
    with pytest.raises(PayloadRefused, match="bytes"):
        SCHEME.verify_payload(committee.key, context, committee.limits, longer.envelope, longer.payload)


def test_a_payload_that_the_envelope_does_not_name_is_refused(committee: Committee) -> None:
    context, made = committee.contribute(1, committee.vector())
    changed = bytes([made.payload[0] ^ 1]) + made.payload[1:]
    with pytest.raises(PayloadRefused, match="envelope"):
        SCHEME.verify_payload(committee.key, context, committee.limits, made.envelope, changed)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda _key, _c: 0, "zero"),
        (lambda key, _c: int(key.square), "reduced"),
        (lambda key, _c: key.modulus, "unit"),
    ],
)
def test_a_ciphertext_that_is_no_canonical_unit_is_refused(
    committee: Committee, bad: Callable, words: str
) -> None:
    context, made = committee.contribute(1, committee.vector())
    first, *rest = residues(made)
    value = bad(committee.key, first)
    cheat = repack(context, committee.key, with_residues(made, [value, *rest]))
    with pytest.raises(PayloadRefused, match=words):
        verify(committee, context, cheat)


@pytest.mark.parametrize("part", ["challenge", "z", "w"])
def test_each_part_of_the_proof_counts(committee: Committee, part: str) -> None:
    context, made = committee.contribute(1, committee.vector())
    proof = proof_of(made, committee.key)
    changed = replace(proof, **{part: getattr(proof, part) ^ 2})
    payload = with_residues(made, residues(made), changed.to_bytes(512))
    with pytest.raises(PayloadRefused, match="does not hold"):
        verify(committee, context, repack(context, committee.key, payload))


@pytest.mark.parametrize(("part", "words"), [("z", "reduced"), ("w", "reduced"), ("w0", "unit")])
def test_responses_are_reduced_units(committee: Committee, part: str, words: str) -> None:
    context, made = committee.contribute(1, committee.vector())
    proof = proof_of(made, committee.key)
    if part == "w0":
        changed = replace(proof, w=0)
    else:
        value = getattr(proof, part) + committee.key.modulus
        if value >= 1 << 512:
            value = (1 << 512) - 1
        changed = replace(proof, **{part: value})
    payload = with_residues(made, residues(made), changed.to_bytes(512))
    with pytest.raises(PayloadRefused, match=words):
        verify(committee, context, repack(context, committee.key, payload))


def test_the_all_zero_forgery_is_refused(committee: Committee) -> None:
    """c = a = w = 0 satisfies the equation; the unit checks refuse it."""
    context, made = committee.contribute(1, committee.vector())
    zeros = replace(proof_of(made, committee.key), z=0, w=0)
    payload = with_residues(made, [committee.key.modulus] * 2, zeros.to_bytes(512))
    with pytest.raises(PayloadRefused, match="unit"):
        verify(committee, context, repack(context, committee.key, payload))


FIELDS = [
    lambda c: replace(c, nullifier=b"x" * 32),
    lambda c: replace(c, tag=b"x" * 32),
    lambda c: replace(c, pk_sig=b"x" * 32),
    lambda c: replace(c, iteration=replace(c.iteration, genesis=b"x" * 32)),
    lambda c: replace(c, iteration=replace(c.iteration, task=b"x" * 32)),
    lambda c: replace(c, iteration=replace(c.iteration, iteration=8)),
    lambda c: replace(c, iteration=replace(c.iteration, scope=b"x" * 32)),
    lambda c: replace(c, iteration=replace(c.iteration, position=2)),
]


@pytest.mark.parametrize("change", FIELDS)
def test_every_field_of_the_post_is_bound(committee: Committee, change: Callable) -> None:
    context, made = committee.contribute(1, committee.vector())
    other = change(context)
    with pytest.raises(EnvelopeRefused, match="bound"):
        SCHEME.verify_envelope(committee.key, other, committee.limits, made.envelope)
    with pytest.raises(PayloadRefused, match="does not hold"):
        verify(committee, other, repack(other, committee.key, made.payload))


def test_the_key_is_bound(committee: Committee) -> None:
    context, made = committee.contribute(1, committee.vector())
    public = replace(committee.key.count_key, public=b"\x01" * 32)
    other = replace(committee.key, count_key=public)
    with pytest.raises(EnvelopeRefused, match="bound"):
        SCHEME.verify_envelope(other, context, committee.limits, made.envelope)
    with pytest.raises(PayloadRefused, match="does not hold"):
        SCHEME.verify_payload(
            other,
            context,
            committee.limits,
            repack(context, other, made.payload).envelope,
            made.payload,
        )


@pytest.mark.parametrize("index", [0, 1])
def test_every_ciphertext_is_bound(committee: Committee, index: int) -> None:
    context, made = committee.contribute(1, committee.vector())
    changed = residues(made)
    changed[index] = changed[index] * (1 + committee.key.modulus) % int(committee.key.square)
    with pytest.raises(PayloadRefused, match="does not hold"):
        verify(committee, context, repack(context, committee.key, with_residues(made, changed)))


# Attacks on another client's contribution. The attacker moves the proof along, so that its equation
# (1+N)^z·w^N = a·C^e still holds for the victim's challenges x_i and e. Only that the challenges
# cover post, ciphertexts and a stands in the way.


@dataclass
class Claim:
    """Ciphertexts with their proof, and the challenges x_i that fold them."""

    key: PaillierKey
    values: list[int]
    proof: KnowledgeProof
    folding: list[int]

    def first_message(self) -> int:
        """The only a for which the equation holds."""
        n, square, e = self.key.modulus, int(self.key.square), self.proof.challenge
        left = (1 + self.proof.z * n) * pow(self.proof.w, n, square)
        return left * pow(folded(self.values, self.folding, square), -e, square) % square

    def payload(self) -> bytes:
        return b"".join(int(c).to_bytes(SIZE, "little") for c in self.values) + self.proof.to_bytes(512)


def folded(values: list[int], folding: list[int], modulus: int) -> int:
    return math.prod(pow(v, x, modulus) for v, x in zip(values, folding, strict=True)) % modulus


def rerandomised(victim: Claim) -> Claim:
    """c_i·s_i^N: the folded randomiser grows by ∏ s_i^(x_i)."""
    n, square = victim.key.modulus, int(victim.key.square)
    noise = [secrets.randbelow(n - 2) + 2 for _ in victim.values]
    values = [c * pow(s, n, square) % square for c, s in zip(victim.values, noise, strict=True)]
    growth = pow(folded(noise, victim.folding, n), victim.proof.challenge, n)
    return replace(victim, values=values, proof=replace(victim.proof, w=victim.proof.w * growth % n))


def shifted(victim: Claim) -> Claim:
    """m_i + 5: the folded plaintext grows by 5·Σ x_i."""
    n, square, proof = victim.key.modulus, int(victim.key.square), victim.proof
    values = [c * (1 + 5 * n) % square for c in victim.values]
    z = (proof.z + proof.challenge * 5 * sum(victim.folding)) % n
    return replace(victim, values=values, proof=replace(proof, z=z))


def scaled(victim: Claim, factor: int) -> Claim:
    """factor·m_i: z, w and a follow. Here a moves, so even a challenge of a alone would refuse it."""
    n, square, proof = victim.key.modulus, int(victim.key.square), victim.proof
    values = [pow(c, factor, square) for c in victim.values]
    return replace(
        victim, values=values, proof=replace(proof, z=proof.z * factor % n, w=pow(proof.w, factor, n))
    )


ATTACKS: dict[str, tuple[Callable[[Claim], Claim], int]] = {
    "copy": (lambda victim: victim, 1),
    "re-randomise": (rerandomised, 1),
    "shift": (shifted, 1),
    "negate": (lambda victim: scaled(victim, -1), -1),
    "scale": (lambda victim: scaled(victim, 1 << 64), 1 << 64),
}
"""Each attack, and the power of the victim's a that it needs."""


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_changed_copy_of_another_contribution_is_refused(committee: Committee, attack: str) -> None:
    key, theirs, mine = committee.key, post(1), post(2)
    prepared = SCHEME.prepare(key, theirs, committee.limits)
    made = prepared.encrypt(committee.vector())
    values, cipher = residues(made), made.payload[: -KnowledgeProof.length(512)]
    folding = knowledge._transcript(key, theirs, cipher).challenges("fold", len(values))
    victim = Claim(key, values, proof_of(made, key), folding)
    change, power = ATTACKS[attack]
    forged = change(victim)
    assert forged.first_message() == pow(int(prepared.first.commitment), power, int(key.square))
    with pytest.raises(PayloadRefused, match="does not hold for this post"):
        verify(committee, mine, repack(mine, key, forged.payload()))
    if attack == "copy":
        verify(committee, theirs, repack(theirs, key, forged.payload()))
    else:
        with pytest.raises(PayloadRefused, match="does not hold for this post"):
            verify(committee, theirs, repack(theirs, key, forged.payload()))


def test_the_attack_would_work_without_the_proof(committee: Committee) -> None:
    """Scaling by 2^k moves the victim's slots into view: what D-10 is for."""
    key, n = committee.key, committee.key.modulus
    context, victim = committee.contribute(1, committee.vector())
    checked = SCHEME.verify_payload(key, context, committee.limits, victim.envelope, victim.payload)
    scaled = replace(
        checked, context=post(2), residues=[pow(int(c), 4, int(key.square)) for c in checked.residues]
    )
    total = SCHEME.accumulator(key, ITERATION, committee.limits)
    total.add(checked)
    total.add(scaled)
    finished = total.finish()
    columns = {m: partial_decrypt(key, committee.shares[m], finished.residues, b"").values for m in (1, 2)}
    packed = list(open_ciphertexts(key, columns))
    assert all(m % 5 == 0 and abs(m) < n for m in packed)


def test_knowledge_can_be_extracted_from_two_answers_to_one_first_message(committee: Committee) -> None:
    """Special soundness on the folded ciphertext: M = (z - z')/(e - e')."""
    key, context = committee.key, post(3)
    prepared = SCHEME.prepare(key, context, committee.limits)
    exponents, masks = prepared._consume()
    plaintexts = prepared.packing.pack(committee.vector())
    n, n2 = key.modulus, int(key.square)
    cipher = b"".join(
        int((1 + m * n) * int(mask) % n2).to_bytes(SIZE, "little")
        for m, mask in zip(plaintexts, masks, strict=True)
    )
    transcript = Transcript("anofel/1/paillier/plaintext-knowledge").append("key", key.key_id)
    append_post(transcript, context)
    folding = transcript.append("ciphertexts", cipher).challenges("fold", len(plaintexts))
    first = prepared.first
    opened = SecretFolding.of(key, context, cipher, plaintexts, exponents)
    proof = knowledge.prove(key, context, cipher, opened, first)
    other_e = proof.challenge ^ 1
    folded = sum(x * m for x, m in zip(folding, plaintexts, strict=True))
    other_z = (first.mu + other_e * folded) % n
    extracted = (proof.z - other_z) * pow(proof.challenge - other_e, -1, n) % n
    assert extracted == folded % n


def test_another_committees_payload_is_not_added(committee: Committee) -> None:
    other = deal_committee(3, 2)
    context, made = other.contribute(1, other.vector())
    checked = SCHEME.verify_payload(other.key, context, other.limits, made.envelope, made.payload)
    with pytest.raises(PayloadRefused, match="another key"):
        SCHEME.accumulator(committee.key, ITERATION, committee.limits).add(checked)
