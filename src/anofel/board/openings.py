"""What committees open: counts, sums, and the model that follows (steps 8 and 8′). Each is verified once.

Board, owner, simulation and audit all open through here, so a sum and the next model are computed once in
a process. What is kept is a cache: after a restart it is made again from the state and the attachments.
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np

from anofel.board.attachments import Attachments
from anofel.board.block_end import SumResult
from anofel.board.cache import BoundedCache
from anofel.board.claims import Addressee, CountedGroup, CountShareClaim, SumClaim, SumShareClaim
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.seat import Seat
from anofel.committee import count
from anofel.committee.context import IterationContext
from anofel.committee.count import EncryptedCount
from anofel.committee.errors import PayloadRefused, Undecodable
from anofel.committee.interface import EncryptedSum, Int64Vector
from anofel.committee.permit import DecryptedCount, SumPermit
from anofel.committee.verified import VerifiedCountShare, VerifiedShare
from anofel.errors import InvalidInput
from anofel.ids import BlobHash
from anofel.models.integer_model import IntegerModel, ModelOverflow
from anofel.models.means import mean_of
from anofel.models.rules import rule_of
from anofel.tasks.task import Task

MAX_COUNTS = 256
MOST = (1 << 63) - 1
"""Sums of metric slots end here: groups are bounded each, and liars could make them all large."""
MAX_SUMS = 4
MAX_SUM_BYTES = 128 << 20
"""Encrypted sums, those of all groups of a task."""
MAX_COUNT_SHARES = 2048
MAX_SUM_SHARE_BYTES = 256 << 20
"""A share of a sum is as long as the sum; the shares of all bundles under way may be many."""

ShareName = tuple[bytes, int, bytes]
"""The agreed set, the member and the share itself."""


@dataclass(frozen=True, eq=False)
class OpenedSum:
    """Decoded sums with their counts, and what the task's rule makes of them (step 8′)."""

    groups: tuple[tuple[Int64Vector, int], ...]
    """Sum and count of every group that was opened and decoded; one unless the task asks for more."""
    before: IntegerModel
    """The model that opened the iteration."""
    made: IntegerModel | None
    """The next model by the task's rule; None if the owner's own rule makes it."""
    metrics_start: int
    """Where the metric slots begin."""
    shortened: bool = False
    """Whether the mean was longer than the rule allows, and was shortened."""

    @property
    def vector(self) -> Int64Vector:
        """The sum of everything that was opened."""
        total: Int64Vector = np.stack([total for total, _ in self.groups]).sum(axis=0)
        return total

    @property
    def count(self) -> int:
        """How many updates are in it."""
        return sum(count for _, count in self.groups)

    @property
    def result(self) -> SumResult:
        """What the board keeps of it."""
        opened = b"".join(total.astype("<i8", copy=False).tobytes() for total, _ in self.groups)
        model = None if self.made is None else BlobHash(self.made.digest())
        slots = [total[self.metrics_start :].tolist() for total, _ in self.groups]
        reported = tuple(max(-MOST, min(MOST, sum(values))) for values in zip(*slots, strict=True))
        return SumResult(hashlib.sha256(opened).digest(), model, self.count, reported)


