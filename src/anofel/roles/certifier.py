"""The certifier (steps 1.a and 1.b): offers its key, judges data, signs (d, mpk, dt), keeps a private log.

What it checks before it signs, numbered as in ``docs/certifier.md``:

1. The request is a canonical document.
2. The dataset type is the one that the nonce was drawn for.
3. The ownership proof is valid for this certifier, this nonce and this d.
4. A nonce is good for one request, which comes within 30 days; so is the token of an invitation good for
   30 days.
5. A dataset digest d is certified for one master key.
6. A subject has one master key.
7. to 10. The data fits the certifier's policy (``certifier_policy``).
11. The digest of the data that the client shows is d.
"""

import hashlib
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from anofel.board.light_client import LightClient, OnWait
from anofel.board.state import State
from anofel.certificates import Purpose, RoleKey, verify_chain
from anofel.errors import InvalidInput
from anofel.files import read_small_file
from anofel.keys import KeyDirectory
from anofel.keystore import Unlock
from anofel.learning.certified import dataset_digest
from anofel.messages import Body, ChainAuthor, Posting, make_posting
from anofel.phase1_setup.certification import fresh_nonce, issue_certificate
from anofel.phase1_setup.certifier_keys import offer_key, revoke_key
from anofel.primitives import CertifierKey, CertifierSecret
from anofel.proofs import OwnershipVerifier
from anofel.roles.certificate_files import (
    CertificateDocument,
    InvitationDocument,
    NonceDocument,
    RequestDocument,
)
from anofel.roles.certifier_log import CertificationRefused, CertifierLog, Drawn, Issued
from anofel.roles.certifier_policy import Policy
from anofel.roles.directory import RoleConfig, RoleDirectory, read_config

ROLE: Final = "certifier"
LOG: Final = "certifier.sqlite"
OWNERSHIP_KEY: Final = "ownership.verification.key"
MAX_SUBJECT: Final = 200
TOKEN_BYTES: Final = 32
_MAX_KEY_BYTES: Final = 1 << 20


def init_certifier(
    path: Path,
    unlock: Unlock,
    *,
    board: str,
    genesis_hash: bytes,
    role_key: RoleKey,
    keys: KeyDirectory,
    policy: Path,
    proxy: str = "",
    ca_file: Path | None = None,
) -> CertifierKey:
    """Make a certifier's directory with a new signing key, and return its public half."""
    Policy.load(policy)
    secret = CertifierSecret.generate()
    key = secret.public_key()
    RoleDirectory.create(
        path,
        unlock,
        role=ROLE,
        board=board,
        genesis_hash=genesis_hash,
        proxy=proxy,
        ca_file=ca_file,
        settings={"key": key.to_bytes().hex(), "policy": str(policy.absolute())},
        secrets={"role-key": role_key.to_secret_bytes(), "certifier-secret": secret.to_secret_bytes()},
        files={OWNERSHIP_KEY: keys.verification["ownership"].read()},
    )
    return key


@dataclass(frozen=True)
class CertifierDesk:
    """What a certifier does without its secrets, also while it serves: draws nonces, invites, counts."""

    path: Path
    config: RoleConfig
    log: CertifierLog

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a certifier's log. Raises ``RoleError``."""
        return cls(path, read_config(path, role=ROLE), CertifierLog(path / LOG))

    @property
    def key(self) -> bytes:
        """The certifier's public key."""
        return bytes.fromhex(str(self.config.settings["key"]))

    @property
    def policy(self) -> Policy:
        """The policy as its file says now."""
        return Policy.load(Path(str(self.config.settings["policy"])))

    def ownership_key(self) -> bytes:
        """The verification key of ownership proofs."""
        return read_small_file(self.path / OWNERSHIP_KEY, _MAX_KEY_BYTES)

    def draw_nonce(self, subject: str, dt: int) -> NonceDocument:
        """Draw the nonce for one request of somebody whom the certifier knows."""
        self._check_subject(subject)
        self.policy.of(dt)
        nonce = fresh_nonce()
        self.log.add_nonce(nonce, Drawn(subject, dt), time=int(time.time()))
        return NonceDocument(
            genesis=self.config.genesis_hash,
            certifier=self.key,
            ownership_key=hashlib.sha256(self.ownership_key()).digest(),
            dt=dt,
            nonce=nonce,
        )

    def invite(self, subject: str, dt: int) -> InvitationDocument:
        """Make a token with which somebody whom the certifier knows may ask by HTTP."""
        self._check_subject(subject)
        self.policy.of(dt)
        token = secrets.token_bytes(TOKEN_BYTES)
        drawn = Drawn(subject, dt)
        self.log.add_invitation(hashlib.sha256(token).digest(), drawn, time=int(time.time()))
        return InvitationDocument(genesis=self.config.genesis_hash, certifier=self.key, dt=dt, token=token)

    def answer_invitation(self, invitation: InvitationDocument) -> NonceDocument:
        """Draw a nonce for whoever shows a token. Raises ``CertificationRefused``."""
        drawn = self.log.invited(hashlib.sha256(invitation.token).digest(), time=int(time.time()))
        return self.draw_nonce(drawn.subject, drawn.dt)

    def status(self) -> dict[str, Any]:
        """Say what the log holds; no subject is named."""
        return {
            "key": self.key.hex(),
            "genesis": self.config.genesis,
            "types": sorted(self.policy.datasets),
            **self.log.counts(),
        }

    @staticmethod
    def _check_subject(subject: str) -> None:
        if not 1 <= len(subject) <= MAX_SUBJECT or not subject.isprintable():
            raise InvalidInput(f"A subject has 1 to {MAX_SUBJECT} printable characters.")


