"""The learning adversary on made-up plays: it finds what matters, and nothing where nothing does."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from anofel.games.adversaries.learned import boost


def right(rows: np.ndarray, bits: np.ndarray, learn: int) -> float:
    model = boost(rows[:learn], bits[:learn])
    return float((model.predict(rows[learn:]) == bits[learn:]).mean())


def test_one_column_of_eighty_that_tells_is_found() -> None:
    rng = np.random.default_rng(1)
    rows, bits = rng.normal(size=(260, 80)), rng.integers(0, 2, 260)
    rows[:, 33] += 3 * bits
    assert right(rows, bits, 60) > 0.75
    rows[:, 33] -= 6 * bits  # the other way round
    assert right(rows, bits, 60) > 0.75


def test_two_columns_that_tell_only_together_are_found() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(1200, 6))
    bits = (rows[:, 1] * rows[:, 4] > 0).astype(int)
    assert right(rows, bits, 800) > 0.8


def test_of_nothing_nothing_is_learned() -> None:
    rng = np.random.default_rng(2)
    rows, bits = rng.normal(size=(1200, 80)), rng.integers(0, 2, 1200)
    assert abs(right(rows, bits, 200) - 0.5) < 0.06
