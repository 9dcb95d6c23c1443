"""Step 1.c — a committee makes its key over the board, and hands it on (AnoFel §4.3.1; D-09).

The rounds are the scheme's (``anofel.committee.interface``); here they become postings and back.
"""

from anofel.board.rules.common import scheme_name
from anofel.board.state import KeyRun, KeyVote
from anofel.committee import schemes
from anofel.committee.context import CommitteeShape
from anofel.committee.interface import (
    CommitteeKey as Key,
)
from anofel.committee.interface import (
    KeyGenerationRun,
    ResharingRun,
    RoundMessage,
)
from anofel.errors import InvalidInput
from anofel.messages import Blob, CommitteeKey, DkgRound, Run


def generation_run(run: Run, genesis: bytes) -> KeyGenerationRun:
    """Return a posted run of key generation as the scheme sees it."""
    if run.handover is not None:
        raise InvalidInput("The run hands a key over; it does not generate one.")
    return KeyGenerationRun(
        genesis=genesis,
        run_id=run.run_id(genesis),
        shape=CommitteeShape(num_members=len(run.members), threshold=run.threshold),
        members=run.members,
    )


def handover_run(run: Run, genesis: bytes, old_key: Key) -> ResharingRun:
    """Return a posted handover as the scheme sees it."""
    if run.handover is None:
        raise InvalidInput("The run generates a key; it does not hand one over.")
    return ResharingRun(
        genesis=genesis,
        run_id=run.run_id(genesis),
        old_key=old_key,
        dealers=run.handover.dealers,
        shape=CommitteeShape(num_members=len(run.members), threshold=run.threshold),
        members=run.members,
    )


def post_round(run: Run, message: RoundMessage, body: Blob) -> DkgRound:
    """Post a member's message of one round; ``body`` names the stored bytes of the message."""
    return DkgRound(
        run_id=message.run_id,
        round=message.round,
        sender=message.sender,
        run=run if message.round == 0 else None,
        body=body,
    )


def posted_round(run: KeyRun, number: int) -> dict[int, bytes]:
    """Return who has posted a round, with the hash of the message."""
    return dict(run.posted.get(number, {}))


def established_by(run: KeyRun) -> KeyVote | None:
    """Return what at least t members posted as the end of a run; None if there is no such thing."""
    votes = list(run.votes.values())
    return next((vote for vote in votes if votes.count(vote) >= run.run.threshold), None)


def post_key(
    run: Run, member: int, key: Key, transcript: bytes, blob: Blob, *, genesis: bytes
) -> CommitteeKey:
    """Post the key that a run ended with; t equal postings establish it."""
    if key.scheme != scheme_name(run.scheme) or key.scheme not in schemes.NAMES:
        raise InvalidInput("The key is one of another scheme than the run's.")
    return CommitteeKey(
        run_id=run.run_id(genesis),
        member=member,
        key_id=key.key_id,
        shares_id=key.shares_id,
        transcript=transcript,
        key=blob,
    )
