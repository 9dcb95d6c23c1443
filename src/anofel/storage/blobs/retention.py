"""How long blobs are kept: what the state and a posting say about it, nothing else.

1. The payloads of a submission are kept until the last deadline of their iteration and the grace of
   genesis after it. The outcome comes no later than that deadline.
2. The payload of a submission that a committee agreed to exclude is kept for ever, so that everybody can
   check the exclusion.
3. Every other blob that an accepted posting names is kept for ever.
4. A blob that no posting names is kept up to the height in its receipt.
"""

from dataclasses import dataclass
from itertools import takewhile

from anofel.board.seat import Sitting
from anofel.board.state import State
from anofel.ids import BlobHash
from anofel.messages import (
    Aggregate,
    Blob,
    Body,
    CommitteeKeyVote,
    DkgRound,
    Model,
    Submission,
    SumShare,
)


@dataclass(frozen=True, slots=True)
class KeptBlob:
    """A blob and the last height at which it is kept; None is for ever."""

    sha256: BlobHash
    until: int | None


def kept_by(state: State, body: Body) -> list[KeptBlob]:
    """Return the blobs that a posting names (rules 1 and 3)."""
    if isinstance(body, Submission):
        until = payloads_until(state, body.bundle)
        return [KeptBlob(entry.payload.sha256, until) for entry in body.contributions]
    return [KeptBlob(blob.sha256, None) for blob in kept_for_ever(body)]


def payloads_until(state: State, number: int) -> int:
    """Return the last height at which the payloads of a bundle's current iteration are kept (rule 1)."""
    sitting = Sitting.of(state, number)
    size, current = sitting.size, sitting.iteration
    return current.close_by + size.aggregate + size.count + size.sum + state.genesis.limits.grace


def kept_by_exclusion(state: State) -> list[KeptBlob]:
    """Return the payloads that committees agreed to exclude in the current iterations (rule 2).

    An agreement can be the end of a bundle, so those that ended with the last block are looked at too.
    """
    kept = []
    last = takewhile(
        lambda bundle: (bundle.ended_at or 0) >= state.height - 1,
        (state.bundles[number] for number in reversed(state.remembered)),
    )
    for bundle in [*state.bundles.live(), *last]:
        sitting = Sitting.find(state, bundle.number)
        if sitting is None:
            continue
        for place, position in enumerate(sitting.iteration.positions):
            for nullifier, _reason in position.agreed.excluded if position.agreed else ():
                payload = sitting.iteration.submissions[nullifier].payloads[place]
                kept.append(KeptBlob(payload.sha256, None))
    return kept


def blobs_of(body: Body) -> list[Blob]:
    """Return the blobs that a posting names."""
    if isinstance(body, Submission):
        return [entry.payload for entry in body.contributions]
    return kept_for_ever(body)


def kept_for_ever(body: Body) -> list[Blob]:
    """Return the blobs that a posting names and that are never pruned (rule 3)."""
    match body:
        case DkgRound():
            return [body.body]
        case CommitteeKeyVote():
            return [body.key]
        case Model():
            return [body.model]
        case Aggregate():
            return [group.sum for group in body.groups]
        case SumShare():
            return list(body.shares)
        case _:
            return []
