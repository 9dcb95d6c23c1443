"""Step 8 — an aggregator's shares: of the count first, then of the sum (AnoFel §4.3.3; D-08, D-09)."""

from anofel.board.interface import Board, BoardView
from anofel.board.seat import Seat
from anofel.committee import count
from anofel.committee.interface import SecretKeyShare
from anofel.messages import CountShare, SumShare


def share_of_count(board: BoardView, seat: Seat, share: SecretKeyShare) -> CountShare:
    """Make a member's share of the count of the agreed set."""
    _, key = board.keys.read(seat.addressee.committee)
    agreed = seat.agreed
    return CountShare(
        task=seat.task_id,
        iteration=seat.number,
        member=share.member,
        agreed=agreed.digest,
        share=count.partial_decrypt(key, share.count_share, board.openings.tally(seat), agreed),
    )


def share_of_sum(board: BoardView, seat: Seat, share: SecretKeyShare) -> bytes:
    """Make a member's share of the sum; only for the set whose count was opened and is large enough.

    Raises ``TooFewClients`` and ``NotAgreed``.
    """
    scheme, key = board.keys.read(seat.addressee.committee)
    permit = board.openings.permit(seat)
    return scheme.partial_decrypt(key, share, board.openings.encrypted_sum(seat), permit)


def post_sum_share(board: Board, seat: Seat, member: int, share: bytes) -> SumShare:
    """Store a share of the sum and state it."""
    return SumShare(
        task=seat.task_id,
        iteration=seat.number,
        member=member,
        agreed=seat.agreed.digest,
        share=board.upload(share),
    )
