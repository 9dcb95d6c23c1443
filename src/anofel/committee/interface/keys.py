"""A committee's public key, and a member's secret share of it."""

from typing import Protocol, runtime_checkable

from anofel.committee.context import CommitteeShape
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.ids import KeyId, RunId, SharesId


@runtime_checkable
class CommitteeKey(Protocol):
    """A committee's public key with its members' verification shares; what ``CommitteeKey`` posts."""

    @property
    def scheme(self) -> str:
        """The scheme's name, as in ``Scheme.name``."""
        ...

    @property
    def key_id(self) -> KeyId:
        """SHA-256 over what survives a change of shares: scheme, run, public key, count key.

        Contexts, masks and proofs of clients bind this one.
        """
        ...

    @property
    def run(self) -> RunId:
        """The name of the run that generated the key, so that no two runs make the same key."""
        ...

    @property
    def shares_id(self) -> SharesId:
        """SHA-256 over ``to_bytes()``: changes with every refresh. Share proofs bind this one."""
        ...

    @property
    def shape(self) -> CommitteeShape:
        """Members and threshold."""
        ...

    @property
    def share_epoch(self) -> int:
        """0 after key generation, one more after each refresh or change of members."""
        ...

    @property
    def count_key(self) -> CountKey:
        """The committee's ElGamal key for the encrypted bit; the same type for all schemes."""
        ...

    def to_bytes(self) -> bytes:
        """Encode canonically: ``read_key(k.to_bytes()) == k``, and no other bytes are read as k."""
        ...


class SecretKeyShare(Protocol):
    """One member's secret share of a committee key (kept; ``repr`` is redacted)."""

    @property
    def member(self) -> int:
        """Whose share it is, 1 … n."""
        ...

    @property
    def shares_id(self) -> SharesId:
        """``CommitteeKey.shares_id`` of the key it belongs to; a stale share is refused by it."""
        ...

    @property
    def count_share(self) -> SecretCountShare:
        """The share of the count key."""
        ...

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        ...
