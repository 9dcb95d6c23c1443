"""The proof of zero: both branches, one negative per rule and per field, every lie, and the extractor."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from anofel._core.count import CastBit
from anofel._core.primitives import DatasetType, TypeBlinding, TypeCommitment
from anofel.committee import count
from anofel.committee.context import PostContext
from anofel.committee.errors import InvalidContext, PayloadRefused, PreparationUsed, VectorRefused
from anofel.committee.interface import Contribution, Envelope, Int64Vector, SubmittedPayload
from anofel.committee.paillier import contribution
from anofel.committee.paillier.arithmetic import zero
from anofel.committee.paillier.arithmetic.knowledge import KnowledgeProof, SecretFolding
from anofel.committee.paillier.arithmetic.randomness import SystemRandomness
from anofel.committee.paillier.arithmetic.zero import SecretZeroWitness, ZeroProof, ZeroStatement
from anofel.committee.paillier.key import PaillierKey
from tests.paillier.support import ITERATION, SCHEME, Committee, deal_committee, post

SIZE = 128  # bytes of a ciphertext at toy size
PROOF = ZeroProof.length(512)
KNOWN = KnowledgeProof.length(512)
FALSE = "does not hold"


@pytest.fixture(scope="module")
def proven(committee: Committee) -> Committee:
    return replace(committee, limits=replace(committee.limits, norm_bound=5000))


def cast(key: PaillierKey, number: int, *, one: bool) -> CastBit:
    rho = TypeBlinding.generate()
    line = count.BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=None)
    commitment = TypeCommitment(DatasetType(3), rho).to_bytes()
    opening = count.TypeOpening(dataset_type=3, blinding=rho.to_secret_bytes())
    statement = count.BallotStatement(post(number), commitment, [line])
    return statement.cast(0 if one else None, opening).bits[0]


def contribute(committee: Committee, number: int, values: Int64Vector, bit: CastBit) -> Contribution:
    return SCHEME.prepare(committee.key, post(number), committee.limits, bit).encrypt(values)


def zeros(committee: Committee) -> Int64Vector:
    return np.zeros(committee.limits.length, dtype=np.int64)


def resent(
    committee: Committee, made: Contribution, payload: bytes, bit: bytes | None = None, number: int = 1
) -> Contribution:
    """What a liar sends: another payload or bit, in an envelope that fits."""
    digest = hashlib.sha256(payload).digest()
    proof = contribution._binding(committee.key, post(number), len(payload), digest)
    envelope = Envelope(
        proof=proof,
        payload_length=len(payload),
        payload_sha256=digest,
        bit=made.envelope.bit if bit is None else bit,
    )
    return Contribution(envelope, payload)


def check(committee: Committee, made: Contribution, number: int = 1) -> None:
    SCHEME.verify_envelope(committee.key, post(number), committee.limits, made.envelope)
    SCHEME.verify_payload(committee.key, post(number), committee.limits, made.envelope, made.payload)


# Honest contributions


@pytest.mark.parametrize("one", [True, False])
def test_honest_updates_and_decoys_verify(proven: Committee, one: bool) -> None:
    values = proven.vector() if one else zeros(proven)
    made = contribute(proven, 1, values, cast(proven.key, 1, one=one))
    check(proven, made)
    assert len(made.payload) == SCHEME.payload_bytes(proven.key, proven.limits)
    without = SCHEME.payload_bytes(proven.key, replace(proven.limits, norm_bound=None))
    assert len(made.payload) == without + 96 + 64


def test_a_post_that_counts_may_be_zero(proven: Committee) -> None:
    check(proven, contribute(proven, 1, zeros(proven), cast(proven.key, 1, one=True)))


def test_an_honest_client_is_told_what_does_not_fit(proven: Committee) -> None:
    key, limits, bit = proven.key, proven.limits, cast(proven.key, 1, one=False)
    prepared = SCHEME.prepare(key, post(1), limits, bit)
    with pytest.raises(VectorRefused, match="The ballot's bit is 0"):
        prepared.encrypt(proven.vector())
    prepared.encrypt(zeros(proven))  # the refused vector consumed nothing
    with pytest.raises(PreparationUsed):
        prepared.encrypt(zeros(proven))
    with pytest.raises(InvalidContext, match="needs the ballot's bit"):
        SCHEME.prepare(key, post(1), limits)
    with pytest.raises(InvalidContext, match="not one of this committee"):
        SCHEME.prepare(key, post(1), limits, cast(deal_committee(3, 2).key, 1, one=True))
    assert "redacted" in repr(prepared)
    assert prepared.witness is not None
    assert str(prepared.witness.omega) not in repr(prepared.witness)
    assert "redacted" in repr(prepared.witness.branches)


def test_a_task_without_proofs_sends_and_asks_for_none(committee: Committee) -> None:
    bit = cast(committee.key, 1, one=False)
    made = contribute(committee, 1, committee.vector(), bit)  # the lie that nobody sees then
    check(committee, made)
    assert made.envelope.bit == b""


# The statement alone: every rule, every field


@dataclass
class Claim:
    """A statement with its proof, and what is behind them."""

    statement: ZeroStatement
    proof: ZeroProof
    folding: SecretFolding
    witness: SecretZeroWitness


def claim(key: PaillierKey, *, one: bool, plaintext: int = 0) -> Claim:
    """A claim about one folded ciphertext of a plaintext; honest if the plaintext may be there."""
    witness = SecretZeroWitness.draw(key, cast(key, 1, one=one), SystemRandomness())
    folding = SecretFolding(plaintext, SystemRandomness().bits(500))
    statement = ZeroStatement(key, post(1), witness.bit, b"payload", zero.fold(key, folding))
    return Claim(statement, zero.prove(statement, folding, witness), folding, witness)


@pytest.mark.parametrize(("one", "plaintext"), [(False, 0), (True, 0), (True, 12345)])
def test_what_is_true_is_proven(proven: Committee, one: bool, plaintext: int) -> None:
    made = claim(proven.key, one=one, plaintext=plaintext)
    zero.verify(made.statement, made.proof)
    assert ZeroProof.from_bytes(made.proof.to_bytes(512), proven.key.modulus) == made.proof


@pytest.mark.parametrize("plaintext", [1, -1, 1 << 100])
def test_the_zero_branch_fails_for_a_plaintext_that_is_not_zero(proven: Committee, plaintext: int) -> None:
    """All is honest but the plaintext."""
    made = claim(proven.key, one=False, plaintext=plaintext % proven.key.modulus)
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(made.statement, made.proof)


def test_the_one_branch_fails_for_a_bit_of_zero(proven: Committee) -> None:
    """The N-th residue is simulated, as for an update; the bit is 0, so *one* cannot be answered."""
    key, update = proven.key, claim(proven.key, one=True, plaintext=7)
    decoy = cast(key, 1, one=False).ciphertext
    statement = replace(update.statement, bit=decoy)
    forged = zero.prove(statement, update.folding, update.witness)
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(statement, forged)


FIELDS: dict[str, Callable[[ZeroStatement], ZeroStatement]] = {
    "key": lambda s: replace(s, key=replace(s.key, run=b"x" * 32)),
    "nullifier": lambda s: replace(s, context=replace(s.context, nullifier=b"x" * 32)),
    "tag": lambda s: replace(s, context=replace(s.context, tag=b"x" * 32)),
    "pk_sig": lambda s: replace(s, context=replace(s.context, pk_sig=b"x" * 32)),
    "genesis": lambda s: replace(s, context=elsewhere(s.context, genesis=b"x" * 32)),
    "task": lambda s: replace(s, context=elsewhere(s.context, task=b"x" * 32)),
    "iteration": lambda s: replace(s, context=elsewhere(s.context, iteration=8)),
    "scope": lambda s: replace(s, context=elsewhere(s.context, scope=b"x" * 32)),
    "position": lambda s: replace(s, context=elsewhere(s.context, position=2)),
    "payload": lambda s: replace(s, payload=b"another"),
}


def elsewhere(context: PostContext, **changes: object) -> PostContext:
    return replace(context, iteration=replace(context.iteration, **changes))


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_the_transcript_is_bound(proven: Committee, field: str, one: bool) -> None:
    made = claim(proven.key, one=one)
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(FIELDS[field](made.statement), made.proof)


@pytest.mark.parametrize("one", [True, False])
def test_the_bit_is_bound_in_both_its_points(proven: Committee, one: bool) -> None:
    made = claim(proven.key, one=one)
    other = cast(proven.key, 2, one=one).ciphertext
    for bit in (other[:32] + made.statement.bit[32:], made.statement.bit[:32] + other[32:], other):
        with pytest.raises(PayloadRefused, match=FALSE):
            zero.verify(replace(made.statement, bit=bit), made.proof)


def test_a_bit_that_is_only_hashed_would_not_be_enough(proven: Committee) -> None:
    """A challenge computed for another bit's hash: the points of the equations must be the same."""
    made = claim(proven.key, one=False)
    other = claim(proven.key, one=False)
    mixed = replace(made.statement, bit=other.statement.bit)
    forged = zero.prove(mixed, made.folding, made.witness)
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(mixed, forged)


