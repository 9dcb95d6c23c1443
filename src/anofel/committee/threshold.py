"""What both schemes do alike: keep to their own types, and open a sum with t checked shares (step 8).

1. Key, sum and permit belong together (D-08, D-18), before anything is decrypted or checked.
2. Key, preparation, secret share and sum are this scheme's own.
3. A share is verified once; ``combine`` takes verified shares of this key and agreed set only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from anofel.committee import verified
from anofel.committee.context import AgreedSet, PostContext, TaskLimits
from anofel.committee.errors import NotAgreed, PayloadRefused, ShareRefused
from anofel.committee.interface import (
    Bytes,
    CheckedPayload,
    CommitteeKey,
    EncryptedSum,
    Envelope,
    Int64Vector,
    SecretKeyShare,
    SubmittedPayload,
    check_permit,
)
from anofel.committee.permit import SumPermit
from anofel.committee.verified import VerifiedShare

Key = TypeVar("Key", bound=CommitteeKey)
Share = TypeVar("Share", bound=SecretKeyShare)
Sum = TypeVar("Sum", bound=EncryptedSum)
Checked = TypeVar("Checked")
"""A parsed share that was checked."""


class ThresholdScheme(ABC, Generic[Key, Share, Sum, Checked]):
    """The part of ``Scheme`` that does not depend on the arithmetic."""

    name: str
    proves_norm: bool
    share_type: type[Share]
    sum_type: type[Sum]
    checked_type: type[Checked]

    @abstractmethod
    def own(self, key: CommitteeKey) -> Key:
        """Return the key as this scheme's. Raises ``KeyRefused`` for another scheme's key."""

    @abstractmethod
    def make_share(self, key: Key, share: Share, total: Sum, agreed: AgreedSet) -> bytes:
        """Make a current member's share of a sum that may be opened."""

    @abstractmethod
    def check_share(self, key: Key, total: Sum, agreed: AgreedSet, member: int, share: bytes) -> Checked:
        """Check the share of a member who exists. Raises ``ShareRefused``."""

    @abstractmethod
    def open_sum(self, key: Key, total: Sum, shares: Mapping[int, Checked]) -> Int64Vector:
        """Return the exact sum from t checked shares. Raises ``Undecodable``."""

    @abstractmethod
    def verify_payload(
        self, key: CommitteeKey, context: PostContext, limits: TaskLimits, envelope: Envelope, payload: Bytes
    ) -> CheckedPayload:
        """Check and parse a payload. Raises ``PayloadRefused``."""

    def check_payloads(
        self, key: CommitteeKey, limits: TaskLimits, items: Sequence[SubmittedPayload]
    ) -> list[CheckedPayload | PayloadRefused]:
        """Check payloads one by one; a scheme that checks many at once overrides it."""
        return [self._checked(key, limits, item) for item in items]

    def _checked(
        self, key: CommitteeKey, limits: TaskLimits, item: SubmittedPayload
    ) -> CheckedPayload | PayloadRefused:
        try:
            return self.verify_payload(key, item.context, limits, item.envelope, item.payload)
        except PayloadRefused as refused:
            return refused

    def partial_decrypt(
        self, key: CommitteeKey, share: SecretKeyShare, total: EncryptedSum, permit: SumPermit
    ) -> bytes:
        """Make a member's share of the sum with its proof."""
        ours, encrypted, agreed = self._permitted(key, total, permit)
        if not isinstance(share, self.share_type):
            raise ShareRefused("The secret share is one of another scheme.", (share.member,))
        if share.shares_id != key.shares_id:
            raise ShareRefused(
                f"The secret share of member {share.member} belongs to another key or to older shares.",
                (share.member,),
            )
        return self.make_share(ours, share, encrypted, agreed)

    def verify_share(
        self, key: CommitteeKey, total: EncryptedSum, permit: SumPermit, member: int, share: Bytes
    ) -> VerifiedShare:
        """Check a member's share, once. Raises ``ShareRefused``."""
        ours, encrypted, agreed = self._permitted(key, total, permit)
        if member not in key.shape.members:
            raise ShareRefused(f"There is no member {member} in this committee.", (member,))
        content = self.check_share(ours, encrypted, agreed, member, bytes(share))
        return verified.of_sum(member, key.shares_id, agreed, content)

    def combine(
        self, key: CommitteeKey, total: EncryptedSum, permit: SumPermit, shares: Sequence[VerifiedShare]
    ) -> Int64Vector:
        """Return the exact sum from t verified shares."""
        ours, encrypted, agreed = self._permitted(key, total, permit)
        chosen = verified.choose(shares, VerifiedShare, self.checked_type, ours, agreed)
        return self.open_sum(ours, encrypted, chosen)

    def _permitted(
        self, key: CommitteeKey, total: EncryptedSum, permit: SumPermit
    ) -> tuple[Key, Sum, AgreedSet]:
        agreed, ours = check_permit(key, total, permit), self.own(key)
        if not isinstance(total, self.sum_type):
            raise NotAgreed("The sum is one of another scheme.")
        return ours, total, agreed
