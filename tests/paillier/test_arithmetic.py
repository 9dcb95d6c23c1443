import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.committee.paillier.arithmetic import modular
from anofel.committee.paillier.arithmetic.integers import IntegerReader, Malformed, decode, encode
from anofel.committee.paillier.arithmetic.parameters import dealt_bits, delta
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness, SystemRandomness
from anofel.committee.paillier.arithmetic.sharing import (
    IntegerPolynomial,
    ModularOpening,
    deal_modular,
    lagrange,
)
from anofel.committee.paillier.arithmetic.transcript import Transcript
from tests.paillier.support import shape_of

MODULUS = (2**127 - 1) * (2**89 - 1)
shapes = st.integers(3, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers((n + 2) // 2, n)))


@given(st.lists(st.tuples(st.integers(1, MODULUS - 1), st.integers(0, 2**128)), max_size=40))
def test_multi_power_is_the_product_of_powers(pairs: list[tuple[int, int]]) -> None:
    expected = math.prod(pow(b, e, MODULUS) for b, e in pairs) % MODULUS
    got = modular.multi_power([b for b, _ in pairs], [e for _, e in pairs], MODULUS)
    assert got == expected


@given(st.integers(1, MODULUS - 1), st.integers(0, 2**200 - 1))
@settings(max_examples=20)
def test_fixed_base_is_a_power(base: int, exponent: int) -> None:
    assert modular.FixedBase(base, MODULUS, 200).power(exponent) == pow(base, exponent, MODULUS)


@given(st.integers(2, MODULUS - 1), st.integers(1, 2**300))
def test_the_secure_power_is_a_power(base: int, exponent: int) -> None:
    assert modular.power_secret(base, exponent, MODULUS) == pow(base, exponent, MODULUS)


def test_powers_of_nothing() -> None:
    assert modular.powers([], 5, MODULUS) == []
    assert modular.multi_power([], [], MODULUS) == 1


@given(shapes, st.integers(0, 20), st.data())
def test_lagrange_interpolates_with_delta(shape: tuple[int, int], at: int, data: st.DataObject) -> None:
    n, t = shape
    members = sorted(data.draw(st.permutations(range(1, n + 1)))[:t])
    polynomial = data.draw(st.lists(st.integers(-(2**64), 2**64), min_size=t, max_size=t))

    def value(x: int) -> int:
        return sum(a * x**k for k, a in enumerate(polynomial))

    weights = lagrange(members, n, at)
    assert sum(weights[i] * value(i) for i in members) == math.factorial(n) * value(at)
    exact = [Fraction(math.prod(at - j for j in members if j != i)) for i in members]
    assert [Fraction(weights[i], delta(n)) for i in members] == [
        top / math.prod(i - j for j in members if j != i) for top, i in zip(exact, members, strict=True)
    ]


@given(shapes, st.integers(-(2**100) + 1, 2**100 - 1))
@settings(max_examples=40)
def test_integer_shares_are_positive_bounded_and_open(shape: tuple[int, int], secret: int) -> None:
    n, t = shape
    dealt = IntegerPolynomial.deal(secret, 100, shape_of(n, t), t - 1, SystemRandomness())
    shares = {i: int(dealt.at(i)) for i in range(1, n + 1)}
    bits = dealt_bits(100, shape_of(n, t), t - 1)
    assert all(0 < share < 1 << bits for share in shares.values())
    members = range(n - t + 1, n + 1)
    opened = sum(weight * shares[i] for i, weight in lagrange(members, n).items())
    assert opened == delta(n) ** 2 * secret


@given(st.integers(3, 9), st.integers(0, MODULUS - 1))
@settings(max_examples=30)
def test_modular_shares_open_and_a_wrong_one_is_seen(n: int, secret: int) -> None:
    degree = (n - 1) // 2
    shares = deal_modular(secret, degree, n, MODULUS, SystemRandomness())
    opening = ModularOpening(n, degree, MODULUS)
    assert opening.open(shares) == secret
    if n > degree + 1:
        shares[-1] = (shares[-1] + 1) % MODULUS
        assert opening.open(shares) is None


def test_transcripts_separate_labels_lengths_and_domains() -> None:
    seen = {
        Transcript("a").append("x", b"12").append("y", b"3").challenge("e"),
        Transcript("a").append("x", b"1").append("y", b"23").challenge("e"),
        Transcript("a").append("xx", b"12").append("y", b"3").challenge("e"),
        Transcript("b").append("x", b"12").append("y", b"3").challenge("e"),
        Transcript("a").append("x", b"12").append("y", b"3").challenge("f"),
        Transcript("a").append("x", b"12").challenge("e"),
    }
    assert len(seen) == 6


def test_a_fork_does_not_change_its_origin() -> None:
    transcript = Transcript("a")
    before = transcript.challenge("e")
    transcript.fork().append("x", 1)
    assert transcript.challenge("e") == before


def test_seeded_randomness_repeats_and_separates() -> None:
    first = SeededRandomness(b"s" * 32, "a")
    drawn = [first.bits(64), first.bits(64)]
    again = SeededRandomness(b"s" * 32, "a")
    assert [again.bits(64), again.bits(64)] == drawn
    assert SeededRandomness(b"s" * 32, "b").bits(64) not in drawn
    assert SeededRandomness(b"t" * 32, "a").bits(64) not in drawn
    assert "redacted" in repr(first)


@given(st.lists(st.integers(0, 2**40 - 1)))
def test_vectors_have_one_encoding(values: list[int]) -> None:
    assert decode(encode(values, 5), 5, len(values), 2**40) == values


def test_unreduced_short_and_long_vectors_are_malformed() -> None:
    with pytest.raises(Malformed, match="reduced"):
        decode(encode([9], 4), 4, 1, 9)
    with pytest.raises(Malformed):
        decode(b"123", 4, 1, 2**32)
    with pytest.raises(Malformed, match="short"):
        IntegerReader(b"").raw(1)
    with pytest.raises(Malformed, match="long"):
        IntegerReader(b"1").end()
