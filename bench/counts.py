"""What the exact counts of a bundle tell of one client: the figures of docs/privacy.md.

Run: python bench/counts.py
"""

import math

from anofel.errors import InvalidInput

OTHERS = (2, 8, 32, 128)
TAKING_PART = (0.5, 0.9, 1.0)
EPSILONS = (1.0, 0.5, 0.25, 0.1)
ITERATIONS = (1, 10, 30)


def count_advantage(others: int, taking_part: float) -> float:
    """Compute what the exact counts of two tasks tell of the task for which a client trained: TPR − FPR.

    ``others``: clients of each task whom the adversary does not know, each taking part with this probability.
    The distance between (X + 1, Y) and (X, Y + 1), for two binomial numbers X and Y.
    """
    if others < 0 or not 0 <= taking_part <= 1:
        raise InvalidInput("The counts tell something of a number of others and of a probability.")
    usual = [
        math.comb(others, k) * taking_part**k * (1 - taking_part) ** (others - k) for k in range(others + 1)
    ]
    more, less = [0.0, *usual], [*usual, 0.0]
    return (
        math.fsum(
            abs(a * d - b * c)
            for a, b in zip(more, less, strict=True)
            for c, d in zip(more, less, strict=True)
        )
        / 2
    )


def noisy_count_advantage(epsilon: float, iterations: int) -> float:
    """Compute the same if both counts carried discrete Laplace noise of ε and the adversary knew all others.

    Each noise moves by one, so the logarithm of the likelihood ratio of an iteration is −2ε, 0 or 2ε; the
    iterations add up, and the best test looks at the sign of the sum.
    """
    if epsilon <= 0 or iterations < 1:
        raise InvalidInput("Noise has ε > 0, and there is at least one iteration.")
    up = 1 / (1 + math.exp(-epsilon))
    steps = {1: up * up, 0: 2 * up * (1 - up), -1: (1 - up) ** 2}
    sums = {0: 1.0}
    for _ in range(iterations):
        following: dict[int, float] = {}
        for value, probability in sums.items():
            for step, share in steps.items():
                following[value + step] = following.get(value + step, 0.0) + probability * share
        sums = following
    return math.fsum(probability * ((value > 0) - (value < 0)) for value, probability in sums.items())


def main() -> None:
    print("unknown clients of each task |", " ".join(f"{others:>5}" for others in OTHERS))
    for share in TAKING_PART:
        row = (count_advantage(others, share) for others in OTHERS)
        print(f"each takes part with {share:.1f}    |", " ".join(f"{value:5.2f}" for value in row))
    print("\niterations with noise        |", " ".join(f"{number:>5}" for number in ITERATIONS))
    for epsilon in EPSILONS:
        row = (noisy_count_advantage(epsilon, number) for number in ITERATIONS)
        print(f"ε of a count {epsilon:<15} |", " ".join(f"{value:5.2f}" for value in row))


if __name__ == "__main__":
    main()
