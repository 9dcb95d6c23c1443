"""Step 1.c — committees make their keys, refresh them and change their members (AnoFel §4.3.1; D-09).

The board orders the messages of a run and knows whose turn it is. Their content is checked by the
members round by round, and by everybody when a member posts the key; a key counts when t members did.
"""

from anofel.board.author import Author
from anofel.board.claims import Claim, KeyClaim
from anofel.board.key_runs import complete_rounds, max_rounds, min_rounds, num_speakers, shape_of, speakers
from anofel.board.rule import present, require, rule
from anofel.board.rules.common import MEMBER, check_blob, holder
from anofel.board.state import (
    Committee,
    CommitteeMember,
    CommitteeShares,
    KeyRun,
    KeyVote,
    State,
    touch,
)
from anofel.committee import schemes
from anofel.committee.errors import InvalidCommittee
from anofel.ids import PostingId
from anofel.messages import CommitteeKeyVote, DkgRound, Run

MAX_RUN_BLOCKS = 1 << 14
"""A run ends after so many blocks, finished or not."""

DESCRIBED = rule("run 1", "run-description", "The postings of round 0 describe the run; no others do.")
RUN_ID = rule("run 2", "wrong-run-id", "A run is named by the hash of its description.")
SHAPE = rule(
    "run 3",
    "invalid-run",
    "A run has a known scheme, different members that can make a key of it, and a threshold above half "
    "of them.",
)
HANDOVER = rule(
    "run 4",
    "wrong-handover",
    "A handover names a committee of the same scheme that has none pending, and as many of its "
    "members as its threshold.",
)
UNKNOWN = rule("run 5", "run-unknown", "The run is under way.")
SENDER = rule("run 6", "not-the-sender", "The author is the member that speaks.")
ORDER = rule("run 7", "round-out-of-order", "Everybody has posted the round before.")
ONCE = rule("run 8", "round-posted", "A member posts once in a round.")
TOO_MANY = rule("run 9", "too-many-runs", "A member has opened fewer unfinished runs than genesis allows.")
STALE = rule("run 10", "handover-stale", "The committee still has the shares with which the handover began.")
LENGTH = rule("run 11", "too-many-rounds", "A run has no more rounds than its scheme allows.")
ORGANISATION = rule(
    "run 12", "no-organisation", "The certificate with which a member enters a run names one organisation."
)
DISTINCT = rule("run 13", "same-organisation", "The members of a run are of different organisations.")

UNFINISHED = rule(
    "committee 1", "run-not-finished", "The rounds that every run of the scheme has are complete."
)
VOTED = rule("committee 2", "key-posted", "A member posts the key of a run once.")
KEY = rule(
    "committee 3",
    "key-refused-by-board",
    "The blob is a valid key of the run's scheme and shape, under the posted names.",
)
SAME_KEY = rule("committee 4", "key-changed", "A handover keeps the public key.")
MADE = rule("committee 5", "key-not-of-its-run", "The messages of the run made this very key.")


def check_round(state: State, body: DkgRound, author: Author) -> Claim:
    """Check one message of a run."""
    name = holder(author).name
    require((body.run is not None) == (body.round == 0), DESCRIBED, culprit=name)
    named = body.run is None or body.run_id == body.run.run_id(state.genesis_hash)
    require(named, RUN_ID, culprit=name)
    known = state.runs.get(body.run_id)
    if known is not None:
        require(not known.done, UNKNOWN, culprit=name)
        check_base(state, known, name)
    run = present(body.run if known is None else known.run, UNKNOWN, culprit=name)
    if known is None:
        _check_description(state, run, author)
    require(body.round < max_rounds(run), LENGTH, culprit=name)
    require(speakers(state, run, body.round).get(body.sender) == holder(author).subject, SENDER, culprit=name)
    posted = known.posted if known else {}
    if body.round > 0:
        before = posted.get(body.round - 1, {})
        require(len(before) == num_speakers(run, body.round - 1), ORDER, culprit=name)
    require(body.sender not in posted.get(body.round, {}), ONCE, culprit=name)
    if body.round == 0:
        organisation = holder(author).identity.organisation
        require(bool(organisation), ORGANISATION, culprit=name)
        others = known.entered.values() if known else ()
        require(organisation not in {other.organisation for other in others}, DISTINCT, culprit=name)
    check_blob(state, body.body, state.genesis.limits.max_key_bytes)
    return Claim(blobs=(body.body,))


