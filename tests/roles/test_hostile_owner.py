"""A hostile owner against real clients over a real node: nothing that others see depends on the rows."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest

from anofel.board.state import Phase, Progress
from anofel.messages import EndTask
from anofel.privacy.mechanisms import DiscreteGaussian
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.journal import Journal, Turn
from anofel.roles.client.role import Client
from tests.board.world import Owner, a_task
from tests.node.support import SECONDS
from tests.roles.recorder import recording
from tests.roles.stage import RELEASES, Stage, playing, staged

OWN = "tests.learning.own_trainers:depends_on_data"
CUSTOM = a_task("study 0", model={"kind": "custom", "parameters": 6}, privacy=RELEASES)
FEW_RECORDS = a_task("study 1", privacy=RELEASES | {"unit": "record", "records_per_client": 20})
RAISES, STALLS, KILLED, OVERFLOWS, FINE, MANY = 11, 12, 13, 15, 25, 60
"""How many rows a client has, and so what its training does."""


@pytest.fixture(scope="module")
def stage(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(keys, tmp_path_factory.mktemp("stage"), (CUSTOM, FEW_RECORDS), OWN) as made:
        yield made


def turn_of(client: Client) -> Turn:
    (turn,) = [turn for turn in client.journal.turns() if turn.skipped != "late"]
    return turn


def height_of(client: Client) -> int:
    return client.state.height


@contextmanager
def noted_draws() -> Iterator[dict[Journal, list[int]]]:
    """The times that each client draws for its post: the first before training, in the journal."""
    drawn: dict[Journal, list[int]] = defaultdict(list)
    begin, move = Journal.begin, Journal.move

    def begun(journal: Journal, turn: Turn) -> None:
        if not turn.skipped:
            drawn[journal].append(turn.post_at)
        begin(journal, turn)

    def moved(journal: Journal, turn: Turn, post_at: int) -> None:
        drawn[journal].append(post_at)
        move(journal, turn, post_at)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Journal, "begin", begun)
        patched.setattr(Journal, "move", moved)
        yield drawn


@contextmanager
def noise_too_wide_at_first() -> Iterator[None]:
    """Every other draw of noise has no room in the task's bounds; an update must not be refused for it."""
    sample, draws = DiscreteGaussian.sample, count()

    def first_too_wide(self: DiscreteGaussian, sigma: int, dimension: int) -> np.ndarray:
        return np.full(dimension, 1 << 40) if next(draws) % 2 == 0 else sample(self, sigma, dimension)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DiscreteGaussian, "sample", first_too_wide)
        yield
        assert next(draws) > 1


def test_whether_a_client_posts_does_not_depend_on_its_rows(stage: Stage) -> None:
    """Training that raises, stalls, dies or overflows, more records than allowed, and noise that is too wide:
    everybody posts.
    """
    with ExitStack() as stack:
        seen, clients = {}, {}
        for rows in (RAISES, STALLS, KILLED, OVERFLOWS, FINE):
            seen[rows] = stack.enter_context(recording(stage.node.url))
            made = stage.client(seen[rows].url, rows=rows, trainer=OWN)
            clients[rows] = stack.enter_context(playing(made, once=True))
        for rows in (FINE, MANY):
            made = stage.client(rows=rows, task="study 1", unit="record")
            clients[-rows] = stack.enter_context(playing(made, once=True))
        for client in clients.values():
            client.register(seconds=SECONDS)
        for rows, recorder in seen.items():
            recorder.height, recorder.sent_at = partial(height_of, clients[rows]), []
        drawn = stack.enter_context(noted_draws())
        stack.enter_context(noise_too_wide_at_first())
        stage.run(*clients.values())
        stage.until_settled(*clients.values())

        turns = {rows: turn_of(client) for rows, client in clients.items()}
        slow = ("iteration-not-open",)  # a post that this machine could not send in time
        for turn in turns.values():
            assert turn.accepted or turn.skipped in slow, (turn.skipped, turn.reason)
        failures = {RAISES: "KeyError", STALLS: "not done", KILLED: "was killed", OVERFLOWS: "infinity"}
        for rows, words in (*failures.items(), (FINE, "")):
            if not turns[rows].skipped:
                assert words in turns[rows].reason
                assert bool(words) == bool(turns[rows].reason), "only its own journal knows how it went"
        for iteration, outcome in stage.outcomes.items():
            for position, task in enumerate((CUSTOM.name, FEW_RECORDS.name)):
                names = [c for c in clients.values() if c.settings.wanted.task == task]
                posted = [c for c in names if turn_of(c).iteration == iteration and turn_of(c).accepted]
                if outcome[position][1] is not None:
                    assert outcome[position][1] == len(posted), "a zero update counts as one"
        for client in clients.values():
            (charge,) = client.ledger.charges()
            assert charge.released == (turn_of(client).outcome == "summed")
        accepted = [seen[rows] for rows in seen if turns[rows].accepted]
        kinds = [list(dict.fromkeys(h for h in s.heads if h[0] != "GET")) for s in accepted]
        assert all(kind == kinds[0] for kind in kinds), "the node sees the same requests of all of them"
        for rows, recorder in seen.items():
            if turns[rows].accepted:
                last = drawn[clients[rows].journal][-1]  # drawn again only if this machine was too slow
                assert recorder.sent_at[0] in (last, last + 1), "nothing goes out at any other time"


