"""The client of a board that every role uses; it trusts the node for nothing but delivery.

It verifies every block, posting, proof and share itself (``chain.follow``), keeps what it verified on
disk and resumes there. Two histories, or a block that breaks a rule, are evidence where the validators
signed them: it is kept and the client stops. Everything else that is not the board's is
``PeerUnreachable``: whoever stands between us and the node can say it.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final

from anofel import stopping
from anofel.board import snapshot
from anofel.board.attachments import AttachmentMissing
from anofel.board.chain import Chain, InvalidBlock, verify_signed
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.interface import OnBlock
from anofel.board.log import merkle_root
from anofel.board.openings import Openings
from anofel.board.rule import Rejected
from anofel.board.state import State
from anofel.board.tickets import role_ticket
from anofel.board.verification import Verifier
from anofel.board.waits import duration, lasting
from anofel.disk.files import replace_file
from anofel.errors import AnofelError, InvalidInput, InvalidSignature, PeerUnreachable, VerificationError
from anofel.ids import BlobHash, GenesisHash
from anofel.light_client.nodes import ask_some
from anofel.light_client.remote import (
    NotFromBoard,
    Stated,
    another_genesis,
    check_key,
    fetch_blob,
    remote_blocks,
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
from anofel.messages.postings import posting_id
from anofel.network.transport import Refused, Transport, first_refusal
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey, verify_chain
from anofel.proofs.keys import ROLES, STATEMENTS, KeyDirectory, KeyRole, StatementName, key_file_name
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blocks import GENESIS, BlockStore, StoreError
from anofel.storage.replay import replay

SNAPSHOT_BLOCKS = 64
"""A snapshot is kept with the first block that is so far from the last one; farther, if it would not pay."""
JITTER_PERCENT = 20
"""Polls come every interval, more or less by so much."""

_MOVED_BY_TIME: Final = ("committees", "tasks", "bundles", "epoch")
"""The parts of the state that change without a posting, when a deadline passes."""

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


class LightClient:
    """One party's verified view of one board."""

    def __init__(
        self,
        directory: Path,
        transport: Transport,
        *,
        genesis_hash: GenesisHash | None = None,
        tell: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        """Open the view in a directory; the first time ``genesis_hash`` says which board is meant.

        ``tell`` hears of a board that stands still and of clocks that differ.
        """
        self.directory = directory
        self.transport = transport
        self.uploads_as: RoleKey | None = None
        """The role-holder whose tickets go with uploads; a client brings a ticket each time."""
        genesis = self._genesis(genesis_hash)
        require_trusted_keys(genesis)
        self._registration = RegistrationVerifier.from_bytes(
            self._key(genesis, "registration", "verification")
        )
        self._submission = SubmissionVerifier.from_bytes(self._key(genesis, "submission", "verification"))
        self.attachments = DirectoryAttachments(directory / "blobs", self._fetch_blob)
        self.watch = Watch(genesis.interval_ms, tell)
        self._snapshot_at = 0
        self._store = BlockStore(directory, genesis)
        try:
            self.chain = self._load()
        except BaseException:
            self._store.close()
            raise

    @property
    def genesis(self) -> Genesis:
        """The board's genesis."""
        return self._store.genesis

    @property
    def state(self) -> State:
        """The state after the last verified block."""
        return self.chain.state

    @property
    def keys(self) -> CommitteeKeys:
        """The keys of committees."""
        return self.chain.verifier.keys

    @property
    def openings(self) -> Openings:
        """What committees opened."""
        return self.chain.verifier.openings

    def proof_keys(self, say: Callable[[str], None] = lambda _sentence: None) -> KeyDirectory:
        """Return all proof keys of the board; those that are not here are fetched and checked.

        They are always fetched together: when a key is fetched says nothing about what it is needed for.
        Raises ``PeerUnreachable``.
        """
        for name in STATEMENTS:
            for role in ROLES:
                self._key(self.genesis, name, role)
        return KeyDirectory.pinned(self.directory, self.genesis.key_pins, say)

    def close(self) -> None:
        """Keep a snapshot and let go of the directory."""
        if self.state.height:
            self._store.keep_snapshot(self.state.height, snapshot.encode(self.state))
        self._store.close()

    # Reading

    def sync(self, *, on_block: OnBlock | None = None) -> int:
        """Verify and take every new block; return how many there were.

        ``on_block`` is called for each, in their order. Everything it is shown is on disk by then, so what
        it does is never about a block that a crash forgets. ``state`` is that after the block; after a
        block that changed nothing it may be that of a later one that changed nothing either. When this ends
        with an error, blocks that changed nothing may be on disk without having been shown.
        Raises ``BoardMisbehaved``, ``PeerUnreachable``.
        """
        start = self.state.height
        reached = False
        for claim in self._claims():
            self._check_tip(claim)
            try:
                self._catch_up(claim, on_block)
                reached = True
            except PeerUnreachable:  # a height that one node claims and nobody hands out
                if not reached:
                    raise
        self.watch.look(self.state.height, self.state.time)
        return self.state.height - start

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

    def _catch_up(self, claim: Stated, on_block: OnBlock | None) -> None:
        """Take the blocks up to a height that a node claims, from whoever hands them out.

        Raises ``PeerUnreachable`` if nobody does.
        """
        while self.state.height < claim.height:
            missing: PeerUnreachable | None = None
            for node in self.transport.nodes():
                try:
                    self._take(remote_blocks(node, self.state.height + 1, self.watch.waited), on_block, node)
                    break
                except PeerUnreachable as error:
                    missing = error
            else:
                assert missing is not None, "there is a node"
                raise missing

    def _check_tip(self, claim: Stated) -> None:
        """Ask a node that names another last block than ours for the signatures under it."""
        ours = self._store.header(claim.height)
        if not claim.tip or ours is None or ours.hash(self.genesis.hash) == claim.tip:
            return
        with suppress(PeerUnreachable):  # it said so, and nobody signed it
            theirs = remote_signed_header(claim.node, self.genesis, self.state.validators.eras, claim.height)
            if theirs.header.hash(self.genesis.hash) != ours.hash(self.genesis.hash):
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

    def _own_refusal(self, posting: Posting) -> Refused | None:
        """What the rules say to a posting that a block took which began now."""
        fork = self.chain.fork()
        fork.begin(int(time.time()))
        try:
            fork.offer(posting.data)
        except Rejected as error:
            return Refused(error.code, str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        except (AttachmentMissing, PeerUnreachable):  # a blob that is needed to judge is not here
            return None
        return None

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

    # Blocks

    def _take(self, blocks: list[Block], on_block: OnBlock | None, node: Transport) -> None:
        """Verify blocks of a node that follow the last one, keep them, and show them.

        Blocks that change nothing are kept together, in one transaction. Each of the others is kept and
        shown before the next one is looked at. What ends this leaves the blocks before it on disk, and
        the state after the last of them.
        """
        last, held = self._store.header(self.state.height), list[Block]()
        try:
            for block in blocks:
                stopping.check()
                quiet = block.header.previous == self.state.tip and _is_quiet(last, block)
                if not quiet:
                    self._keep(held, on_block)
                self._follow(block, node)
                held.append(block)
                if not quiet:
                    self._keep(held, on_block)
                last = block.header
            self._keep(held, on_block)
        except BaseException:
            try:
                self._store.append_all(held)
            finally:
                if self.state.height != self._store.height:  # half taken, or not on disk
                    self.chain = self._load()
            raise

    def _keep(self, held: list[Block], on_block: OnBlock | None) -> None:
        """Put verified blocks on disk, and only then show them; ``held`` is empty afterwards."""
        if not held:
            return
        kept, height = held.copy(), self.state.height
        held.clear()
        since = height - self._snapshot_at
        due = since >= SNAPSHOT_BLOCKS and snapshot.is_worth(self.state, since)
        self._store.append_all(kept, snapshot.encode(self.state) if due else None)
        self._snapshot_at = height if due else self._snapshot_at
        self.watch.note_block()
        if on_block is not None:
            for block in kept:
                on_block(block)

    def _follow(self, block: Block, node: Transport) -> None:
        """Verify a block and take it. Raises ``BoardMisbehaved`` for what is signed, or unreachable."""
        height, tip = self.state.height + 1, self.state.tip
        if merkle_root(posting_id(data) for data in block.postings) != block.header.postings:
            raise _unsigned(node, height)
        try:
            self.chain.follow(block)
        except InvalidBlock as error:
            if not error.signed or not self._is_signed(block):
                raise _unsigned(node, height) from error
            if block.header.previous != tip and height > 1:
                raise self._fork_before(block) from None
            raise self._caught(f"block-{height}", block.to_bytes(), str(error)) from None

    def _is_signed(self, block: Block) -> bool:
        try:
            verify_signed(self.genesis, self.state.validators.eras, block)
        except InvalidBlock:
            return False
        return True

    def _fork_before(self, block: Block) -> BoardMisbehaved:
        """Find the other block that a signed one names as the one before it, where we have ours.

        If no node hands it out, the block that names it is evidence as well.
        """
        height, theirs = self.state.height, block
        for node in self.transport.nodes():
            with suppress(PeerUnreachable):
                (found, *_) = remote_blocks(node, height)
                is_named = found.header.hash(self.genesis.hash) == block.header.previous
                if is_named and self._is_signed(found):
                    theirs = found
                    break
        return self._forked(height, theirs)

    def _forked(self, height: int, theirs: Block) -> BoardMisbehaved:
        """Keep our block of a height and what contradicts it: both are signed."""
        ours = self._store.block(height)
        if ours is not None:
            self._keep_evidence(f"fork-{height}-ours", ours.to_bytes())
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

    def _load(self) -> Chain:
        verifier = Verifier(self.genesis.hash, self._registration, self._submission, self.attachments)
        kept = self._store.snapshot()
        self._snapshot_at = 0 if kept is None else kept[0]
        return replay(self._store, verifier)

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

    def _key(self, genesis: Genesis, name: StatementName, role: KeyRole) -> bytes:
        """Return a proof key; one that is not here, or was damaged here, is fetched."""
        path = self.directory / key_file_name(name, role)
        if path.exists():
            with suppress(NotFromBoard):
                return check_key(path.read_bytes(), genesis, name, role)
        data = remote_key(self.transport, genesis, name, role)
        replace_file(path, data)
        return data

    def _fetch_blob(self, sha256: BlobHash, path: Path) -> None:
        fetch_blob(self.transport, self.genesis, sha256, path)


def _unsigned(node: Transport, height: int) -> PeerUnreachable:
    return PeerUnreachable(f"{node.name} sent a block {height} that the board's validators did not sign.")


def _is_quiet(last: Header | None, block: Block) -> bool:
    """Whether a block left everything as it was after the last one, but height and time."""
    if last is None or block.postings:
        return False
    return all(getattr(last, name) == getattr(block.header, name) for name in _MOVED_BY_TIME)


def _measure(data: bytes | Path) -> tuple[BlobHash, int]:
    if isinstance(data, bytes):
        return BlobHash(hashlib.sha256(data).digest()), len(data)
    with data.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return BlobHash(digest), data.stat().st_size
