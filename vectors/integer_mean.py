"""Write integer_mean.json: the update rule computed with exact fractions, independent of the package.

Run: python vectors/integer_mean.py > vectors/integer_mean.json
"""

import json
import math
import random
from fractions import Fraction

LIMIT = 2**63


def nearest_even(value: Fraction) -> int:
    """Python's own rounding of fractions is half to even."""
    return round(value)


def shortened(total: list[int], longest: int) -> list[int]:
    """Scale a sum down to the norm ``longest`` if its norm, rounded up, is above it."""
    square = sum(entry * entry for entry in total)
    norm = math.isqrt(square - 1) + 1 if square else 0
    return [nearest_even(Fraction(entry * longest, norm)) for entry in total] if norm > longest else total


def case(rng: random.Random, bits: int, max_mean: int | None = None) -> dict[str, object]:
    """Draw one case; about half of the small ones have ties."""
    momentum = rng.choice([0, 1, 2**15, 58982, 65535])
    lr_num, lr_den = rng.choice([(1, 1), (1, 2), (3, 7), (2**40, 2**41 - 1), (5, 1)])
    count = rng.choice([1, 2, 3, 16, 512])
    model, velocity, total = ([rng.randint(-(2**bits), 2**bits - 1) for _ in range(6)] for _ in range(3))
    velocity = velocity if momentum else [0] * 6
    applied = total if max_mean is None else shortened(total, max_mean * count)
    next_velocity = [
        nearest_even(Fraction(momentum * v, 2**16)) + nearest_even(Fraction(lr_num * s, lr_den * count))
        for v, s in zip(velocity, applied, strict=True)
    ]
    next_model = [m + v for m, v in zip(model, next_velocity, strict=True)]
    overflow = any(not -LIMIT <= value < LIMIT for value in next_velocity + next_model)
    return {
        "momentum": momentum,
        "lr_num": lr_num,
        "lr_den": lr_den,
        "count": count,
        "max_mean": max_mean,
        "model": model,
        "velocity": velocity,
        "sum": total,
        "next_model": None if overflow else next_model,
        "next_velocity": None if overflow else next_velocity,
    }


if __name__ == "__main__":
    rng = random.Random(20261115)
    cases = [case(rng, bits) for bits in (3, 3, 3, 3, 8, 16, 16, 31, 40, 52, 61, 62, 63, 63) * 4]
    cases += [
        case(rng, bits, 1 << rng.randint(0, bits)) for bits in (3, 3, 3, 8, 8, 16, 16, 31, 40, 52, 60) * 4
    ]
    print(json.dumps(cases, indent=1))