def check_base(state: State, run: KeyRun, name: str) -> None:
    """Check that a handover still begins with the committee's current shares."""
    if run.run.handover is not None:
        committee = state.committees[run.run.handover.key_id]
        fresh = committee.pending is None and committee.current.shares_id == run.base
        require(fresh, STALE, culprit=name)


def _check_description(state: State, run: Run, author: Author) -> None:
    name = holder(author).name
    require(_is_possible(run), SHAPE, culprit=name)
    if run.handover is not None:
        committee = state.committees.get(run.handover.key_id)
        dealers = run.handover.dealers
        require(
            committee is not None
            and committee.pending is None
            and committee.scheme == run.scheme
            and len(dealers) == committee.current.threshold
            and list(dealers) == sorted(set(dealers))
            and dealers[0] >= 1
            and dealers[-1] <= len(committee.current.members),
            HANDOVER,
            culprit=name,
        )
    opened = [r for r in state.runs.live() if r.opened_by == holder(author).subject and not r.done]
    require(len(opened) < state.genesis.limits.max_runs, TOO_MANY, culprit=name)


def _is_possible(run: Run) -> bool:
    if run.scheme >= len(schemes.NAMES) or len(set(run.members)) < len(run.members):
        return False
    try:
        shape_of(run)
        max_rounds(run)
    except InvalidCommittee:
        return False
    return True


def apply_round(state: State, body: DkgRound, author: Author, posting_id: PostingId) -> None:
    """Record the message."""
    if body.run is not None and body.run_id not in state.runs:
        opened = KeyRun(body.run_id, body.run, holder(author).subject, state.height)
        if body.run.handover is not None:
            old = state.committees[body.run.handover.key_id].current
            opened.base, opened.share_epoch = old.shares_id, old.share_epoch + 1
        state.runs[body.run_id] = opened
    run = state.runs[body.run_id]
    if body.round == 0:
        identity = holder(author).identity
        run.entered[body.sender] = CommitteeMember(identity.name, identity.issuer, identity.organisation)
    run.posted.setdefault(body.round, {})[body.sender] = body.body.sha256
    touch(run, posting_id)


def check_key(state: State, body: CommitteeKeyVote, author: Author) -> Claim:
    """Check one member's posting of the key."""
    name = holder(author).name
    known = present(state.runs.get(body.run_id), UNKNOWN, culprit=name)
    members = known.run.members
    require(
        1 <= body.member <= len(members) and members[body.member - 1] == holder(author).subject,
        MEMBER,
        culprit=name,
    )
    require(complete_rounds(known) >= min_rounds(known.run), UNFINISHED, culprit=name)
    require(body.member not in known.votes, VOTED, culprit=name)
    if not known.done:
        check_base(state, known, name)
    handover = known.run.handover
    require(handover is None or body.key_id == handover.key_id, SAME_KEY, culprit=name)
    check_blob(state, body.key, state.genesis.limits.max_key_bytes)
    require(body.key.sha256 == body.shares_id, KEY, culprit=name)
    claim = KeyClaim(
        genesis=state.genesis_hash,
        run=known.run,
        base=known.base,
        rounds=tuple(tuple(sorted(known.posted[number].items())) for number in range(complete_rounds(known))),
        key_id=body.key_id,
        shares_id=body.shares_id,
        share_epoch=known.share_epoch,
        transcript=body.transcript,
    )
    return Claim((body.key,), claim, claim.digest)


def apply_key(state: State, body: CommitteeKeyVote, _author: Author, posting_id: PostingId) -> None:
    """Record the vote; the t-th equal one establishes the committee, or its new shares."""
    run = state.runs[body.run_id]
    vote = KeyVote(body.key_id, body.shares_id, body.transcript)
    run.votes[body.member] = vote
    touch(run, posting_id)
    equal = sum(1 for other in run.votes.values() if other == vote)
    if run.done or equal < run.run.threshold:
        return
    run.done = True
    shares = CommitteeShares(body.run_id, body.shares_id, run.run.members, run.run.threshold, run.share_epoch)
    if run.run.handover is None:
        state.committees[body.key_id] = Committee(body.key_id, run.run.scheme, shares)
    else:
        state.committees[body.key_id].pending = shares


def end_old_runs(state: State) -> None:
    """End runs that are too old. Their names stay, or anybody could post their old messages again."""
    while (run := state.runs.first_live()) is not None:
        if state.height - run.opened_at < MAX_RUN_BLOCKS:
            return
        run.done = True
        run.posted.clear()
        run.votes.clear()
