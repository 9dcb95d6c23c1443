"""Sizes of one key generation, computed from |N| and the committee; formulas beside the names."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from anofel.committee.context import CommitteeShape
from anofel.committee.errors import InvalidCommittee
from anofel.committee.paillier.arithmetic.modular import invert, mpz, primes_between
from anofel.committee.paillier.arithmetic.parameters import (
    SMALL_FACTOR_BOUND,
    STATISTICAL_BITS,
    dealt_bits,
    delta,
)

TINY_PRIMES: Final = (3, 5, 7, 11, 13)
"""Primes up to the largest committee: 1 … n are not distinct modulo them, so p and q modulo these
are public coins. About 16 of |p| bits become public with p mod 4."""

TINY_MODULUS: Final = 4 * math.prod(TINY_PRIMES)

MERSENNE_EXPONENTS: Final = (521, 607, 1279, 2203, 2281, 3217, 4253)
"""Products of shares are computed modulo a Mersenne prime above every honest N."""

FINAL_TESTS: Final = 64
"""A modulus with a composite factor passes one biprimality test with probability at most 1/4
(ePrint 2024/2072), all of them with 2^-128."""

MAX_BATCH: Final = 2048
"""Candidates per batch: bounds the length of a message."""

FAILURE_BITS: Final = 20
"""An honest run finds no modulus in all its batches with probability below 2^-FAILURE_BITS."""

TEST_CIPHERTEXTS: Final = 2
"""Public test ciphertexts that every new key decrypts before it is confirmed."""


@dataclass(frozen=True)
class Sizes:
    """All sizes of one run."""

    modulus_bits: int
    shape: CommitteeShape

    def __post_init__(self) -> None:
        if self.shape.num_members < 3:
            raise InvalidCommittee(
                "Key generation without a dealer needs at least 3 members for Paillier: "
                "two members have no honest majority."
            )

    @property
    def degree(self) -> int:
        """Degree of product sharings, ⌊(n-1)/2⌋ ≥ n-t: as private as any n allows."""
        return (self.shape.num_members - 1) // 2

    @property
    def product_degree(self) -> int:
        """Twice the degree; at most n-1, so that all members together can open."""
        return 2 * self.degree

    @cached_property
    def low(self) -> int:
        """The least p: ⌈√2·2^(|N|/2 - 1)⌉, so that every N has exactly |N| bits."""
        return math.isqrt(1 << (self.modulus_bits - 1)) + 1

    @cached_property
    def window(self) -> int:
        """Width of one member's part of p: n windows fill [low, 2^(|N|/2))."""
        return ((1 << (self.modulus_bits // 2)) - self.low) // self.shape.num_members

    @cached_property
    def sieve_primes(self) -> tuple[int, ...]:
        """Primes from 17 whose product M keeps TINY_MODULUS·M·2^κ ≤ window."""
        limit = self.window >> STATISTICAL_BITS
        chosen, total = [], TINY_MODULUS
        for prime in primes_between(17, 4096):
            if total * prime > limit:
                break
            chosen.append(prime)
            total *= prime
        return tuple(chosen)

    @cached_property
    def sieve_modulus(self) -> int:
        """M."""
        return mpz(math.prod(self.sieve_primes))

    @cached_property
    def step(self) -> int:
        """TINY_MODULUS·M: a member's p_i is fixed modulo it."""
        return mpz(TINY_MODULUS * self.sieve_modulus)

    @cached_property
    def crt_basis(self) -> tuple[int, ...]:
        """For each sieve prime ℓ the number that is 1 modulo ℓ and 0 modulo the rest of M."""
        modulus = self.sieve_modulus
        return tuple(modulus // p * invert(modulus // p, p) for p in self.sieve_primes)

    @cached_property
    def field(self) -> int:
        """The Mersenne prime."""
        exponent = next(e for e in MERSENNE_EXPONENTS if e > self.modulus_bits + 8)
        return mpz((1 << exponent) - 1)

    @cached_property
    def success(self) -> float:
        """Probability that a sieved candidate is a product of two primes: density squared."""
        primes = (2, *TINY_PRIMES, *self.sieve_primes)
        density = math.prod(p / (p - 1) for p in primes) / (self.modulus_bits / 2 * math.log(2))
        return density * density

    @property
    def batch(self) -> int:
        """Candidates per batch."""
        return min(MAX_BATCH, math.ceil(1 / self.success))

    @property
    def max_batches(self) -> int:
        """Smallest count with (1 - success)^(batch·count) < 2^-FAILURE_BITS."""
        return math.ceil(FAILURE_BITS * math.log(2) / (self.success * self.batch))

    @property
    def samples(self) -> int:
        """Sieve samples per batch: two per candidate, 1/(1 - 1/17)² for rejected ones, and slack."""
        return math.ceil(2 * self.batch * 1.15) + 48

    @property
    def tested_share(self) -> float:
        """Fraction of candidates that survive trial division and are tested by an exponentiation."""
        return (math.log(self.sieve_primes[-1]) / math.log(SMALL_FACTOR_BOUND)) ** 2

    @property
    def expected_tests(self) -> int:
        """Expected number of first tests in a run."""
        return math.ceil(self.tested_share / self.success)

    @property
    def factor_bits(self) -> int:
        """Length of Φ_j and B_j: sums over n members of shares of |N|+1 bits at ``degree``."""
        return (
            dealt_bits(self.modulus_bits + 1, self.shape, self.degree) + self.shape.num_members.bit_length()
        )

    @property
    def product_bits(self) -> int:
        """Length of λ_j·w_j = λ_j·Φ_j·B_j, with |λ_j| ≤ Δ·n^n."""
        n = self.shape.num_members
        return 2 * self.factor_bits + delta(n).bit_length() + n * n.bit_length()

    @property
    def share_bits(self) -> int:
        """Length of F(i): a sum of n dealt shares of ``product_bits`` at degree t-1."""
        dealt = dealt_bits(self.product_bits, self.shape, self.shape.threshold - 1)
        return dealt + self.shape.num_members.bit_length()

    @property
    def mask_bits(self) -> int:
        """Length of a member's part R_i of the mask N·R: κ more than F(i), so that θ is all it shows."""
        return self.share_bits + STATISTICAL_BITS

    @property
    def masked_bits(self) -> int:
        """Length of an opened F(i) + N·ρ(i)."""
        dealt = dealt_bits(self.mask_bits, self.shape, self.shape.threshold - 1)
        return dealt + self.shape.num_members.bit_length() + self.modulus_bits + 1
