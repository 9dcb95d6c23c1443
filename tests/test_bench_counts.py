"""What exact counts tell: the figures of docs/privacy.md, and the formulas behind them by drawing."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from anofel.errors import InvalidInput

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("bench_counts", ROOT / "bench" / "counts.py")
counts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(counts)
count_advantage, noisy_count_advantage = counts.count_advantage, counts.noisy_count_advantage


def test_the_page_shows_what_is_computed():
    page = (ROOT / "docs" / "privacy.md").read_text()
    for share in counts.TAKING_PART:
        row = " | ".join(f"{count_advantage(others, share):.2f}" for others in counts.OTHERS)
        assert f" | {row} |" in page
    for epsilon in counts.EPSILONS:
        row = " | ".join(f"{noisy_count_advantage(epsilon, number):.2f}" for number in counts.ITERATIONS)
        assert f" | {row} |" in page


@pytest.mark.parametrize(("others", "share"), [(0, 0.5), (7, 1.0), (3, 0.0)])
def test_counts_name_the_task_where_nobody_else_is_unknown(others, share):
    assert count_advantage(others, share) == pytest.approx(1.0)


def test_the_advantage_by_counts_is_that_of_the_best_guess():
    """By drawing: the sign of the difference of the counts is the likelihood-ratio test."""
    rng = np.random.default_rng(5)
    first, second = (rng.binomial(8, 0.5, 400_000) for _ in range(2))
    difference = first - second
    right = (difference + 1 > 0).mean() + (difference + 1 == 0).mean() / 2
    assert count_advantage(8, 0.5) == pytest.approx(2 * right - 1, abs=0.006)


@pytest.mark.parametrize(("epsilon_of_count", "iterations"), [(0.5, 1), (0.25, 10), (1.0, 3)])
def test_noise_on_counts_wears_off(epsilon_of_count, iterations):
    rng, share = np.random.default_rng(6), 1 - math.exp(-epsilon_of_count)
    shape = (iterations, 200_000)
    noise = [rng.geometric(share, shape) - rng.geometric(share, shape) for _ in range(2)]
    counts = noise[0] + 1, noise[1]
    scores = sum(np.abs(counts[0]) - np.abs(counts[0] - 1) + np.abs(counts[1] - 1) - np.abs(counts[1]))
    right = (scores > 0).mean() + (scores == 0).mean() / 2
    assert noisy_count_advantage(epsilon_of_count, iterations) == pytest.approx(2 * right - 1, abs=0.008)


def test_counts_refuse_what_is_no_number_of_others():
    for call in (lambda: count_advantage(-1, 0.5), lambda: count_advantage(2, 1.5)):
        with pytest.raises(InvalidInput):
            call()
    for call in (lambda: noisy_count_advantage(0, 1), lambda: noisy_count_advantage(1, 0)):
        with pytest.raises(InvalidInput):
            call()
