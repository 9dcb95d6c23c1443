"""How bench/learning.py trains: centrally, plainly federated, over integers, through the encryption."""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from _learning_resume import Saved, packed, unpacked

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from anofel.board.genesis import MAX_POSTINGS  # noqa: E402
from anofel.board.seat import Sitting  # noqa: E402
from anofel.board.state import Phase, Progress  # noqa: E402
from anofel.learning.build import trainer_of  # noqa: E402
from anofel.learning.certified import CertifiedDataset, dataset_digest  # noqa: E402
from anofel.learning.metrics import accuracy, auc, concordance  # noqa: E402
from anofel.learning.trainer import LocalUpdate, Trainer  # noqa: E402
from anofel.models.integer_model import IntegerModel  # noqa: E402
from anofel.models.parameters import Parameters  # noqa: E402
from anofel.models.rules import rule_of  # noqa: E402
from anofel.phase1_setup.step1b_certification import Credential  # noqa: E402
from anofel.phase2_training.step4_local_training import contribute  # noqa: E402
from anofel.phase2_training.step5_submission import (  # noqa: E402
    post_submission,
    prepare_submission,
    seal_submission,
)
from anofel.primitives import DatasetType, MasterSecret  # noqa: E402
from anofel.privacy.ledger import Floors, Ledger, Occasion  # noqa: E402
from anofel.privacy.plan import Plan  # noqa: E402
from anofel.privacy.protect import Integers  # noqa: E402
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys  # noqa: E402
from anofel.studies.dataset import Dataset  # noqa: E402
from anofel.tasks.schema import TableSchema  # noqa: E402
from anofel.tasks.task import Task  # noqa: E402
from tests.board.world import CLASS, LIMITS, ClientOfTest, World  # noqa: E402
from tests.plain_path import iterate  # noqa: E402


@dataclass(frozen=True)
class Step:
    """One iteration: what the model is worth, and seconds of CPU for each client."""

    score: float
    model: bytes = field(default=b"", repr=False)
    """What a stopped run needs to go on."""
    train_seconds: float = 0.0
    overhead_seconds: float = 0.0
    client_bytes: int = 0
    """What one client sends."""


class Judge:
    """Accuracy; the area under the curve where there are two classes; of survival the concordance index."""

    def __init__(self, task: Task, test: Dataset) -> None:
        self._trainer, self._test, self._schema = trainer_of(task), test, task.schema

    def score(self, parameters: Parameters) -> float:
        probabilities = self._trainer.probabilities(parameters, self._test)  # type: ignore[attr-defined]
        if isinstance(self._schema, TableSchema) and self._schema.target is not None:
            intervals, events = np.divmod(self._test.labels, 2)
            return concordance(-probabilities.sum(axis=1), intervals, events == 1)
        if self._test.schema.classes == 2:
            return auc(probabilities[:, 1], self._test.labels)
        return accuracy(probabilities, self._test.labels)


def central(
    task: Task,
    train: Dataset,
    judge: Judge,
    iterations: int,
    *,
    saved: Saved | None = None,
) -> Iterator[Step]:
    """All rows in one place, one trainer, no privacy."""
    return federated(task, [train], judge, iterations, saved=saved)


def federated(
    task: Task,
    clients: Sequence[Dataset],
    judge: Judge,
    iterations: int,
    *,
    saved: Saved | None = None,
) -> Iterator[Step]:
    """Federated averaging with floating-point numbers, no clipping, no privacy, no encryption."""
    trainer, rule = trainer_of(task), rule_of(task)
    parameters = trainer.initial() if saved is None else unpacked(saved.model)
    for iteration in range(1 if saved is None else len(saved.scores) + 1, iterations + 1):
        rate = float(Fraction(*rule.rate(iteration)))
        start = time.process_time()
        updates = [trainer.train(parameters, rows).update for rows in clients]
        seconds = (time.process_time() - start) / len(clients)
        parameters = {
            name: array + rate * np.mean([update[name] for update in updates], axis=0)
            for name, array in parameters.items()
        }
        yield Step(judge.score(parameters), packed(parameters), seconds)


def integers(
    task: Task,
    clients: Sequence[Dataset],
    judge: Judge,
    iterations: int,
    *,
    noise: bool,
    saved: Saved | None = None,
) -> Iterator[Step]:
    """The plain integer path: what the encrypted protocol computes, without the encryption."""
    after = None if saved is None else (IntegerModel.from_bytes(saved.model), len(saved.scores))
    trainer, start = trainer_of(task), time.process_time()
    run = iterate(task, clients, iterations, trainer=trainer, after=after, insecure_no_noise=not noise)
    for model, _ in run:
        seconds = (time.process_time() - start) / len(clients)
        yield Step(judge.score(model.parameters()), model.to_bytes(), seconds)
        start = time.process_time()


def encrypted(
    task: Task, clients: Sequence[Dataset], judge: Judge, iterations: int
) -> Iterator[tuple[Step, bool]]:
    """Every step of the protocol with its cryptography; also says whether the integers are the plain ones."""
    with tempfile.TemporaryDirectory() as directory:
        make_insecure_development_keys(Path(directory) / "keys")
        board = EncryptedRun(Path(directory), task, clients)
        for _ in range(iterations):
            yield board.iterate(judge)


