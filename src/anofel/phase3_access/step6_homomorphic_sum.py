"""Steps 6 and 7 — an aggregator collects the accepted submissions and adds them (AnoFel §4.3.3; D-18).

1. Every accepted submission of the iteration is read and checked (step 6).
2. Those that are well-formed are added, ciphertext by ciphertext (step 7).
3. The member states what it added and what it left out, before any share.

A payload that the scheme refuses, for its form or for its contribution proof, is excluded; the exclusion
stands in the ``Aggregate``, so that anybody who has the payload can check it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from anofel.board.interface import Board, BoardView
from anofel.board.seat import Seat
from anofel.board.state import AcceptedSubmission, Agreement, GroupTotal, Reason
from anofel.committee.errors import PayloadRefused
from anofel.committee.interface import Accumulator, CheckedPayload, EncryptedSum, SubmittedPayload
from anofel.ids import Nullifier
from anofel.messages import Aggregate, Exclusion, GroupSum

_MAX_BATCH: Final = 32
_MAX_BATCH_BYTES: Final = 64 << 20
"""What is checked at once fits in memory beside the sum."""
_MAX_HELD_BYTES: Final = 512 << 20
"""What waits in memory for the deal."""


@dataclass(frozen=True, slots=True)
class CollectedSum:
    """What an aggregator added, and what it left out."""

    totals: tuple[EncryptedSum, ...]
    """One for each group."""
    excluded: tuple[Exclusion, ...]

    @property
    def agreement(self) -> Agreement:
        """What a member states by it."""
        return Agreement(
            excluded=tuple((entry.nullifier, int(entry.reason)) for entry in self.excluded),
            groups=tuple(
                GroupTotal(total.set_digest, total.num_posts, total.digest) for total in self.totals
            ),
        )


def check_payload(board: BoardView, seat: Seat, post: AcceptedSubmission, payload: bytes) -> CheckedPayload:
    """Check and parse one payload (step 6). Raises ``PayloadRefused``; the verdict is deterministic."""
    scheme, key = board.keys.read(seat.addressee.committee)
    return scheme.verify_payload(key, seat.context_of(post), seat.limits, seat.envelope_of(post), payload)


class Collector:
    """Checks and adds the submissions of one iteration as they arrive; the board's order does not matter.

    With groups nobody knows before the close what is added to what. Then payloads are checked as they arrive
    and added at the end; what does not fit into memory until then is read and checked a second time.
    """

    def __init__(self, board: BoardView, seat: Seat) -> None:
        self._dealt = seat.task.facts.groups > 1
        self._accumulator = _begin(board, seat)
        self._taken: set[Nullifier] = set()
        self._good: dict[Nullifier, AcceptedSubmission] = {}
        self._held: dict[Nullifier, CheckedPayload] = {}
        self._held_bytes = 0
        self._excluded: list[Exclusion] = []

    def take(self, board: BoardView, seat: Seat) -> int:
        """Take what was accepted since the last time, and return how many."""
        before = len(self._taken)
        waiting = [post for post in seat.posts() if post.nullifier not in self._taken]
        length = max((post.payloads[seat.place].length for post in waiting), default=1)
        size = max(1, min(_MAX_BATCH, _MAX_BATCH_BYTES // length))
        for start in range(0, len(waiting), size):
            self._take_batch(board, seat, waiting[start : start + size])
        return len(self._taken) - before

    def _take_batch(self, board: BoardView, seat: Seat, posts: Sequence[AcceptedSubmission]) -> None:
        scheme, key = board.keys.read(seat.addressee.committee)
        # (1)
        items = [
            SubmittedPayload(
                seat.context_of(post),
                seat.envelope_of(post),
                board.attachments.read(post.payloads[seat.place].sha256),
            )
            for post in posts
        ]
        for post, verdict in zip(posts, scheme.check_payloads(key, seat.limits, items), strict=True):
            if isinstance(verdict, PayloadRefused):
                self._excluded.append(Exclusion(nullifier=post.nullifier, reason=Reason.PAYLOAD_REFUSED))
            elif self._dealt:
                self._keep(post, verdict, post.payloads[seat.place].length)
            else:
                self._accumulator.add(verdict)  # (2)
            self._taken.add(post.nullifier)

    def _keep(self, post: AcceptedSubmission, checked: CheckedPayload, length: int) -> None:
        self._good[post.nullifier] = post
        if self._held_bytes + length <= _MAX_HELD_BYTES:
            self._held[post.nullifier], self._held_bytes = checked, self._held_bytes + length

    def finish(self, board: BoardView, seat: Seat) -> CollectedSum:
        """Return the sums of what was taken, when the iteration is closed."""
        excluded = tuple(sorted(self._excluded, key=lambda entry: entry.nullifier))
        if not self._dealt:
            return CollectedSum((self._accumulator.finish(),), excluded)
        totals = tuple(self._add(board, seat, names) for names in seat.groups_of(self._good))
        return CollectedSum(totals, excluded)

    def _add(self, board: BoardView, seat: Seat, names: Sequence[Nullifier]) -> EncryptedSum:
        accumulator = _begin(board, seat)
        for name in names:
            checked = self._held.pop(name, None)
            if checked is None:
                post = self._good[name]
                payload = board.attachments.read(post.payloads[seat.place].sha256)
                checked = check_payload(board, seat, post, payload)
            accumulator.add(checked)  # (2)
        return accumulator.finish()


def _begin(board: BoardView, seat: Seat) -> Accumulator:
    scheme, key = board.keys.read(seat.addressee.committee)
    return scheme.accumulator(key, seat.context, seat.limits)


def collect(board: BoardView, seat: Seat) -> CollectedSum:
    """Add every accepted submission of the closed iteration (step 7)."""
    collector = Collector(board, seat)
    collector.take(board, seat)
    return collector.finish(board, seat)


def state_aggregate(board: Board, seat: Seat, member: int, collected: CollectedSum) -> Aggregate:
    """Store the sums and state what was added, before any share (D-18)."""
    return Aggregate(  # (3)
        task=seat.task_id,
        iteration=seat.number,
        member=member,
        close_hash=seat.iteration.close_hash,
        excluded=collected.excluded,
        groups=tuple(
            GroupSum(
                set_digest=total.set_digest, num_posts=total.num_posts, sum=board.upload(total.to_bytes())
            )
            for total in collected.totals
        ),
    )
