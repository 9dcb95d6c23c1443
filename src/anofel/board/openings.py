"""What committees open: counts, sums, and the model that follows (steps 8 and 8′). Each is verified once.

Board, owner, simulation and audit all open through here, so a sum and the next model are computed once in
a process. What is kept is a cache: after a restart it is made again from the state and the attachments.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anofel.board.attachments import Attachments
from anofel.board.block_end import SumResult
from anofel.board.cache import BoundedCache
from anofel.board.claims import Addressee, CountShareClaim, SumClaim, SumShareClaim
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.seat import Seat
from anofel.committee import count
from anofel.committee.context import AgreedSet, IterationContext
from anofel.committee.count import EncryptedCount
from anofel.committee.errors import PayloadRefused, Undecodable
from anofel.committee.interface import EncryptedSum, Int64Vector
from anofel.committee.permit import DecryptedCount, SumPermit
from anofel.committee.verified import VerifiedCountShare, VerifiedShare
from anofel.errors import InvalidInput
from anofel.ids import BlobHash, Nullifier
from anofel.models.integer_model import IntegerModel, ModelOverflow
from anofel.models.rules import rule_of
from anofel.tasks.task import Task

MAX_COUNTS = 64
MAX_SUMS = 4
MAX_COUNT_SHARES = 256
MAX_SUM_SHARE_BYTES = 256 << 20
"""A share of a sum is as long as the sum; the shares of all bundles under way may be many."""

ShareName = tuple[bytes, int, bytes]
"""The agreed set, the member and the share itself."""


@dataclass(frozen=True, eq=False)
class OpenedSum:
    """A decoded sum with its count, and what the task's rule makes of it (step 8′)."""

    vector: Int64Vector
    count: int
    before: IntegerModel
    """The model that opened the iteration."""
    made: IntegerModel | None
    """The next model by the task's rule; None if the owner's own rule makes it."""
    shortened: bool = False
    """Whether the mean was longer than the rule allows, and was shortened."""

    @property
    def result(self) -> SumResult:
        """What the board keeps of it."""
        total = hashlib.sha256(self.vector.astype("<i8", copy=False).tobytes()).digest()
        return SumResult(total, None if self.made is None else BlobHash(self.made.digest()))


