"""Steps 1.a, 1.b and 5 for a simulation: a certifier and the clients that it certifies."""

from dataclasses import dataclass, field

from anofel.board.seat import Sitting
from anofel.errors import InvalidInput
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.messages import Posting
from anofel.phase1_setup.step1a_certifier_key import offer_key
from anofel.phase1_setup.step1b_certification import (
    Credential,
    fresh_nonce,
    issue_certificate,
    request_certificate,
)
from anofel.phase1_setup.step1b_registration import register
from anofel.phase2_training.step5_submission import PreparedSubmission, prepare_submission
from anofel.pki.certificates import Purpose
from anofel.primitives import (
    CertifierSecret,
    DatasetDigest,
    DatasetType,
    MasterPublicKey,
    MasterSecret,
    Salt,
)
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard
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
        self.secret = CertifierSecret.generate()
        self._verifier = venue.keys.ownership_verifier(threads=1)
        self._certified: dict[DatasetDigest, MasterPublicKey] = {}
        role, identity = venue.appoint(Purpose.CERTIFIER, "Certifier")
        board = venue.board
        board.post_as(role, offer_key(self.secret, holder=identity, genesis=board.genesis_hash))

    def certify(self, provers: Provers, dataset: Dataset, dataset_type: int) -> "SimulatedClient":
        """Let a new client ask for a certificate, and give it (step 1.b, first half)."""
        msk, dt, nonce = MasterSecret.generate(), DatasetType(dataset_type), fresh_nonce()
        key = self.secret.public_key()
        certified = CertifiedDataset(dataset, dataset_digest(dataset))
        request = request_certificate(
            msk, certified.digest, dt, certifier=key, nonce=nonce, prover=provers.ownership
        )
        if self._certified.setdefault(request.d, request.mpk) != request.mpk:
            raise InvalidInput("Two clients hold the same rows, and a certifier knows one key for a dataset.")
        certificate = issue_certificate(request, secret=self.secret, nonce=nonce, verifier=self._verifier)
        return SimulatedClient(Credential(msk, request.d, dt, key, certificate), certified)


@dataclass(frozen=True, repr=False)
class SimulatedClient:
    """A certified client."""

    credential: Credential
    certified: CertifiedDataset
    salt: Salt = field(default_factory=Salt.generate)

    def registration(self, board: LocalBoard, provers: Provers) -> Posting:
        """Register anonymously (step 1.b, second half)."""
        return register(board.state, self.credential, salt=self.salt, prover=provers.registration)

    def prepare(
        self, board: LocalBoard, sitting: Sitting, target: int | None, provers: Provers
    ) -> PreparedSubmission:
        """Make everything of a submission that does not depend on the update (step 5)."""
        return prepare_submission(
            board, sitting, self.credential, salt=self.salt, target=target, prover=provers.submission
        )
