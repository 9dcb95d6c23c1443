"""Runs of key generation and of handovers as they stand on the board (step 1.c).

How far a run is, what its scheme sees of it, and whether a key is the one that its messages make.
"""

from collections.abc import Callable, Iterable
from typing import Final

from anofel.board.claims import KeyClaim
from anofel.board.state import KeyRun, KeyVote, State
from anofel.committee import schemes
from anofel.committee.context import CommitteeShape
from anofel.committee.interface import (
    CommitteeKey,
    HandoverRun,
    KeyGeneration,
    KeyGenerationRun,
    ObservedKey,
    PostedRounds,
    RoundMessage,
)
from anofel.errors import InvalidInput
from anofel.ids import BlobHash, GenesisHash, RunId, Subject
from anofel.messages import Run

HANDOVER_ROUNDS: Final = 3
DEALING_ROUND: Final = 1
"""The round of a handover in which the old members speak, under their old numbers."""
Read = Callable[[BlobHash], bytes]
"""Gives a blob by its SHA-256."""


def min_rounds(run: Run) -> int:
    """How many rounds a run has at least when it succeeds."""
    if run.handover is not None:
        return HANDOVER_ROUNDS
    return _generation(run).min_rounds


def max_rounds(run: Run) -> int:
    """How many rounds a run may have: a scheme may have to try again. Raises ``InvalidCommittee``."""
    if run.handover is not None:
        return HANDOVER_ROUNDS
    return _generation(run).max_rounds(shape_of(run))


def complete_rounds(run: KeyRun) -> int:
    """How many rounds everybody who speaks in them has posted, from the first."""
    number = 0
    while len(run.posted.get(number, {})) == num_speakers(run.run, number):
        number += 1
    return number


def _generation(run: Run) -> KeyGeneration:
    return schemes.by_number(run.scheme).key_generation()


def shape_of(run: Run) -> CommitteeShape:
    """How many members a run makes a key for, and how many decrypt. Raises ``InvalidCommittee``."""
    return CommitteeShape(num_members=len(run.members), threshold=run.threshold)


def num_speakers(run: Run, number: int) -> int:
    """How many members speak in a round."""
    if run.handover is not None and number == DEALING_ROUND:
        return len(run.handover.dealers)
    return len(run.members)


def speakers(state: State, run: Run, number: int) -> dict[int, Subject]:
    """Return who speaks in a round, by number."""
    if run.handover is not None and number == DEALING_ROUND:
        old = state.committees[run.handover.key_id].current.members
        return {dealer: old[dealer - 1] for dealer in run.handover.dealers}
    return dict(enumerate(run.members, start=1))


def generation_run(run: Run, genesis: GenesisHash) -> KeyGenerationRun:
    """Return a posted run of key generation as the scheme sees it."""
    if run.handover is not None:
        raise InvalidInput("The run hands a key over; it does not generate one.")
    return KeyGenerationRun(
        genesis=genesis,
        run_id=run.run_id(genesis),
        shape=shape_of(run),
        members=run.members,
    )


def handover_run(run: Run, genesis: GenesisHash, old_key: CommitteeKey) -> HandoverRun:
    """Return a posted handover as the scheme sees it."""
    if run.handover is None:
        raise InvalidInput("The run generates a key; it does not hand one over.")
    return HandoverRun(
        genesis=genesis,
        run_id=run.run_id(genesis),
        old_key=old_key,
        dealers=run.handover.dealers,
        shape=shape_of(run),
        members=run.members,
    )


def observe(claim: KeyClaim, read: Read) -> KeyVote | None:
    """Return what a member who saw the messages of a run would vote for.

    None if the scheme does not recompute a run when its key is posted; then ``check_made`` is what there is.
    Raises ``KeyGenerationFailed``.
    """
    scheme, rounds = schemes.by_number(claim.run.scheme), _posted_rounds(claim, read)
    if claim.base is not None:
        handover = handover_run(claim.run, claim.genesis, scheme.read_key(read(claim.base)))
        return vote_of(scheme.handover().observe(handover, rounds.all()))
    if scheme.key_generation().recomputed_on_admission:
        generation = generation_run(claim.run, claim.genesis)
        return vote_of(scheme.key_generation().observe(generation, rounds.all()))
    return None


def vote_of(made: ObservedKey) -> KeyVote:
    """Name what a run made, as its members do on the board."""
    return KeyVote(made.key.key_id, made.key.shares_id, made.transcript)


def check_made(claim: KeyClaim, key: CommitteeKey, read: Read) -> None:
    """Check that a run of key generation made this key. Raises ``KeyGenerationFailed``."""
    generation = schemes.by_number(claim.run.scheme).key_generation()
    run = generation_run(claim.run, claim.genesis)
    generation.check_key(run, _posted_rounds(claim, read), key, claim.transcript)


def _posted_rounds(claim: KeyClaim, read: Read) -> PostedRounds:
    run_id = claim.run.run_id(claim.genesis)
    return PostedRounds(
        len(claim.rounds), lambda number: _messages(run_id, number, claim.rounds[number], read)
    )


def round_messages(run: KeyRun, number: int, read: Read) -> list[RoundMessage]:
    """Read the messages of a round that stand on the board, in the order of their senders."""
    return _messages(run.run_id, number, sorted(run.posted.get(number, {}).items()), read)


def _messages(
    run_id: RunId, number: int, posted: Iterable[tuple[int, BlobHash]], read: Read
) -> list[RoundMessage]:
    return [
        RoundMessage(run_id=run_id, round=number, sender=sender, body=read(sha256))
        for sender, sha256 in posted
    ]
