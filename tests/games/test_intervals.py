"""Clopper and Pearson's interval against known values, and by what it promises."""

import math

import pytest
from scipy.stats import beta

from anofel.errors import InvalidInput
from anofel.games.intervals import CONFIDENCE, clopper_pearson
from anofel.games.play import BELOW, BROKEN, HOLDS, Score

KNOWN = [  # printed in tables of exact limits, 95 %
    (0, 10, 0.0, 0.3085),
    (1, 10, 0.0025, 0.4450),
    (5, 10, 0.1871, 0.8129),
    (10, 10, 0.6915, 1.0),
    (15, 100, 0.0865, 0.2353),
]


@pytest.mark.parametrize(("wins", "plays", "low", "high"), KNOWN)
def test_known_values(wins: int, plays: int, low: float, high: float) -> None:
    found = clopper_pearson(wins, plays, 0.95)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize(("wins", "plays"), [(1, 2), (37, 40), (200, 400), (1003, 2000), (1999, 2000)])
def test_it_is_that_of_the_beta_distribution(wins: int, plays: int) -> None:
    found, rest = clopper_pearson(wins, plays), (1 - CONFIDENCE) / 2
    assert found.low == pytest.approx(beta.ppf(rest, wins, plays - wins + 1), abs=1e-9)
    assert found.high == pytest.approx(beta.ppf(1 - rest, wins + 1, plays - wins), abs=1e-9)


@pytest.mark.parametrize("truth", [0.03, 0.5, 0.61, 0.999])
def test_it_holds_the_truth_as_often_as_it_says(truth: float) -> None:
    plays = 25
    found = [clopper_pearson(wins, plays, 0.9) for wins in range(plays + 1)]
    covered = sum(
        math.comb(plays, wins) * truth**wins * (1 - truth) ** (plays - wins)
        for wins, interval in enumerate(found)
        if interval.low <= truth <= interval.high
    )
    assert covered >= 0.9


@pytest.mark.parametrize(
    ("wins", "plays", "confidence"), [(0, 0, 0.9), (3, 2, 0.9), (-1, 2, 0.9), (1, 2, 1.0)]
)
def test_what_is_no_result_is_refused(wins: int, plays: int, confidence: float) -> None:
    with pytest.raises(InvalidInput):
        clopper_pearson(wins, plays, confidence)


def test_a_verdict_follows_from_the_interval() -> None:
    def verdict(wins: int, plays: int) -> str:
        return Score("anybody", "", "anon", 0.5, plays=plays, wins=wins).verdict

    assert verdict(10, 10) == BROKEN
    assert verdict(104, 200) == HOLDS
    assert verdict(60, 200) == BELOW
    assert verdict(3, 3) == HOLDS, "three wins prove nothing"
