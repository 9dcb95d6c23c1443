"""Shamir sharing over the integers and over rings without small zero divisors; Lagrange with Δ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from anofel.committee.context import CommitteeShape
from anofel.committee.kept import Kept
from anofel.committee.paillier.arithmetic.modular import invert, mpz
from anofel.committee.paillier.arithmetic.parameters import coefficient_bits, delta
from anofel.committee.paillier.arithmetic.randomness import Randomness


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
class IntegerPolynomial(Kept):
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


class ModularOpening:
    """Interpolation at 0 of a polynomial modulo ``modulus`` from the values of members 1 … n."""

    def __init__(self, num_members: int, degree: int, modulus: int) -> None:
        self._modulus = modulus
        base, inverse = range(1, degree + 2), invert(delta(num_members), modulus)

        def weights(at: int) -> list[int]:
            found = lagrange(base, num_members, at)
            return [mpz(found[i] * inverse % modulus) for i in base]

        self._secret = weights(0)
        self._others = [(j, weights(j)) for j in range(degree + 2, num_members + 1)]

    def open(self, values: Sequence[int]) -> int | None:
        """Return f(0), or None if the values do not lie on one polynomial of the degree."""
        for member, weights in self._others:
            if self._combine(weights, values) != values[member - 1]:
                return None
        return self._combine(self._secret, values)

    def _combine(self, weights: Sequence[int], values: Sequence[int]) -> int:
        return sum(w * v for w, v in zip(weights, values, strict=False)) % self._modulus
