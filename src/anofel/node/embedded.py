"""The embedded node: one process that fills, signs and keeps the blocks of a board (``docs/node.md``).

Everything here runs in one thread, the worker; ``service`` brings the clock and the requests to it.
The order of writing makes a crash at any moment harmless:

1. A posting's blobs are pinned, then the posting is written as pending, then noted as accepted (``signed``),
   then its author gets an answer.
2. A block is sealed in memory and signed; one transaction moves its postings from pending into it.
3. Its height and hash are noted as signed. Only then is the block shown to anybody, and blobs whose time is
   over are removed.

A start checks that nothing is missing that was noted, notes what the database holds beyond that, takes the
last snapshot, verifies the blocks after it and admits the pending postings again.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.genesis import check_genesis
from anofel.board.rule import Rejected
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.errors import AnofelError
from anofel.ids import PostingId
from anofel.messages import Block, Header, Posting, Vote
from anofel.messages.postings import posting_id
from anofel.node.board_node import AcceptedPosting, BoardNode
from anofel.node.files import NodeFiles, read_node
from anofel.node.metrics import Metrics
from anofel.node.outlines import Outlines
from anofel.node.signed import (
    SIGNED,
    HistoryLost,
    Promised,
    SignedFile,
    SignedLost,
    check_before_opening,
    promised_by,
)
from anofel.node.transient import is_transient
from anofel.node.wall_clock import WallClock
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.serving.rare_log import RareLog
from anofel.storage.blobs import retention
from anofel.storage.blobs.files import StoredAttachments
from anofel.storage.blocks import BlockStore, StoreError
from anofel.storage.replay import replay

log = logging.getLogger("anofel.node")


class Unverifiable(AnofelError):
    """The node could not verify a posting, through no fault of the posting's; nothing was accepted."""

    code = "not-verifiable-now"


Admitted = AcceptedPosting | Rejected | Unverifiable


