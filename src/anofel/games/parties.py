"""The honest parties of a game: the client role as it ships, in a directory of its own, by steps.

What differs from ``anofel client run``: who waits for whom. The oracle says when a client asks for blocks, a
wait inside a block moves the client's clock instead of the machine's, and training is done where it is asked
for, since a process for each of thousands of clients would cost more than everything else. Turns, draws,
charges, drafts, outbox, proofs, encryption and noise are the role's own.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from anofel.board.attachments import AttachmentMissing
from anofel.disk.keystore import KeyFile
from anofel.errors import PeerUnreachable
from anofel.games.node import PartyBoard
from anofel.games.setting import SCHEMA, Patients, as_csv
from anofel.ids import GenesisHash
from anofel.learning.build import trainer_of
from anofel.learning.certified import dataset_digest
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Integers, Layout
from anofel.network.transport import Refused
from anofel.phase1_setup.step1b_certification import fresh_nonce, request_certificate
from anofel.phase2_training.step4_local_training import contribute
from anofel.phase2_training.step4_training_process import NOT_READY, TrainingProcess
from anofel.primitives import Commitment, MasterSecret
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import CertificateDocument
from anofel.roles.client.files import (
    MASTER,
    ROLE,
    ClientSettings,
    accept_certificate,
    load_data,
    master_secret,
    salt_of,
)
from anofel.roles.client.files import SCHEMA as SCHEMA_FILE
from anofel.roles.client.role import Client
from anofel.roles.client.task import CheckedTask
from anofel.roles.client.turn import PostMaker
from anofel.roles.directory import RoleDirectory, Setting
from anofel.simulation.people import Provers, SimulatedCertifier
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task

DATASET_TYPE: Final = 7
NOBODY: Final = "http://board.invalid"
"""What stands in ``role.toml``; nothing in a game connects to it."""


class LoadedKeys:
    """Proof keys that were loaded once for all parties of this process."""

    def __init__(self, keys: KeyDirectory) -> None:
        self._keys, self.provers = keys, Provers(keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._keys, name)

    def registration_prover(self, *, threads: int | None = None) -> Any:  # noqa: ARG002
        """Return the client's prover for its registration."""
        return self.provers.registration

    def submission_prover(self, *, threads: int | None = None) -> Any:  # noqa: ARG002
        """Return the client's prover for its submissions."""
        return self.provers.submission


class TrainingHere:
    """``TrainingProcess`` without a process: step 4 itself, where it is asked for."""

    def __init__(self, task: Task, dataset: Dataset) -> None:
        self._trainer, self._dataset, self._plan = trainer_of(task), dataset, Plan.of(task)
        self._made = ProtectedUpdate.zero(self._plan, NOT_READY)

    def get_ready(self) -> Layout:
        """Return the tensors of the trainer's models."""
        return Layout.of(self._trainer.initial())

    def begin(self, model: bytes) -> None:
        """Train a posted model."""
        self._made = contribute(self._trainer, IntegerModel.from_bytes(model), self._dataset, self._plan)

    def take(self) -> ProtectedUpdate:
        """Take what training made."""
        return self._made

    def close(self) -> None:
        """There is nothing to end."""


class QuickPostMaker(PostMaker):
    """The client's maker of posts, with training in this process."""

    training_class: type[TrainingHere] = TrainingHere

    def _trained(self, checked: CheckedTask) -> TrainingProcess:
        name = checked.posted.task_id
        if name not in self._training:
            here = self.training_class(checked.task, self.load_rows().dataset)
            self._training[name] = cast(TrainingProcess, here)
        return self._training[name]


class PlayedClient(Client):
    """The client role; only waiting and training are the game's."""

    maker_class = QuickPostMaker

    @property
    def seen_by(self) -> PartyBoard:
        """The way to the node, with the clock of this client."""
        return cast(PartyBoard, self.board)

    def own_commitment(self) -> Commitment:
        """Return what this client's registration commits to."""
        made, epoch = self.credential, self.state.epoch
        return Commitment(made.d, made.msk, made.dt, salt_of(self.directory.secrets, epoch))

    def linger(self, seconds: float) -> None:
        """Let the clock of this client go on."""
        self.seen_by.now += seconds * 1000 / self.board.genesis.interval_ms


@dataclass(frozen=True)
class PartyPlace:
    """Where a client's process is started, and how."""

    path: Path
    unlock: KeyFile = field(repr=False)
    cover: bool
    kind: type[PlayedClient]
    """What runs there."""
    source: str
    """The address that it has without a proxy."""


class _Nothing:
    """What a Sybil adds to a sum: zero, without noise."""

    failure = ""

    def with_noise(self, plan: Plan, position: int | None = None) -> Integers:  # noqa: ARG002
        """Return zero."""
        return np.zeros(plan.dimension, dtype=np.int64)


class _Idle(TrainingHere):
    def take(self) -> ProtectedUpdate:
        """Take nothing."""
        return cast(ProtectedUpdate, _Nothing())


class _SybilPostMaker(QuickPostMaker):
    training_class = _Idle


class Sybil(PlayedClient):
    """A client of the adversary's own: it counts, and adds nothing that would hide another one."""

    maker_class = _SybilPostMaker


@dataclass
class Party:
    """A registered client; ``name`` is what the oracle calls it, the board knows it by its commitment."""

    name: str
    task: int
    rows: Patients = field(repr=False)
    place: PartyPlace
    client: PlayedClient
    said: list[str]
    commitment: bytes = field(init=False)
    is_honest: bool = True
    runs: bool = False
    """Whether its process runs."""

    def __post_init__(self) -> None:
        self.commitment = self.client.own_commitment().to_bytes()

    def poll(self, now: float) -> None:
        """Let the role do what it does once in a block; a board that is away is borne (``Role.run``)."""
        self.client.seen_by.now = now
        with suppress(PeerUnreachable, AttachmentMissing, Refused):
            self.client.work()


def make_directory(
    path: Path, rows: Patients, genesis: GenesisHash, settings: dict[str, Setting], master: MasterSecret
) -> KeyFile:
    """Make a client's directory, as ``anofel client init`` does where the keys are the board's."""
    path.mkdir(parents=True)
    data, unlock = path / "rows.csv", KeyFile.generate(path / "key")
    data.write_bytes(as_csv(rows))
    RoleDirectory.create(
        path / "role",
        unlock,
        role=ROLE,
        board=NOBODY,
        genesis_hash=genesis,
        settings={"data": str(data.absolute()), "dataset_type": DATASET_TYPE, **settings},
        secrets={MASTER: master.to_secret_bytes()},
        files={SCHEMA_FILE: SCHEMA.encode()},
    )
    return unlock


def certify(directory: RoleDirectory, certifier: SimulatedCertifier, provers: Provers) -> None:
    """Let a certifier sign the client's data (step 1.b, first half)."""
    settings, nonce = ClientSettings.of(directory.config), fresh_nonce()
    d = dataset_digest(load_data(directory.path, settings))
    request = request_certificate(
        master_secret(directory.secrets),
        d,
        settings.dataset_type,
        certifier=certifier.key,
        nonce=nonce,
        prover=provers.ownership,
    )
    signed = certifier.issue(request, nonce)
    document = CertificateDocument.of(directory.config.genesis_hash, certifier.key, request, signed)
    accept_certificate(directory, settings, document)
