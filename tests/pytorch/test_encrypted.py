"""Images and a module of one's own through the client's own code and the real encryption.

Each client trains as its role does; what the committee opens is the plain sum of what they trained,
and every party makes the same next model of it.
"""

import time
from dataclasses import replace

import numpy as np
import pytest

from anofel.board.seat import Sitting
from anofel.board.state import Phase, Progress
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.models.rules import rule_of
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase2_training.step5_submission import PreparedSubmission, SealedSubmission, post_submission
from anofel.phase2_training.step5_submission import seal_submission as seal
from anofel.primitives import DatasetType, MasterSecret
from anofel.privacy.ledger import Floors, Ledger
from anofel.proofs.keys import KeyDirectory
from anofel.roles.client.task import check_task
from anofel.roles.client.turn import PostMaker, Underway
from anofel.roles.owner import initial_model
from anofel.studies.dataset import Dataset
from tests.board.world import CLASS, LIMITS, MAX_POSTS, ClientOfTest, World, a_task
from tests.patients import make_dataset
from tests.pytorch.digits import image_task, make_digits

OWN = "tests.pytorch.modules:patients_trainer"
SHARED = {"min_clients": 2, "max_colluders": 0, "max_posts": MAX_POSTS, "max_releases": 3}
IMAGES = image_task(task={"dataset_type": 3}, training={"momentum": "0.9"}, privacy=SHARED)
CUSTOM = a_task("own module", model={"kind": "custom", "parameters": 29}, training={"algorithm": "fedsgd"})


def certified_client(world: World, rows: Dataset, dataset_type: int) -> tuple[ClientOfTest, Dataset]:
    d, msk, dt = dataset_digest(rows), MasterSecret.generate(), DatasetType(dataset_type)
    certificate = world.certifier_secret.certify(d, msk.public_key(), dt)
    client = ClientOfTest(Credential(msk, d, dt, world.certifier_secret.public_key(), certificate))
    world.board.post(world.registration(client))
    return client, rows


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """What clients trained, noise included, as they hand it to the encryption."""
    found: list[np.ndarray] = []

    def recorded(prepared: PreparedSubmission, update: np.ndarray | None) -> SealedSubmission:
        assert update is not None
        found.append(update)
        return seal(prepared, update)

    monkeypatch.setattr("anofel.roles.client.turn.seal_submission", recorded)
    return found


def test_images_and_a_module_of_ones_own_train_through_the_encryption(
    keys: KeyDirectory, trained: list[np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = World(
        keys,
        classes=(replace(CLASS, max_length=100_000),),
        limits=replace(LIMITS, max_block_bytes=64 << 20, max_model_bytes=64 << 20),
    )
    world.offer_certifier_key()
    committees = [world.establish(2, 2) for _ in range(2)]
    world.board.next_block()
    owners = [world.announce(c, task) for c, task in zip(committees, (IMAGES, CUSTOM), strict=True)]
    groups = [
        [certified_client(world, make_digits(24, seed), 3) for seed in range(2)],
        [certified_client(world, make_dataset(20, seed), 7) for seed in range(3)],
    ]
    world.board.next_block()
    trainers, firsts = ("", OWN), []
    for owner, own in zip(owners, trainers, strict=True):
        owner.model = initial_model(owner.task, own)
        firsts.append(owner.model)
        world.post_model(owner)
    world.board.next_block()

    sums = []
    for owner, own, group in zip(owners, trainers, groups, strict=True):
        trained.clear()
        for number, (client, rows) in enumerate(group):
            ledger = Ledger(tmp_path_factory.mktemp("client") / "ledger")
            maker = _maker(world, client, rows, ledger, own)
            underway = maker.begin(
                world.board,  # type: ignore[arg-type]
                Sitting.of(world.board.state, 0),
                check_task(world.task_state(owner), rows.schema, client.credential.dt),
                client.salt,
                "turn",
            )
            _wait_for(underway)
            sealed, failure = underway.seal(1)
            assert not failure
            maker.close()
            assert len(trained) == number + 1
            world.board.post(post_submission(world.board, sealed))
        sums.append(np.sum(trained, axis=0, dtype=np.int64))
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()

    for owner, first, total, group in zip(owners, firsts, sums, groups, strict=True):
        assert world.position(owner).progress is Progress.SUMMED
        plain = rule_of(owner.task).apply(first, total, len(group), 1)
        assert world.recover(owner).to_bytes() == plain.to_bytes()
        assert world.task_state(owner).next_model == plain.digest()


def _wait_for(underway: Underway) -> None:
    end = time.monotonic() + 600
    while underway.training._answers.empty():  # type: ignore[union-attr]
        assert time.monotonic() < end, "The training did not end."
        time.sleep(0.05)


def _maker(world: World, client: ClientOfTest, rows: Dataset, ledger: Ledger, own: str) -> PostMaker:
    return PostMaker(
        credential=client.credential,
        load_rows=lambda: CertifiedDataset(rows, client.credential.d),
        prover=world.submission_prover,
        ledger=ledger,
        floors=Floors(max_epsilon=1e9, max_colluders=0),
        trainer=own,
    )
