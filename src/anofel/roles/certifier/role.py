"""The certifier (steps 1.a and 1.b): offers its key, judges data, signs (d, mpk, dt), keeps a private log.

What it checks before it signs, numbered as in ``docs/certifier.md``:

1. The request is a canonical document.
2. The dataset type is the one that the nonce was drawn for.
3. The ownership proof is valid for this certifier, this nonce and this d.
4. A nonce is good for one request, which comes within 30 days; so is the token of an invitation good for
   30 days.
5. A dataset digest d is certified for one master key.
6. A subject has one master key.
7. to 10. The data fits the certifier's policy (``policy``).
11. The digest of the data that the client shows is d.
12. The file, and what it unpacks to, is not larger than the policy allows.
"""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from anofel.board.state import State
from anofel.board.waits import POSTED
from anofel.disk.files import read_small_file
from anofel.disk.keystore import Unlock
from anofel.disk.sections import canonical_json
from anofel.errors import InvalidInput, InvalidKeyFile
from anofel.ids import GenesisHash
from anofel.learning.certified import dataset_digest
from anofel.light_client.base import BoardClient, OnWait
from anofel.light_client.remote import remote_genesis, remote_key
from anofel.light_client.trust import require_trusted_keys
from anofel.messages import Body, ChainAuthor, Posting, make_posting
from anofel.network.address import BoardAddress
from anofel.network.transport import Transport
from anofel.phase1_setup.step1a_certifier_key import offer_key, revoke_key
from anofel.phase1_setup.step1b_certification import fresh_nonce, issue_certificate, verify_ownership
from anofel.pki.certificates import Purpose, RoleKey, verify_chain
from anofel.primitives import CertifierKey, CertifierSecret
from anofel.proofs.keys import KeyDirectory
from anofel.proofs.statements import OwnershipVerifier
from anofel.roles.certificate_files import (
    ENDINGS,
    CertificateDocument,
    InvitationDocument,
    JoinDocument,
    MalformedDocument,
    NonceDocument,
    RequestDocument,
    ShowingDocument,
)
from anofel.roles.certifier.log import CertificationRefused, CertifierLog, Drawn, Issued
from anofel.roles.certifier.policy import Policy
from anofel.roles.directory import RoleConfig, RoleDirectory, Setting, read_config
from anofel.studies.table import AnyFile

ROLE: Final = "certifier"
LOG: Final = "certifier.sqlite"
OWNERSHIP_KEY: Final = "ownership.verification.key"
MAX_SUBJECT: Final = 200
ADDRESS: Final = "address"
ADDRESS_CA: Final = "address_ca"
"""The settings that say where clients reach the certifier, and by which roots."""
TOKEN_BYTES: Final = 32
_MAX_KEY_BYTES: Final = 1 << 20


def init_certifier(
    path: Path,
    unlock: Unlock,
    *,
    board: str | Sequence[str],
    genesis_hash: GenesisHash,
    role_key: RoleKey,
    keys: KeyDirectory | None,
    policy: Path,
    proxy: str = "",
    ca_file: Path | None = None,
    address: str = "",
    address_ca: Path | None = None,
) -> CertifierKey:
    """Make a certifier's directory with a new signing key, and return its public half.

    ``address`` is where its clients reach it; its invitations carry it. Without ``keys`` the ownership key is
    fetched from the board and checked.
    """
    Policy.load(policy)
    reached: dict[str, Setting] = {}
    if address:
        check_certifier_address(address)
        reached = {ADDRESS: address, ADDRESS_CA: "" if address_ca is None else str(address_ca.absolute())}
    if keys is None:
        transport = Transport(board, proxy or None, ca_file)
        genesis = remote_genesis(transport, genesis_hash)
        require_trusted_keys(genesis)
        ownership = remote_key(transport, genesis, "ownership", "verification")
    else:
        ownership = keys.verification["ownership"].read()
    OwnershipVerifier.from_bytes(ownership, threads=1)
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
        settings={"key": key.to_bytes().hex(), "policy": str(policy.absolute()), **reached},
        secrets={"role-key": role_key.to_secret_bytes(), "certifier-secret": secret.to_secret_bytes()},
        files={OWNERSHIP_KEY: ownership},
    )
    return key