@pytest.mark.parametrize("one", [True, False])
def test_each_part_of_the_proof_counts(proven: Committee, one: bool) -> None:
    made = claim(proven.key, one=one)
    for place in (0, 16, 48, 64):  # e₀, z₀, e₁, z₁
        branches = bytearray(made.proof.branches)
        branches[place] ^= 2
        with pytest.raises(PayloadRefused, match=FALSE):
            zero.verify(made.statement, replace(made.proof, branches=bytes(branches)))
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(made.statement, replace(made.proof, w=made.proof.w ^ 2))
    # An element of small order: -w is another N-th root of -a, and the challenge covers a.
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(made.statement, replace(made.proof, w=proven.key.modulus - made.proof.w))


def test_two_simulated_branches_do_not_add_up(proven: Committee) -> None:
    """Any answers belong to some first messages; what is missing is a challenge that follows from them."""
    update, decoy = claim(proven.key, one=True), claim(proven.key, one=False)
    simulated = update.proof.branches[:48] + decoy.proof.branches[48:]
    with pytest.raises(PayloadRefused, match=FALSE):
        zero.verify(update.statement, replace(update.proof, branches=simulated))


def test_encodings_are_canonical(proven: Committee) -> None:
    made = claim(proven.key, one=True)
    zero.verify(made.statement, made.proof)
    for place in (16, 64):
        branches = made.proof.branches
        changed = branches[:place] + b"\xff" * 32 + branches[place + 32 :]
        with pytest.raises(PayloadRefused, match="not canonical"):
            zero.verify(made.statement, replace(made.proof, branches=changed))
    with pytest.raises(PayloadRefused, match="not canonical"):
        zero.verify(replace(made.statement, bit=b"\xff" * 64), made.proof)
    with pytest.raises(PayloadRefused, match="bytes instead of 64"):
        zero.verify(replace(made.statement, bit=b""), made.proof)
    with pytest.raises(PayloadRefused, match="not a unit"):
        zero.verify(made.statement, replace(made.proof, w=0))
    with pytest.raises(PayloadRefused, match="not reduced"):
        zero.read_proof(made.proof.branches + b"\xff" * 64, proven.key.modulus)
    for data in (made.proof.to_bytes(512)[:-1], made.proof.to_bytes(512) + b"\0"):
        with pytest.raises(PayloadRefused, match="malformed"):
            zero.read_proof(data, proven.key.modulus)


