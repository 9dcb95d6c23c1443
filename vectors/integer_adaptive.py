"""Write integer_adaptive.json: the adaptive rules computed with exact fractions, independent of the package.

Run: python vectors/integer_adaptive.py > vectors/integer_adaptive.json
"""

import json
import math
import random
from fractions import Fraction

ONE = 1 << 16
LIMIT = 2**63
LARGEST_SECOND = 2**62


def step(rule: dict[str, int], model: int, first: int, second: int, total: int) -> tuple[int, int, int]:
    """Apply the rule to one entry."""
    beta1, beta2 = Fraction(rule["momentum"], ONE), Fraction(rule["second_momentum"], ONE)
    gradient = round(Fraction(total, rule["count"]))
    first = round(beta1 * first + (1 - beta1) * gradient)
    square = gradient * gradient
    if rule["yogi"]:
        away = (second > square) - (second < square)
        second -= away * round((1 - beta2) * square)
    else:
        second = round(beta2 * second + (1 - beta2) * square)
    if not 0 <= second <= LARGEST_SECOND:
        raise OverflowError
    rate = Fraction(rule["lr_num"], rule["lr_den"]) * 2 ** rule["scale_bits"]
    model += round(rate * first / (math.isqrt(second) + rule["floor"]))
    if not all(-LIMIT <= value < LIMIT for value in (model, first)):
        raise OverflowError
    return model, first, second


def case(rng: random.Random, bits: int) -> dict[str, object]:
    """Draw one case."""
    rule = {
        "yogi": rng.random() < 0.5,
        "momentum": rng.choice([0, 2**15, 58982, 65535]),
        "second_momentum": rng.choice([0, 2**15, 64881, 65535]),
        "floor": rng.choice([1, 66, 2**20]),
        "scale_bits": rng.choice([8, 16, 20]),
        "lr_num": rng.choice([1, 3]),
        "lr_den": rng.choice([1, 7, 100]),
        "count": rng.choice([1, 2, 3, 16]),
    }
    model, first, total = ([rng.randint(-(2**bits), 2**bits) for _ in range(5)] for _ in range(3))
    second = [rng.randint(0, 2 ** min(62, 2 * bits)) for _ in range(5)]
    try:
        made = [step(rule, *entry) for entry in zip(model, first, second, total, strict=True)]
    except OverflowError:
        made = None
    following = None if made is None else [list(vector) for vector in zip(*made, strict=True)]
    return {**rule, "model": model, "first": first, "second": second, "sum": total, "next": following}


if __name__ == "__main__":
    rng = random.Random(20261118)
    print(json.dumps([case(rng, bits) for bits in (2, 3, 8, 16, 24, 30, 31, 33, 36) * 6], indent=1))