@dataclass(frozen=True)
class CertifierOffice:
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

    def invite_to_join(self, subject: str, dt: int) -> JoinDocument:
        """Make the one file from which somebody whom the certifier knows joins. Raises ``InvalidInput``."""
        address = str(self.config.settings.get(ADDRESS, ""))
        if not address:
            raise InvalidInput(
                "The invitation carries this certifier's address, and none is known: write address = "
                '"https://…" under [settings] in role.toml, or invite with --token-only.'
            )
        check_certifier_address(address)
        schema = canonical_json(self.policy.of(dt).schema.document()).decode()
        roots = [_roots(self.config.ca_file), _roots(str(self.config.settings.get(ADDRESS_CA, "")))]
        return JoinDocument(
            board=self.config.board,
            board_ca=roots[0],
            address=address,
            address_ca=roots[1],
            schema=schema,
            invitation=self.invite(subject, dt).to_bytes(),
        )

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
        self.office = CertifierOffice(directory.path, directory.config, CertifierLog(directory.path / LOG))
        self._role_key = RoleKey.from_secret_bytes(directory.secrets["role-key"].reveal())
        self._secret = CertifierSecret.from_bytes(directory.secrets["certifier-secret"].reveal())
        self._verifier = OwnershipVerifier.from_bytes(self.office.ownership_key(), threads=1)

    @property
    def key(self) -> CertifierKey:
        """The public key."""
        return self._secret.public_key()

    # Step 1.a

    def is_enrolled(self, state: State) -> bool:
        """Whether the board lists the key."""
        found = state.certifiers.get(self.key.to_bytes())
        return found is not None and found.in_force

    def enroll(self, board: BoardClient, *, seconds: float, on_wait: OnWait = lambda _what: None) -> int:
        """Post the key and wait until the board lists it; returns the height. Safe to repeat.

        Raises ``InvalidKeyFile`` if the ownership key here is not the one that clients prove with.
        """
        if self._verifier.key_id != board.genesis.ownership_key:
            raise InvalidKeyFile(
                f"{self.directory.path / OWNERSHIP_KEY} is not the ownership key that the board pins; "
                "make the certifier's directory with the board's keys."
            )
        board.sync()
        if not self.is_enrolled(board.state):
            if self.key.to_bytes() in board.state.certifiers:
                raise CertificationRefused("key-revoked", "The key was revoked, and is never listed again.")
            name = f"certifier-key/{self.key.to_bytes().hex()[:32]}"
            sent = self.directory.outbox.send(board, name, lambda: self._offer(board))
            if sent.answer is not None and sent.answer.refused:
                raise CertificationRefused(sent.answer.refused, sent.answer.detail)
        board.wait_for(
            self.is_enrolled,
            f"the certifier's key to be on the board ({board.lasting(POSTED)})",
            seconds=seconds,
            on_wait=on_wait,
        )
        return board.state.height

    def revoke(self, board: BoardClient, *, seconds: float, on_wait: OnWait = lambda _what: None) -> int:
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
            lambda state: not self.is_enrolled(state),
            f"the revocation to be on the board ({board.lasting(POSTED)})",
            seconds=seconds,
            on_wait=on_wait,
        )
        return board.state.height

    def _offer(self, board: BoardClient) -> Posting:
        role, genesis = self._role_key, board.genesis
        holder = verify_chain(role.chain, genesis.roots, Purpose.CERTIFIER, int(time.time()))
        return self._signed(board, offer_key(self._secret, holder=holder, genesis=genesis.hash))

    def _signed(self, board: BoardClient, body: Body) -> Posting:
        role = self._role_key
        return make_posting(body, ChainAuthor(role.chain), board.genesis.hash, role.sign)

    # Step 1.b

    def examine(self, document: RequestDocument) -> Drawn:
        """Judge a request before its data is seen (1 to 6 and 13); return for whom its nonce was drawn.

        Raises ``MalformedDocument``, ``CertificationRefused``, ``InvalidProof``.
        """
        request, log = document.request(), self.office.log  # (1)
        drawn = log.drawn_for(document.nonce, _name(document), time=int(time.time()))  # (4)
        if drawn.dt != document.dt:  # (2)
            raise CertificationRefused(
                "dataset-type", f"The nonce was drawn for dataset type {drawn.dt}, not {document.dt}."
            )
        most = self.office.policy.of(drawn.dt).max_certificates
        log.find(document.d, document.mpk, document.dt, drawn.subject, most=most)  # (5, 6, 13)
        verify_ownership(request, certifier=self.key, nonce=document.nonce, verifier=self._verifier)  # (3)
        return drawn

    def examine_showing(self, showing: ShowingDocument) -> RequestDocument:
        """Judge what an invited client is about to show, before a byte of it is read (1 to 6, 12 and 13).

        Raises ``MalformedDocument``, ``CertificationRefused``, ``InvalidProof``.
        """
        token_hash = hashlib.sha256(showing.token).digest()
        invited = self.office.log.invited(token_hash, time=int(time.time()))
        document = RequestDocument.from_bytes(showing.request)
        if self.examine(document) != invited:
            raise CertificationRefused(
                "not-invited", "The request's nonce was not drawn for whom this token was given to."
            )
        if showing.ending not in ENDINGS:
            raise MalformedDocument(f"The data must end in {', '.join(ENDINGS)}.")
        self.office.policy.of(document.dt).check_length(showing.length)  # (12)
        return document

    def certify(self, document: RequestDocument, data: AnyFile) -> CertificateDocument:
        """Judge a request and the data behind it, and sign. The same request gives the same certificate.

        Raises ``CertificationRefused``, ``InvalidProof`` and, for rows, ``RowDoesNotFit``.
        """
        drawn, request = self.examine(document), document.request()  # (1 to 6, 13)
        policy = self.office.policy.of(drawn.dt)
        dataset = policy.inspect(data, drawn.subject)  # (7 to 10, 12)
        if dataset_digest(dataset) != request.d:  # (11)
            raise CertificationRefused(
                "not-the-data", "The data that is shown has another digest than the request."
            )
        certificate = issue_certificate(
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
        kept = self.office.log.add(
            issued, nonce=document.nonce, request=_name(document), most=policy.max_certificates
        )
        return self._document(kept)

    def _document(self, issued: Issued) -> CertificateDocument:
        return CertificateDocument(
            genesis=self.directory.config.genesis_hash,
            certifier=issued.certifier,
            d=issued.d,
            mpk=issued.mpk,
            dt=issued.dt,
            certificate=issued.certificate,
        )


def check_certifier_address(url: str) -> None:
    """Refuse an address to which rows would travel in the clear. Raises ``InvalidInput``."""
    found = BoardAddress.parse(url)
    if found.scheme != "https" and found.host not in ("127.0.0.1", "::1", "localhost"):
        raise InvalidInput(f"The certifier's address {url} must begin with https://: rows are shown to it.")


def _roots(path: str) -> str:
    return read_small_file(Path(path)).decode("ascii", "replace") if path else ""


def _name(document: RequestDocument) -> bytes:
    """What the log knows a request by."""
    return hashlib.sha256(document.to_bytes()).digest()
