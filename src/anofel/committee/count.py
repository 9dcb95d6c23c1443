"""The count (D-08): one encrypted bit per committee of the bundle, the same for all schemes.

A client casts a ``Ballot``: for every committee of its bundle an encrypted bit, 1 for the task it
trains and 0 for the others (all 0 in a cover post), with one proof for the whole bundle. For
each committee b = 0, or b = 1 and its task takes the dataset type that the submission proof
committed to; and Σ b ∈ {0, 1}. Committees add the bits of a set and open the sum first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anofel._core import count as core
from anofel.committee import verified
from anofel.committee.context import MAX_POSTS, AgreedSet, PostContext, digest_of_set
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.errors import BallotRefused, NotAgreed, ShareRefused, TooFewClients
from anofel.committee.kept import Kept
from anofel.committee.permit import DecryptedCount, counted
from anofel.committee.refusal import reasons_of, refuse_batch, refusing
from anofel.committee.verified import VerifiedCountShare
from anofel.errors import InvalidInput
from anofel.ids import KeyId, Nullifier, SetDigest

CIPHERTEXT_LENGTH = 64
SHARES_ID_LENGTH = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleCommittee:
    """One committee of a bundle, as the count proof sees it."""

    key_id: KeyId
    count_key: CountKey
    accepted_types: tuple[int, ...] | None
    """Ascending; None for any dataset type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeOpening(Kept):
    """What opens the dataset type commitment of the submission proof (kept)."""

    dataset_type: int = field(repr=False)
    blinding: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CastBallot(Kept):
    """A ballot and what opens its bits, for the contribution proofs (kept; the ballot is sent)."""

    ballot: bytes = field(repr=False)
    bits: tuple[core.CastBit, ...] = field(repr=False)


class BallotStatement:
    """Everything that a ballot is bound to; ``context.iteration`` names genesis and scope."""

    def __init__(
        self, context: PostContext, type_commitment: bytes, committees: Iterable[BundleCommittee]
    ) -> None:
        lines = tuple(committees)
        with refusing(BallotRefused):
            self.bundle = core.BallotBinding(
                genesis=context.iteration.genesis,
                scope=context.iteration.scope,
                nullifier=context.nullifier,
                tag=context.tag,
                pk_sig=context.pk_sig,
                type_commitment=type_commitment,
                committees=[
                    core.BallotLine(
                        key_id=line.key_id,
                        count_key=line.count_key.public,
                        accepted_types=line.accepted_types,
                    )
                    for line in lines
                ],
            )

    @property
    def ballot_bytes(self) -> int:
        """The exact length of every ballot for this bundle."""
        return self.bundle.ballot_bytes

    def cast(self, target: int | None, opening: TypeOpening) -> CastBallot:
        """Encrypt and prove the bits: 1 at position ``target``, 0 elsewhere (step 5).

        Raises ``InvalidInput`` if the task at the target does not take the dataset type.
        """
        with refusing(InvalidInput):
            made = self.bundle.vote(target, opening.dataset_type, opening.blinding)
        return CastBallot(made.ballot, tuple(made.bits))

    def verify(self, ballot: bytes) -> None:
        """Check a ballot (admission). Raises ``BallotRefused``."""
        with refusing(BallotRefused):
            self.bundle.verify(ballot)


def bit_of(ballot: bytes, place: int) -> bytes:
    """Return the encrypted bit for a place of the bundle, from a ballot that was verified."""
    return ballot[place * CIPHERTEXT_LENGTH : (place + 1) * CIPHERTEXT_LENGTH]


def verify_ballots(items: Sequence[tuple[BallotStatement, bytes]]) -> None:
    """Check many ballots side by side (admission).

    Raises ``BallotRefused``; ``indices`` and ``reasons`` name the bad ones.
    """
    refused = core.refused_ballots([(statement.bundle, ballot) for statement, ballot in items])
    refuse_batch(BallotRefused, len(items), reasons_of(refused))


