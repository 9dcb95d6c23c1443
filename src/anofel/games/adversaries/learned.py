"""A distinguisher that is told nothing: it learns from plays of its own which of everything visible matters.

It is boosted decision stumps (AdaBoost) over all that can be counted or timed of an iteration. The adversary
can run the whole system by itself, so it is told the bit of each play after its guess, and learns from it;
its first plays count for nothing.
"""

from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from anofel.games.adversaries.posts import message_key
from anofel.games.adversary import Adversary, Evidence
from anofel.games.sight import IterationSeen

Numbers = NDArray[np.float64]
ROUNDS: Final = 8
THRESHOLDS: Final = 8


class Boosted(Adversary):
    """Boosted stumps over all visible features."""

    name = "boosted"
    about = (
        "Learns from plays of its own, by boosted decision stumps over some eighty times, sizes and bytes."
    )
    weakened = ("post-when-ready",)
    own_plays: ClassVar[int] = 16

    def __init__(self) -> None:
        self._memory: dict[str, list[tuple[Numbers, int]]] = {}

    def missing(self, weakened: str) -> int:
        """Return how many plays of its own it still needs."""
        return max(0, self.own_plays - len(self._memory.get(weakened, [])))

    def learn(self, evidence: Evidence, bit: int) -> None:
        """Remember a play and what its bit was."""
        self._memory.setdefault(evidence.oracle.weakening.name, []).append((features(evidence), bit))

    def guess(self, evidence: Evidence) -> int | None:
        """Say what the stumps say."""
        known = self._memory.get(evidence.oracle.weakening.name, [])
        if len({bit for _, bit in known}) < 2:
            return None
        stumps = boost(np.array([row for row, _ in known]), np.array([2 * bit - 1 for _, bit in known]))
        vote = sum(
            weight * side(features(evidence)[column] > cut, sign) for column, cut, sign, weight in stumps
        )
        return None if vote == 0 else int(vote > 0)


def side(above: bool, sign: int) -> int:
    """Return what a stump says."""
    return sign if above else -sign


def boost(rows: Numbers, labels: NDArray[np.int64]) -> list[tuple[int, float, int, float]]:
    """Return stumps: a column, a threshold, what is said above it, and its weight (Freund, Schapire 1997)."""
    weights = np.full(len(rows), 1 / len(rows))
    candidates = [
        (column, float(cut))
        for column in range(rows.shape[1])
        for cut in np.unique(np.quantile(rows[:, column], np.linspace(0.05, 0.95, THRESHOLDS)))
    ]
    says = np.array([np.where(rows[:, column] > cut, 1, -1) for column, cut in candidates])
    found = []
    for _ in range(ROUNDS):
        errors = (weights * (says != labels)).sum(axis=1)
        best = int(np.abs(errors - 0.5).argmax())
        error = min(max(float(errors[best]), 1e-6), 1 - 1e-6)
        weight = 0.5 * np.log((1 - error) / error)
        column, cut = candidates[best]
        found.append((column, cut, 1, float(weight)))
        weights *= np.exp(-weight * says[best] * labels)
        weights /= weights.sum()
    return found


def features(evidence: Evidence) -> Numbers:
    """Return all that is counted or timed of the challenge, and how far it is from earlier iterations."""
    now = described(evidence.challenge)
    before = [np.mean([described(seen) for seen in evidence.before(client)], axis=0) for client in (0, 1)]
    return np.concatenate([now, np.abs(now - before[0]) - np.abs(now - before[1])])


def described(seen: IterationSeen) -> Numbers:
    """Return the numbers of one iteration."""
    opened = seen.opened_at
    columns: list[list[float]] = [
        [post.height - opened for post in seen.posts],
        [post.arrived % 1 for post in seen.posts],
        [post.height - post.arrived for post in seen.posts],
        [float(post.place) for post in seen.posts],
        [float(len(post.posting.data)) for post in seen.posts],
        [float(np.frombuffer(post.posting.data, np.uint8).mean()) for post in seen.posts],
        [float(message_key(post)[0]) for post in seen.posts],
        [float(post.body.nullifier[0]) for post in seen.posts],
        _ages(seen),
        [request.time - opened for request in seen.requests if request.time >= opened],
        [float(request.sent) for request in seen.requests if request.time >= opened],
        [float(request.received) for request in seen.requests if request.time >= opened],
    ]
    numbers = [float(len(seen.posts)), float(len(seen.refused)), float(len(seen.requests))]
    for values in columns:
        numbers += [min(values), max(values), float(np.mean(values))] if values else [0.0, 0.0, 0.0]
    return np.array(numbers)


def _ages(seen: IterationSeen) -> list[float]:
    """How old the receipts of posts are, up to a constant."""
    blobs = [(post, part.payload) for post in seen.posts for part in post.body.contributions]
    return [float(post.height - receipt.expires) for post, blob in blobs for receipt in blob.receipts]
