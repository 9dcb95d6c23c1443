"""The client of a board that every role uses; it trusts the node for nothing but delivery.

It verifies every block, posting, proof and share itself (``chain.follow``), keeps what it verified on
disk and resumes there. A node that shows two histories, or a shorter one than before, is caught:
the evidence is kept and the client stops.
"""

import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from anofel import stopping
from anofel.board import snapshot
from anofel.board.attachments import DirectoryAttachments
from anofel.board.chain import Chain, InvalidBlock, verify_commit
from anofel.board.framing import unframe
from anofel.board.remote import MAX_SYNC_BYTES, fetch_blob, remote_height
from anofel.board.replay import replay
from anofel.board.state import State
from anofel.board.store import GENESIS, BlockStore, StoreError
from anofel.board.verification import Verifier
from anofel.certificates import Purpose, verify_chain
from anofel.errors import AnofelError, InvalidInput, InvalidSignature, MalformedMessage, VerificationError
from anofel.files import replace_file
from anofel.messages import Blob, Block, Genesis, Posting, Receipt, receipt_bytes
from anofel.proofs import RegistrationVerifier, SubmissionVerifier
from anofel.transport import Transport

SNAPSHOT_BLOCKS = 64
JITTER_PERCENT = 20
"""Polls come every interval, more or less by so much."""

OnWait = Callable[[str], None]


