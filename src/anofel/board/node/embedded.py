"""The embedded node: one process that fills, signs and keeps the blocks of a board (DESIGN §6).

Everything here runs in one thread, the worker; ``service`` brings the clock and the requests to it.
The order of writing makes a crash at any moment harmless:

1. A posting's blobs are pinned, then the posting is written as pending, then its author gets an answer.
2. A block is sealed in memory and signed; one transaction moves its postings from pending into it.
3. Only then is the block shown to anybody, and blobs whose time is over are removed.

A start takes the last snapshot, verifies the blocks after it and admits the pending postings again.
"""

import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anofel.board import snapshot
from anofel.board.attachments import DirectoryAttachments
from anofel.board.blobs import retention
from anofel.board.blobs.errors import BlobStoreFull
from anofel.board.blobs.store import BlobStore
from anofel.board.blobs.streams import Upload
from anofel.board.chain import Chain
from anofel.board.genesis import check_genesis
from anofel.board.node.files import BLOBS, NodeFiles, read_node
from anofel.board.node.metrics import Metrics
from anofel.board.replay import replay
from anofel.board.rule import Rejected
from anofel.board.state import State
from anofel.board.store import BlockStore, StoreError
from anofel.board.verification import Verifier
from anofel.errors import AnofelError
from anofel.messages import Block, Header, Posting, Receipt, Vote, receipt_bytes
from anofel.messages.postings import posting_id
from anofel.proofs import RegistrationVerifier, SubmissionVerifier

log = logging.getLogger("anofel.node")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to an accepted posting; the same when it is sent again."""

    posting_id: bytes
    height: int
    again: bool
    """Whether the posting had been accepted before."""


class Unverifiable(AnofelError):
    """The node could not verify a posting, through no fault of the posting's; nothing was accepted."""

    code = "not-verifiable-now"


Verdict = Accepted | Rejected | Unverifiable


