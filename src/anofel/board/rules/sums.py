"""Steps 6 to 8 — committees agree on a set, then open its count, then its sum (AnoFel §4.3.3).

Decisions D-08 (count first), D-09 (proven shares) and D-18 (one aggregate each) are kept here.
"""

from anofel.board.author import Author
from anofel.board.claims import Claim, SumClaim
from anofel.board.rule import Rejected, Rule, require, rule
from anofel.board.rules.common import check_blob, check_member, find_task, holder
from anofel.board.seat import Seat
from anofel.board.state import Agreement, GroupTotal, Progress, Reason, Share, State, touch
from anofel.committee.context import digest_of_set
from anofel.ids import PostingId
from anofel.messages import Aggregate, CountShare, SumShare

AGGREGATE_DUE = rule(
    "aggregate 1", "aggregate-not-due", "The iteration is closed and waits for what its committees added."
)
AGGREGATED = rule("aggregate 2", "aggregate-posted", "A member posts one aggregate in an iteration.")
CLOSE_HASH = rule(
    "aggregate 3", "wrong-close-hash", "The aggregate names the block that closed the iteration."
)
EXCLUDED = rule(
    "aggregate 4",
    "wrong-exclusions",
    "Exclusions are accepted submissions of the iteration, ascending, each with a known reason.",
)
SET = rule(
    "aggregate 5",
    "wrong-set",
    "The groups are those to which the accepted submissions without the excluded ones are dealt.",
)
SUM = rule("aggregate 6", "sum-malformed", "Every blob is an encrypted sum over its group.")

COUNT_DUE = rule(
    "count 1",
    "count-not-due",
    "The committee agreed on groups of at least min_clients posts, and the time for counting is not over.",
)
COUNT_AGREED = rule("count 2", "count-not-agreed", "The shares are for the agreed groups, one for each.")
COUNT_ONCE = rule("count 3", "count-posted", "A member posts its shares of the counts once.")
COUNT_SHARE = rule("count 4", "bad-count-share", "The proof of every count share is valid.")

SUM_DUE = rule(
    "sum 1",
    "sum-not-due",
    "The counts were opened, one reached min_clients, and the time for the sum is not over.",
)
SUM_AGREED = rule(
    "sum 2",
    "sum-not-agreed",
    "The shares are for the groups that were counted, one for each whose count reached min_clients.",
)
SUM_ONCE = rule("sum 3", "sum-posted", "A member posts its shares of the sums once.")
SUM_SHARE = rule("sum 4", "bad-sum-share", "The proof of every sum share is valid.")


def _find(state: State, body: Aggregate | CountShare | SumShare, author: Author, due: Rule) -> Seat:
    """Return where the posting belongs: the closed iteration of its task."""
    task, name = find_task(state, body.task), holder(author).name
    check_member(state.committee_of(task), body.member, author)
    seat = Seat.find(state, task.task_id)
    if seat is None or not seat.is_closed or seat.number != body.iteration:
        raise Rejected(due, culprit=name)
    return seat


def check_aggregate(state: State, body: Aggregate, author: Author) -> Claim:
    """Check what a member says it added."""
    name = holder(author).name
    seat = _find(state, body, author, AGGREGATE_DUE)
    position, iteration = seat.position, seat.iteration
    waiting = position.progress not in (Progress.FAILED, Progress.TOO_FEW, Progress.ABSENT)
    require(waiting and state.height <= iteration.aggregate_by, AGGREGATE_DUE, culprit=name)
    require(body.member not in position.aggregates, AGGREGATED, culprit=name)
    require(body.close_hash == iteration.close_hash, CLOSE_HASH, culprit=name)
    excluded = [entry.nullifier for entry in body.excluded]
    reasons = all(entry.reason in set(Reason) for entry in body.excluded)
    known = all(nullifier in iteration.submissions for nullifier in excluded)
    require(known and reasons and excluded == sorted(set(excluded)), EXCLUDED, culprit=name)
    kept = iteration.submissions.keys() - set(excluded)
    dealt = [(len(names), digest_of_set(names)) for names in seat.groups_of(kept)]
    require([(group.num_posts, group.set_digest) for group in body.groups] == dealt, SET, culprit=name)
    blobs = tuple(group.sum for group in body.groups)
    for blob in blobs:
        check_blob(state, blob, state.genesis.limits.max_model_bytes)
    return Claim(blobs, SumClaim(seat.addressee, seat.context, _totals(body)))


def _totals(body: Aggregate) -> tuple[GroupTotal, ...]:
    return tuple(GroupTotal(group.set_digest, group.num_posts, group.sum.sha256) for group in body.groups)


def apply_aggregate(state: State, body: Aggregate, _author: Author, posting_id: PostingId) -> None:
    """Record the member's aggregate."""
    position = Seat.of(state, body.task).position
    position.aggregates[body.member] = Agreement(
        excluded=tuple((entry.nullifier, entry.reason) for entry in body.excluded),
        groups=_totals(body),
    )
    touch(position, posting_id)


def check_count_share(state: State, body: CountShare, author: Author) -> Claim:
    """Check a share of the count."""
    name = holder(author).name
    seat = _find(state, body, author, COUNT_DUE)
    position = seat.position
    agreed, least = position.agreed, seat.limits.min_clients
    enough = agreed is not None and all(group.num_posts >= least for group in agreed.groups)  # (D-24)
    due = enough and state.height <= seat.iteration.count_by
    require(due and position.progress is not Progress.FAILED, COUNT_DUE, culprit=name)
    right = body.agreed == seat.agreed_digest and len(body.shares) == len(seat.agreed)
    require(right, COUNT_AGREED, culprit=name)
    require(body.member not in {share.member for share in position.count_shares}, COUNT_ONCE, culprit=name)
    claim = seat.count_share_claim(body.member, body.shares)
    return Claim((), claim, body.agreed + claim.addressee.committee.shares_id)


def apply_count_share(state: State, body: CountShare, _author: Author, posting_id: PostingId) -> None:
    """Record the share."""
    position = Seat.of(state, body.task).position
    position.count_shares.append(Share(body.member, body.shares))
    touch(position, posting_id)


def check_sum_share(state: State, body: SumShare, author: Author) -> Claim:
    """Check a share of the sum."""
    name = holder(author).name
    seat = _find(state, body, author, SUM_DUE)
    position = seat.position
    opened = (Progress.COUNTED, Progress.SUMMED, Progress.UNDECODABLE)
    due = position.progress in opened and state.height <= seat.iteration.sum_by
    require(due, SUM_DUE, culprit=name)
    right = body.agreed == seat.agreed_digest and len(body.shares) == len(seat.opened)
    require(right, SUM_AGREED, culprit=name)
    require(body.member not in {share.member for share in position.sum_shares}, SUM_ONCE, culprit=name)
    for blob in body.shares:
        check_blob(state, blob, state.genesis.limits.max_model_bytes)
    claim = seat.sum_share_claim(body.member, tuple(blob.sha256 for blob in body.shares))
    return Claim(body.shares, claim, body.agreed + claim.addressee.committee.shares_id)


def apply_sum_share(state: State, body: SumShare, _author: Author, posting_id: PostingId) -> None:
    """Record the share."""
    position = Seat.of(state, body.task).position
    position.sum_shares.append(Share(body.member, tuple(blob.sha256 for blob in body.shares)))
    touch(position, posting_id)
