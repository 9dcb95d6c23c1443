"""Many small signed integers in one plaintext: m = Σ x_i·2^(b·i), added slot by slot.

No offset is used on the wire, so a decoy is plain zero and the sum needs no correction by the
(hidden) number of real updates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import gmpy2
import numpy as np

from anofel.committee.context import TaskLimits
from anofel.committee.errors import Undecodable, VectorRefused
from anofel.committee.interface import Int64Vector
from anofel.committee.paillier.arithmetic.parameters import num_slots, slot_bits


@dataclass(frozen=True, slots=True)
class Packing:
    """How a task's vectors stand in plaintexts of one modulus."""

    limits: TaskLimits
    bits: int
    slots: int

    @classmethod
    def of(cls, limits: TaskLimits, modulus_bits: int) -> "Packing":
        """Compute the budget. Raises ``DoesNotFit`` with the numbers."""
        bits = slot_bits(limits.bound, limits.max_posts)
        return cls(limits, bits, num_slots(modulus_bits, limits.bound, limits.max_posts))

    @property
    def count(self) -> int:
        """How many plaintexts a vector takes."""
        return -(-self.limits.length // self.slots)

    def check(self, values: Int64Vector) -> None:
        """Refuse a vector that is not int64, has the wrong length, or leaves the bound."""
        if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.ndim != 1:
            raise VectorRefused("A vector is a one-dimensional int64 array.")
        if len(values) != self.limits.length:
            raise VectorRefused(f"The vector has {len(values)} values instead of {self.limits.length}.")
        low, high = int(values.min()), int(values.max())
        if max(-low, high) > self.limits.bound:
            worst = high if high > -low else low
            raise VectorRefused(f"A value is {worst}, beyond the bound {self.limits.bound}.")

    def pack(self, values: Int64Vector) -> list[int]:
        """Return signed plaintexts for a checked vector."""
        half = 1 << (self.bits - 1)
        shifted = (values + half).tolist() if self.bits < 63 else [int(v) + half for v in values]
        plaintexts = []
        for start in range(0, len(shifted), self.slots):
            chunk = shifted[start : start + self.slots]
            plaintexts.append(cast(int, gmpy2.pack(chunk, self.bits)) - self._offset(len(chunk)))
        return plaintexts

    def unpack(self, plaintexts: Sequence[int], num_posts: int) -> Int64Vector:
        """Return the sums from centred plaintexts.

        Raises ``Undecodable`` if a plaintext reaches beyond its slots, or a slot beyond what
        ``num_posts`` honest posts can add up to.
        """
        half, values = 1 << (self.bits - 1), []
        for index, plaintext in enumerate(plaintexts):
            used = min(self.slots, self.limits.length - index * self.slots)
            lifted = plaintext + self._offset(used)
            if not 0 <= lifted < 1 << (self.bits * used):
                raise Undecodable(f"Plaintext {index} of the sum reaches beyond its slots.")
            digits = [int(digit) - half for digit in gmpy2.unpack(gmpy2.mpz(lifted), self.bits)]
            values.extend(digits + [-half] * (used - len(digits)))
        largest = num_posts * self.limits.bound
        if any(abs(value) > largest for value in values):
            raise Undecodable(f"A value of the sum is beyond {num_posts} times the bound.")
        return np.array(values, dtype=np.int64)

    def _offset(self, used: int) -> int:
        """Return Σ 2^(b-1)·2^(b·i), which makes every slot non-negative."""
        return (1 << (self.bits - 1)) * (((1 << (self.bits * used)) - 1) // ((1 << self.bits) - 1))
