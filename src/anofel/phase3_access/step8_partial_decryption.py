"""Step 8 — an aggregator's shares: of the count first, then of the sum (AnoFel §4.3.3; D-08, D-09).

1. For the set that t members agreed on, a member decrypts its part of the count, and proves it.
2. Where the opened count is large enough, it decrypts its part of the sum, and proves it.
"""

from anofel.board.interface import Board, BoardView
from anofel.board.seat import Seat
from anofel.committee import count
from anofel.committee.interface import SecretKeyShare
from anofel.messages import CountShare, SumShare


def share_of_count(board: BoardView, seat: Seat, share: SecretKeyShare) -> CountShare:
    """Make a member's share of the count of every agreed group."""
    _, key = board.keys.read(seat.addressee.committee)
    groups = zip(board.openings.tallies(seat), seat.agreed, strict=True)
    return CountShare(
        task=seat.task_id,
        iteration=seat.number,
        member=share.member,
        agreed=seat.agreed_digest,
        shares=tuple(
            count.partial_decrypt(key, share.count_share, tally, agreed)  # (1)
            for tally, agreed in groups
        ),
    )


def share_of_sum(board: BoardView, seat: Seat, share: SecretKeyShare) -> tuple[bytes, ...]:
    """Make a member's share of every sum whose count was opened and is large enough; of no other.

    Raises ``TooFewClients`` and ``NotAgreed``.
    """
    scheme, key = board.keys.read(seat.addressee.committee)
    groups = zip(board.openings.encrypted_sums(seat), board.openings.permits(seat), strict=True)
    return tuple(scheme.partial_decrypt(key, share, total, permit) for total, permit in groups)  # (2)


def post_sum_share(board: Board, seat: Seat, member: int, shares: tuple[bytes, ...]) -> SumShare:
    """Store a member's shares of the sums and state them."""
    return SumShare(
        task=seat.task_id,
        iteration=seat.number,
        member=member,
        agreed=seat.agreed_digest,
        shares=tuple(board.upload(share) for share in shares),
    )