class EmbeddedNode:
    """The board of one directory."""

    def __init__(self, directory: Path, *, on_replay: Callable[[int, int], None] | None = None) -> None:
        """Open a node's directory and arrive at its newest state.

        Raises ``StoreError``, ``BlobError``, ``InvalidInput``: one sentence each.
        """
        self.files: NodeFiles = read_node(directory)
        self.genesis, self.config = self.files.genesis, self.files.config
        check_genesis(self.genesis)
        self.metrics = Metrics()
        self.store = BlockStore(directory, self.genesis)
        try:
            config = self.config
            self.blobs = BlobStore(directory / BLOBS, config.max_blob_bytes, config.max_pending_bytes)
        except BaseException:
            self.store.close()
            raise
        try:
            self._verifier = Verifier(
                self.genesis.hash,
                RegistrationVerifier.from_bytes(self.files.keys["registration"]),
                SubmissionVerifier.from_bytes(self.files.keys["submission"]),
                DirectoryAttachments(directory / BLOBS),
            )
            self._restore(on_replay)
        except BaseException:
            self.abandon()
            raise

    @property
    def state(self) -> State:
        """The state of the block that is being filled."""
        return self.chain.state

    # Start and stop

    def _restore(self, on_replay: Callable[[int, int], None] | None = None) -> None:
        """Arrive at what the disk says: the last block, and the pending postings after it."""
        self.chain = self._replay(on_replay)
        self._postings: list[bytes] = []
        pending, then = self.store.pending(), self.store.pending_time()
        self.chain.begin(int(time.time()) if then is None else then)
        for data, result in zip(pending, self.chain.offer_many(pending), strict=True):
            if isinstance(result, Rejected):
                raise StoreError(
                    f"{self.files.directory} is damaged: a posting that was accepted is now refused. {result}"
                )
            self._postings.append(data)
        self._keep(retention.kept_by_exclusion(self.state))

    def _replay(self, on_replay: Callable[[int, int], None] | None = None) -> Chain:
        """Return the chain after the last block, and count what no snapshot holds yet."""
        last, self._since_snapshot, done = self.store.height, 0, 0

        def count(block: Block) -> None:
            nonlocal done
            done += 1
            self._since_snapshot += len(block.postings)
            if on_replay is not None:
                on_replay(done, done + last - block.header.height)

        return replay(self.store, self._verifier, count)

    def close(self) -> None:
        """Stop in good order: keep a snapshot, so that the next start has nothing to replay."""
        try:
            kept = self.store.snapshot()
            if (kept[0] if kept else 0) < self.store.height:
                state = self._replay().state
                self.store.keep_snapshot(state.height, snapshot.encode(state))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the directory as it is; the next start recovers."""
        self.blobs.close()
        self.store.close()

    # Postings

    def admit(self, offered: Sequence[bytes]) -> list[Verdict]:
        """Admit postings in their order and keep the accepted ones durably before this returns.

        Raises ``StoreError`` or ``BlobError`` if the disk refuses; the node must then stop.
        """
        names = [posting_id(data) for data in offered]
        fresh: dict[bytes, bytes] = {}
        verdicts: dict[bytes, Verdict] = {}
        for name, data in zip(names, offered, strict=True):
            height = self.store.height_of(name)
            if height is None:
                fresh[name] = data
            else:
                verdicts[name] = Accepted(name, height, again=True)
        if fresh:
            verdicts |= dict(zip(fresh, self._admit_fresh(list(fresh.values())), strict=True))
        return [verdicts[name] for name in names]

    def _admit_fresh(self, offered: list[bytes]) -> list[Verdict]:
        try:
            results = self.chain.offer_many(offered)
        except Exception as error:  # the state may be ahead of the disk: go back to the disk
            log.exception("A batch of %d postings could not be verified.", len(offered))
            self._restore()
            if len(offered) == 1:
                return [Unverifiable(f"The posting could not be verified now ({type(error).__name__}).")]
            return [self._admit_fresh([data])[0] for data in offered]
        accepted = [result for result in results if isinstance(result, Posting)]
        if accepted:
            self._commit(accepted)
        return [self._verdict(result) for result in results]

    def _commit(self, accepted: list[Posting]) -> None:
        state = self.state
        self._keep([blob for posting in accepted for blob in retention.kept_by(state, posting.body)])
        self.store.add_pending(accepted, state.time)
        self._postings += [posting.data for posting in accepted]

    def _verdict(self, result: Posting | Rejected) -> Verdict:
        if isinstance(result, Rejected):
            self.metrics.rejected(result.code)
            return result
        self.metrics.accepted(type(result.body).__name__, len(result.data))
        return Accepted(result.id, self.state.height, again=False)

    def _keep(self, kept: Sequence[retention.Kept]) -> None:
        self.blobs.pin_all((blob.sha256, blob.until) for blob in kept)

    # Blocks

    def seal(self) -> Header:
        """End the block, sign it, keep it and begin the next one.

        Raises ``AnofelError`` if that is impossible; the node must then stop.
        """
        header = self.chain.seal()
        signature = self.files.validator.sign(header.vote_bytes(self.genesis.hash))
        commit = (Vote(validator=0, signature=signature),)
        block = Block(header=header, commit=commit, postings=tuple(self._postings))
        self._keep(retention.kept_by_exclusion(self.state))
        self._since_snapshot += len(self._postings)
        due = (
            header.height % self.config.snapshot_blocks == 0
            or self._since_snapshot >= self.config.snapshot_postings
        )
        self.store.append(block, snapshot.encode(self.state) if due else None)
        self._since_snapshot = 0 if due else self._since_snapshot
        self._postings = []
        self.chain.begin(int(time.time()))
        self.blobs.prune(self.state.height)
        return header

    # Blobs

    @property
    def max_blob_bytes(self) -> int:
        """The longest blob that a posting can name."""
        limits = self.genesis.limits
        return max(limits.max_key_bytes, limits.max_model_bytes)

    def begin_upload(self, sha256: bytes, length: int, expires: int) -> Upload:
        """Start an upload. Raises ``BlobError`` before any byte is taken."""
        free = shutil.disk_usage(self.blobs.directory).free - self.blobs.usage().uploading
        if free - length < self.config.min_free_bytes:
            raise BlobStoreFull(f"The disk of {self.blobs.directory} is nearly full.")
        return self.blobs.begin(sha256, length, expires=expires)

    def receipt(self, sha256: bytes, length: int, expires: int) -> Receipt:
        """Sign the promise to keep a blob that is on the disk up to a height."""
        signed = receipt_bytes(self.genesis.hash, sha256, length, expires)
        return Receipt(holder=0, expires=expires, signature=self.files.storage.sign(signed))
