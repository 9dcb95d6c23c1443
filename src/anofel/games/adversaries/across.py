"""Adversaries who look for one client in several places: tasks, bundles, epochs, boards."""

from typing import ClassVar

from anofel.games.adversaries.posts import NullifierReuse, PostTime
from anofel.games.adversary import Adversary, Evidence, SameTask
from anofel.games.oracle import ClientAux, Oracle
from anofel.games.rules import AnonGame, Game
from anofel.games.setting import FEW_ROWS, MANY_ROWS, some_rows
from anofel.messages import Posting, Registration


class AnnouncedAgain(SameTask):
    """Both clients are watched; then S ends its tasks and announces them anew, and challenges there."""

    def prepare(self, oracle: Oracle) -> None:
        """Register, watch, and announce again."""
        super().prepare(oracle)
        oracle.announce_again()


class TwoBoards(SameTask):
    """The same people are registered on two boards; they are watched on one and challenged on the other."""

    def prepare(self, oracle: Oracle) -> None:
        """Register everybody on both boards, and watch each client on the other one."""
        other = oracle.other_board()
        people = [some_rows(FEW_ROWS, 1), some_rows(20, 2), some_rows(MANY_ROWS, 99)]
        names: list[list[bytes]] = [[], []]
        for number, board in enumerate((oracle, other)):
            for person, rows in enumerate(people):
                aux = ClientAux(rows, person=f"person {person}")
                names[number].append(board.register("client", aux))
        self.pair, self.helping = (names[0][0], names[0][2]), [names[0][1]]
        self.elsewhere, learned = other, []
        for client in (names[1][0], names[1][2]):
            for told in (client, names[1][1]):
                other.train(told)
            other.pass_by()
            learned.append((len(other.seen) - 1,))
        self.learned = (learned[0], learned[1])

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Challenge on this board; what was seen before was seen on the other one."""
        found = super().play(oracle, game)
        return Evidence(oracle, self, found.pair, found.learned, found.at, found.released, self.elsewhere)


class NewEpoch(SameTask):
    """Everybody is registered; in the next epoch the helper registers again, and the challenged one does."""

    plays_per_setup = 8

    def play(self, oracle: Oracle, game: Game) -> Evidence:
        """Begin an epoch, let the helpers register, and challenge: who is told to train registers again."""
        assert isinstance(game, AnonGame)
        oracle.begin_epoch()
        for helper in self.helping:
            oracle.parties[helper].runs = True
        oracle.advance(2)
        for helper in self.helping:
            oracle.parties[helper].runs = False
        return super().play(oracle, game)


class NullifierElsewhere(NullifierReuse):
    """Nullifiers of the same client in another bundle."""

    name = "nullifier-tasks"
    about = "S announces its tasks again; looks for a nullifier from the bundle before."
    strategy = AnnouncedAgain
    weakened = ("one-board",)


class TimeElsewhere(PostTime):
    """Times in the bundle before."""

    name = "re-announcement"
    about = "S announces its tasks again; compares when posts come with their times in the bundle before."
    strategy = AnnouncedAgain


class NullifierOfOtherBoard(NullifierReuse):
    """Nullifiers of the same client on another board."""

    name = "nullifier-boards"
    about = "Looks for a nullifier of another board, where the same people take part with the same rows."
    strategy = TwoBoards
    weakened = ("one-board",)


class NullifierOfOtherEpoch(Adversary):
    """Registration nullifiers of the same client in another epoch."""

    name = "nullifier-epochs"
    about = (
        "In a new epoch cl_b registers again; looks for the registration's nullifier in the epochs before."
    )
    strategy = NewEpoch
    weakened: ClassVar[tuple[str, ...]] = ("one-epoch",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say whose first registration has the nullifier of the last one."""
        found = [
            posting.body
            for block in evidence.oracle.node.blocks
            for posting in map(Posting.from_bytes, block.postings)
            if isinstance(posting.body, Registration)
        ]
        first = {body.commitment: body.nullifier for body in found}
        same = [first[client] == found[-1].nullifier for client in evidence.pair]
        return None if same[0] == same[1] else int(same[1])
