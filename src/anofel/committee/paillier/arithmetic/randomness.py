"""Where random integers come from: the operating system, or a seed that can be replayed.

Key generation draws everything from one secret seed per member and run, so that a failed run can
be opened and replayed by everybody (``docs/paillier.md``).
"""

import hashlib
import secrets
from typing import Protocol

SEED_BYTES = 32


class Randomness(Protocol):
    """A source of uniform integers."""

    def bits(self, count: int) -> int:
        """Return an integer in [0, 2^count)."""
        ...

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound), uniform up to 2^-128."""
        ...


class SystemRandomness:
    """The operating system's generator."""

    def bits(self, count: int) -> int:
        """Return an integer in [0, 2^count)."""
        return secrets.randbits(count)

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return secrets.randbelow(int(bound))


class SeededRandomness:
    """SHAKE-256 over (seed, label, counter); secret as long as the seed is."""

    __slots__ = ("_counter", "_prefix")

    def __init__(self, seed: bytes, label: str) -> None:
        name = label.encode()
        self._prefix = b"anofel/1/paillier/randomness" + seed + len(name).to_bytes(2, "big") + name
        self._counter = 0

    def __repr__(self) -> str:
        return "SeededRandomness(<redacted>)"

    def bits(self, count: int) -> int:
        """Return an integer in [0, 2^count)."""
        length = (count + 7) // 8
        data = hashlib.shake_256(self._prefix + self._counter.to_bytes(8, "big")).digest(length)
        self._counter += 1
        return int.from_bytes(data, "big") >> (8 * length - count)

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound), uniform up to 2^-128."""
        return self.bits(int(bound).bit_length() + 128) % bound
