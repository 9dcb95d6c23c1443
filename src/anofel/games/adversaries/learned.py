"""A distinguisher that is told nothing: it learns from plays of its own which of everything visible matters.

It is gradient boosting (scikit-learn) over all that can be counted or timed of an iteration. The adversary
can run the whole system by itself, so it is told the bit of each play after its guess, and learns from it:
each guess is made by a model that was fitted to plays before it alone. Its first plays count for nothing.
"""

from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.games.adversaries.posts import message_key
from anofel.games.adversary import Adversary, Evidence
from anofel.games.sight import IterationSeen

Numbers = NDArray[np.float64]
TREES: Final = 80
DEPTH: Final = 3


class Boosted(Adversary):
    """Gradient boosting over all visible features."""

    name = "boosted"
    about = "Learns from all plays before, by gradient boosting over some eighty times, sizes and bytes."
    weakened = ("post-when-ready",)
    own_plays: ClassVar[int] = 60

    def __init__(self) -> None:
        self.memory: dict[str, list[tuple[Numbers, int]]] = {}
        """The plays of each variant: what was visible, and the bit."""
        self._fitted: dict[str, tuple[int, Any]] = {}

    def missing(self, weakened: str) -> int:
        """Return how many plays of its own it still needs."""
        return max(0, self.own_plays - len(self.memory.get(weakened, [])))

    def learn(self, evidence: Evidence, bit: int) -> None:
        """Remember a play and what its bit was."""
        self.memory.setdefault(evidence.oracle.weakening.name, []).append((features(evidence), bit))

    def guess(self, evidence: Evidence) -> int | None:
        """Say what the trees say; they grow anew whenever there is a quarter more to learn from."""
        name = evidence.oracle.weakening.name
        known = self.memory.get(name, [])
        if len({bit for _, bit in known}) < 2:
            return None
        size, model = self._fitted.get(name, (0, None))
        if len(known) > size * 5 // 4:
            model = boost(np.array([row for row, _ in known]), np.array([bit for _, bit in known]))
            self._fitted[name] = (len(known), model)
        return int(model.predict(features(evidence)[None, :])[0])


def boost(rows: Numbers, bits: NDArray[np.int64]) -> Any:
    """Fit the trees. Raises ``InvalidInput`` where scikit-learn is missing."""
    try:
        from sklearn.ensemble import GradientBoostingClassifier
    except ImportError:
        raise InvalidInput(
            "The adversary 'boosted' needs scikit-learn: pip install 'anofel[demo]'."
        ) from None
    return GradientBoostingClassifier(
        n_estimators=TREES, max_depth=DEPTH, subsample=0.7, max_features="sqrt", random_state=0
    ).fit(rows, bits)


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
