"""The client of a board that every role uses; it trusts the node for nothing but delivery.

It verifies every block, posting, proof and share itself (``chain.follow``), keeps what it verified on
disk and resumes there. Two histories, or a block that breaks a rule, are evidence where the validators
signed them: it is kept and the client stops. Everything else that is not the board's is
``PeerUnreachable``: whoever stands between us and the node can say it.
"""

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
from anofel.board.engines import name_before, name_of
from anofel.board.interface import OnBlock
from anofel.board.log import merkle_root
from anofel.board.rule import Rejected
from anofel.board.state import State
from anofel.errors import PeerUnreachable
from anofel.ids import GenesisHash
from anofel.light_client.base import BoardClient, BoardMisbehaved, OnWait, WaitedTooLong
from anofel.light_client.nodes import ask_in_turn
from anofel.light_client.remote import Stated, remote_blocks
from anofel.messages import Block, Header, Posting
from anofel.messages.postings import posting_id
from anofel.network.transport import Refused, Transport
from anofel.storage.blocks import BlockStore
from anofel.storage.replay import replay

__all__ = ["BoardMisbehaved", "LightClient", "OnWait", "WaitedTooLong"]

SNAPSHOT_BLOCKS = 64
"""A snapshot is kept with the first block that is so far from the last one; farther, if it would not pay."""
_MOVED_BY_TIME: Final = ("committees", "tasks", "bundles", "epoch")
"""The parts of the state that change without a posting, when a deadline passes."""


class LightClient(BoardClient):
    """A view that verifies every posting of everybody."""

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
        super().__init__(directory, transport, genesis_hash, tell)
        self._snapshot_at = 0
        self._store = BlockStore(directory, self.genesis)
        try:
            self.chain = self._load()
        except BaseException:
            self._store.close()
            raise

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

    def _catch_up(self, claim: Stated, on_block: OnBlock | None) -> None:
        """Take the blocks up to a height that a node claims, from whoever hands them out.

        Raises ``PeerUnreachable`` if nobody does.
        """
        while self.state.height < claim.height:
            ask_in_turn(self.transport, lambda node: self._take_from(node, on_block))

    def _take_from(self, node: Transport, on_block: OnBlock | None) -> None:
        """Take the next blocks from a node. Raises ``PeerUnreachable``."""
        self._take(remote_blocks(node, self.state.height + 1, self.watch.waited), on_block, node)

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
            if block.header.previous != tip and height > 1 and self._contradicts(block):
                raise self._fork_before(block) from None
            raise self._caught(f"block-{height}", block.to_bytes(), str(error)) from None

    def _contradicts(self, block: Block) -> bool:
        """Whether a signed block names another one before it than ours; it may only name another state."""
        ours = self._store.block(self.state.height)
        assert ours is not None, "it was followed"
        return name_before(block) != name_of(self.genesis, self.state.validators.eras, ours)

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
                if not self._is_signed(found):
                    continue
                if name_of(self.genesis, self.state.validators.eras, found) == name_before(block):
                    theirs = found
                    break
        return self._forked(height, theirs)

    def _load(self) -> Chain:
        kept = self._store.snapshot()
        self._snapshot_at = 0 if kept is None else kept[0]
        return replay(self._store, self.verifier)

    def _header(self, height: int) -> Header | None:
        return self._store.header(height)

    def _signed(self, height: int) -> Block | None:
        return self._store.block(height)


def _unsigned(node: Transport, height: int) -> PeerUnreachable:
    return PeerUnreachable(f"{node.name} sent a block {height} that the board's validators did not sign.")


def _is_quiet(last: Header | None, block: Block) -> bool:
    """Whether a block left everything as it was after the last one, but height and time."""
    if last is None or block.postings:
        return False
    return all(getattr(last, name) == getattr(block.header, name) for name in _MOVED_BY_TIME)
