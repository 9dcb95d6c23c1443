"""What every client of a board has, however it follows it: genesis, keys, blobs, posting, waiting, evidence.

Of several nodes none is believed alone. A message goes to one that is drawn for it; a height and a posting go
to f + 1, so that an honest one is among them.
"""

import hashlib
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anofel import stopping
from anofel.board.attachments import AttachmentMissing
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.engines import name_of
from anofel.board.interface import OnBlock
from anofel.board.openings import Openings
from anofel.board.state import State
from anofel.board.tickets import role_ticket
from anofel.board.validators import Eras
from anofel.board.verification import Verifier
from anofel.board.waits import duration, lasting
from anofel.disk.files import replace_file
from anofel.errors import AnofelError, InvalidInput, InvalidSignature, PeerUnreachable, VerificationError
from anofel.ids import BlobHash, GenesisHash, PostingId
from anofel.light_client.evidence import ChangedValidators
from anofel.light_client.nodes import ask_some
from anofel.light_client.remote import (
    NotFromBoard,
    Stated,
    another_genesis,
    check_key,
    fetch_blob,
    remote_claim,
    remote_genesis,
    remote_key,
    remote_signed_header,
    send_blob,
    send_posting,
)
from anofel.light_client.trust import require_trusted_keys
from anofel.light_client.watch import Watch
from anofel.messages import Blob, Block, Genesis, Header, Posting, Receipt, receipt_bytes
from anofel.network.transport import Refused, Transport, first_refusal
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey, verify_chain
from anofel.proofs.keys import ROLES, STATEMENTS, KeyDirectory, KeyRole, StatementName, key_file_name
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import GENESIS, StoreError

JITTER_PERCENT = 20
"""Polls come every interval, more or less by so much."""

OnWait = Callable[[str], None]


class BoardMisbehaved(VerificationError):
    """The validators signed something that cannot belong to an honest board; the evidence is kept."""

    code = "board-misbehaved"

    def __init__(self, message: str, evidence: Path) -> None:
        super().__init__(f"{message} The evidence is in {evidence}.")
        self.evidence = evidence


class WaitedTooLong(AnofelError):
    """What was waited for did not happen in time."""

    code = "waited-too-long"
    exit_code = 3


