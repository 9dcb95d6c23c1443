"""Plays games and counts wins: one set-up, many plays, several adversaries that read the same transcript."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from anofel.errors import InvalidInput
from anofel.games.adversary import Adversary, Evidence, Strategy
from anofel.games.intervals import CONFIDENCE, Interval, clopper_pearson
from anofel.games.oracle import Oracle
from anofel.games.parties import LoadedKeys
from anofel.games.rules import AnonGame, DINDGame, Game
from anofel.games.weak import NOTHING_PUT_BACK, Weakening

OnPlay = Callable[[int, int], None]
"""Told how many plays are done, and how many there will be."""
HOLDS: Final = "within the bound"
BROKEN: Final = "above the bound"
BELOW: Final = "below the bound"


@dataclass
class Score:
    """How one adversary did against one variant."""

    adversary: str
    weakened: str
    game: str
    bound: float
    plays: int = 0
    wins: int = 0
    void: int = 0
    """Right guesses that did not count, for a winning condition did not hold."""
    reasons: set[str] = field(default_factory=set)

    @property
    def interval(self) -> Interval:
        """What the probability of a win may be."""
        return clopper_pearson(self.wins, self.plays)

    @property
    def verdict(self) -> str:
        """What the interval says about the bound."""
        found = self.interval
        if found.low > self.bound:
            return BROKEN
        return BELOW if found.high < self.bound else HOLDS

    def document(self) -> dict[str, Any]:
        """Write the score for programs."""
        found = self.interval
        return {
            "adversary": self.adversary,
            "weakened": self.weakened,
            "game": self.game,
            "plays": self.plays,
            "wins": self.wins,
            "void": self.void,
            "reasons": sorted(self.reasons),
            "confidence": CONFIDENCE,
            "low": round(found.low, 4),
            "high": round(found.high, 4),
            "bound": round(self.bound, 4),
            "verdict": self.verdict,
        }


class GameTable:
    """A board with two committees, on which games are played one after another."""

    def __init__(self, keys: LoadedKeys) -> None:
        self.oracle = Oracle(keys)
        self._strategy: Strategy | None = None
        self._left = 0

    def __enter__(self) -> "GameTable":
        self.oracle.__enter__()
        self.oracle.setup()
        self.oracle.register("committee")
        self.oracle.register("committee")
        return self

    def __exit__(self, *error: Any) -> None:
        self.oracle.__exit__(*error)

    def play(self, kind: type[Strategy], weakening: Weakening) -> tuple[Game, Evidence]:
        """Play once; clients are registered anew when the strategy, the variant or the time asks for it."""
        if kind.setting != self.oracle.setting:
            self.oracle.announce_again(kind.setting)
            self._strategy = None
        fresh = type(self._strategy) is not kind or self.oracle.weakening is not weakening
        if self._strategy is None or fresh or not self._left:
            self.oracle.weaken(weakening)
            self._strategy, self._left = kind(), kind.plays_per_setup
            self._strategy.prepare(self.oracle)
        self._left -= 1
        game: Game = AnonGame(self.oracle) if kind.game == "anon" else DINDGame(self.oracle)
        return game, self._strategy.play(self.oracle, game)


def count(score: Score, adversary: Adversary, game: Game, evidence: Evidence) -> None:
    """Let an adversary say b′, and count."""
    guess = adversary.guess(evidence)
    verdict = game.finish(secrets.randbelow(2) if guess is None else guess)
    score.plays += 1
    score.wins += verdict.won
    if verdict.right and not verdict.won:
        score.void += 1
        score.reasons.add(verdict.reason)


def play_games(
    adversaries: Sequence[Adversary],
    plays: int,
    keys: LoadedKeys,
    weakening: Weakening = NOTHING_PUT_BACK,
    *,
    on_play: OnPlay = lambda _done, _all: None,
    table: GameTable | None = None,
) -> list[Score]:
    """Let adversaries with one strategy play against one variant. Raises ``InvalidInput``."""
    kinds = {adversary.strategy for adversary in adversaries}
    if len(kinds) != 1 or plays < 1:
        raise InvalidInput("Adversaries that share plays have one strategy, and there is at least one play.")
    kind = kinds.pop()
    scores = [
        Score(adversary.name, weakening.name, kind.game, adversary.bound(weakening.name))
        for adversary in adversaries
    ]
    if table is not None:
        _play(table, kind, weakening, adversaries, scores, plays, on_play)
        return scores
    with GameTable(keys) as made:
        _play(made, kind, weakening, adversaries, scores, plays, on_play)
    return scores


def _play(
    table: GameTable,
    kind: type[Strategy],
    weakening: Weakening,
    adversaries: Sequence[Adversary],
    scores: Sequence[Score],
    plays: int,
    on_play: OnPlay,
) -> None:
    own = max(adversary.missing(weakening.name) for adversary in adversaries)
    for number in range(1, plays + own + 1):
        game, evidence = table.play(kind, weakening)
        for adversary, score in zip(adversaries, scores, strict=True):
            if not adversary.missing(weakening.name) and score.plays < plays:
                count(score, adversary, game, evidence)
            adversary.learn(evidence, game.bit)
        on_play(number, plays + own)
