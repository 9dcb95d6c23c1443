"""Check the lemma behind the contribution proof (docs/contribution-proof.md).

    python tools/projection_lemma.py

Prints what is proven and what is only checked: the supremum on a grid, exact distributions for a small
modulus, the slack by an adversary's effort, and the probability that an honest proof is begun again.
"""

import math
import random
from collections.abc import Callable

import numpy as np

ROWS, SPREAD = 256, 225


def proven(rate: float) -> float:
    """Bound one row's moment by one Gaussian lobe for each period of the cosine."""
    lobes = 1 + 2 * sum(math.exp(-((math.pi * k) ** 2) / (1 + rate)) for k in range(1, 9))
    return max((1 + math.exp(-rate)) / 2, lobes / math.sqrt(1 + rate))


def at_the_ends(rate: float) -> float:
    """Bound one row's moment by the larger of its two ends: one coordinate, or very many."""
    return max((1 + math.exp(-rate)) / 2, 1 / math.sqrt(1 + rate))


def slack(moment: Callable[[float], float], bits: int) -> float:
    """Return how much longer than its bound a vector may be that passes with probability 2^-bits."""
    rates = np.arange(0.1, 12, 0.005)
    theta = max((-bits * math.log(2) - ROWS * math.log(moment(rate))) / rate for rate in rates)
    return math.sqrt(SPREAD / theta)


def on_the_grid(rate: float, modulus: float) -> tuple[float, float]:
    """Return the largest of Σ w_n·|cos(πnu/Q)|^(2/u²) over u in (0, 1], and where it is."""
    last = int(modulus * math.sqrt(60 * rate) / math.pi) + 2
    n = np.arange(-last, last + 1)
    weights = math.sqrt(math.pi / rate) / modulus * np.exp(-((math.pi * n) ** 2) / (rate * modulus**2))
    places = np.linspace(0.005, 1, 2000)
    cosines = np.abs(np.cos(math.pi * np.outer(places, n) / modulus))
    values = (weights * np.exp(2 / places[:, None] ** 2 * np.log(cosines + 1e-300))).sum(axis=1)
    return float(values.max()), float(places[values.argmax()])


def exact_moment(vector: list[int], modulus: int, rate: float, norm: float) -> float:
    """Return E exp(-rate·[<t, y>]²/norm²) from the whole distribution."""
    chances = np.zeros(modulus)
    chances[0] = 1
    for value in vector:
        chances = chances / 2 + np.roll(chances, value) / 4 + np.roll(chances, -value) / 4
    places = np.arange(modulus)
    centred = np.where(places > modulus // 2, places - modulus, places)
    return float((chances * np.exp(-rate * (centred / norm) ** 2)).sum())


def worst_exact(modulus: int, ratio: int, rate: float, tries: int) -> float:
    """Return the largest moment seen among vectors of norm at least modulus/ratio."""
    norm, generator, worst = modulus / ratio, random.Random(1), 0.0  # noqa: S311 - a search, no secret
    special = [modulus // 2, modulus // 3, modulus // 4, math.ceil(norm), math.ceil(norm) + 1]
    for _ in range(tries):
        size = generator.choice([1, 1, 2, 2, 3, 4, 5, 8, 13, 30])
        kinds = (
            [math.ceil(norm / math.sqrt(size))] * size,
            [generator.randrange(modulus) for _ in range(size)],
            [generator.choice(special) for _ in range(size)],
            [round(generator.gauss(0, norm / math.sqrt(size))) for _ in range(size)],
        )
        vector = [(v + modulus // 2) % modulus - modulus // 2 for v in generator.choice(kinds)]
        if math.hypot(*vector) >= norm:
            worst = max(worst, exact_moment(vector, modulus, rate, norm))
    return worst


def main() -> None:
    """Print every figure that the page quotes."""
    print("slack by effort, checked (proven):")
    for bits in (20, 40, 60, 80, 100, 128):
        print(f"  2^{bits}: {slack(at_the_ends, bits):.3f} ({slack(proven, bits):.3f})")
    print("the supremum on a grid, beside the larger end:")
    for modulus in (8, 12, 20, 125):
        for rate in (0.5, 1.5, 2.4, 3.5):
            found, where = on_the_grid(rate, modulus)
            verdict = "ok" if found <= at_the_ends(rate) + 1e-6 else "LARGER"
            print(f"  Q = {modulus}, rate {rate}: {found:.6f} at u = {where:.3f}", end=", ")
            print(f"{at_the_ends(rate):.6f} {verdict}")
    print("exact distributions modulo 4099, worst seen beside the bound:")
    for ratio in (8, 16, 40):
        for rate in (1.5, 2.4, 3.5):
            worst = worst_exact(4099, ratio, rate, 300)
            verdict = "ok" if worst <= at_the_ends(rate) + 2e-3 else "LARGER"
            print(f"  q/b = {ratio}, rate {rate}: {worst:.4f}, {at_the_ends(rate):.4f} {verdict}")
    ratio = SPREAD / (ROWS / 2)
    bits = -(ROWS / 2) * (math.log(ratio) + 1 - ratio) / math.log(2)
    print(f"an honest proof is begun again with probability below 2^-{bits:.1f}")


if __name__ == "__main__":
    main()
