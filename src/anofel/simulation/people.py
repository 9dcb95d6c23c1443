"""Steps 1.a, 1.b, 1.d and 5 for a simulation: a certifier, the clients that it certifies, and owners."""

from dataclasses import dataclass, field
from typing import Self

from anofel.board.interface import BoardView
from anofel.board.seat import Seat, Sitting
from anofel.board.state import State
from anofel.errors import InvalidInput
from anofel.ids import KeyId, Subject, TaskId
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.messages import Posting
from anofel.models.integer_model import IntegerModel
from anofel.phase1_setup.step1a_certifier_key import offer_key
from anofel.phase1_setup.step1b_certification import (
    CertificateRequest,
    Credential,
    issue_certificate,
    request_certificate,
)
from anofel.phase1_setup.step1b_registration import register
from anofel.phase1_setup.step1d_announcement import announce, post_model
from anofel.phase2_training.step5_submission import PreparedSubmission, prepare_submission
from anofel.pki.certificates import Purpose, RoleKey
from anofel.primitives import (
    Certificate,
    CertifierKey,
    CertifierSecret,
    DatasetDigest,
    DatasetType,
    MasterPublicKey,
    MasterSecret,
    Salt,
)
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.venue import Venue
from anofel.studies.dataset import Dataset


class Provers:
    """The proving keys, loaded once; one thread for each proof, since many are made at once."""

    def __init__(self, keys: KeyDirectory) -> None:
        self.ownership = keys.ownership_prover(threads=1)
        self.registration = keys.registration_prover(threads=1)
        self.submission = keys.submission_prover(threads=1)


class SimulatedCertifier:
    """Certifies every client; one key for a dataset, as a real one."""

    def __init__(self, venue: Venue) -> None:
        """Appoint a certifier and offer its key (step 1.a)."""
        self._secret = CertifierSecret.generate()
        self.key = self._secret.public_key()
        self._verifier = venue.keys.ownership_verifier(threads=1)
        self._certified: dict[DatasetDigest, MasterPublicKey] = {}
        role, identity = venue.appoint(Purpose.CERTIFIER, "Certifier")
        board = venue.board
        board.post_as(role, offer_key(self._secret, holder=identity, genesis=board.genesis_hash))

    def issue(self, request: CertificateRequest, nonce: bytes) -> Certificate:
        """Give a client the certificate that it asks for (step 1.b, first half)."""
        if self._certified.setdefault(request.d, request.mpk) != request.mpk:
            raise InvalidInput("Two clients hold the same rows, and a certifier knows one key for a dataset.")
        return issue_certificate(request, secret=self._secret, nonce=nonce, verifier=self._verifier)


@dataclass(frozen=True, repr=False)
class Applicant:
    """A client that is not certified yet."""

    certified: CertifiedDataset
    dt: DatasetType
    certifier: CertifierKey
    msk: MasterSecret = field(default_factory=MasterSecret.generate)

    @classmethod
    def of(cls, dataset: Dataset, dataset_type: int, certifier: CertifierKey) -> Self:
        """Make a client of its rows."""
        return cls(CertifiedDataset(dataset, dataset_digest(dataset)), DatasetType(dataset_type), certifier)

    def ask(self, nonce: bytes, provers: Provers) -> CertificateRequest:
        """Ask for a certificate (step 1.b, first half)."""
        return request_certificate(
            self.msk,
            self.certified.digest,
            self.dt,
            certifier=self.certifier,
            nonce=nonce,
            prover=provers.ownership,
        )

    def take(self, certificate: Certificate) -> "SimulatedClient":
        """Keep the certificate."""
        credential = Credential(self.msk, self.certified.digest, self.dt, self.certifier, certificate)
        return SimulatedClient(credential, self.certified)


@dataclass(frozen=True, repr=False)
class SimulatedClient:
    """A certified client."""

    credential: Credential
    certified: CertifiedDataset
    salt: Salt = field(default_factory=Salt.generate)

    def registration(self, state: State, provers: Provers) -> Posting:
        """Register anonymously (step 1.b, second half)."""
        return register(state, self.credential, salt=self.salt, prover=provers.registration)

    def prepare(
        self, board: BoardView, sitting: Sitting, target: int | None, provers: Provers
    ) -> PreparedSubmission:
        """Make everything of a submission that does not depend on the update (step 5)."""
        return prepare_submission(
            board, sitting, self.credential, salt=self.salt, target=target, prover=provers.submission
        )


@dataclass(frozen=True)
class SimulatedOwner:
    """A model owner with its announced task."""

    role: RoleKey
    subject: Subject
    task_id: TaskId
    part: SimulatedTask

    @classmethod
    def announcing(
        cls, venue: Venue, name: str, part: SimulatedTask, key_id: KeyId, *, early_end: bool = False
    ) -> Self:
        """Appoint an owner, and announce its task for a committee (step 1.d)."""
        role, identity = venue.appoint(Purpose.OWNER, name)
        return cls._announcing(venue.board, role, identity.subject, part, key_id, early_end)

    def announced(
        self, board: LocalBoard, part: SimulatedTask, key_id: KeyId, *, early_end: bool = False
    ) -> Self:
        """Announce another task of this owner."""
        return self._announcing(board, self.role, self.subject, part, key_id, early_end)

    @classmethod
    def _announcing(
        cls,
        board: LocalBoard,
        role: RoleKey,
        subject: Subject,
        part: SimulatedTask,
        key_id: KeyId,
        early_end: bool,
    ) -> Self:
        body = announce(part.task, key_id=key_id, early_end=early_end)
        board.post_as(role, body)
        return cls(role, subject, body.task_id(board.genesis_hash, subject), part)

    def post_model(self, board: LocalBoard, number: int, model: IntegerModel) -> None:
        """Post the model that opens an iteration (step 1.d)."""
        blob = board.upload(model.to_bytes())
        board.post_as(self.role, post_model(self.task_id, number, blob))

    def seat(self, board: LocalBoard) -> Seat:
        """Where the task stands on the board."""
        return Seat.of(board.state, self.task_id)
