"""The key for the encrypted bit: ElGamal on ristretto255, the same for every scheme.

A committee of any scheme runs ``anofel.committee.lattice.key_generation`` with one key, or
with its own keys and this one more, to make it.
"""

from dataclasses import dataclass, field

from anofel.committee.context import CommitteeShape

POINT_LENGTH = 32
SCALAR_LENGTH = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class CountKey:
    """Public: the key Y = y·G and every member's Y_i = y_i·G."""

    shape: CommitteeShape
    public: bytes
    verification_shares: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretCountShare:
    """One member's y_i (kept)."""

    member: int
    scalar: bytes = field(repr=False)
