"""Adversaries who read or bend what committees open."""

from contextlib import suppress
from typing import ClassVar

from anofel.committee.errors import TooFewShares
from anofel.games.adversary import Adversary, Evidence, SameTask, TwoTasks
from anofel.games.collusion import open_bit, open_count
from anofel.games.oracle import Oracle, QueryRefused, Released
from anofel.games.setting import MEMBERS, GameSetting
from anofel.simulation.committees import SimulatedMember


class FewPosts(TwoTasks):
    """Three posts in all, where both tasks open no count of fewer than four."""

    helpers = (0, 1)
    learn = 0
    setting: ClassVar[GameSetting] = GameSetting(min_clients=4)


class Corrupting(FewPosts):
    """As many members of the first task's committee are corrupted as may be."""

    members: tuple[SimulatedMember, ...] = ()

    def prepare(self, oracle: Oracle) -> None:
        """Register, and corrupt."""
        super().prepare(oracle)
        for wanted in range(1, MEMBERS + 1):
            with suppress(QueryRefused):
                self.members = oracle.corrupt_aggregators(0, wanted)


class CoBundled(SameTask):
    """The committee of the second task is the adversary's own; everybody trains for the first."""

    members: tuple[SimulatedMember, ...] = ()

    def prepare(self, oracle: Oracle) -> None:
        """Make the second committee the own one, take what its members hold, and register."""
        oracle.own_committees = {1}
        self.members = oracle.corrupt_aggregators(1, MEMBERS)
        super().prepare(oracle)

    def iterate(self, oracle: Oracle, *clients: bytes) -> Released:
        """Open what each post says to the own committee while the iteration is there."""
        for client in (*clients, *self.helping):
            oracle.train(client)
        oracle.close()
        seat = oracle.seat(1)
        key = oracle.committees[1].key
        self.bits = sorted(open_bit(key, self.members, seat, post) for post in seat.posts())
        return oracle.pass_by()


class TaskCounts(Adversary):
    """The exact counts of both tasks."""

    name = "task-counts"
    about = "Reads for which task one more client counts; cl_0 and cl_1 train different tasks."
    strategy = TwoTasks
    weakened: ClassVar[tuple[str, ...]] = ()

    def guess(self, evidence: Evidence) -> int | None:
        """Say whose task has more."""
        counts = [outcome.count or 0 for outcome in evidence.released.outcomes]
        return None if counts[0] == counts[1] else int(counts[1] > counts[0])


class FewCounts(TaskCounts):
    """The counts of fewer posts than the tasks demand."""

    name = "count-below-minimum"
    about = "The same with fewer posts than both tasks demand."
    strategy = FewPosts
    weakened = ("open-anything",)


class CoBundledCommittee(Adversary):
    """What a committee in the same bundle reads of everybody."""

    name = "co-bundled-committee"
    about = "Owns all members of the bundle's other committee, and opens each post's bit for it by itself."
    strategy = CoBundled
    weakened = ("task-by-rows",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say cl_1, who has many rows, if somebody says 1 to the own committee."""
        assert isinstance(evidence.strategy, CoBundled)
        return int(any(evidence.strategy.bits))


class CommitteeMinority(Adversary):
    """Shares of n − t members."""

    name = "committee-minority"
    about = "Opens the count of the first task with the shares of the members that it may corrupt."
    strategy = Corrupting
    weakened = ("corrupt-majority",)

    def guess(self, evidence: Evidence) -> int | None:
        """Open the count for the first task; one of the three posts is its helper's."""
        strategy = evidence.strategy
        assert isinstance(strategy, Corrupting)
        seat = evidence.oracle.seat(0)
        try:
            opened = open_count(evidence.oracle.committees[0].key, strategy.members, seat, list(seat.posts()))
        except TooFewShares:
            return None
        return 0 if opened == strategy.helpers.count(0) + 1 else 1
