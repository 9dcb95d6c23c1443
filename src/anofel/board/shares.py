"""Committee keys, sums and shares as verification reads them: each is read and verified once.

What is kept here is a cache: after a restart it is made again from the state and the attachments.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from anofel.board.attachments import Attachments
from anofel.board.cache import BoundedCache
from anofel.board.claims import Addressee, CommitteeRef, CountShareClaim, KeyClaim, SumClaim, SumShareClaim
from anofel.board.clock import OpenedSum
from anofel.board.rules.common import (
    addressee_of,
    agreed_set,
    counted_bits,
    scheme_name,
)
from anofel.board.rules.tasks import INTEGER_MEAN
from anofel.board.state import Bundle, Position, State, TaskState
from anofel.committee import count, schemes
from anofel.committee.context import AgreedSet, IterationContext
from anofel.committee.count import EncryptedCount
from anofel.committee.errors import KeyRefused, PayloadRefused, Undecodable
from anofel.committee.interface import CommitteeKey, EncryptedSum, Int64Vector, Scheme
from anofel.committee.permit import DecryptedCount, SumPermit
from anofel.committee.verified import VerifiedCountShare, VerifiedShare
from anofel.learning.build import rule_of
from anofel.learning.integer_model import IntegerModel, ModelOverflow
from anofel.task import Task

MAX_KEYS = 64
MAX_SUMS = 4
MAX_SHARES = 256

Name = tuple[bytes, int]
"""A hash and a number: everything that an entry depends on."""
ShareName = tuple[bytes, int, bytes]
"""The agreed set, the member and the share itself."""


class ShareDesk:
    """Reads keys, sums and shares for one board."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._keys: BoundedCache[Name, CommitteeKey] = BoundedCache(MAX_KEYS)
        self._sums: BoundedCache[Name, EncryptedSum] = BoundedCache(MAX_SUMS)
        self._tallies: BoundedCache[Name, EncryptedCount] = BoundedCache(MAX_KEYS)
        self._counts: BoundedCache[Name, DecryptedCount] = BoundedCache(MAX_KEYS)
        self._count_shares: BoundedCache[ShareName, VerifiedCountShare] = BoundedCache(MAX_SHARES)
        self._sum_shares: BoundedCache[ShareName, VerifiedShare] = BoundedCache(MAX_SHARES)

    # Keys

    def key_of(self, committee: CommitteeRef) -> tuple[Scheme, CommitteeKey]:
        """Return a committee's scheme and key."""
        scheme, name = schemes.by_name(scheme_name(committee.scheme)), (committee.shares_id, committee.scheme)
        if name not in self._keys:
            key = scheme.read_key(self._attachments.read(committee.shares_id))
            self._keys[name] = key
        return scheme, self._keys[name]

    def check_key(self, claim: KeyClaim) -> None:
        """Check that a blob is the key that a member posted. Raises ``KeyRefused``."""
        run = claim.run
        _, key = self.key_of(CommitteeRef(claim.key_id, run.scheme, claim.shares_id))
        shape = (key.shape.num_members, key.shape.threshold)
        if key.key_id != claim.key_id or key.shares_id != claim.shares_id:
            raise KeyRefused("The key has other names than the posting states.")
        if shape != (len(run.members), run.threshold) or key.share_epoch != claim.share_epoch:
            raise KeyRefused("The key is for another committee than the run's.")

    # Sums and their shares

    def check_sum(self, claim: SumClaim) -> None:
        """Check that a blob is a sum over the stated set. Raises ``PayloadRefused``."""
        total = self._total(claim.addressee, claim.iteration, claim.sum_digest)
        if total.set_digest != claim.set_digest or total.num_posts != claim.num_posts:
            raise PayloadRefused("The sum is over another set than the posting states.")
        if total.digest != claim.sum_digest:
            raise PayloadRefused("The sum is not in its canonical encoding.")

    def check_count_share(self, claim: CountShareClaim) -> VerifiedCountShare:
        """Check a share of a count. Raises ``ShareRefused``."""
        name = (claim.agreed.digest, claim.member, claim.share)
        if name not in self._count_shares:
            _, key = self.key_of(claim.addressee.committee)
            tally = self._tally(claim.agreed, claim.bits)
            share = count.verify_share(key, tally, claim.agreed, claim.member, claim.share)
            self._count_shares[name] = share
        return self._count_shares[name]

    def check_sum_share(self, claim: SumShareClaim) -> VerifiedShare:
        """Check a share of a sum. Raises ``ShareRefused``."""
        name = (claim.agreed.digest, claim.member, claim.share)
        if name not in self._sum_shares:
            scheme, key = self.key_of(claim.addressee.committee)
            counted = self._count(claim.addressee, claim.agreed, claim.bits, claim.count_shares)
            total = self._total(claim.addressee, claim.agreed.iteration, claim.agreed.sum_digest)
            content = self._attachments.read(claim.share)
            share = scheme.verify_share(key, total, counted.permit_sum(), claim.member, content)
            self._sum_shares[name] = share
        return self._sum_shares[name]

    # Results

    def open_count(self, state: State, bundle: Bundle, position: Position) -> int:
        """Return the count that the first t shares in board order open."""
        task = state.tasks[position.task_id]
        return self._count_of(state, bundle, task, position).value

    def open_sum(self, state: State, bundle: Bundle, position: Position) -> OpenedSum | None:
        """Open a sum with the first t shares in board order; None if it cannot be decoded."""
        vector = self.opened_vector(state, bundle, position)
        if vector is None:
            return None
        task = state.tasks[position.task_id]
        total = hashlib.sha256(vector.astype("<i8", copy=False).tobytes()).digest()
        if task.task.rule.kind != INTEGER_MEAN:
            return OpenedSum(total, None)
        assert task.model is not None
        assert position.count is not None
        assert bundle.current is not None
        model = IntegerModel.from_bytes(self._attachments.read(task.model))
        rule = rule_of(Task.from_bytes(task.task.document))
        try:
            made = rule.apply(model, model.own_part(vector), position.count, bundle.current.number)
            return OpenedSum(total, made.digest())
        except ModelOverflow:
            return None

    def opened_vector(self, state: State, bundle: Bundle, position: Position) -> Int64Vector | None:
        """Return the sum itself, or None if it cannot be decoded."""
        task = state.tasks[position.task_id]
        scheme, key = self.key_of(addressee_of(state, task, position).committee)
        permit, total = self.permit(state, bundle, position), self.total(state, bundle, position)
        claims = self.sum_share_claims(state, bundle, position)
        shares = [self.check_sum_share(claim) for claim in claims[: key.shape.threshold]]
        try:
            return np.ascontiguousarray(scheme.combine(key, total, permit, shares))
        except Undecodable:
            return None

    def permit(self, state: State, bundle: Bundle, position: Position) -> SumPermit:
        """Return the leave to decrypt a position's sum. Raises ``TooFewClients``."""
        return self._count_of(state, bundle, state.tasks[position.task_id], position).permit_sum()

    def total(self, state: State, bundle: Bundle, position: Position) -> EncryptedSum:
        """Return the encrypted sum that a position agreed on."""
        task = state.tasks[position.task_id]
        agreed = agreed_set(state, bundle, task)
        return self._total(addressee_of(state, task, position), agreed.iteration, agreed.sum_digest)

    def sum_share_claims(self, state: State, bundle: Bundle, position: Position) -> list[SumShareClaim]:
        """Return the claims of a position's sum shares, in board order."""
        task = state.tasks[position.task_id]
        assert bundle.current is not None
        addressee, agreed = addressee_of(state, task, position), agreed_set(state, bundle, task)
        bits = counted_bits(bundle.current, task.position)
        opening = tuple(
            (share.member, share.content) for share in position.count_shares[: position.threshold]
        )
        return [
            SumShareClaim(addressee, agreed, bits, opening, share.member, share.content, "")
            for share in position.sum_shares
        ]

    def _count_of(self, state: State, bundle: Bundle, task: TaskState, position: Position) -> DecryptedCount:
        assert bundle.current is not None
        first = [(share.member, share.content) for share in position.count_shares[: position.threshold]]
        bits = counted_bits(bundle.current, task.position)
        agreed = agreed_set(state, bundle, task)
        return self._count(addressee_of(state, task, position), agreed, bits, first)

    def _count(
        self,
        addressee: Addressee,
        agreed: AgreedSet,
        bits: Sequence[tuple[bytes, bytes]],
        shares: Sequence[tuple[int, bytes]],
    ) -> DecryptedCount:
        name = (agreed.digest, 0)
        if name not in self._counts:
            _, key = self.key_of(addressee.committee)
            verified = [
                self.check_count_share(
                    CountShareClaim(addressee, agreed, tuple(bits), member, share, author="")
                )
                for member, share in shares
            ]
            made = count.combine(key, self._tally(agreed, bits), agreed, verified)
            self._counts[name] = made
        return self._counts[name]

    def _tally(self, agreed: AgreedSet, bits: Sequence[tuple[bytes, bytes]]) -> EncryptedCount:
        name = (agreed.digest, 0)
        if name not in self._tallies:
            self._tallies[name] = count.add(dict(bits))
        return self._tallies[name]

    def _total(self, addressee: Addressee, iteration: IterationContext, digest: bytes) -> EncryptedSum:
        name = (digest, 0)
        if name not in self._sums or self._sums[name].iteration != iteration:
            scheme, key = self.key_of(addressee.committee)
            data = self._attachments.read(digest)
            self._sums[name] = scheme.read_sum(key, iteration, addressee.limits, data)
        return self._sums[name]
