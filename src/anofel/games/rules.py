"""AnonGame and DINDGame: the challenge, and when a right guess counts (paper §2).

    "6. At the end, A outputs b′, if b′ = b and:
        (a) both cl_0 and cl_1 are honest,
        (b) and there is at least two honest clients participated in every training iteration, and that
            these clients remained to be honest until the end of the game,
    then return 1 (meaning that A won the AnonGame), otherwise, return 0."

What we read into it:

1. "Participated" is what the board shows: a post that was accepted. "Every training iteration" is every one
   that was begun, also before the challenge.
2. (c), ours: neither cl_0 nor cl_1 is told to train a second time in the iteration of the challenge. The
   paper lets a client submit any number of times in an iteration; here the board takes one post of each
   (D-01), so ``(train, cl_0)`` beside the challenge would give one post if b = 0, and two if b = 1.
3. In DINDGame (a) is "cl is honest".
"""

import secrets
from dataclasses import dataclass, field
from typing import Final

from anofel.games.oracle import ClientAux, Oracle, QueryRefused

HONEST: Final = 2
"""So many honest clients take part in every iteration."""


@dataclass(frozen=True)
class GameVerdict:
    """How a game ended."""

    won: bool
    right: bool
    """Whether b′ = b."""
    reason: str = ""
    """Why a right guess does not count."""


@dataclass
class Game:
    """What both games share: the bit, the time of the challenge, and the conditions."""

    oracle: Oracle
    bit: int = field(default_factory=lambda: secrets.randbelow(2), repr=False)
    """b ←$ {0, 1}; nobody but the game reads it."""
    _challenged: tuple[bytes, ...] = field(default=(), repr=False)
    _iteration: int = field(default=-1, repr=False)
    """The place of the challenge among the iterations."""

    @property
    def iteration(self) -> int:
        """The place of the iteration of the challenge among those that were seen."""
        return self._iteration

    def _begin(self, *challenged: bytes) -> None:
        if self._challenged:
            raise QueryRefused("There is one challenge in a game.")
        self._challenged = challenged

    def finish(self, guess: int) -> GameVerdict:
        """Take b′ and say whether the adversary won."""
        right = guess == self.bit
        broken = self._broken()
        return GameVerdict(right and not broken, right, broken)

    def _broken(self) -> str:
        oracle = self.oracle
        if not self._challenged:
            return "There was no challenge."
        if not all(oracle.parties[client].is_honest for client in self._challenged):
            return "A client of the challenge is corrupt (a)."
        if not self._were_told_once():
            return "A client of the challenge was told twice to train in its iteration (c)."
        for number, participants in enumerate(oracle.participants, start=1):
            honest = sum(oracle.parties[client].is_honest for client in participants)
            if honest < HONEST:
                return f"{honest} honest clients took part in iteration {number} (b)."
        return ""

    def _were_told_once(self) -> bool:
        return True


@dataclass
class AnonGame(Game):
    """Which of two registered clients trains."""

    def challenge(self, first: bytes, second: bytes) -> None:
        """Steps 3 and 4: "(cl_0, aux_0, cl_1, aux_1) ← A(1^λ, st)", then "(train, cl_b, aux_b)"."""
        if first == second or not {first, second} <= set(self.oracle.parties):
            raise QueryRefused("The challenge names two registered clients.")
        self._begin(first, second)
        self.oracle.train(self._challenged[self.bit])
        self._iteration = len(self.oracle.seen) - 1
        told = self.oracle.instructed[self._iteration]
        told.discard(self._challenged[self.bit])  # the challenge itself; told again, it counts

    def _were_told_once(self) -> bool:
        return not self.oracle.instructed[self._iteration].intersection(self._challenged)


@dataclass
class DINDGame(Game):
    """Which of two datasets a new client trains with."""

    def challenge(self, first: ClientAux, second: ClientAux) -> bytes:
        """Steps 3 and 4: "(D_0, aux_0, D_1, aux_1) ← A", then "(register, cl, (D_b, aux)), (train, cl, aux)".

        Returns the registration information of cl.
        """
        if first.task != second.task:
            raise QueryRefused("The datasets of the challenge are valid for one task.")
        self._begin(b"to come")
        client = self.oracle.register("client", (first, second)[self.bit])
        self._challenged = (client,)
        self.oracle.train(client)
        self._iteration = len(self.oracle.seen) - 1
        return client