class Openings:
    """Reads and opens what the committees of one board posted."""

    def __init__(self, attachments: Attachments, keys: CommitteeKeys) -> None:
        self._attachments, self._keys = attachments, keys
        self._encrypted: BoundedCache[BlobHash, tuple[EncryptedSum, int]] = BoundedCache(
            MAX_SUM_BYTES, lambda entry: entry[1]
        )
        """With the length of each as it was posted."""
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
        """Check that blobs are sums over the stated groups. Raises ``PayloadRefused``."""
        for group in claim.groups:
            total = self._read_sum(claim.addressee, claim.iteration, group.sum_digest)
            if total.set_digest != group.set_digest or total.num_posts != group.num_posts:
                raise PayloadRefused("The sum is over another set than the posting states.")
            if total.digest != group.sum_digest:
                raise PayloadRefused("The sum is not in its canonical encoding.")

    def check_count_share(self, claim: CountShareClaim) -> tuple[VerifiedCountShare, ...]:
        """Check a member's shares of the counts. Raises ``ShareRefused``."""
        return tuple(
            self._check_count_share(claim.addressee, group, claim.member, share)
            for group, share in zip(claim.groups, claim.shares, strict=True)
        )

    def check_sum_share(self, claim: SumShareClaim) -> tuple[VerifiedShare, ...]:
        """Check a member's shares of the sums. Raises ``ShareRefused``."""
        return tuple(
            self._check_sum_share(claim.addressee, group, claim.member, share)
            for group, share in zip(claim.groups, claim.shares, strict=True)
        )

    # Step 8

    def tallies(self, seat: Seat) -> tuple[EncryptedCount, ...]:
        """Return the encrypted counts of the agreed groups."""
        return tuple(self._tally(group) for group in seat.counted_groups)

    def counts(self, seat: Seat) -> tuple[DecryptedCount, ...]:
        """Return the counts that the first t shares in board order open."""
        return tuple(self._count(seat.addressee, group) for group in seat.counted_groups)

    def permits(self, seat: Seat) -> tuple[SumPermit, ...]:
        """Return the leave to decrypt the sums of the groups whose count reached ``min_clients``."""
        return tuple(self._count(seat.addressee, group).permit_sum() for group in seat.opened_groups)

    def encrypted_sums(self, seat: Seat) -> tuple[EncryptedSum, ...]:
        """Return the encrypted sums of the groups whose count reached ``min_clients``."""
        agreed = seat.agreed
        return tuple(
            self._read_sum(seat.addressee, agreed[place].iteration, agreed[place].sum_digest)
            for place in seat.opened
        )

    # Step 8′

    def open_sum(self, seat: Seat) -> OpenedSum | None:
        """Open the sums with the first t shares in board order and apply the task's rule.

        None if nothing can be decoded, or if the rule would make a model beyond its bounds.
        """
        model = seat.task.model
        if model is None:
            raise InvalidInput("The task has no model yet.")
        return self._opened.get_or((seat.agreed_digest, model), lambda: self._open(seat, model))

    def _open(self, seat: Seat, model: BlobHash) -> OpenedSum | None:
        scheme, key = self._keys.read(seat.addressee.committee)
        first = seat.position.sum_shares[: key.shape.threshold]
        shares = [
            self.check_sum_share(
                seat.sum_share_claim(share.member, tuple(BlobHash(part) for part in share.contents))
            )
            for share in first
        ]
        sums = []
        opened = zip(self.permits(seat), self.encrypted_sums(seat), *shares, strict=True)
        for permit, total, *parts in opened:
            with suppress(Undecodable):  # a group that cannot be decoded is left out
                vector = scheme.combine(key, total, permit, cast(list[VerifiedShare], parts))
                sums.append((np.ascontiguousarray(vector), permit.count))
        if not sums:
            return None
        before = IntegerModel.from_bytes(self._attachments.read(model))
        task = Task.from_bytes(seat.task.announcement.document)
        made, shortened = None, False
        if not seat.task.facts.own_rule:
            try:
                rule = rule_of(task)
                own, counted = mean_of(task, sums)
                made = rule.apply(before, own, counted, seat.number)
                shortened = rule.shortens(own, counted)
            except ModelOverflow:
                return None
        return OpenedSum(tuple(sums), before, made, task.metrics_start, shortened)

    # Caches

    def _check_count_share(
        self, addressee: Addressee, group: CountedGroup, member: int, share: bytes
    ) -> VerifiedCountShare:
        def verify() -> VerifiedCountShare:
            _, key = self._keys.read(addressee.committee)
            return count.verify_share(key, self._tally(group), group.agreed, member, share)

        return self._count_shares.get_or((group.agreed.digest, member, share), verify)

    def _check_sum_share(
        self, addressee: Addressee, group: CountedGroup, member: int, share: BlobHash
    ) -> VerifiedShare:
        agreed = group.agreed

        def verify() -> tuple[VerifiedShare, int]:
            scheme, key = self._keys.read(addressee.committee)
            permit = self._count(addressee, group).permit_sum()
            total = self._read_sum(addressee, agreed.iteration, agreed.sum_digest)
            content = self._attachments.read(share)
            return scheme.verify_share(key, total, permit, member, content), len(content)

        return self._sum_shares.get_or((agreed.digest, member, share), verify)[0]

    def _count(self, addressee: Addressee, group: CountedGroup) -> DecryptedCount:
        def combine() -> DecryptedCount:
            _, key = self._keys.read(addressee.committee)
            verified = [
                self._check_count_share(addressee, group, member, share)
                for member, share in group.count_shares
            ]
            return count.combine(key, self._tally(group), group.agreed, verified)

        return self._counts.get_or(group.agreed.digest, combine)

    def _tally(self, group: CountedGroup) -> EncryptedCount:
        return self._tallies.get_or(group.agreed.digest, lambda: count.add(dict(group.bits)))

    def _read_sum(self, addressee: Addressee, iteration: IterationContext, digest: BlobHash) -> EncryptedSum:
        def read() -> tuple[EncryptedSum, int]:
            scheme, key = self._keys.read(addressee.committee)
            data = self._attachments.read(digest)
            return scheme.read_sum(key, iteration, addressee.limits, data), len(data)

        kept, _ = self._encrypted.get_or(digest, read)
        if kept.iteration != iteration:
            self._encrypted[digest] = read()
            kept, _ = self._encrypted[digest]
        return kept