class Certifier:
    """A certifier with its secrets; one process at a time."""

    def __init__(self, directory: RoleDirectory) -> None:
        self.directory = directory
        self.desk = CertifierDesk(directory.path, directory.config, CertifierLog(directory.path / LOG))
        self._role_key = RoleKey.from_secret_bytes(directory.secrets["role-key"].reveal())
        self._secret = CertifierSecret.from_bytes(directory.secrets["certifier-secret"].reveal())
        self._verifier = OwnershipVerifier.from_bytes(self.desk.ownership_key(), threads=1)

    @property
    def key(self) -> CertifierKey:
        """The public key."""
        return self._secret.public_key()

    # Step 1.a

    def is_enrolled(self, state: State) -> bool:
        """Whether the board lists the key."""
        found = state.certifiers.get(self.key.to_bytes())
        return found is not None and found.in_force

    def enroll(self, board: LightClient, *, seconds: float, on_wait: OnWait = lambda _what: None) -> int:
        """Post the key and wait until the board lists it; returns the height. Safe to repeat."""
        board.sync()
        if not self.is_enrolled(board.state):
            if self.key.to_bytes() in board.state.certifiers:
                raise CertificationRefused("key-revoked", "The key was revoked, and is never listed again.")
            name = f"certifier-key/{self.key.to_bytes().hex()[:32]}"
            sent = self.directory.outbox.send(board, name, lambda: self._offer(board))
            if sent.answer is not None and sent.answer.refused:
                raise CertificationRefused(sent.answer.refused, sent.answer.detail)
        board.wait_for(self.is_enrolled, "the certifier's key", seconds=seconds, on_wait=on_wait)
        return board.state.height

    def revoke(self, board: LightClient, *, seconds: float, on_wait: OnWait = lambda _what: None) -> int:
        """Take the key back for good and wait until the board shows it; returns the height.

        No new client registers with its certificates; who is registered stays so until an operator begins a
        new epoch.
        """
        board.sync()
        if self.is_enrolled(board.state):
            name = f"revocation/{self.key.to_bytes().hex()[:32]}"
            sent = self.directory.outbox.send(board, name, lambda: self._signed(board, revoke_key(self.key)))
            if sent.answer is not None and sent.answer.refused:
                raise CertificationRefused(sent.answer.refused, sent.answer.detail)
        board.wait_for(
            lambda state: not self.is_enrolled(state), "the revocation", seconds=seconds, on_wait=on_wait
        )
        return board.state.height

    def _offer(self, board: LightClient) -> Posting:
        role, genesis = self._role_key, board.genesis
        holder = verify_chain(role.chain, genesis.roots, Purpose.CERTIFIER, int(time.time()))
        return self._signed(board, offer_key(self._secret, holder=holder, genesis=genesis.hash))

    def _signed(self, board: LightClient, body: Body) -> Posting:
        role = self._role_key
        return make_posting(body, ChainAuthor(role.chain), board.genesis.hash, role.sign)

    # Step 1.b

    def certify(self, document: RequestDocument, data: Path) -> CertificateDocument:
        """Judge a request and the data behind it, and sign. The same request gives the same certificate.

        Raises ``CertificationRefused``, ``InvalidProof`` and, for rows, ``RowDoesNotFit``.
        """
        request, log = document.request(), self.desk.log  # (1)
        name = hashlib.sha256(document.to_bytes()).digest()
        drawn = log.drawn_for(document.nonce, name, time=int(time.time()))  # (4)
        if drawn.dt != document.dt:  # (2)
            raise CertificationRefused(
                "dataset-type", f"The nonce was drawn for dataset type {drawn.dt}, not {document.dt}."
            )
        log.find(document.d, document.mpk, document.dt, drawn.subject)  # (5, 6)
        dataset = self.desk.policy.of(drawn.dt).inspect(data, drawn.subject)  # (7 to 10)
        if dataset_digest(dataset) != request.d:  # (11)
            raise CertificationRefused(
                "not-the-data", "The data that is shown has another digest than the request."
            )
        certificate = issue_certificate(  # (3)
            request, secret=self._secret, nonce=document.nonce, verifier=self._verifier
        )
        issued = Issued(
            d=document.d,
            mpk=document.mpk,
            dt=document.dt,
            subject=drawn.subject,
            certifier=self.key.to_bytes(),
            rows=len(dataset),
            issued_at=int(time.time()),
            certificate=certificate.to_secret_bytes(),
        )
        return self._document(log.add(issued, nonce=document.nonce, request=name))

    def _document(self, issued: Issued) -> CertificateDocument:
        return CertificateDocument(
            genesis=self.directory.config.genesis_hash,
            certifier=issued.certifier,
            d=issued.d,
            mpk=issued.mpk,
            dt=issued.dt,
            certificate=issued.certificate,
        )
