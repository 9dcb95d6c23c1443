"""The key for the encrypted bit: ElGamal on ristretto255, the same for every scheme.

A ``lattice`` committee makes it with its other keys. A committee of another scheme makes it alone:
``RistrettoKeyGeneration(1, purpose)`` and ``from_keys``.
"""

import hashlib
from dataclasses import dataclass, field

from anofel._core import committee as core
from anofel.committee.context import CommitteeShape
from anofel.committee.kept import Kept

POINT_LENGTH = 32
SCALAR_LENGTH = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class CountKey:
    """Public: the key Y = y·G and every member's Y_i = y_i·G."""

    shape: CommitteeShape
    public: bytes
    verification_shares: tuple[bytes, ...]

    @property
    def shares_id(self) -> bytes:
        """SHA-256 over the key and its shares; a share of the count begins with it."""
        state = hashlib.sha256(b"anofel/1/committee/count-key")
        state.update(bytes([self.shape.num_members, self.shape.threshold]) + self.public)
        state.update(b"".join(self.verification_shares))
        return state.digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class SecretCountShare(Kept):
    """One member's y_i (kept)."""

    member: int
    scalar: bytes = field(repr=False)


def from_keys(shape: CommitteeShape, keys: core.Keys, index: int) -> CountKey:
    """Take the count key at an index of validated keys."""
    public = keys.public()[index * POINT_LENGTH : (index + 1) * POINT_LENGTH]
    shares = tuple(keys.verification_share(member, index) for member in shape.members)
    return CountKey(shape=shape, public=public, verification_shares=shares)


def from_secrets(secrets: core.Secrets, index: int) -> SecretCountShare:
    """Take the own share of the count key at an index."""
    scalars = secrets.to_secret_bytes()
    scalar = scalars[index * SCALAR_LENGTH : (index + 1) * SCALAR_LENGTH]
    return SecretCountShare(member=secrets.member, scalar=scalar)
