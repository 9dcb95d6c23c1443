import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.committee.context import TaskLimits
from anofel.committee.errors import DoesNotFit, Undecodable, VectorRefused
from anofel.committee.paillier.arithmetic.packing import Packing
from anofel.committee.paillier.arithmetic.parameters import GUARD_BITS, num_slots, slot_bits

BITS = 512


def packing(length: int = 40, bound: int = 1000, max_posts: int = 64) -> Packing:
    return Packing.of(TaskLimits(length=length, bound=bound, max_posts=max_posts, min_clients=2), BITS)


def naive(values: list[int], bits: int, slots: int) -> list[int]:
    chunks = [values[i : i + slots] for i in range(0, len(values), slots)]
    return [sum(x * 2 ** (bits * i) for i, x in enumerate(chunk)) for chunk in chunks]


@pytest.mark.parametrize(
    ("bound", "posts", "bits"),
    [(1, 1, 2), (1, 2, 3), (3, 1, 3), (4, 1, 4), (1 << 15, 1024, 27), (1000, 64, 17)],
)
def test_slot_bits_are_the_least_that_hold_every_sum(bound: int, posts: int, bits: int) -> None:
    assert slot_bits(bound, posts) == bits
    assert bound * posts <= 2 ** (bits - 1) - 1
    assert bound * posts > 2 ** (bits - 2) - 1


@pytest.mark.parametrize("modulus_bits", [512, 2048, 3072])
def test_the_slots_and_the_guard_stay_below_half_the_modulus(modulus_bits: int) -> None:
    bits, slots = slot_bits(1 << 15, 1024), num_slots(modulus_bits, 1 << 15, 1024)
    assert bits * slots + GUARD_BITS <= modulus_bits - 1
    assert bits * (slots + 1) + GUARD_BITS > modulus_bits - 1


def test_the_bar_for_61706_parameters_at_3072_bits_is_kept() -> None:
    limits = TaskLimits(length=61_706, bound=1 << 15, max_posts=1024, min_clients=2)
    assert Packing.of(limits, 3072).count * 768 + 784 <= 450_000


@given(st.data(), st.integers(1, 1 << 40), st.integers(1, 100))
@settings(max_examples=60)
def test_sums_of_packed_vectors_are_exact(data: st.DataObject, bound: int, length: int) -> None:
    posts = data.draw(st.integers(2, 6))
    layout = packing(length, bound, posts)
    value = st.one_of(st.just(bound), st.just(-bound), st.integers(-bound, bound))
    vectors = data.draw(
        st.lists(st.lists(value, min_size=length, max_size=length), min_size=1, max_size=posts)
    )
    packed = [layout.pack(np.array(v, dtype=np.int64)) for v in vectors]
    for vector, plaintexts in zip(vectors, packed, strict=True):
        assert plaintexts == naive(vector, layout.bits, layout.slots)
    sums = [sum(column) for column in zip(*packed, strict=True)]
    assert layout.unpack(sums, len(vectors)).tolist() == [sum(c) for c in zip(*vectors, strict=True)]


def test_the_widest_values_survive() -> None:
    bound = (1 << 62) - 1
    layout = packing(3, bound, 2)
    values = np.array([bound, -bound, 0], dtype=np.int64)
    assert layout.unpack([2 * m for m in layout.pack(values)], 2).tolist() == [2 * bound, -2 * bound, 0]


def test_sums_beyond_int64_are_refused_with_numbers() -> None:
    with pytest.raises(DoesNotFit, match="2\\^63"):
        slot_bits(1 << 60, 8)
    with pytest.raises(DoesNotFit, match="64 bits"):
        num_slots(64, (1 << 62) - 1, 2)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(40, dtype=np.int32), "int64"),
        (np.zeros((40, 1), dtype=np.int64), "one-dimensional"),
        ([0] * 40, "int64"),
        (np.zeros(39, dtype=np.int64), "39"),
        (np.full(40, 1001, dtype=np.int64), "1001"),
        (np.full(40, -1001, dtype=np.int64), "-1001"),
        (np.full(40, np.iinfo(np.int64).min, dtype=np.int64), "-9223372036854775808"),
    ],
)
def test_a_wrong_vector_is_refused(values: object, words: str) -> None:
    with pytest.raises(VectorRefused, match=words):
        packing().check(values)


def test_a_plaintext_beyond_its_slots_is_undecodable() -> None:
    layout = packing()
    for plaintext in (1 << (layout.bits * layout.slots), -(1 << (layout.bits * layout.slots))):
        with pytest.raises(Undecodable, match="slots"):
            layout.unpack([plaintext] + [0] * (layout.count - 1), 2)


def test_a_slot_beyond_the_posts_is_undecodable() -> None:
    layout = packing()
    assert layout.unpack([2000, 0], 2)[0] == 2000
    with pytest.raises(Undecodable, match="bound"):
        layout.unpack([2001, 0], 2)
