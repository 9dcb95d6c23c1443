"""Step 1.c — a committee makes its key over the board, and hands it on (AnoFel §4.3.1; D-09).

The rounds are the scheme's (``anofel.committee.interface``); here they become postings and back.
"""

from anofel.board.key_runs import generation_run, handover_run
from anofel.board.state import KeyRun, KeyVote
from anofel.committee import schemes
from anofel.committee.interface import CommitteeKey, RoundMessage
from anofel.errors import InvalidInput
from anofel.ids import BlobHash, GenesisHash
from anofel.messages import Blob, CommitteeKeyVote, DkgRound, Run

__all__ = [
    "established_by",
    "generation_run",
    "handover_run",
    "post_key",
    "post_round",
    "posted_round",
]


def post_round(run: Run, message: RoundMessage, body: Blob) -> DkgRound:
    """Post a member's message of one round; ``body`` names the stored bytes of the message."""
    return DkgRound(
        run_id=message.run_id,
        round=message.round,
        sender=message.sender,
        run=run if message.round == 0 else None,
        body=body,
    )


def posted_round(run: KeyRun, number: int) -> dict[int, BlobHash]:
    """Return who has posted a round, with the hash of the message."""
    return dict(run.posted.get(number, {}))


def established_by(run: KeyRun) -> KeyVote | None:
    """Return what at least t members posted as the end of a run; None if there is no such thing."""
    votes = list(run.votes.values())
    return next((vote for vote in votes if votes.count(vote) >= run.run.threshold), None)


def post_key(
    run: Run, member: int, key: CommitteeKey, transcript: bytes, blob: Blob, *, genesis: GenesisHash
) -> CommitteeKeyVote:
    """Post the key that a run ended with; t equal postings establish it."""
    if key.scheme != schemes.NAMES[run.scheme]:
        raise InvalidInput("The key is one of another scheme than the run's.")
    return CommitteeKeyVote(
        run_id=run.run_id(genesis),
        member=member,
        key_id=key.key_id,
        shares_id=key.shares_id,
        transcript=transcript,
        key=blob,
    )
