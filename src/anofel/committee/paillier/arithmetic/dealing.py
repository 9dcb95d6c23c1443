"""Refresh and change of members: the same N, new shares; a refresh is a handover to the same members.

Dealer i of t old members shares λ_i·F(i) over the integers at the new degree and posts
A_k = g'^(Δ'·a_k) for every coefficient. Everybody checks A_0 against the old verification key,
A_0^(2Δ) = v_i^(2Δ'²·λ_i), every receiver checks its own part, g'^(Δ'·f_i(j)) = ∏ A_k^(j^k), and
anyone computes the new verification keys. The shared secret becomes Δ·Δ'·F(0), so θ' = Δ·Δ'·θ.

Round 0: receivers post one-time sealing keys, one per dealer. Round 1: dealers deal. Round 2:
receivers confirm, or complain and open what the accused sealed to them. The count key is handed over
by the same messages.
"""

from dataclasses import replace

from anofel._core import committee as core
from anofel.committee import count_key
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed, KeyRefused
from anofel.committee.handover import write_run
from anofel.committee.interface import HandoverRun
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, encode, width
from anofel.committee.paillier.arithmetic.modular import invert, multi_power, power, power_secret, product
from anofel.committee.paillier.arithmetic.parameters import MAX_SHARE_GROWTH, dealt_bits, delta
from anofel.committee.paillier.arithmetic.randomness import SystemRandomness
from anofel.committee.paillier.arithmetic.sharing import IntegerPolynomial, lagrange
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.paillier.key import (
    COUNT_KEYS,
    PaillierKey,
    SecretPaillierShare,
    check_verification_keys,
    count_keys_of,
)
from anofel.committee.ristretto.handover import RistrettoPlan
from anofel.committee.ristretto.run import Bodies
from anofel.committee.sealing import OVERHEAD, CannotOpen, SealingKey, binding, dealer_key, seal


class PaillierPlan:
    """What every party of a handover knows."""

    def __init__(self, run: HandoverRun, old: PaillierKey) -> None:
        self.run, self.old, self.shape = run, old, run.shape
        n = old.shape.num_members
        self._secret_bits = old.share_bits + delta(n).bit_length() + n * n.bit_length()
        self.degree = self.shape.threshold - 1
        self.dealt_bits = dealt_bits(self._secret_bits, self.shape, self.degree)
        self.share_bits = self.dealt_bits + len(run.dealers).bit_length()
        if self.share_bits > (2 + MAX_SHARE_GROWTH) * old.modulus_bits:
            raise InvalidCommittee(
                f"Shares would have {self.share_bits} bits; after this many changes a new key is due."
            )
        self.digest = Transcript("anofel/1/paillier/handover").append("run", write_run(run)).digest("run")

    @property
    def count(self) -> RistrettoPlan:
        """The plan for the count key."""
        return RistrettoPlan(
            digest=Transcript("anofel/1/paillier/handover-count")
            .append("run", write_run(self.run))
            .digest("run"),
            old_keys=count_keys_of(self.old.count_key),
            num_keys=COUNT_KEYS,
            dealers=self.run.dealers,
            shape=self.shape,
        )

    def weight(self, dealer: int) -> int:
        """λ of a dealer among the dealers."""
        return lagrange(self.run.dealers, self.old.shape.num_members)[dealer]

    @property
    def part_length(self) -> int:
        """Bytes of a sealed part."""
        return width(self.dealt_bits) + OVERHEAD


def deal(plan: PaillierPlan, share: SecretPaillierShare, sealing_keys: Bodies) -> bytes:
    """Make a dealer's message: commitments, then one sealed part per receiver."""
    old, shape, weight = plan.old, plan.shape, plan.weight(share.member)
    polynomial = IntegerPolynomial.deal(
        weight * share.value, plan._secret_bits, shape, plan.degree, SystemRandomness()
    )
    scale, base, square = delta(shape.num_members), old.verification_base, old.square
    constant = power_secret(base, scale * scale * abs(weight) * share.value, square)
    commitments = [constant if weight > 0 else invert(constant, square)]
    commitments += [power_secret(base, scale * a, square) for a in polynomial.coefficients[1:]]
    parts = [
        seal(
            dealer_key(sealing_keys[receiver], plan.run.dealers, share.member),
            encode([polynomial.at(receiver)], width(plan.dealt_bits)),
            binding(plan.digest, share.member, receiver),
        )
        for receiver in shape.members
    ]
    return encode(commitments, 2 * width(old.modulus_bits)) + b"".join(parts)


