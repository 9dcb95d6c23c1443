"""Shamir sharing over the integers and over rings without small zero divisors; Lagrange with Δ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from anofel.committee.context import CommitteeShape
from anofel.committee.paillier.arithmetic import invert, mpz
from anofel.committee.paillier.parameters import coefficient_bits, delta
from anofel.committee.paillier.randomness import Randomness


def lagrange(members: Iterable[int], num_members: int, at: int = 0) -> Mapping[int, int]:
    """Return λ_i = Δ·∏_{j≠i} (at - j)/(i - j), integers with Σ λ_i·f(i) = Δ·f(at)."""
    return _lagrange(tuple(members), num_members, at)


@lru_cache(maxsize=4096)
def _lagrange(members: tuple[int, ...], num_members: int, at: int) -> Mapping[int, int]:
    coefficients = {}
    for i in members:
        value = Fraction(delta(num_members))
        for j in members:
            if j != i:
                value *= Fraction(at - j, i - j)
        assert value.denominator == 1  # products of differences of 1…n divide n!
        coefficients[i] = value.numerator
    return coefficients


@dataclass(frozen=True, slots=True)
class IntegerPolynomial:
    """Δ·secret + Σ a_k·X^k over the integers (kept)."""

    coefficients: tuple[int, ...] = field(repr=False)

    @classmethod
    def deal(
        cls, secret: int, secret_bits: int, shape: CommitteeShape, degree: int, randomness: Randomness
    ) -> "IntegerPolynomial":
        """Share a secret of either sign with |secret| < 2^secret_bits; every share is positive."""
        bits = coefficient_bits(secret_bits, shape, degree)
        while True:
            high = [randomness.bits(bits) for _ in range(degree)]
            dealt = cls((delta(shape.num_members) * secret, *high))
            if all(dealt.at(member) > 0 for member in shape.members):
                return dealt

    def at(self, point: int) -> int:
        """Evaluate."""
        result = mpz(0)
        for coefficient in reversed(self.coefficients):
            result = result * point + coefficient
        return result


def deal_modular(
    secret: int, degree: int, num_members: int, modulus: int, randomness: Randomness
) -> list[int]:
    """Share a secret modulo ``modulus``; 1 … n must be distinct modulo each of its primes."""
    high = [mpz(randomness.below(modulus)) for _ in range(degree)]
    shares = []
    for point in range(1, num_members + 1):
        value = mpz(0)
        for coefficient in reversed(high):
            value = (value + coefficient) * point
        shares.append((value + secret) % modulus)
    return shares


def open_modular(shares: Sequence[int], degree: int, modulus: int) -> int | None:
    """Return f(0) from the shares of members 1 … n, or None if they do not lie on one polynomial."""
    count = len(shares)
    base = range(1, degree + 2)
    inverse = invert(delta(count), modulus)

    def interpolate(at: int) -> int:
        weights = lagrange(base, count, at)
        return sum(weights[i] * shares[i - 1] for i in base) * inverse % modulus

    if any(interpolate(j) != shares[j - 1] % modulus for j in range(degree + 2, count + 1)):
        return None
    return interpolate(0)
