"""Keys of a ``lattice`` committee: 2048 for the coefficients of s, one for the count."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from anofel._core import committee as core
from anofel.committee import count_key
from anofel.committee.context import DIGEST_LENGTH, CommitteeShape
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.errors import InvalidCommittee, KeyRefused, ShareRefused
from anofel.committee.interface import CommitteeKey
from anofel.committee.kept import Kept
from anofel.committee.refusal import refusing
from anofel.framing import Reader, Writer
from anofel.ids import BlobHash, KeyId, RunId, SharesId

NAME = "lattice"
COUNT_KEY = 2048
NUM_KEYS = COUNT_KEY + 1
_HEADER = b"anofel/1/lattice"


@dataclass(frozen=True)
class LatticeKey:
    """A validated public key."""

    shape: CommitteeShape
    share_epoch: int
    run: RunId
    keys: core.Keys = field(repr=False, compare=False)

    scheme = NAME

    @cached_property
    def key_id(self) -> KeyId:
        """SHA-256 over what survives a change of shares."""
        return KeyId(hashlib.sha256(_HEADER + b"/key" + self.run + self.keys.public()).digest())

    @cached_property
    def encoded(self) -> bytes:
        """The canonical bytes."""
        writer = Writer().raw(_HEADER).number(self.shape.num_members, 1).number(self.shape.threshold, 1)
        return writer.number(self.share_epoch, 4).raw(self.run).raw(self.keys.to_bytes()).done()

    @cached_property
    def shares_id(self) -> SharesId:
        """SHA-256 over ``to_bytes()``."""
        return SharesId(BlobHash(hashlib.sha256(self.encoded).digest()))

    @cached_property
    def count_key(self) -> CountKey:
        """The key for the encrypted bit."""
        return count_key.from_keys(self.shape, self.keys, COUNT_KEY)

    def to_bytes(self) -> bytes:
        """Encode canonically."""
        return self.encoded

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LatticeKey) and other.encoded == self.encoded

    def __hash__(self) -> int:
        return hash(self.encoded)


@dataclass(frozen=True)
class LatticeShare(Kept):
    """One member's secret shares (kept)."""

    shares_id: SharesId
    secrets: core.Secrets = field(repr=False)

    @property
    def member(self) -> int:
        """Whose shares they are."""
        return self.secrets.member

    @property
    def count_share(self) -> SecretCountShare:
        """The share of the count key."""
        return count_key.from_secrets(self.secrets, COUNT_KEY)

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        writer = Writer().raw(self.shares_id).number(self.member, 2)
        return writer.raw(self.secrets.to_secret_bytes()).done()


def read_key(data: bytes) -> LatticeKey:
    """Parse and validate a key: header, sizes, canonical points, and the degree of every sharing."""
    reader = Reader(data)
    try:
        if reader.raw(len(_HEADER)) != _HEADER:
            raise ValueError("it is not a key of the lattice scheme")
        num_members, threshold, epoch = reader.number(1), reader.number(1), reader.number(4)
        shape, run = CommitteeShape(num_members=num_members, threshold=threshold), reader.raw(DIGEST_LENGTH)
        points = reader.raw(NUM_KEYS * count_key.POINT_LENGTH * (num_members + 1))
        reader.end()
    except (ValueError, InvalidCommittee) as error:
        raise KeyRefused(f"The committee key is malformed: {error}.") from None
    with refusing(KeyRefused):
        keys = core.Keys.read(core_shape(shape), points)
    return LatticeKey(shape, epoch, RunId(run), keys)


def read_share(key: LatticeKey, data: bytes) -> LatticeShare:
    """Read stored secret shares and check them against the key."""
    reader = Reader(data)
    try:
        shares_id, member = reader.raw(32), reader.number(2)
        scalars = reader.raw(NUM_KEYS * count_key.SCALAR_LENGTH)
        reader.end()
    except ValueError as error:
        raise ShareRefused(f"The stored share is damaged: {error}.") from None
    if shares_id != key.shares_id:
        raise ShareRefused("The stored share belongs to another key or to older shares.", (member,))
    with refusing(ShareRefused):
        return LatticeShare(key.shares_id, core.Secrets.read(key.keys, member, scalars))


def core_shape(shape: CommitteeShape) -> core.Shape:
    """Return the committee's shape for the core."""
    return core.Shape(NUM_KEYS, shape.num_members, shape.threshold)


def own(key: CommitteeKey) -> LatticeKey:
    """Return the key as this scheme's. Raises ``KeyRefused`` for another scheme's key."""
    if not isinstance(key, LatticeKey):
        raise KeyRefused(f"The key is one of the {key.scheme} scheme, not of {NAME}.")
    return key
