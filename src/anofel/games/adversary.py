"""An adversary: the queries that it makes, and what it concludes from what it saw.

Queries are a ``Strategy``, conclusions an ``Adversary``. Adversaries with the same strategy may share plays:
each sees the same transcript and says its own b′. A set-up is shared by several plays as well. That is sound:
b is drawn anew for each challenge, independently of everything before, so whatever an adversary knows of
earlier plays is a part of its view that says nothing of b by itself. Against a system that leaks nothing the
number of wins is binomial with probability one half, which is what the interval is about.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from anofel.games.oracle import ClientAux, Oracle, Released
from anofel.games.rules import AnonGame, Game
from anofel.games.setting import FEW_ROWS, MANY_ROWS, POST_FROM, WINDOW, GameSetting, some_rows
from anofel.games.sight import IterationSeen


@dataclass
class Evidence:
    """What an adversary has at the end of a play."""

    oracle: Oracle = field(repr=False)
    """Its queries and the board; the parties in it are the game's, and no adversary reads them."""
    strategy: "Strategy"
    pair: tuple[bytes, ...]
    """What was challenged: two clients by their commitments, or the one of DINDGame."""
    learned: tuple[tuple[int, ...], tuple[int, ...]]
    """The iterations in which cl_0, and cl_1, were told to train before, by their places."""
    at: int
    """The place of the iteration of the challenge."""
    released: Released
    """What ``access`` gave for it."""

    @property
    def challenge(self) -> IterationSeen:
        """The iteration of the challenge."""
        return self.oracle.seen[self.at]

    def before(self, client: int) -> list[IterationSeen]:
        """The iterations in which cl_0 or cl_1 was told to train."""
        return [self.oracle.seen[place] for place in self.learned[client]]

    @property
    def closes_at(self) -> int:
        """The last block in which an honest client posts."""
        return self.challenge.opened_at + POST_FROM + WINDOW


class Strategy(ABC):
    """The queries of a play."""

    game: ClassVar[Literal["anon", "dind"]] = "anon"
    plays_per_setup: ClassVar[int] = 40
    setting: ClassVar[GameSetting] = GameSetting()

    @abstractmethod
    def prepare(self, oracle: Oracle) -> None:
        """Query what many plays share: registrations, and what is learned beforehand."""

    @abstractmethod
    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Challenge, go on querying, and return what was seen."""


class SameTask(Strategy):
    """cl_0 has few rows and came early, cl_1 has many and came late; both are for the first task.

    Each was told to train before, beside an honest helper, so the adversary knows what either looks like.
    """

    learn: ClassVar[int] = 1
    """Iterations in which each client is watched."""
    tasks: ClassVar[tuple[int, int]] = (0, 0)
    """Of cl_0 and cl_1."""
    helpers: ClassVar[tuple[int, ...]] = (0,)
    """The tasks of the honest clients that take part in every iteration."""

    def prepare(self, oracle: Oracle) -> None:
        """Register, and watch each client at work."""
        first = oracle.register("client", ClientAux(some_rows(FEW_ROWS, 1), self.tasks[0]))
        self.helping = [
            oracle.register("client", ClientAux(some_rows(20, 2 + number), task))
            for number, task in enumerate(self.helpers)
        ]
        self.between(oracle)
        second = oracle.register("client", ClientAux(some_rows(MANY_ROWS, 99), self.tasks[1]))
        self.pair = (first, second)
        learned: tuple[list[int], list[int]] = ([], [])
        for _ in range(self.learn):
            for number, client in enumerate(self.pair):
                self.iterate(oracle, client)
                learned[number].append(len(oracle.seen) - 1)
        self.learned = (tuple(learned[0]), tuple(learned[1]))

    def between(self, oracle: Oracle) -> None:
        """What happens between the registrations of cl_0 and cl_1."""
        oracle.advance(3)

    def iterate(self, oracle: Oracle, *clients: bytes) -> Released:
        """One iteration with some clients and the helpers."""
        for client in (*clients, *self.helping):
            oracle.train(client)
        return self.end(oracle)

    def end(self, oracle: Oracle) -> Released:
        """Let the iteration end."""
        return oracle.pass_by()

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Challenge, beside the helpers."""
        assert isinstance(game, AnonGame)
        game.challenge(*self.pair)
        released = self.iterate(oracle)
        return Evidence(oracle, self, self.pair, self.learned, game.iteration, released)


class TwoTasks(SameTask):
    """cl_0 trains for the first task of the bundle, cl_1 for the second; each task has honest helpers."""

    tasks = (0, 1)
    helpers: ClassVar[tuple[int, ...]] = (0, 0, 1, 1)
    plays_per_setup = 20

    def end(self, oracle: Oracle) -> Released:
        """Ask for the models: sums make new ones, which clients fetch."""
        return oracle.access()


class Adversary(ABC):
    """Concludes b′ from the evidence."""

    name: ClassVar[str]
    about: ClassVar[str]
    """What it looks at, in one sentence."""
    strategy: ClassVar[type[Strategy]] = SameTask
    weakened: ClassVar[tuple[str, ...]] = ()
    """The weakenings, by their names, against which it must win."""

    @property
    def game(self) -> str:
        """Which game it plays."""
        return self.strategy.game

    @abstractmethod
    def guess(self, evidence: Evidence) -> int | None:
        """Return b′; None if it does not know, which becomes a coin."""

    def missing(self, weakened: str) -> int:  # noqa: ARG002 - most learn nothing
        """Return how many plays of its own the adversary needs before it plays for something."""
        return 0

    def learn(self, evidence: Evidence, bit: int) -> None:  # noqa: B027 - most learn nothing
        """Hear what the bit of a play was, after the guess: the adversary can run the system by itself."""

    def bound(self, setting: GameSetting) -> float:  # noqa: ARG002 - that of DINDGame depends on the noise
        """Return what no adversary exceeds."""
        return 0.5


class Linker(Adversary):
    """Looks for something that the challenge has in common with earlier posts of cl_0 or cl_1 alone."""

    @abstractmethod
    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:
        """Return everything in an iteration that may come back."""

    def guess(self, evidence: Evidence) -> int | None:
        """Say whose marks came back."""
        found = self.marks(evidence.challenge, evidence)
        known = [
            set[bytes]().union(*(self.marks(seen, evidence) for seen in evidence.before(client)))
            for client in (0, 1)
        ]
        own = [known[client] - known[1 - client] for client in (0, 1)]
        hits = [len(found & own[client]) for client in (0, 1)]
        if hits == [0, 0] and bool(own[0]) != bool(own[1]):
            return int(bool(own[0]))  # the one who has marks of its own left none
        return None if hits[0] == hits[1] else int(hits[1] > hits[0])


class Profiler(Adversary):
    """Measures something of every iteration, and says whose earlier ones are nearer to the challenge's."""

    @abstractmethod
    def measure(self, seen: IterationSeen) -> float:
        """Return one number for an iteration."""

    def guess(self, evidence: Evidence) -> int | None:
        """Say which mean is nearer."""
        now = self.measure(evidence.challenge)
        means = [
            sum(self.measure(seen) for seen in evidence.before(client)) / len(evidence.before(client))
            for client in (0, 1)
        ]
        distances = [abs(now - mean) for mean in means]
        return None if distances[0] == distances[1] else int(distances[1] < distances[0])