class EmbeddedNode(BoardNode):
    """The board of one directory."""

    def __init__(
        self,
        directory: Path,
        *,
        on_replay: Callable[[int, int], None] | None = None,
        today: date | None = None,
        last_signed: int | None = None,
    ) -> None:
        """Open a node's directory and arrive at its newest state.

        ``today``: the date as the operator knows it, to go on over a gap in time. ``last_signed``: the newest
        block that anybody has, to go on without ``signed.bin``.
        Raises ``StoreError``, ``BlobError``, ``InvalidInput``, ``TimeGap``: one sentence each.
        """
        self._clock, self._rare = WallClock(), RareLog(log)
        self.files: NodeFiles = read_node(directory)
        self.genesis, self.config = self.files.genesis, self.files.config
        check_genesis(self.genesis)
        self.metrics, self.outlines = Metrics(), Outlines()
        check_before_opening(directory)
        self.store = BlockStore(directory, self.genesis)
        try:
            self._signed = self._open_signed(directory / SIGNED, last_signed)
            try:
                self.blobs = self.open_blobs(self.files)
            except BaseException:
                self._signed.close()
                raise
        except BaseException:
            self.store.close()
            raise
        self._attachments = StoredAttachments(self.blobs.files)
        try:
            self._verifier = Verifier(
                self.genesis.hash,
                RegistrationVerifier.from_bytes(self.files.keys["registration"]),
                SubmissionVerifier.from_bytes(self.files.keys["submission"]),
                self._attachments,
            )
            self._clock.check_start(self._last_time(), self.genesis.interval_ms, directory, today)
            self._restore(on_replay)
        except BaseException:
            self.abandon()
            raise

    @property
    def state(self) -> State:
        """The state of the block that is being filled."""
        return self.chain.state

    @property
    def height(self) -> int:
        """The last block; 0 before the first."""
        return self.state.height - 1

    # Start and stop

    def _open_signed(self, path: Path, last_signed: int | None) -> SignedFile:
        """Compare the database with what was promised, and promise all of it. Raises ``StoreError``."""
        try:
            signed = SignedFile(path)
        except SignedLost as error:
            last = self.store.height
            if last_signed is None:
                raise SignedLost(
                    f"{error} If block {last} is the newest block of this board that anybody has, start once "
                    f"with --last-signed {last}; if there is a newer one, bring its board.sqlite first."
                ) from None
            if last_signed != last:
                raise HistoryLost(
                    f"The blocks in {self.store.directory} end at {last}, not at {last_signed}."
                ) from None
            return SignedFile.make(path, promised_by(self.store))
        try:
            signed.check(self.store)
            # A crash between the database and the note leaves the note behind, and the next one adds to it.
            signed.write(promised_by(self.store))
        except BaseException:
            signed.close()
            raise
        return signed

    def _last_time(self) -> int:
        """Return the time of the block that waits to be filled, of the last block or of genesis."""
        header, waiting = self.store.header(self.store.height), self.store.pending_time()
        return max(header.time if header else self.genesis.time, waiting or 0)

    def _restore(self, on_replay: Callable[[int, int], None] | None = None) -> None:
        """Arrive at what the disk says: the last block, and the pending postings after it."""
        self.chain = self._replay(on_replay)
        self._postings: list[bytes] = []
        last = self.store.header(self.state.height)
        if last is not None:
            self.outlines.note(self.state, last)
        pending, then = self.store.pending(), self.store.pending_time()
        self.chain.begin(self._clock.now() if then is None else then)
        for data, result in zip(pending, self.chain.offer_many(pending), strict=True):
            if isinstance(result, Rejected):
                raise StoreError(
                    f"{self.files.directory} is damaged: a posting that was accepted is now refused. {result}"
                )
            self._postings.append(data)
        self._keep(retention.kept_by_exclusion(self.state))

    def recover(self) -> None:
        """Go back to what the disk says, after something failed half-way. Raises ``AnofelError``."""
        self._restore()
        self._signed.check(self.store)
        self._signed.write(promised_by(self.store))

    def _replay(self, on_replay: Callable[[int, int], None] | None = None) -> Chain:
        """Return the chain after the last block, and count what no snapshot holds yet."""
        self._since_snapshot = self._blocks_since_snapshot = 0
        last, done = self.store.height, 0

        def count(block: Block) -> None:
            nonlocal done
            done += 1
            self._since_snapshot += len(block.postings)
            self._blocks_since_snapshot += 1
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
        self._signed.close()
        self.store.close()

    # Postings

    def admit(self, offered: Sequence[bytes]) -> list[Admitted]:
        """Admit postings in their order and keep the accepted ones durably before this returns.

        Raises ``StoreError`` or ``BlobError`` if the disk refuses; the node must then stop.
        """
        names = [posting_id(data) for data in offered]
        fresh: dict[PostingId, bytes] = {}
        verdicts: dict[PostingId, Admitted] = {}
        for name, data in zip(names, offered, strict=True):
            height = self.store.height_of(name)
            if height is None:
                fresh[name] = data
            else:
                verdicts[name] = AcceptedPosting(name, height, again=True)
        if fresh:
            verdicts |= dict(zip(fresh, self._admit_fresh(list(fresh.values())), strict=True))
        return [verdicts[name] for name in names]

    def _admit_fresh(self, offered: list[bytes]) -> list[Admitted]:
        try:
            results = self.chain.offer_many(offered)
        except Exception as error:  # the state may be ahead of the disk: go back to the disk
            if is_transient(error):
                raise
            kind = type(error).__name__
            self._rare.warn(kind, f"{len(offered)} postings could not be verified: {kind}: {error}")
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
        self._signed.write(self._signed.promised.accept(posting.id for posting in accepted))
        self._postings += [posting.data for posting in accepted]

    def _verdict(self, result: Posting | Rejected) -> Admitted:
        if isinstance(result, Rejected):
            self.metrics.rejected(result.code)
            return result
        self.metrics.accepted(type(result.body).__name__, len(result.data))
        return AcceptedPosting(result.id, self.state.height, again=False)

    # Blocks

    def seal(self) -> Header:
        """End the block, sign it, keep it and begin the next one.

        Raises ``AnofelError`` if that is impossible; the node must then stop.
        """
        now = self._clock.now()  # a clock that jumped ends the node before there is a block
        header = self.chain.seal()
        signature = self.files.validator.sign(header.vote_bytes(self.genesis.hash))
        commit = (Vote(validator=0, signature=signature),)
        block = Block(header=header, commit=commit, postings=tuple(self._postings))
        self._keep(retention.kept_by_exclusion(self.state))
        self._since_snapshot += len(self._postings)
        self._blocks_since_snapshot += 1
        wanted = (
            header.height % self.config.snapshot_blocks == 0
            or self._since_snapshot >= self.config.snapshot_postings
        )
        due = wanted and snapshot.is_worth(self.state, self._since_snapshot + self._blocks_since_snapshot)
        self.store.append(block, snapshot.encode(self.state) if due else None)
        self._signed.write(Promised(header.height, self.state.tip))
        if due:
            self._since_snapshot = self._blocks_since_snapshot = 0
        self._postings = []
        self.outlines.note(self.state, header)
        self.chain.begin(now)
        self.blobs.prune(self.state.height)
        return header
