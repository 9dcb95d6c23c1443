"""What members of a committee can do together: open a count with the shares they hold, of any posts."""

from collections.abc import Mapping, Sequence

from anofel.board.seat import Seat
from anofel.board.state import AcceptedSubmission
from anofel.committee import count
from anofel.committee.context import AgreedSet
from anofel.committee.interface import CommitteeKey
from anofel.ids import BlobHash, BlockHash, Nullifier
from anofel.simulation.committees import SimulatedMember


def open_count(
    key: CommitteeKey, members: Sequence[SimulatedMember], seat: Seat, posts: Sequence[AcceptedSubmission]
) -> int:
    """Open how many of these posts say 1 to a committee. Raises ``TooFewShares`` for fewer than t members.

    Honest members do this for the agreed set of an iteration alone; corrupt ones state any set.
    """
    return _open(key, members, seat, {post.nullifier: seat.envelope_of(post).bit for post in posts})


def open_bit(
    key: CommitteeKey, members: Sequence[SimulatedMember], seat: Seat, post: AcceptedSubmission
) -> int:
    """Open what one post says to a committee; it is added twice, since no key share opens fewer than two."""
    bit = seat.envelope_of(post).bit
    return _open(key, members, seat, {post.nullifier: bit, Nullifier(bytes(32)): bit}) // 2


def _open(
    key: CommitteeKey, members: Sequence[SimulatedMember], seat: Seat, bits: Mapping[Nullifier, bytes]
) -> int:
    total = count.add(bits)
    stated = AgreedSet(
        iteration=seat.context,
        key_id=key.key_id,
        close_hash=BlockHash(seat.iteration.close_hash or bytes(32)),
        set_digest=total.set_digest,
        sum_digest=BlobHash(bytes(32)),
        num_posts=total.num_posts,
        min_clients=2,
    )
    shares = []
    for member in members:
        made = count.partial_decrypt(key, member.share.count_share, total, stated)
        shares.append(count.verify_share(key, total, stated, member.number, made))
    return count.combine(key, total, stated, shares).value
