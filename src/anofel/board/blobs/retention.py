"""How long blobs are kept: what the state and a posting say about it, nothing else.

1. The payloads of a submission are kept until the last deadline of their iteration and the grace of
   genesis after it. The outcome comes no later than that deadline.
2. The payload of a submission that a committee agreed to exclude is kept for ever, so that everybody can
   check the exclusion.
3. Every other blob that an accepted posting names is kept for ever.
4. A blob that no posting names is kept up to the height in its receipt.
"""

from dataclasses import dataclass

from anofel.board.state import State
from anofel.messages import (
    Aggregate,
    Blob,
    Body,
    CommitteeKey,
    DkgRound,
    Model,
    Submission,
    SumShare,
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A blob and the last height at which it is kept; None is for ever."""

    sha256: bytes
    until: int | None


def kept_by(state: State, body: Body) -> list[Kept]:
    """Return the blobs that a posting names (rules 1 and 3)."""
    if isinstance(body, Submission):
        until = payloads_until(state, body.bundle)
        return [Kept(entry.payload.sha256, until) for entry in body.contributions]
    return [Kept(blob.sha256, None) for blob in kept_for_ever(body)]


def payloads_until(state: State, number: int) -> int:
    """Return the last height at which the payloads of a bundle's current iteration are kept (rule 1)."""
    bundle = state.bundles[number]
    size, current = state.class_of(bundle), bundle.current
    assert current is not None
    return current.close_by + size.aggregate + size.count + size.sum + state.genesis.limits.grace


def kept_by_exclusion(state: State) -> list[Kept]:
    """Return the payloads that committees agreed to exclude in the current iterations (rule 2)."""
    kept = []
    for bundle in state.bundles.values():
        if bundle.current is None:
            continue
        for place, position in enumerate(bundle.current.positions):
            for nullifier, _reason in position.agreed.excluded if position.agreed else ():
                payload = bundle.current.submissions[nullifier].payloads[place]
                kept.append(Kept(payload.sha256, None))
    return kept


def kept_for_ever(body: Body) -> list[Blob]:
    """Return the blobs that a posting names and that are never pruned (rule 3)."""
    match body:
        case DkgRound():
            return [body.body]
        case CommitteeKey():
            return [body.key]
        case Model():
            return [body.model]
        case Aggregate():
            return [body.sum]
        case SumShare():
            return [body.share]
        case _:
            return []
