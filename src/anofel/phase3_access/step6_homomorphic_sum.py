"""Steps 6 and 7 — an aggregator collects the accepted submissions and adds them (AnoFel §4.3.3; D-18).

A payload that the scheme refuses, for its form or for its contribution proof, is excluded; the exclusion
stands in the ``Aggregate``, so that anybody who has the payload can check it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from anofel.board.interface import Board, BoardView
from anofel.board.seat import Seat
from anofel.board.state import AcceptedSubmission, Agreement, Reason
from anofel.committee.errors import PayloadRefused
from anofel.committee.interface import CheckedPayload, EncryptedSum, SubmittedPayload
from anofel.messages import Aggregate, Exclusion

_MAX_BATCH: Final = 32
_MAX_BATCH_BYTES: Final = 64 << 20
"""What is checked at once fits in memory beside the sum."""


@dataclass(frozen=True, slots=True)
class CollectedSum:
    """What an aggregator added, and what it left out."""

    total: EncryptedSum
    excluded: tuple[Exclusion, ...]

    @property
    def agreement(self) -> Agreement:
        """What a member states by it."""
        return Agreement(
            excluded=tuple((entry.nullifier, int(entry.reason)) for entry in self.excluded),
            set_digest=self.total.set_digest,
            num_posts=self.total.num_posts,
            sum_digest=self.total.digest,
        )


def check_payload(board: BoardView, seat: Seat, post: AcceptedSubmission, payload: bytes) -> CheckedPayload:
    """Check and parse one payload (step 6). Raises ``PayloadRefused``; the verdict is deterministic."""
    scheme, key = board.keys.read(seat.addressee.committee)
    return scheme.verify_payload(key, seat.context_of(post), seat.limits, seat.envelope_of(post), payload)


class Collector:
    """Checks and adds the submissions of one iteration as they arrive; the board's order does not matter."""

    def __init__(self, board: BoardView, seat: Seat) -> None:
        scheme, key = board.keys.read(seat.addressee.committee)
        self._accumulator = scheme.accumulator(key, seat.context, seat.limits)
        self._taken: set[bytes] = set()
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
            else:
                self._accumulator.add(verdict)
            self._taken.add(post.nullifier)

    def finish(self) -> CollectedSum:
        """Return the sum of what was taken; nothing can be taken afterwards."""
        excluded = sorted(self._excluded, key=lambda entry: entry.nullifier)
        return CollectedSum(self._accumulator.finish(), tuple(excluded))


def collect(board: BoardView, seat: Seat) -> CollectedSum:
    """Add every accepted submission of the closed iteration (step 7)."""
    collector = Collector(board, seat)
    collector.take(board, seat)
    return collector.finish()


def state_aggregate(board: Board, seat: Seat, member: int, collected: CollectedSum) -> Aggregate:
    """Store the sum and state what was added, before any share (D-18)."""
    return Aggregate(
        task=seat.task_id,
        iteration=seat.number,
        member=member,
        close_hash=seat.iteration.close_hash,
        excluded=collected.excluded,
        set_digest=collected.total.set_digest,
        num_posts=collected.total.num_posts,
        sum=board.upload(collected.total.to_bytes()),
    )