def read_commitments(plan: PaillierPlan, dealer: int, body: bytes) -> list[int]:
    """Read and check a dealer's commitments. Raises ``KeyGenerationFailed`` with the dealer.

    1. The message has its exact length and canonical residues.
    2. Every commitment is a unit.
    3. The commitment to the constant is the dealer's weighted verification key.
    """
    old, reader = plan.old, IntegerReader(body)
    try:  # (1)
        commitments = reader.integers(2 * width(old.modulus_bits), plan.degree + 1, old.square)
        reader.raw(plan.shape.num_members * plan.part_length)
        reader.end()
    except Malformed as error:
        raise KeyGenerationFailed(
            f"Dealer {dealer} sent a malformed message: {error}", (), [dealer]
        ) from error
    try:  # (2)
        invert(product(commitments, old.square), old.square)
    except ZeroDivisionError:
        raise KeyGenerationFailed(
            f"Dealer {dealer} sent a commitment that is not a unit.", (), [dealer]
        ) from None
    scale = delta(plan.shape.num_members)
    left = power(commitments[0], 2 * old.delta, old.square)
    exponent = 2 * scale * scale * plan.weight(dealer)
    if left != power(old.verification_keys[dealer - 1], exponent, old.square):  # (3)
        raise KeyGenerationFailed(f"Dealer {dealer} dealt something other than its share.", (), [dealer])
    return commitments


def new_key(plan: PaillierPlan, dealt: Bodies, count_keys: core.Keys, generation: bytes) -> PaillierKey:
    """Check every dealing and compute the key after it; anyone can."""
    old, shape = plan.old, plan.shape
    columns = [read_commitments(plan, dealer, dealt[dealer]) for dealer in plan.run.dealers]
    keys = [
        product((_expected(column, member, old.square) for column in columns), old.square)
        for member in shape.members
    ]
    key = replace(
        old,
        theta=int(old.theta * old.delta * delta(shape.num_members) % old.modulus),
        shape=shape,
        verification_keys=tuple(int(v) for v in keys),
        share_bits=plan.share_bits,
        share_epoch=old.share_epoch + 1,
        generation=generation,
        count_key=count_key.from_keys(shape, count_keys, 0),
    )
    try:
        check_verification_keys(key)
    except KeyRefused as error:
        raise KeyGenerationFailed(f"The dealings do not make a key: {error}", (), plan.run.dealers) from error
    return key


def open_part(plan: PaillierPlan, dealt: Bodies, dealer: int, receiver: int, key: SealingKey) -> int:
    """Open and check one sealed part. Raises ``CannotOpen`` or ``KeyGenerationFailed``."""
    old, body, length = plan.old, dealt[dealer], plan.part_length
    start = 2 * width(old.modulus_bits) * (plan.degree + 1) + (receiver - 1) * length
    data = key.open(body[start : start + length], binding(plan.digest, dealer, receiver))
    if len(data) != width(plan.dealt_bits):
        raise CannotOpen
    value = int.from_bytes(data, "little")
    commitments = read_commitments(plan, dealer, body)
    actual = power_secret(old.verification_base, delta(plan.shape.num_members) * max(value, 1), old.square)
    if value >> plan.dealt_bits or actual != _expected(commitments, receiver, old.square):
        raise KeyGenerationFailed(f"Dealer {dealer} sent member {receiver} a bad share.", (), [dealer])
    return value


def _expected(commitments: list[int], member: int, square: int) -> int:
    """Return ∏ A_k^(j^k)."""
    return multi_power(commitments, [member**k for k in range(len(commitments))], square)
