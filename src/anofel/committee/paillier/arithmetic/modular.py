"""Big-integer arithmetic over GMP; the only file that calls ``gmpy2`` directly, but for packing.

Exponents are secret or public by the name of the function. Public list operations release the
GIL (``powmod_base_list``); ``powmod_sec`` and single products hold it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import cast

import gmpy2

from anofel.committee.paillier.arithmetic.parameters import FIXED_BASE_WINDOW, SMALL_FACTOR_BOUND


def mpz(value: int) -> int:
    """Return GMP's integer; it behaves as an ``int`` and multiplies faster."""
    return cast(int, gmpy2.mpz(value))


def power_secret(base: int, exponent: int, modulus: int) -> int:
    """Return base^exponent for a secret positive exponent, in time that depends on its length only."""
    return cast(int, gmpy2.powmod_sec(base, exponent, modulus))


def power(base: int, exponent: int, modulus: int) -> int:
    """Return base^exponent for a public exponent of any sign."""
    return cast(int, gmpy2.powmod(base, exponent, modulus))


def powers(bases: Sequence[int], exponent: int, modulus: int) -> list[int]:
    """Return every base to one public exponent; the GIL is released for the whole list."""
    if not bases:
        return []
    return cast(list[int], gmpy2.powmod_base_list(list(bases), exponent, modulus))


def invert(value: int, modulus: int) -> int:
    """Return the inverse; ``ZeroDivisionError`` if there is none."""
    return cast(int, gmpy2.invert(value, modulus))


def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor."""
    return cast(int, gmpy2.gcd(a, b))


def is_prime(value: int) -> bool:
    """Ask whether the value is prime (Miller-Rabin, 64 bases)."""
    return bool(gmpy2.is_prime(value, 64))


def is_perfect_power(value: int) -> bool:
    """Ask whether the value is a proper power."""
    return bool(gmpy2.is_power(value))


def jacobi(a: int, n: int) -> int:
    """Return the Jacobi symbol."""
    return int(gmpy2.jacobi(a, n))


@lru_cache(maxsize=2)
def primorial(bound: int = SMALL_FACTOR_BOUND) -> int:
    """Return the product of the primes up to ``bound``."""
    return cast(int, gmpy2.primorial(bound))


@lru_cache(maxsize=8)
def primes_between(low: int, high: int) -> tuple[int, ...]:
    """Return the primes in [low, high]."""
    found = []
    candidate = int(gmpy2.next_prime(low - 1))
    while candidate <= high:
        found.append(candidate)
        candidate = int(gmpy2.next_prime(candidate))
    return tuple(found)


def product(values: Iterable[int], modulus: int) -> int:
    """Return the product of all values."""
    result = mpz(1)
    for value in values:
        result = result * value % modulus
    return result


def multi_power(bases: Sequence[int], exponents: Sequence[int], modulus: int) -> int:
    """Return ∏ base_i^exponent_i for public non-negative exponents (Pippenger's buckets)."""
    if not bases:
        return mpz(1)
    window = max(1, min(8, len(bases).bit_length() - 2))
    mask = (1 << window) - 1
    top = max(e.bit_length() for e in exponents)
    result = mpz(1)
    for shift in range((top + window - 1) // window * window - window, -1, -window):
        for _ in range(window):
            result = result * result % modulus
        buckets: list[int | None] = [None] * (mask + 1)
        for base, exponent in zip(bases, exponents, strict=True):
            digit = (exponent >> shift) & mask
            if digit:
                held = buckets[digit]
                buckets[digit] = base if held is None else held * base % modulus
        result = result * _bucket_sum(buckets, modulus) % modulus
    return result


def _bucket_sum(buckets: Sequence[int | None], modulus: int) -> int:
    """Return ∏ bucket_d^d with two products per bucket."""
    running, total = mpz(1), mpz(1)
    for held in reversed(buckets[1:]):
        if held is not None:
            running = running * held % modulus
        total = total * running % modulus
    return total


class FixedBase:
    """Powers of one base from a table of base^(d·2^(8k)).

    *Security*: the table is indexed by secret digits, so on a machine shared with an attacker its
    memory accesses may leak the exponent through the cache (``docs/paillier.md``).
    """

    def __init__(self, base: int, modulus: int, exponent_bits: int) -> None:
        self.base, self._modulus = mpz(base), mpz(modulus)
        self._rows: list[list[int]] = []
        step = self.base
        for _ in range(-(-exponent_bits // FIXED_BASE_WINDOW)):
            row = [mpz(1)]
            for _ in range((1 << FIXED_BASE_WINDOW) - 1):
                row.append(row[-1] * step % self._modulus)
            self._rows.append(row)
            step = row[-1] * step % self._modulus

    def power(self, exponent: int) -> int:
        """Return base^exponent; one product per window, the zero windows included."""
        digits = int(exponent).to_bytes(len(self._rows), "little")
        result, modulus = self._rows[0][digits[0]], self._modulus
        for row, digit in zip(self._rows[1:], digits[1:], strict=True):
            result = result * row[digit] % modulus
        return result