class CountedKey(Protocol):
    """What the count needs of a committee's key."""

    @property
    def key_id(self) -> KeyId:
        """The key's name."""
        ...

    @property
    def count_key(self) -> CountKey:
        """The part that opens counts."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class EncryptedCount:
    """The sum of a set's encrypted bits."""

    set_digest: SetDigest
    num_posts: int
    ciphertext: bytes


def add(bits: Mapping[Nullifier, bytes]) -> EncryptedCount:
    """Add the encrypted bits of a set, given by nullifier (step 7)."""
    if len(bits) > MAX_POSTS:
        raise InvalidInput(f"A committee adds at most {MAX_POSTS} posts, not {len(bits)}.")
    with refusing(BallotRefused):
        ciphertext = core.add_bits(b"".join(bits.values()))
    return EncryptedCount(set_digest=digest_of_set(bits), num_posts=len(bits), ciphertext=ciphertext)


def partial_decrypt(
    key: CountedKey, share: SecretCountShare, total: EncryptedCount, agreed: AgreedSet
) -> bytes:
    """Make a member's share of the count with its proof (step 8). Raises ``NotAgreed``, ``TooFewClients``."""
    _check_agreed(key, total, agreed)
    with refusing(ShareRefused):
        proof = core.count_share(total.ciphertext, share.member, share.scalar, agreed.digest)
    made = key.count_key.shares_id + proof
    verify_share(key, total, agreed, share.member, made)
    return made


def verify_share(
    key: CountedKey, total: EncryptedCount, agreed: AgreedSet, member: int, share: bytes
) -> VerifiedCountShare:
    """Check a member's share of the count, once. Raises ``ShareRefused`` with the member as culprit.

    1. Key and set are the agreed ones, and the set has as many posts as the task needs clients.
    2. The member exists.
    3. The share was made with the current shares of the key.
    4. Its length and encoding are right.
    5. The equality proof holds for this member, set and count.
    """
    _check_agreed(key, total, agreed)
    ours = key.count_key
    if member not in ours.shape.members:
        raise ShareRefused(f"There is no member {member} in this committee.", (member,))
    if share[:SHARES_ID_LENGTH] != ours.shares_id:
        raise ShareRefused(f"Member {member} used other than the current shares of the key.", (member,))
    with refusing(ShareRefused):
        content = core.verify_count_share(
            total.ciphertext,
            member,
            ours.verification_shares[member - 1],
            agreed.digest,
            share[SHARES_ID_LENGTH:],
        )
    return verified.of_count(member, ours.shares_id, agreed, content)


def combine(
    key: CountedKey, total: EncryptedCount, agreed: AgreedSet, shares: Sequence[VerifiedCountShare]
) -> DecryptedCount:
    """Open the count from t verified shares; those of the lowest members are used.

    Raises ``ShareRefused`` for a share that was verified for another key, count or agreed set or
    is given twice, ``TooFewShares``, ``NotAgreed``.
    """
    _check_agreed(key, total, agreed)
    chosen = verified.choose(shares, VerifiedCountShare, core.CheckedCountShare, key.count_key, agreed)
    with refusing(ShareRefused):
        value = core.combine_count(total.ciphertext, list(chosen.values()), total.num_posts)
    return counted(agreed, value)


def _check_agreed(key: CountedKey, total: EncryptedCount, agreed: AgreedSet) -> None:
    if key.key_id != agreed.key_id:
        raise NotAgreed("The committee key is not the one of the agreed set.")
    if total.set_digest != agreed.set_digest or total.num_posts != agreed.num_posts:
        raise NotAgreed("The encrypted count is not that of the agreed set of posts.")
    if agreed.num_posts < agreed.min_clients:  # the bits of a few posts would name their tasks (D-24)
        raise TooFewClients(
            f"{agreed.num_posts} posts were added; the task opens no count of fewer than "
            f"{agreed.min_clients}."
        )