def test_an_nth_root_can_be_extracted_from_two_answers(proven: Committee) -> None:
    """What makes *zero* sound: e₀ - e₀' is invertible modulo N, so C has an N-th root."""
    key, n, square = proven.key, proven.key.modulus, int(proven.key.square)
    made = claim(key, one=False)
    branches = made.witness.branches
    answers = []
    for e in (5, 2**127):
        e_zero = int.from_bytes(branches.respond(e)[:16], "little")
        answers.append((e_zero, made.witness.omega * pow(int(key.h), e_zero * made.folding.exponent, n) % n))
    (e, w), (f, v) = answers
    c, difference = int(made.statement.folded), e - f
    inverse = pow(difference, -1, n)  # a·(e - f) = 1 - b·N
    quotient = w * pow(v, -1, n) % n
    rest = (1 - inverse * difference) // n
    root = pow(quotient, inverse, square) * pow(c, rest, square) % square
    assert pow(root, n, square) == c


def test_elements_of_small_order_are_zeros(proven: Committee) -> None:
    """-1 is an N-th power: what it moves a ciphertext by decrypts to nothing."""
    n, square = proven.key.modulus, int(proven.key.square)
    assert pow(n - 1, n, square) == square - 1


# Lies in a payload


def lies(committee: Committee) -> dict[str, Contribution]:
    """Every lie about the bit that a registered client may send."""
    key, square = committee.key, int(committee.key.square)
    update = contribute(committee, 1, committee.vector(), cast(key, 1, one=True))
    decoy = contribute(committee, 1, zeros(committee), cast(key, 1, one=False))
    single = zeros(committee)
    single[-1] = 1
    least = contribute(committee, 1, single, cast(key, 1, one=True))
    unproven = replace(committee, limits=replace(committee.limits, norm_bound=None))
    garbage = np.random.default_rng(3).bytes(2 * SIZE - 1) + b"\0"
    first = int.from_bytes(decoy.payload[:SIZE], "little") * (1 + key.modulus) % square

    def sent(made: Contribution, payload: bytes, bit: bytes | None = None) -> Contribution:
        return resent(committee, made, payload, bit)

    return {
        "an update in a decoy": sent(update, update.payload, decoy.envelope.bit),
        "one unit in a decoy": sent(least, least.payload, decoy.envelope.bit),
        "an update with a decoy's proof": sent(
            update, update.payload[:-PROOF] + decoy.payload[-PROOF:], decoy.envelope.bit
        ),
        "a decoy that is moved": sent(decoy, first.to_bytes(SIZE, "little") + decoy.payload[SIZE:]),
        "a false bit": sent(update, update.payload, update.envelope.bit[:32] + decoy.envelope.bit[32:]),
        "garbage": sent(decoy, garbage + decoy.payload[2 * SIZE :]),
        "no proof": sent(update, contribute(unproven, 1, committee.vector(), cast(key, 1, one=True)).payload),
        "a proof of zeros": sent(update, update.payload[:-PROOF] + bytes(PROOF)),
    }


