"""Hostile committees and owners against real clients over a real node: what is charged stays true."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anofel.board.state import Phase, Progress
from anofel.ids import BlobHash
from anofel.network.transport import Refused
from anofel.phase3_access.step8_partial_decryption import share_of_sum
from anofel.privacy.plan import Plan
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.role import Client
from tests.board.world import CommitteeOfTest, Owner, a_task
from tests.node.support import wait_until
from tests.roles.remote_world import CLASS
from tests.roles.stage import Stage, playing, staged

BRIEF = replace(CLASS, train=100, aggregate=80, count=80, sum=20)
"""The committees' deadlines come within half a minute; who misses one here has another iteration."""


def work(stage: Stage, clients: list[Client], is_over: Callable[[], bool]) -> None:
    """Let everybody take steps until something holds."""

    def step() -> bool:
        stage.pump()
        for client in clients:
            client.work()
        return is_over()

    wait_until(step)


def charges(client: Client) -> list[bool]:
    """Of each charge whether its sum was released."""
    return [charge.released for charge in client.ledger.charges()]


# A member that opens in private what fails in public (D-21)


class Silent(Stage):
    """The first committee counts; one member shares the sum, one opens it for itself, one is down."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.opened: dict[int, np.ndarray] = {}
        """What the silent member knows, by iteration."""

    def _finish(self) -> None:
        world, here = self.world, self.world.owners
        world.remote.wait(lambda: bool(world.bundle().current.close_hash), "the block after the close")  # type: ignore[union-attr]
        owner, committee = here[0], world.committees[0]
        honest, silent, _down = committee.members
        with suppress(Refused):  # a deadline came first: the iteration fails before its count is open
            for progress, step in (
                (Progress.CLOSED, world.aggregate),
                (Progress.AGGREGATED, world.count_share),
            ):
                for member in (honest, silent):
                    if world.position(owner).progress is progress:
                        step(owner, committee, member)
                world.remote.next_block()
            if world.position(owner).progress is Progress.COUNTED:
                world.sum_share(owner, committee, honest)
                world.remote.next_block()
                self.opened[world.bundle().iterations] = self._open(owner, committee)
        self._note_outcomes(here)

    def _open(self, owner: Owner, committee: CommitteeOfTest) -> np.ndarray:
        """The sum, by the share on the board and one that nobody sees."""
        board, seat, key = self.world.board, self.world.seat(owner), committee.key
        openings, scheme, silent = board.openings, committee.scheme, committee.members[1]
        assert key is not None
        assert silent.share is not None
        (own,) = share_of_sum(board, seat, silent.share)
        ((permit,), (total,)) = openings.permits(seat), openings.encrypted_sums(seat)
        (posted,) = seat.position.sum_shares
        shares = [
            *openings.check_sum_share(
                seat.sum_share_claim(posted.member, tuple(BlobHash(part) for part in posted.contents))
            ),
            scheme.verify_share(key, total, permit, silent.number, own),
        ]
        return np.asarray(scheme.combine(key, total, permit, shares))


@pytest.fixture
def silent(keys: KeyDirectory, tmp_path: Path) -> Iterator[Silent]:
    tasks = (a_task("study 0", privacy={"max_releases": 1}), a_task("study 1"))
    with staged(keys, tmp_path, tasks, kind=Silent, size=BRIEF, members=3) as made:
        assert isinstance(made, Silent)
        yield made


def test_a_sum_that_fails_after_its_count_is_charged_and_counts_as_a_release(silent: Silent) -> None:
    """Else t members could open sums in private without limit, each of them for no ε."""
    world, owner = silent.world, silent.world.owners[0]
    plan = Plan.of(owner.task)
    with ExitStack() as stack:
        clients = [stack.enter_context(playing(silent.client())) for _ in range(2)]
        for client in clients:
            client.register(seconds=600)
        work(
            silent, clients, lambda: bool(silent.opened) and not any(c.journal.unfinished() for c in clients)
        )
        ((iteration, vector),) = silent.opened.items()
        assert len(vector) == owner.task.length, "the owner has its sum"
        assert silent.outcomes[iteration][0] == (Progress.FAILED, 2)
        task = world.task_state(owner)
        assert (task.releases, task.ended) == (1, True), "what max_releases allows is used up"
        for client in clients:
            turn = client.journal.turns()[-1]
            assert (turn.iteration, turn.outcome, turn.accepted) == (iteration, "failed", True)
            assert charges(client)[-1], "the charge stays"
            assert not any(charges(client)[:-1]), "what failed before its count was taken back"
            assert client.ledger.spent(delta=1e-5) == pytest.approx(plan.epsilon(1, "zero-out"))


# Clients of the owner's own


class Sybils(Stage):
    """The owner of the first task has registered clients of its own, which post zero vectors."""

    posted = 0

    def pump(self) -> None:
        world = self.world
        super().pump()
        bundle = world.bundle()
        if bundle.phase is Phase.OPEN and bundle.iterations > self.posted and self.owners():
            self.posted = bundle.iterations
            zero = np.zeros(world.owners[0].task.length, dtype=np.int64)
            for sybil in world.clients:
                with suppress(Refused):  # too late: the next iteration comes
                    world.board.post(world.submission(sybil, 0, zero))


@pytest.fixture
def sybils(keys: KeyDirectory, tmp_path: Path) -> Iterator[Sybils]:
    promise = {"min_clients": 4, "max_colluders": 0, "max_releases": 1}
    tasks = tuple(a_task(f"study {number}", privacy=promise) for number in range(2))
    with staged(keys, tmp_path, tasks, kind=Sybils) as made:
        assert isinstance(made, Sybils)
        made.world.add_clients(2)
        yield made


def test_clients_of_the_owner_fool_only_those_who_trust_its_number(sybils: Sybils) -> None:
    """The task promises that nobody colludes, and half of its clients are the owner's."""
    world, owner = sybils.world, sybils.world.owners[0]
    plan, floor = Plan.of(owner.task), {"max_epsilon": "1.5"}
    told = {"nothing": None, "all": "all", "two": 2, "none": 0}
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(playing(sybils.client(max_colluders=number, **floor)))
            for name, number in told.items()
        }
        for client in clients.values():
            client.register(seconds=600)

        def is_over() -> bool:
            settled = not any(client.journal.unfinished() for client in clients.values())
            return world.task_state(owner).ended and settled

        work(sybils, list(clients.values()), is_over)
        summed = [outcome[0] for outcome in sybils.outcomes.values() if outcome[0][0] is Progress.SUMMED]
        assert summed == [(Progress.SUMMED, 4)], "the owner reached its minimum with two of its own"
        nothing, everybody, two, none = (clients[name] for name in told)
        for careful, words in ((nothing, "max_colluders"), (everybody, "if 3 of 4 clients collude")):
            assert charges(careful) == [], "who says nothing, or reckons with all others, takes no part"
            turns = [turn for turn in careful.journal.turns() if turn.skipped != "late"]
            assert {turn.skipped for turn in turns} == {"floor-not-met"}
            assert all(words in turn.reason for turn in turns)
            assert not any(turn.accepted for turn in turns)
        truth = plan.epsilon(1, "zero-out", honest=2)
        assert two.ledger.spent(delta=1e-5) == pytest.approx(truth)
        assert none.ledger.spent(delta=1e-5) == pytest.approx(plan.epsilon(1, "zero-out"))
        assert truth > 1.4 * none.ledger.spent(delta=1e-5), "who says 0 believes the owner"
