"""One bundle of two tasks from genesis to the second model, in one process, with real cryptography."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from anofel.board.chain import Chain
from anofel.board.key_runs import complete_rounds, min_rounds
from anofel.board.state import Phase, Progress, State
from anofel.board.verification import Verifier
from anofel.committee import schemes
from anofel.committee.paillier.key_rounds.biprimality import FirstTest
from anofel.committee.paillier.key_rounds.modulus import next_batch
from anofel.committee.paillier.key_rounds.state import PublicState, RunSetting
from anofel.models.rules import rule_of
from anofel.proofs.keys import KeyDirectory
from tests.board.world import LIMITS, World, a_vector
from tests.paillier.dealer import InsecureToyPaillierScheme

LATTICE, PAILLIER = map(schemes.NAMES.index, ("lattice", "paillier"))


def test_two_tasks_run_from_genesis_to_the_second_model(keys: KeyDirectory) -> None:
    """Each expects three clients and adds the six posts of the bundle: it is padded to its class."""
    run_one_iteration(keys, [(3, 2, LATTICE), (3, 2, LATTICE)], privacy={"max_posts": 3})


@pytest.mark.slow
def test_a_bundle_mixes_schemes_and_committee_sizes(keys: KeyDirectory) -> None:
    """The keys have their real sizes and come from key generation over the board."""
    run_one_iteration(keys, [(5, 3, LATTICE), (3, 2, PAILLIER)])


def run_one_iteration(
    keys: KeyDirectory, committees: Sequence[tuple[int, int, int]], **task_changes: dict[str, object]
) -> None:
    world = World(keys, limits=replace(LIMITS, max_key_bytes=64 << 20))
    world.set_up(num_clients=6, committees=committees, **task_changes)
    board, owners = world.board, world.owners
    first_models = [owner.model for owner in owners]

    # Step 5: three clients train the first task, two the second, one posts a cover.
    targets = [0, 0, 0, 1, 1, None]
    updates: list[list[np.ndarray]] = [[], []]
    for number, (client, target) in enumerate(zip(world.clients, targets, strict=True)):
        update = None
        if target is not None:
            update = a_vector(owners[target].task, number)
            updates[target].append(update)
        board.post(world.submission(client, target, update))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()

    assert world.bundle().phase is Phase.WAITING
    for owner, real in zip(owners, updates, strict=True):
        position = world.position(owner)
        assert position.progress is Progress.SUMMED
        assert position.count == len(real)
        assert world.task_state(owner).releases == 1
        plain = rule_of(owner.task).apply(
            first_models[owners.index(owner)], np.asarray(sum(real), dtype=np.int64), len(real), 1
        )
        assert world.recover(owner).to_bytes() == plain.to_bytes()
        world.post_model(owner)
    board.next_block()
    assert world.bundle().phase is Phase.OPEN
    assert world.bundle().iterations == 2

    # Anyone who follows the blocks arrives at the same state.
    verifier = Verifier(
        world.genesis.hash,
        keys.registration_verifier(threads=1),
        keys.submission_verifier(threads=1),
        board.attachments,
    )
    follower = Chain(State.at_genesis(world.genesis), verifier)
    for block in board.blocks:
        follower.follow(block)
    assert follower.state.tip == board.blocks[-1].header.hash(world.genesis.hash)


def test_a_key_that_needs_more_than_one_try_is_made_over_the_board(
    keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, test = InsecureToyPaillierScheme(512), FirstTest.publish

    def without_luck(
        self: FirstTest, setting: RunSetting, public: PublicState, parts: Sequence[bytes]
    ) -> str:
        following = test(self, setting, public, parts)
        if public.batch == 0:
            public.passed = []
            return next_batch(setting, public)
        return following

    monkeypatch.setattr(FirstTest, "publish", without_luck)
    monkeypatch.setattr(schemes, "by_name", lambda _name: toy)
    world = World(keys)
    committee = world.establish(3, 2, PAILLIER)
    (run,) = world.board.state.runs.values()
    assert committee.key is not None
    assert complete_rounds(run) > min_rounds(run.run)
    assert set(world.board.state.committees) == {committee.key.key_id}