def test_rows_are_loaded_before_the_first_request(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap between two requests would tell a node how many rows somebody has."""
    with recording(stage.node.url) as seen, playing(stage.client(seen.url, rows=FINE, trainer=OWN)) as client:
        loaded_after: list[int] = []
        load = client.maker._load_rows
        monkeypatch.setattr(
            client.maker, "_load_rows", lambda: loaded_after.append(len(seen.heads)) or load()
        )
        connected = len(seen.heads)
        client.work()
        assert loaded_after == [connected]
        assert len(seen.heads) > connected


def test_a_document_announced_again_erases_no_charge(stage: Stage) -> None:
    """The same document in another bundle: its iteration 1 is charged by itself, and taken back by itself.

    While that iteration is open the owner ends its task: who has begun a turn posts nevertheless.
    """
    world, owner = stage.world, stage.world.owners[0]
    subject = world.task_state(owner).owner.hex()
    with playing(stage.client(rows=FINE, trainer=OWN, task="", owner=subject), once=True) as client:
        with playing(stage.client(rows=FINE, trainer=OWN), once=True) as other:
            for one in (client, other):
                one.register(seconds=SECONDS)
            stage.run(client, other)
            stage.until_settled(client, other)
        first = client.ledger.charges()
        assert [(charge.occasion.bundle, charge.released) for charge in first] == [(0, True)]
        assert turn_of(client).outcome == "summed"
        spent = client.ledger.spent(delta=1e-5)

        announced = [world.task_state(one).announcement for one in world.owners[:2]]
        for one in world.owners[:2]:
            world.board.post_as(one.role, EndTask(task=one.task_id))
        world.remote.wait(
            lambda: stage.pump() or world.bundle(0).phase is Phase.ENDED, "the end of the bundle"
        )
        for one, body in zip(world.owners[:2], announced, strict=True):
            again = replace(body, early_end=True)  # the same document, another name on the board
            world.board.post_as(one.role, again)
            task_id = again.task_id(world.genesis.hash, world.task_state(one).owner)
            world.owners.append(Owner(one.role, one.task, task_id))
        world.remote.wait(lambda: 1 in world.board.state.bundles, "the next bundle")
        stage.bundle_number = 1

        client.once = False
        end, ended = time.monotonic() + SECONDS, False
        while (
            not client.journal.turns()
            or client.journal.turns()[-1].bundle != 1
            or client.journal.unfinished()
        ):
            assert time.monotonic() < end, client.waits_for
            stage.pump()
            client.work()
            begun = [turn for turn in client.journal.unfinished() if turn.bundle == 1 and not turn.skipped]
            if begun and not ended:
                world.board.post_as(owner.role, EndTask(task=begun[0].task))
                ended = True
        turn = client.journal.turns()[-1]
        assert (turn.accepted, turn.outcome) == (True, Progress.TOO_FEW.value)
        found = [(charge.occasion.bundle, charge.released) for charge in client.ledger.charges()]
        assert found == [(0, True), (1, False)]
        assert client.ledger.spent(delta=1e-5) == spent