class BoardMisbehaved(VerificationError):
    """The node showed something that cannot belong to an honest board; the evidence is kept."""

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

    def __init__(self, directory: Path, transport: Transport, *, genesis_hash: bytes | None = None) -> None:
        """Open the view in a directory; the first time ``genesis_hash`` says which board is meant."""
        self.directory = directory
        self.transport = transport
        genesis = self._genesis(genesis_hash)
        keys = {name: self._key(name, pinned) for name, pinned in _pinned(genesis).items()}
        self._registration = RegistrationVerifier.from_bytes(keys["registration"])
        self._submission = SubmissionVerifier.from_bytes(keys["submission"])
        self._identities = [
            verify_chain(chain, genesis.roots, Purpose.STORAGE, genesis.time) for chain in genesis.holders
        ]
        self.attachments = DirectoryAttachments(directory / "blobs", self._fetch_blob)
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

    def close(self) -> None:
        """Keep a snapshot and let go of the directory."""
        if self.state.height:
            self._store.keep_snapshot(self.state.height, snapshot.encode(self.state))
        self._store.close()

    # Reading

    def sync(self, *, on_block: Callable[[Block], None] | None = None) -> int:
        """Verify and take every new block; return how many there were. Raises ``BoardMisbehaved``."""
        taken, theirs = 0, self._their_height()
        while self.state.height < theirs:
            data = self.transport.get(
                f"/v1/blocks?from={self.state.height + 1}&limit=256", max_bytes=MAX_SYNC_BYTES
            )
            blocks = self._parse(data)
            if not blocks:
                break
            for block in blocks:
                stopping.check()
                self._take(block)
                taken += 1
                if on_block is not None:
                    on_block(block)
        return taken

    def wait_for(
        self,
        condition: Callable[[State], bool],
        what: str,
        *,
        seconds: float,
        on_wait: OnWait = lambda _what: None,
    ) -> None:
        """Poll until the condition holds. Raises ``WaitedTooLong``; says what it waits for."""
        deadline = time.monotonic() + seconds
        self.sync()
        while not condition(self.state):
            if time.monotonic() >= deadline:
                raise WaitedTooLong(f"Waited {seconds:.0f} seconds for {what} in vain.")
            on_wait(what)
            stopping.pause(min(self.poll_seconds(), max(0.0, deadline - time.monotonic())))
            self.sync()

    def poll_seconds(self) -> float:
        """Draw the time until the next poll: the block interval, jittered, the same for everybody."""
        percent = 100 - JITTER_PERCENT + secrets.randbelow(2 * JITTER_PERCENT + 1)
        return self.genesis.interval_ms / 1000 * percent / 100

    # Writing

    def post(self, posting: Posting) -> None:
        """Post; a retry sends the same bytes. Raises ``Refused`` with the code of the rule."""
        self.transport.post("/v1/postings", posting.data)

    def upload(self, data: bytes | Path) -> Blob:
        """Store a blob and return it with its receipt, which is verified."""
        sha256, length = _measure(data)
        answer = self.transport.put_stream(f"/v1/blobs/{sha256.hex()}", data)
        receipt = Receipt.from_bytes(answer)
        signed = receipt_bytes(self.genesis.hash, sha256, length, receipt.expires)
        if receipt.holder >= len(self._identities):
            raise VerificationError("The receipt names a storage holder that genesis does not know.")
        try:
            self._identities[receipt.holder].verify(signed, receipt.signature)
        except InvalidSignature as error:
            raise VerificationError(f"The receipt for a stored blob is not valid: {error}") from None
        return Blob(sha256=sha256, length=length, receipts=(receipt,))

    # Blocks

    def _parse(self, data: bytes) -> list[Block]:
        try:
            return unframe(data)
        except MalformedMessage as error:
            raise self._caught("malformed", data, f"The node sent a malformed block: {error}") from None

    def _take(self, block: Block) -> None:
        height = self.state.height + 1
        if block.header.height == height and block.header.previous != self.state.tip:
            self._check_fork(block)
        try:
            self.chain.follow(block)
            self._store.append(block, snapshot.encode(self.state) if height % SNAPSHOT_BLOCKS == 0 else None)
        except InvalidBlock as error:
            self.chain = self._load()
            raise self._caught(f"block-{height}", block.to_bytes(), str(error)) from None
        except BaseException:  # no blob, or a signal: the block is half taken, and nobody lied
            self.chain = self._load()
            raise

    def _check_fork(self, block: Block) -> None:
        """Two signed blocks of one height are proof of a fork; both are kept."""
        height = self.state.height
        data = self.transport.get(f"/v1/blocks?from={height}&limit=1", max_bytes=MAX_SYNC_BYTES)
        theirs = self._parse(data)
        if theirs and theirs[0].header.hash(self.genesis.hash) == block.header.previous:
            try:
                verify_commit(self.genesis, theirs[0].header, theirs[0].commit)
            except InvalidBlock:
                return
            ours = self._store.block(height)
            if ours is not None:
                self._keep_evidence(f"fork-{height}-ours", ours.to_bytes())
            raise self._caught(
                f"fork-{height}-theirs",
                theirs[0].to_bytes(),
                f"The board forked: its validators signed two different blocks {height}.",
            )

    def _their_height(self) -> int:
        """Ask how many blocks the node has. Raises ``BoardMisbehaved`` if they are fewer than before."""
        theirs = remote_height(self.transport)
        if theirs < self.state.height:
            raise self._caught(
                f"shorter-{self.state.height}",
                f"height {theirs}".encode(),
                f"The board was at block {self.state.height} and now shows {theirs} blocks: "
                "its history was cut or rewritten.",
            )
        return theirs

    def _caught(self, name: str, evidence: bytes, message: str) -> BoardMisbehaved:
        return BoardMisbehaved(message, self._keep_evidence(name, evidence))

    def _keep_evidence(self, name: str, evidence: bytes) -> Path:
        directory = self.directory / "evidence"
        directory.mkdir(exist_ok=True)
        replace_file(directory / name, evidence)
        return directory

    def _load(self) -> Chain:
        verifier = Verifier(self.genesis.hash, self._registration, self._submission, self.attachments)
        return replay(self._store, verifier)

    # Genesis, keys, blobs

    def _genesis(self, genesis_hash: bytes | None) -> Genesis:
        path = self.directory / GENESIS
        if path.exists():
            genesis = Genesis.from_bytes(path.read_bytes())
        elif genesis_hash is None:
            raise InvalidInput("Say which board is meant: give its genesis file or the hash of its genesis.")
        else:
            genesis = Genesis.from_bytes(self.transport.get("/v1/genesis"))
        if genesis_hash is not None and genesis.hash != genesis_hash:
            raise StoreError(
                f"The board has the genesis {genesis.hash.hex()[:16]}…, not {genesis_hash.hex()[:16]}…."
            )
        if not path.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            replace_file(path, genesis.to_bytes())
        return genesis

    def _key(self, name: str, pinned: bytes) -> bytes:
        path = self.directory / f"{name}.verification.key"
        data = path.read_bytes() if path.exists() else self.transport.get(f"/v1/keys/{name}")
        if hashlib.sha256(data).digest() != pinned:
            raise VerificationError(f"The {name} key is not the one that genesis pins.")
        if not path.exists():
            replace_file(path, data)
        return data

    def _fetch_blob(self, sha256: bytes, path: Path) -> None:
        fetch_blob(self.transport, self.genesis, sha256, path)


def _pinned(genesis: Genesis) -> dict[str, bytes]:
    return {"registration": genesis.registration_key, "submission": genesis.submission_key}


def _measure(data: bytes | Path) -> tuple[bytes, int]:
    if isinstance(data, bytes):
        return hashlib.sha256(data).digest(), len(data)
    with data.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return digest, data.stat().st_size