class Openings:
    """Reads and opens what the committees of one board posted."""

    def __init__(self, attachments: Attachments, keys: CommitteeKeys) -> None:
        self._attachments, self._keys = attachments, keys
        self._encrypted: BoundedCache[bytes, EncryptedSum] = BoundedCache(MAX_SUMS)
        self._opened: BoundedCache[tuple[bytes, bytes], OpenedSum | None] = BoundedCache(MAX_SUMS)
        self._tallies: BoundedCache[bytes, EncryptedCount] = BoundedCache(MAX_COUNTS)
        self._counts: BoundedCache[bytes, DecryptedCount] = BoundedCache(MAX_COUNTS)
        self._count_shares: BoundedCache[ShareName, VerifiedCountShare] = BoundedCache(MAX_COUNT_SHARES)
        self._sum_shares: BoundedCache[ShareName, tuple[VerifiedShare, int]] = BoundedCache(
            MAX_SUM_SHARE_BYTES, lambda entry: entry[1]
        )
        """With the length of each as it was posted."""

    # What is posted

    def check_sum(self, claim: SumClaim) -> None:
        """Check that a blob is a sum over the stated set. Raises ``PayloadRefused``."""
        total = self._read_sum(claim.addressee, claim.iteration, claim.sum_digest)
        if total.set_digest != claim.set_digest or total.num_posts != claim.num_posts:
            raise PayloadRefused("The sum is over another set than the posting states.")
        if total.digest != claim.sum_digest:
            raise PayloadRefused("The sum is not in its canonical encoding.")

    def check_count_share(self, claim: CountShareClaim) -> VerifiedCountShare:
        """Check a share of a count. Raises ``ShareRefused``."""

        def verify() -> VerifiedCountShare:
            _, key = self._keys.read(claim.addressee.committee)
            tally = self._tally(claim.agreed, claim.bits)
            return count.verify_share(key, tally, claim.agreed, claim.member, claim.share)

        return self._count_shares.get_or((claim.agreed.digest, claim.member, claim.share), verify)

    def check_sum_share(self, claim: SumShareClaim) -> VerifiedShare:
        """Check a share of a sum. Raises ``ShareRefused``."""

        def verify() -> tuple[VerifiedShare, int]:
            scheme, key = self._keys.read(claim.addressee.committee)
            counted = self._count(claim.addressee, claim.agreed, claim.bits, claim.count_shares)
            total = self._read_sum(claim.addressee, claim.agreed.iteration, claim.agreed.sum_digest)
            content = self._attachments.read(claim.share)
            share = scheme.verify_share(key, total, counted.permit_sum(), claim.member, content)
            return share, len(content)

        return self._sum_shares.get_or((claim.agreed.digest, claim.member, claim.share), verify)[0]

    # Step 8

    def tally(self, seat: Seat) -> EncryptedCount:
        """Return the encrypted count of the agreed set."""
        return self._tally(seat.agreed, seat.counted_bits)

    def count(self, seat: Seat) -> DecryptedCount:
        """Return the count that the first t shares in board order open."""
        return self._count(seat.addressee, seat.agreed, seat.counted_bits, seat.opening_of_count)

    def permit(self, seat: Seat) -> SumPermit:
        """Return the leave to decrypt the sum. Raises ``TooFewClients``."""
        return self.count(seat).permit_sum()

    def encrypted_sum(self, seat: Seat) -> EncryptedSum:
        """Return the encrypted sum that the committee agreed on."""
        agreed = seat.agreed
        return self._read_sum(seat.addressee, agreed.iteration, agreed.sum_digest)

    # Step 8′

    def open_sum(self, seat: Seat) -> OpenedSum | None:
        """Open the sum with the first t shares in board order and apply the task's rule.

        None if the sum cannot be decoded, or if the rule would make a model beyond its bounds.
        """
        model = seat.task.model
        if model is None:
            raise InvalidInput("The task has no model yet.")
        return self._opened.get_or((seat.agreed.digest, model), lambda: self._open(seat, model))

    def _open(self, seat: Seat, model: BlobHash) -> OpenedSum | None:
        scheme, key = self._keys.read(seat.addressee.committee)
        permit, total = self.permit(seat), self.encrypted_sum(seat)
        first = seat.position.sum_shares[: key.shape.threshold]
        shares = [
            self.check_sum_share(seat.sum_share_claim(share.member, BlobHash(share.content)))
            for share in first
        ]
        before = IntegerModel.from_bytes(self._attachments.read(model))
        counted, made, shortened = self.count(seat).value, None, False
        try:
            vector = np.ascontiguousarray(scheme.combine(key, total, permit, shares))
            if not seat.task.facts.own_rule:
                rule = rule_of(Task.from_bytes(seat.task.announcement.document))
                own = before.own_part(vector)
                made = rule.apply(before, own, counted, seat.number)
                shortened = rule.shortens(own, counted)
        except (Undecodable, ModelOverflow):
            return None
        return OpenedSum(vector, counted, before, made, shortened)

    # Caches

    def _count(
        self,
        addressee: Addressee,
        agreed: AgreedSet,
        bits: Sequence[tuple[Nullifier, bytes]],
        shares: Sequence[tuple[int, bytes]],
    ) -> DecryptedCount:
        def combine() -> DecryptedCount:
            _, key = self._keys.read(addressee.committee)
            verified = [
                self.check_count_share(CountShareClaim(addressee, agreed, tuple(bits), member, share))
                for member, share in shares
            ]
            return count.combine(key, self._tally(agreed, bits), agreed, verified)

        return self._counts.get_or(agreed.digest, combine)

    def _tally(self, agreed: AgreedSet, bits: Sequence[tuple[Nullifier, bytes]]) -> EncryptedCount:
        return self._tallies.get_or(agreed.digest, lambda: count.add(dict(bits)))

    def _read_sum(self, addressee: Addressee, iteration: IterationContext, digest: BlobHash) -> EncryptedSum:
        def read() -> EncryptedSum:
            scheme, key = self._keys.read(addressee.committee)
            data = self._attachments.read(digest)
            return scheme.read_sum(key, iteration, addressee.limits, data)

        kept = self._encrypted.get_or(digest, read)
        if kept.iteration != iteration:
            kept = self._encrypted[digest] = read()
        return kept