def test_every_lie_is_refused_and_the_honest_sum_decodes(proven: Committee) -> None:
    key, limits = proven.key, proven.limits
    values = {2: proven.vector(2), 3: proven.vector(3), 4: zeros(proven)}
    honest = {
        number: contribute(proven, number, value, cast(key, number, one=number < 4))
        for number, value in values.items()
    }
    told = lies(proven)
    items: Sequence[SubmittedPayload] = [
        SubmittedPayload(post(1), made.envelope, made.payload) for made in told.values()
    ] + [SubmittedPayload(post(number), made.envelope, made.payload) for number, made in honest.items()]
    verdicts = SCHEME.check_payloads(key, limits, items)
    for lie, verdict in zip(told, verdicts, strict=False):
        assert isinstance(verdict, PayloadRefused), lie
    total = SCHEME.accumulator(key, ITERATION, limits)
    for verdict in verdicts[len(told) :]:
        assert not isinstance(verdict, PayloadRefused)
        total.add(verdict)
    assert proven.decrypt(total.finish(), [1, 3]).tolist() == (values[2] + values[3]).tolist()


def test_only_the_proof_of_zero_refuses_an_update_in_a_decoy(proven: Committee) -> None:
    """Everything else about it is honest: the same payload counts where the bit is 1."""
    update = contribute(proven, 1, proven.vector(), cast(proven.key, 1, one=True))
    check(proven, update)
    decoy = cast(proven.key, 1, one=False).ciphertext
    with pytest.raises(PayloadRefused, match="zero where its bit is 0 does not hold"):
        check(proven, resent(proven, update, update.payload, decoy))
