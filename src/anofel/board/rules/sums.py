"""Steps 6 to 8 — committees agree on a set, then open its count, then its sum (AnoFel §4.3.3).

Decisions D-08 (count first), D-09 (proven shares) and D-18 (one aggregate each) are kept here.
"""

from enum import IntEnum

from anofel.board.author import Author
from anofel.board.claims import Claim, CountShareClaim, SumClaim, SumShareClaim
from anofel.board.rule import Rule, require, rule
from anofel.board.rules.common import (
    addressee_of,
    agreed_set,
    check_blob,
    check_member,
    counted_bits,
    find_position,
    find_task,
    holder,
    iteration_context,
)
from anofel.board.state import (
    Agreement,
    Bundle,
    Iteration,
    Phase,
    Position,
    Progress,
    Share,
    State,
    TaskState,
    touch,
)
from anofel.committee.context import digest_of_set
from anofel.messages import Aggregate, CountShare, SumShare


class Reason(IntEnum):
    """Why a payload is excluded; the rule is deterministic, so anyone with the payload can check it."""

    PAYLOAD_REFUSED = 1
    """The scheme's ``verify_payload`` refuses it."""


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
    "aggregate 5", "wrong-set", "The set is that of the accepted submissions without the excluded ones."
)
SUM = rule("aggregate 6", "sum-malformed", "The blob is an encrypted sum over that set.")

COUNT_DUE = rule(
    "count 1", "count-not-due", "The committee agreed on a set, and the time for counting is not over."
)
COUNT_AGREED = rule("count 2", "count-not-agreed", "The share is for the agreed set.")
COUNT_ONCE = rule("count 3", "count-posted", "A member posts one share of a count.")
COUNT_SHARE = rule("count 4", "bad-count-share", "The proof of the count share is valid.")

SUM_DUE = rule(
    "sum 1",
    "sum-not-due",
    "The count was opened and reached min_clients, and the time for the sum is not over.",
)
SUM_AGREED = rule("sum 2", "sum-not-agreed", "The share is for the set that was counted.")
SUM_ONCE = rule("sum 3", "sum-posted", "A member posts one share of a sum.")
SUM_SHARE = rule("sum 4", "bad-sum-share", "The proof of the sum share is valid.")


def _find(
    state: State, body: Aggregate | CountShare | SumShare, author: Author, due: Rule
) -> tuple[TaskState, Bundle, Iteration, Position]:
    """Return where the posting belongs: the closed iteration of its task."""
    task = find_task(state, body.task)
    check_member(state.committee_of(task), body.member, author)
    found = find_position(state, task)
    require(
        found is not None and found[0].phase is Phase.CLOSED and found[1].number == body.iteration,
        due,
        culprit=holder(author).name,
    )
    assert found is not None
    bundle, iteration, position = found
    return task, bundle, iteration, position


def check_aggregate(state: State, body: Aggregate, author: Author) -> Claim:
    """Check what a member says it added."""
    name = holder(author).name
    task, bundle, iteration, position = _find(state, body, author, AGGREGATE_DUE)
    waiting = position.progress not in (Progress.FAILED, Progress.TOO_FEW, Progress.ABSENT)
    require(waiting and state.height <= iteration.aggregate_by, AGGREGATE_DUE, culprit=name)
    require(body.member not in position.aggregates, AGGREGATED, culprit=name)
    require(body.close_hash == iteration.close_hash, CLOSE_HASH, culprit=name)
    excluded = [entry.nullifier for entry in body.excluded]
    reasons = all(entry.reason in set(Reason) for entry in body.excluded)
    known = all(nullifier in iteration.submissions for nullifier in excluded)
    require(known and reasons and excluded == sorted(set(excluded)), EXCLUDED, culprit=name)
    kept = iteration.submissions.keys() - set(excluded)
    right = body.num_posts == len(kept) and body.set_digest == digest_of_set(kept)
    require(right, SET, culprit=name)
    check_blob(state, body.sum, state.genesis.limits.max_model_bytes)
    claim = SumClaim(
        addressee=addressee_of(state, task, position),
        iteration=iteration_context(state, bundle, task),
        sum_digest=body.sum.sha256,
        set_digest=body.set_digest,
        num_posts=body.num_posts,
    )
    return Claim((body.sum,), claim)


def apply_aggregate(state: State, body: Aggregate, _author: Author, posting_id: bytes) -> None:
    """Record the member's aggregate."""
    position = _position(state, body.task)
    position.aggregates[body.member] = Agreement(
        excluded=tuple((entry.nullifier, entry.reason) for entry in body.excluded),
        set_digest=body.set_digest,
        num_posts=body.num_posts,
        sum_digest=body.sum.sha256,
    )
    touch(position, posting_id)


def check_count_share(state: State, body: CountShare, author: Author) -> Claim:
    """Check a share of the count."""
    name = holder(author).name
    task, bundle, iteration, position = _find(state, body, author, COUNT_DUE)
    due = position.agreed is not None and state.height <= iteration.count_by
    require(due and position.progress is not Progress.FAILED, COUNT_DUE, culprit=name)
    agreed = agreed_set(state, bundle, task)
    require(body.agreed == agreed.digest, COUNT_AGREED, culprit=name)
    require(body.member not in {share.member for share in position.count_shares}, COUNT_ONCE, culprit=name)
    addressee = addressee_of(state, task, position)
    claim = CountShareClaim(
        addressee=addressee,
        agreed=agreed,
        bits=counted_bits(iteration, task.position),
        member=body.member,
        share=body.share,
        author=name,
    )
    return Claim((), claim, agreed.digest + addressee.committee.shares_id)


def apply_count_share(state: State, body: CountShare, _author: Author, posting_id: bytes) -> None:
    """Record the share."""
    position = _position(state, body.task)
    position.count_shares.append(Share(body.member, body.share))
    touch(position, posting_id)


def check_sum_share(state: State, body: SumShare, author: Author) -> Claim:
    """Check a share of the sum."""
    name = holder(author).name
    task, bundle, iteration, position = _find(state, body, author, SUM_DUE)
    opened = (Progress.COUNTED, Progress.SUMMED, Progress.UNDECODABLE)
    due = position.progress in opened and state.height <= iteration.sum_by
    require(due, SUM_DUE, culprit=name)
    agreed = agreed_set(state, bundle, task)
    require(body.agreed == agreed.digest, SUM_AGREED, culprit=name)
    require(body.member not in {share.member for share in position.sum_shares}, SUM_ONCE, culprit=name)
    check_blob(state, body.share, state.genesis.limits.max_model_bytes)
    addressee = addressee_of(state, task, position)
    claim = SumShareClaim(
        addressee=addressee,
        agreed=agreed,
        bits=counted_bits(iteration, task.position),
        count_shares=tuple(
            (share.member, share.content) for share in position.count_shares[: position.threshold]
        ),
        member=body.member,
        share=body.share.sha256,
        author=name,
    )
    return Claim((body.share,), claim, agreed.digest + addressee.committee.shares_id)


def apply_sum_share(state: State, body: SumShare, _author: Author, posting_id: bytes) -> None:
    """Record the share."""
    position = _position(state, body.task)
    position.sum_shares.append(Share(body.member, body.share.sha256))
    touch(position, posting_id)


def _position(state: State, task_id: bytes) -> Position:
    found = find_position(state, state.tasks[task_id])
    assert found is not None
    return found[2]
