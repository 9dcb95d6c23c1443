"""Step 5 — clients submit (AnoFel §4.3.2; D-01, D-06, D-07, D-08, D-10)."""

from anofel.board.author import Author
from anofel.board.claims import Claim, SubmissionClaim
from anofel.board.rule import require, rule
from anofel.board.rules.common import check_blob, client, open_sitting
from anofel.board.seat import Sitting
from anofel.board.state import AcceptedSubmission, PayloadName, State, touch
from anofel.ids import PostingId
from anofel.messages import Submission

BUNDLE = rule("submission 1", "bundle-unknown", "The bundle is on the board.")
NOT_OPEN = rule("submission 2", "iteration-not-open", "The iteration is the one that is open.")
SPENT = rule("submission 3", "nullifier-spent", "The iteration nullifier is new.")
TAG = rule("submission 4", "tag-used", "The tag is new in the iteration.")
ADDRESSEES = rule(
    "submission 5", "wrong-addressees", "The submission addresses every committee of the bundle, in order."
)
FULL = rule("submission 6", "iteration-full", "The iteration has room for one more submission.")
PROOF = rule(
    "submission 7",
    "bad-submission-proof",
    "The membership proof is valid for the client root that was fixed when the iteration opened.",
)
ENVELOPE = rule("submission 8", "bad-envelope", "Every envelope is valid for its committee.")
BALLOT = rule("submission 9", "bad-ballot", "The ballot is valid for the bundle.")


def check(state: State, body: Submission, author: Author) -> Claim:
    """Check a submission."""
    require(body.bundle in state.bundles, BUNDLE)
    sitting = open_sitting(state, body.bundle, body.iteration, NOT_OPEN)
    current = sitting.iteration
    require(body.nullifier not in current.submissions, SPENT)
    require(body.tag not in current.tags, TAG)
    require(len(body.contributions) == len(sitting.bundle.tasks), ADDRESSEES)
    require(not sitting.is_full, FULL)
    for contribution in body.contributions:
        check_blob(state, contribution.payload, state.genesis.limits.max_model_bytes)
    return claim_of(sitting, body, author)


def claim_of(sitting: Sitting, body: Submission, author: Author) -> Claim:
    """Return what a submission has to prove in an iteration, whether or not that is still open."""
    seats, message_key = sitting.seats, client(author).message_key
    claim = SubmissionClaim(
        body=body,
        message_key=message_key,
        client_root=sitting.iteration.client_root,
        scope=sitting.scope,
        contexts=tuple(
            seat.post_context(nullifier=body.nullifier, tag=body.tag, message_key=message_key)
            for seat in seats
        ),
        addressees=tuple(seat.addressee for seat in seats),
    )
    blobs = tuple(contribution.payload for contribution in body.contributions)
    return Claim(blobs, claim, sitting.iteration.client_root)


def apply(state: State, body: Submission, author: Author, posting_id: PostingId) -> None:
    """Accept the submission."""
    current = Sitting.of(state, body.bundle).iteration
    payloads = tuple(
        PayloadName(entry.envelope, entry.payload.sha256, entry.payload.length)
        for entry in body.contributions
    )
    current.submissions[body.nullifier] = AcceptedSubmission(
        nullifier=body.nullifier,
        tag=body.tag,
        message_key=client(author).message_key,
        type_commitment=body.type_commitment,
        ballot=body.ballot,
        payloads=payloads,
    )
    current.tags.add(body.tag)
    state.nullifiers.append(body.nullifier)
    touch(current, posting_id)
