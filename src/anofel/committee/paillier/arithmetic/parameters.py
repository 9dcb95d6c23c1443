"""Sizes of the ``paillier`` scheme: every bound is here, with its formula.

Notation: N the modulus, |x| the length of x in bits, n members, t of them decrypt, Δ = n!.
"""

import math
from typing import Final

from anofel.committee.context import CommitteeShape
from anofel.committee.errors import DoesNotFit, InvalidCommittee

DEFAULT_MODULUS_BITS: Final = 3072
"""|N| for the 128-bit level."""

SECURE_MODULUS_BITS: Final = (2048, 3072)
"""What a client accepts; 2048 is the 112-bit level."""

INSECURE_TOY_MODULUS_BITS: Final = 512
"""|N| of the tests: the smallest size at which all bounds below still hold. Anyone can factor it."""

STATISTICAL_BITS: Final = 128
"""κ: what is called hidden is at statistical distance at most 2^-κ from uniform."""

CHALLENGE_BITS: Final = 128
"""Length of every Fiat-Shamir challenge; soundness needs 2^CHALLENGE_BITS below both primes of N."""

RANDOMISER_BITS: Final = 3 * STATISTICAL_BITS
"""|α| of the randomiser h_s^α. Generic attacks on a short exponent cost 2^(|α|/2) = 2^192."""

GUARD_BITS: Final = 40
"""Plaintext bits above the slots that an honest sum leaves empty; garbage passes with 2^-GUARD_BITS."""

SMALL_FACTOR_BOUND: Final = 1 << 20
"""No prime up to it divides a modulus that a client accepts."""

MAX_SHARE_GROWTH: Final = 2
"""Shares of a key may grow to (2 + MAX_SHARE_GROWTH)·|N| bits by handover; then a new key is due."""

FIXED_BASE_WINDOW: Final = 8
"""Window of the table for h_s: ⌈|α|/8⌉ · 255 residues."""


def check_modulus_bits(bits: int, *, insecure_toy: bool) -> None:
    """Refuse a modulus length outside the policy."""
    if bits in SECURE_MODULUS_BITS:
        return
    if not insecure_toy:
        raise InvalidCommittee(f"A Paillier modulus has 3072 bits, or 2048; {bits} is refused.")
    if bits < INSECURE_TOY_MODULUS_BITS or bits % 16:
        raise InvalidCommittee(
            f"Even a toy modulus has at least {INSECURE_TOY_MODULUS_BITS} bits, not {bits}."
        )


def delta(num_members: int) -> int:
    """Return Δ = n!; it makes every Lagrange coefficient an integer."""
    return math.factorial(num_members)


def slot_bits(bound: int, max_posts: int) -> int:
    """Return b with max_posts · bound ≤ 2^(b-1) - 1, so that no sum of a slot leaves its slot."""
    largest = bound * max_posts
    if largest >= 1 << 63:
        raise DoesNotFit(
            f"Sums of {max_posts} values up to {bound} do not fit an int64:"
            f" bound times posts is {largest}, not below 2^63."
        )
    return largest.bit_length() + 1


def num_slots(modulus_bits: int, bound: int, max_posts: int) -> int:
    """Return ⌊(|N| - 1 - GUARD_BITS) / b⌋ slots: |Σ x_i·2^(b·i)| < 2^(|N|-2) ≤ N/2."""
    bits = slot_bits(bound, max_posts)
    slots = (modulus_bits - 1 - GUARD_BITS) // bits
    if slots < 1:
        raise DoesNotFit(f"A slot of {bits} bits does not fit a modulus of {modulus_bits} bits.")
    return slots


def coefficient_bits(secret_bits: int, shape: CommitteeShape, degree: int) -> int:
    """Return the length of the random coefficients of an integer sharing.

    The polynomial Δ·s + Σ a_k·X^k hides s from ``degree`` members: for another secret s' the
    polynomial Δ·(s - s')·∏(1 - X/c) over their numbers c has integer coefficients below
    2^(|s| + |Δ| + n), so that a_k of κ bits more hides it, ``degree`` times over.
    """
    hidden = secret_bits + delta(shape.num_members).bit_length() + shape.num_members
    return hidden + STATISTICAL_BITS + degree.bit_length() + 1


def dealt_bits(secret_bits: int, shape: CommitteeShape, degree: int) -> int:
    """Return the length of a dealt share: |a_k| + degree·|n| + ⌈log2(degree + 1)⌉."""
    powers = degree * shape.num_members.bit_length()
    return coefficient_bits(secret_bits, shape, degree) + powers + (degree + 1).bit_length()


def nonce_bits(share_bits: int) -> int:
    """Return the length of a share proof's nonce: |share| + CHALLENGE_BITS + κ, so z hides the share."""
    return share_bits + CHALLENGE_BITS + STATISTICAL_BITS
