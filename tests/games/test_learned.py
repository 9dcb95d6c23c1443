"""Boosted stumps on made-up plays: they find what matters, and nothing where nothing does."""

import numpy as np

from anofel.games.adversaries.learned import boost, side


def right(rows: np.ndarray, bits: np.ndarray, learn: int) -> float:
    stumps = boost(rows[:learn], 2 * bits[:learn] - 1)
    votes = [
        sum(weight * side(row[column] > cut, sign) for column, cut, sign, weight in stumps)
        for row in rows[learn:]
    ]
    return float(((np.array(votes) > 0) == bits[learn:]).mean())


def test_one_column_of_eighty_that_tells_is_found() -> None:
    rng = np.random.default_rng(1)
    rows, bits = rng.normal(size=(240, 80)), rng.integers(0, 2, 240)
    rows[:, 33] += 3 * bits
    assert right(rows, bits, 60) > 0.75
    rows[:, 33] -= 6 * bits  # the other way round
    assert right(rows, bits, 60) > 0.75


def test_of_nothing_nothing_is_learned() -> None:
    rng = np.random.default_rng(2)
    rows, bits = rng.normal(size=(1000, 80)), rng.integers(0, 2, 1000)
    assert abs(right(rows, bits, 200) - 0.5) < 0.06
