"""A posting of a committed block, judged by somebody who verified headers alone.

A client in header mode checks some postings that it draws. What it needs for that, the state before and after
the block as far as headers vouch for it, everybody can have, so a posting that breaks a rule is evidence: the
block's header with its signatures, the names of its postings, the posting, and both outlines.

Judged are:

1. every posting: its encoding, its length, its author's signature, and a role-holder's certificate;
2. a registration: its epoch, its certifier root and its proof;
3. a submission: that its iteration was open, its addressees, its receipts, its membership proof, its
   envelopes and its ballot.

Not judged is what takes all postings: whether a nullifier or a tag was there before, and what a committee
posts about many posts. An audit judges everything.
"""

import secrets
from typing import Final

from anofel.board.author import Author
from anofel.board.claims import Claim, RegistrationClaim
from anofel.board.rule import Rejected, require
from anofel.board.rules import registrations, submissions
from anofel.board.rules.common import check_blob, client
from anofel.board.seat import Sitting
from anofel.board.state import State
from anofel.board.verification import Candidate, Verifier
from anofel.messages import Header, Registration, Submission

SAMPLE: Final = 20
"""How many postings of an iteration a client checks on average."""


def draw(number: int, expected: int) -> list[int]:
    """Draw the places of a block's postings that are checked: each by itself, from the system's randomness.

    ``expected``: how many postings an iteration may have; of fewer than ``SAMPLE`` each is drawn.
    """
    if expected <= SAMPLE:
        return list(range(number))
    return [place for place in range(number) if secrets.randbelow(expected) < SAMPLE]


def expected_postings(state: State) -> int:
    """Return how many postings an iteration may have now, or how many clients may register."""
    live = [
        min(sitting.iteration.num_clients, sitting.size.max_posts)
        for sitting in Sitting.live(state)
        if sitting.is_open
    ]
    return max(live, default=len(state.clients))


def judge(verifier: Verifier, before: State, after: State, header: Header, data: bytes) -> Rejected | None:
    """Say which rule a posting of a block breaks, if it does.

    ``before`` and ``after``: outlines of blocks before this one, and of this one or a later one. What they do
    not tell, since an iteration began and ended between them, is not judged. Of blobs only committee keys are
    read: raises ``AttachmentMissing``, ``PeerUnreachable``.
    """
    now = after.fork()
    now.height, now.time = header.height, header.time
    try:
        posting = verifier.open_posting(data)
        author = verifier.authenticate(now, posting)
        claim = Claim()
        if isinstance(posting.body, Registration):
            claim = _registration(before, after, posting.body, client(author).message_key)
        elif isinstance(posting.body, Submission):
            sitting = _sitting(before, now, posting.body)
            if sitting is None:
                return None
            claim = _submission(now, sitting, posting.body, author)
        verdict = verifier.confirm(now, [Candidate(posting, author, claim)])[0]
    except Rejected as rejected:
        return rejected
    return verdict


def _registration(before: State, after: State, body: Registration, message_key: bytes) -> Claim:
    """Judge a registration.

    A root that was good is in one of the windows, if they overlap and no revocation emptied one between them.
    """
    require(before.epoch <= body.epoch <= after.epoch, registrations.EPOCH)
    overlap = after.height - before.height < after.genesis.limits.root_window
    known = {*before.certifier_roots, *after.certifier_roots}
    is_told = overlap and _revoked(before) == _revoked(after)
    require(body.certifier_root in known or not is_told, registrations.ROOT)
    return Claim(proof=RegistrationClaim(body, message_key))


def _revoked(state: State) -> int:
    return sum(not one.in_force for one in state.certifiers.resting())


def _sitting(before: State, now: State, body: Submission) -> Sitting | None:
    """Find the iteration of a submission; None if it may have been between the two outlines."""
    require(body.bundle in now.bundles, submissions.BUNDLE)
    found = [Sitting.find(state, body.bundle) for state in (now, before)]
    for sitting in found:  # the later outline first: it says when the iteration closed
        if sitting is not None and sitting.number == body.iteration:
            return sitting
    last, first = (0 if sitting is None else sitting.number for sitting in found)
    require(first < body.iteration < last, submissions.NOT_OPEN)
    return None


def _submission(now: State, sitting: Sitting, body: Submission, author: Author) -> Claim:
    current = sitting.iteration
    end = current.closed_at or current.close_by
    require(current.opened_at < now.height <= end, submissions.NOT_OPEN)
    require(len(body.contributions) == len(sitting.bundle.tasks), submissions.ADDRESSEES)
    for contribution in body.contributions:
        check_blob(now, contribution.payload, now.genesis.limits.max_model_bytes)
    return submissions.claim_of(sitting, body, author)
