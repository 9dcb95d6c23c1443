"""Shares that were checked: ``combine`` takes nothing else, so each is checked once.

1. A ``VerifiedShare`` comes from ``Scheme.verify_share`` alone, a ``VerifiedCountShare`` from
   ``count.verify_share`` alone.
2. It remembers its member, and the shares of the key and the agreed set that it was checked for.
3. ``choose`` returns t of them if all belong to the key and set at hand, each to another member.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from anofel.committee.context import AgreedSet, CommitteeShape
from anofel.committee.errors import ShareRefused, TooFewShares

_MADE_HERE = object()
"""Known only to the functions that may make verified shares."""


class _Verified:
    """What verified shares of a sum and of a count have in common."""

    __slots__ = ("_agreed", "_content", "_member", "_shares_id")

    def __init__(
        self, member: int, shares_id: bytes, agreed: AgreedSet, content: object, *, proof_of_origin: object
    ) -> None:
        if proof_of_origin is not _MADE_HERE:
            raise ShareRefused("A verified share comes from verify_share only.", (member,))
        self._member = member
        self._shares_id = shares_id
        self._agreed = agreed.digest
        self._content = content

    def __repr__(self) -> str:
        return f"{type(self).__name__}(member {self._member})"

    @property
    def member(self) -> int:
        """Its author, 1 … n."""
        return self._member

    @property
    def shares_id(self) -> bytes:
        """``shares_id`` of the key that it was checked against."""
        return self._shares_id

    @property
    def agreed(self) -> bytes:
        """``AgreedSet.digest`` of the set that it was checked for."""
        return self._agreed

    @property
    def content(self) -> object:
        """The parsed share, for the scheme that checked it."""
        return self._content


class VerifiedShare(_Verified):
    """A member's share of a sum that ``Scheme.verify_share`` accepted."""

    __slots__ = ()


class VerifiedCountShare(_Verified):
    """A member's share of a count that ``count.verify_share`` accepted."""

    __slots__ = ()


_Content = TypeVar("_Content")


class _Key(Protocol):
    """A committee key or a count key."""

    @property
    def shape(self) -> CommitteeShape: ...

    @property
    def shares_id(self) -> bytes: ...


def of_sum(member: int, shares_id: bytes, agreed: AgreedSet, content: object) -> VerifiedShare:
    """Make a verified share of a sum; for ``verify_share`` of a scheme, which has checked it."""
    return VerifiedShare(member, shares_id, agreed, content, proof_of_origin=_MADE_HERE)


def of_count(member: int, shares_id: bytes, agreed: AgreedSet, content: object) -> VerifiedCountShare:
    """Make a verified share of a count; for ``count.verify_share``, which has checked it."""
    return VerifiedCountShare(member, shares_id, agreed, content, proof_of_origin=_MADE_HERE)


def choose(
    shares: Sequence[_Verified], kind: type[_Verified], content: type[_Content], key: _Key, agreed: AgreedSet
) -> dict[int, _Content]:
    """Return the parsed shares of the t lowest members.

    Raises ``ShareRefused`` with the author of a share that is not verified, was verified for
    another key, older shares or another agreed set, or stands there twice; ``TooFewShares``.
    """
    chosen: dict[int, _Content] = {}
    for share in shares:
        if not isinstance(share, kind) or not isinstance(share.content, content):
            author = (share.member,) if isinstance(share, _Verified) else ()
            raise ShareRefused("A share is combined after this scheme's verify_share only.", author)
        member = share.member
        if share.shares_id != key.shares_id:
            raise ShareRefused(
                f"Member {member}'s share was verified for other than the current shares of the key.",
                (member,),
            )
        if share.agreed != agreed.digest:
            raise ShareRefused(f"Member {member}'s share was verified for another agreed set.", (member,))
        if member in chosen:
            raise ShareRefused(f"Member {member}'s share was given twice.", (member,))
        chosen[member] = share.content
    threshold = key.shape.threshold
    if len(chosen) < threshold:
        raise TooFewShares(f"{len(chosen)} shares were given; the committee opens with {threshold}.")
    return {member: chosen[member] for member in sorted(chosen)[:threshold]}