class Stopwatch:
    """A trainer that says how long it trained."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer, self.seconds = trainer, 0.0

    def initial(self) -> Parameters:
        return self._trainer.initial()

    def train(self, parameters: Parameters, dataset: Dataset) -> LocalUpdate:
        start = time.process_time()
        try:
            return self._trainer.train(parameters, dataset)
        finally:
            self.seconds += time.process_time() - start


class EncryptedRun:
    """A task and another one beside it in the bundle, a committee of three each, all clients on a board."""

    def __init__(self, directory: Path, task: Task, clients: Sequence[Dataset]) -> None:
        keys, self._directory = KeyDirectory.open(directory / "keys"), directory
        size = 8 * task.model.parameters + (1 << 20)
        self.task = replace(
            task, dataset_type=7, privacy=replace(task.privacy, max_posts=max(len(clients), 2))
        )
        self.world = World(
            keys,
            classes=(
                replace(CLASS, max_length=task.model.parameters, max_posts=self.task.privacy.max_posts),
            ),
            limits=replace(
                LIMITS,
                max_block_bytes=1 << 30,
                max_postings=MAX_POSTINGS,
                max_model_bytes=size,
                root_window=1000,
            ),
        )
        self.plan, self.floors = Plan.of(self.task), Floors(max_epsilon=1.0, max_colluders=0)
        self.floors.check_task(self.plan, len(clients))  # loads the accounting, as clients do beforehand
        other = replace(self.task, name="the other task of the bundle", dataset_type=8)
        world = self.world
        world.offer_certifier_key()
        committees = [world.establish() for _ in range(2)]
        world.board.next_block()
        self.owner, self.other = (
            world.announce(committee, one)
            for committee, one in zip(committees, (self.task, other), strict=True)
        )
        self.clients = [self._client(number, rows) for number, rows in enumerate(clients)]
        world.board.next_block()
        self.model = rule_of(task).initial(trainer_of(self.task).initial(), task.model.scale_bits)
        for owner in (self.owner, self.other):
            owner.model = self.model
            world.post_model(owner)
        world.board.next_block()

    def _client(self, number: int, rows: Dataset) -> tuple[ClientOfTest, CertifiedDataset, Ledger]:
        secret, msk, dt = self.world.certifier_secret, MasterSecret.generate(), DatasetType(7)
        d = dataset_digest(rows)
        certificate = secret.certify(d, msk.public_key(), dt)
        client = ClientOfTest(Credential(msk, d, dt, secret.public_key(), certificate))
        self.world.board.post(self.world.registration(client))
        return client, CertifiedDataset(rows, d), Ledger(self._directory / f"ledger-{number}")

    def iterate(self, judge: Judge) -> tuple[Step, bool]:
        world, count = self.world, len(self.clients)
        total, training, overhead, sent = np.zeros(self.plan.dimension, np.int64), 0.0, 0.0, 0
        posted = self.model.to_bytes()
        for client, certified, ledger in self.clients:
            update, trained, beside, sent = self._submit(client, certified, ledger, posted)
            training, overhead, total = training + trained, overhead + beside, total + update
        iteration = world.bundle().iterations
        world.blocks_until(Phase.CLOSED)
        world.run_phase3()
        assert world.position(self.owner).progress is Progress.SUMMED
        plain = rule_of(self.task).apply(self.model, total, count, iteration)
        self.model = world.recover(self.owner)
        self._open_next()
        step = Step(
            judge.score(self.model.parameters()),
            train_seconds=training / count,
            overhead_seconds=overhead / count,
            client_bytes=sent,
        )
        return step, self.model.to_bytes() == plain.to_bytes()

    def _submit(
        self, client: ClientOfTest, certified: CertifiedDataset, ledger: Ledger, posted: bytes
    ) -> tuple[Integers, float, float, int]:
        """All that a client computes in an iteration: seconds of training, of everything else, and bytes."""
        world, start = self.world, time.process_time()
        self.floors.check_task(self.plan, len(self.clients))
        watch = Stopwatch(trainer_of(self.task))
        ledger.charge(
            f"turn {world.bundle().iterations}",
            Occasion(
                board=world.board.genesis_hash,
                task=self.owner.task_id,
                bundle=0,
                iteration=world.bundle().iterations,
            ),
            plan=self.plan,
            floors=self.floors,
            anonymity_set=len(self.clients),
        )
        model = IntegerModel.from_bytes(posted)
        update = contribute(watch, model, certified.dataset, self.plan).with_noise(self.plan)
        prepared = prepare_submission(
            world.board,
            Sitting.of(world.board.state, 0),
            client.credential,
            salt=client.salt,
            target=world.task_state(self.owner).position,
            prover=world.submission_prover,
        )
        sealed = seal_submission(prepared, update)
        made = time.process_time()
        for payload in sealed.payloads:
            world.board.upload(payload)
        storing = time.process_time() - made  # the board's work
        posting = post_submission(world.board, sealed)
        done = time.process_time()
        world.board.post(posting)
        sent = len(posting.data) + sum(map(len, sealed.payloads))
        return update, watch.seconds, done - start - 2 * storing - watch.seconds, sent

    def _open_next(self) -> None:
        world = self.world
        if not world.task_state(self.owner).ended:
            for owner in (self.owner, self.other):
                world.post_model(owner)
            world.board.next_block()