class BoardClient(ABC):
    """One party's verified view of one board."""

    def __init__(
        self,
        directory: Path,
        transport: Transport,
        genesis_hash: GenesisHash | None,
        tell: Callable[[str], None],
    ) -> None:
        """Open the view in a directory; the first time ``genesis_hash`` says which board is meant.

        ``tell`` hears of a board that stands still and of clocks that differ.
        """
        self.directory = directory
        self.transport = transport
        self.uploads_as: RoleKey | None = None
        """The role-holder whose tickets go with uploads; a client brings a ticket each time."""
        self.genesis = self._genesis(genesis_hash)
        """The board's genesis."""
        require_trusted_keys(self.genesis)
        self.attachments = DirectoryAttachments(directory / "blobs", self._fetch_blob)
        self.verifier = Verifier(
            self.genesis.hash,
            RegistrationVerifier.from_bytes(self._key("registration", "verification")),
            SubmissionVerifier.from_bytes(self._key("submission", "verification")),
            self.attachments,
        )
        self.watch = Watch(self.genesis.interval_ms, tell)

    @property
    @abstractmethod
    def state(self) -> State:
        """The state after the last verified block."""

    @abstractmethod
    def sync(self, *, on_block: OnBlock | None = None) -> int:
        """Verify and take every new block; return how many there were."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the directory."""

    @property
    def keys(self) -> CommitteeKeys:
        """The keys of committees."""
        return self.verifier.keys

    @property
    def openings(self) -> Openings:
        """What committees opened."""
        return self.verifier.openings

    @abstractmethod
    def _header(self, height: int) -> Header | None:
        """A verified header; None if it is not here."""

    @abstractmethod
    def _signed(self, height: int) -> Block | None:
        """What is kept of a block, with what vouches for it."""

    @abstractmethod
    def _own_refusal(self, posting: Posting) -> Refused | None:
        """What the rules say to a posting, as far as the board is known here."""

    @property
    def _validators(self) -> Eras:
        """The validators as far as they are known here."""
        return self.state.validators.eras

    counts_posts = True
    """Whether the state says how many submissions an open iteration has."""

    def holds(self, name: PostingId) -> bool | None:  # noqa: ARG002 - others ask
        """Whether a recent block holds a posting; None where the state itself says what was posted."""
        return None

    def proof_keys(self, say: Callable[[str], None] = lambda _sentence: None) -> KeyDirectory:
        """Return all proof keys of the board; those that are not here are fetched and checked.

        They are always fetched together: when a key is fetched says nothing about what it is needed for.
        Raises ``PeerUnreachable``.
        """
        for name in STATEMENTS:
            for role in ROLES:
                self._key(name, role)
        return KeyDirectory.pinned(self.directory, self.genesis.key_pins, say)

    # Where the board stands

    @property
    def faulty(self) -> int:
        """f: how many of the nodes may lie."""
        return self.state.validators.eras.at(self.state.height).faulty

    def _claims(self) -> list[Stated]:
        """Ask f + 1 different nodes where the board stands; of several, one that lags is passed over."""
        least = self.state.height if len(self.transport.addresses) == 1 else 0
        found = ask_some(
            self.transport, lambda node: remote_claim(node, least), self.faulty + 1, first_refusal
        )
        return sorted(found, key=lambda claim: claim.height)

    def _check_tip(self, claim: Stated) -> None:
        """Ask a node that names another last block than ours for the signatures under it."""
        ours = self._header(claim.height)
        if not claim.tip or ours is None or ours.hash(self.genesis.hash) == claim.tip:
            return
        with suppress(PeerUnreachable):  # it said so, and nobody signed it
            eras = self._validators
            theirs = remote_signed_header(claim.node, self.genesis, eras, claim.height)
            kept = self._signed(claim.height)
            assert kept is not None, "its header is here"
            if name_of(self.genesis, eras, theirs) != name_of(self.genesis, eras, kept):
                raise self._forked(claim.height, theirs)

    def wait_for(
        self,
        condition: Callable[[State], bool],
        what: str,
        *,
        seconds: float,
        on_wait: OnWait = lambda _what: None,
    ) -> None:
        """Poll until the condition holds; a board that is away is waited for as well.

        Says what it waits for and when it gives up, once in a row. Raises ``WaitedTooLong``, or what was
        missing of the board at the end.
        """
        deadline, said = time.monotonic() + seconds, ""
        while True:
            waits_for: str = what
            missing: AnofelError | None = None
            try:
                self.sync()
                if condition(self.state):
                    return
            except (PeerUnreachable, AttachmentMissing) as error:
                waits_for, missing = f"the board: {error}", error
            if waits_for != said:
                said = waits_for
                on_wait(f"Waiting for {waits_for}; given up after {duration(seconds)}.")
            if time.monotonic() >= deadline:
                raise missing or WaitedTooLong(f"Waited {seconds:.0f} seconds for {what} in vain.")
            stopping.pause(min(self.poll_seconds(), max(0.0, deadline - time.monotonic())))

    def lasting(self, blocks: int) -> str:
        """Say how long a wait of this board can be. It does not count down: what is said stays the same."""
        return lasting(blocks, self.genesis.interval_ms)

    def poll_seconds(self) -> float:
        """Draw the time until the next poll: the block interval, jittered, the same for everybody."""
        percent = 100 - JITTER_PERCENT + secrets.randbelow(2 * JITTER_PERCENT + 1)
        return self.genesis.interval_ms / 1000 * percent / 100

    # Writing

    def post(self, posting: Posting) -> None:
        """Post to f + 1 nodes; a retry sends the same bytes.

        Raises ``Refused`` with the code of a rule where the rules say so on this client's own copy of the
        board, or more than f nodes.
        """

        def believe(refusal: Refused, nodes: int) -> Refused | None:
            return refusal if nodes > self.faulty else self._own_refusal(posting)

        send_posting(self.transport, posting, self.faulty + 1, believe)

    def upload(self, data: bytes | Path, *, ticket: bytes = b"") -> Blob:
        """Store a blob and return it with receipts of a quorum of holders; each is verified.

        A role-holder's ticket is made here; a client brings that of its submission.
        """
        sha256, length = _measure(data)
        if not ticket and self.uploads_as is not None:
            ticket = role_ticket(self.uploads_as, self.genesis.hash, sha256, length)

        def read(answer: bytes) -> Blob:
            blob = Blob.from_bytes(answer)
            if (blob.sha256, blob.length) != (sha256, length):
                raise NotFromBoard("The node stored another blob.")
            for receipt in blob.receipts:
                self._check_receipt(blob, receipt)
            quorum = self.state.validators.quorum_at(self.state.height + 1)
            if len({receipt.holder for receipt in blob.receipts}) < quorum:
                raise NotFromBoard(f"The node brought receipts of fewer than {quorum} holders.")
            return blob

        def believe(refusal: Refused, nodes: int) -> Refused | None:
            return refusal if nodes > self.faulty else None

        return send_blob(self.transport, sha256, data, read, believe, ticket)

    def _check_receipt(self, blob: Blob, receipt: Receipt) -> None:
        signed = receipt_bytes(self.genesis.hash, blob.sha256, blob.length, receipt.expires)
        state, refusal = self.state, "the board has no storage holder of this number."
        for chain in state.validators.holders_at(state.height + 1, receipt.holder):
            try:
                holder = verify_chain(chain, self.genesis.roots, Purpose.STORAGE, state.time)
                holder.verify(signed, receipt.signature)
                return
            except (CertificateRefused, InvalidSignature) as error:
                refusal = str(error)
        raise NotFromBoard(f"The receipt for a stored blob is not valid: {refusal}")

    # Evidence

    def _forked(self, height: int, theirs: Block) -> BoardMisbehaved:
        """Keep our block of a height and what contradicts it: both are signed.

        By whom, if validators came after genesis, is kept with them.
        """
        ours = self._signed(height)
        if ours is not None:
            self._keep_evidence(f"fork-{height}-ours", ours.to_bytes())
        changes = [era.since for era in self._validators if era.since]
        if changes:
            announcing = (self._signed(since - 1) for since in changes)
            boundaries = [block.to_bytes() for block in announcing if block is not None]
            shown = ChangedValidators(eras=self._validators, boundaries=boundaries)
            self._keep_evidence(f"fork-{height}-validators", shown.to_bytes())
        return self._caught(
            f"fork-{height}-theirs",
            theirs.to_bytes(),
            f"The board forked: its validators signed two different blocks {height}.",
        )

    def _caught(self, name: str, evidence: bytes, message: str) -> BoardMisbehaved:
        return BoardMisbehaved(message, self._keep_evidence(name, evidence))

    def _keep_evidence(self, name: str, evidence: bytes) -> Path:
        directory = self.directory / "evidence"
        directory.mkdir(exist_ok=True)
        replace_file(directory / name, evidence)
        return directory

    # Genesis, keys, blobs

    def _genesis(self, genesis_hash: GenesisHash | None) -> Genesis:
        path = self.directory / GENESIS
        if path.exists():
            genesis = Genesis.from_bytes(path.read_bytes())
            if genesis_hash not in (None, genesis.hash):
                raise StoreError(f"{self.directory}: {another_genesis(genesis, genesis_hash)}")
            return genesis
        if genesis_hash is None:
            raise InvalidInput("Say which board is meant: give its genesis file or the hash of its genesis.")

        genesis = remote_genesis(self.transport, genesis_hash)
        self.directory.mkdir(parents=True, exist_ok=True)
        replace_file(path, genesis.to_bytes())
        return genesis

    def _key(self, name: StatementName, role: KeyRole) -> bytes:
        """Return a proof key; one that is not here, or was damaged here, is fetched."""
        path = self.directory / key_file_name(name, role)
        if path.exists():
            with suppress(NotFromBoard):
                return check_key(path.read_bytes(), self.genesis, name, role)
        data = remote_key(self.transport, self.genesis, name, role)
        replace_file(path, data)
        return data

    def _fetch_blob(self, sha256: BlobHash, path: Path) -> None:
        fetch_blob(self.transport, self.genesis, sha256, path)


def _measure(data: bytes | Path) -> tuple[BlobHash, int]:
    if isinstance(data, bytes):
        return BlobHash(hashlib.sha256(data).digest()), len(data)
    with data.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return BlobHash(digest), data.stat().st_size
