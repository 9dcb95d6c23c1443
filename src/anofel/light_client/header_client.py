"""A client of a large board: it verifies headers, and of the postings those that it draws.

What it takes from a node is checked against headers that validators signed (``anofel.board.outline``):

1. A header follows the last one, and the validators of its height signed it. Under CometBFT the roots in it
   are vouched for by the next one.
2. The names of a block's postings give the root in its header: so the client finds its own.
3. The records (tasks, bundles, committees, certifiers, validators) give the sub-roots of the header.
4. The leaves of the client tree give its size and root. All are fetched, so nobody sees which one matters.
5. Models and committee keys have the hashes that records name.
6. Of the postings in each block some are drawn, fetched and judged (``sample``). No later state counts before
   all that were drawn were handed out and are good.

What is fetched is the same for every client, but for the draw, which is chance alone. It trusts that more
than two thirds of the validators are right about what it did not draw (``docs/light-client.md``).
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

from anofel import stopping
from anofel.board.chain import RULE_VERSION, InvalidBlock, verify_commit
from anofel.board.engines import covers_roots, name_before, name_of
from anofel.board.interface import OnBlock
from anofel.board.log import merkle_root
from anofel.board.outline import PARTS, FalseOutline, clients_of, read_outline, validators_in
from anofel.board.rule import Rejected
from anofel.board.rules import handler_of
from anofel.board.seat import Sitting
from anofel.board.state import State
from anofel.board.validators import Eras
from anofel.errors import PeerUnreachable
from anofel.ids import GenesisHash, PostingId
from anofel.light_client.base import BoardClient, BoardMisbehaved
from anofel.light_client.evidence import PostingEvidence, Vouched
from anofel.light_client.header_store import HeaderStore
from anofel.light_client.nodes import ask_in_turn
from anofel.light_client.remote import (
    NotFromBoard,
    Stated,
    remote_claim,
    remote_leaves,
    remote_names,
    remote_outline,
    remote_posting,
    remote_signed_header,
)
from anofel.light_client.sample import draw, expected_postings, judge
from anofel.messages import Block, Header, Posting
from anofel.network.transport import Refused, Transport
from anofel.primitives import ClientTree, Commitment

LEAF_BYTES: Final = 32


class HeaderClient(BoardClient):
    """A view that verifies headers, and a sample of the postings."""

    def __init__(
        self,
        directory: Path,
        transport: Transport,
        *,
        genesis_hash: GenesisHash | None = None,
        tell: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        """Open the view in a directory; the first time ``genesis_hash`` says which board is meant."""
        super().__init__(directory, transport, genesis_hash, tell)
        self._store = HeaderStore(directory)
        self._eras = Eras.of(self.genesis)
        self._parts: dict[str, bytes] = {}
        self._trees: dict[int, ClientTree] = {}
        self._drawn: dict[int, list[int]] = {}
        """What was drawn of blocks that do not count yet. It stays drawn until it was handed out."""
        self.checked = 0
        """How many postings were drawn and judged since this was opened."""
        try:
            self._state = self._load()
        except BaseException:
            self._store.close()
            raise

    @property
    def state(self) -> State:
        """The state after the last block whose roots are vouched for, as far as headers tell it."""
        return self._state

    def close(self) -> None:
        """Let go of the directory."""
        self._store.close()

    @property
    def _validators(self) -> Eras:
        return self._eras

    counts_posts = False
    """No digest covers the number of submissions."""

    def forget(self) -> None:
        """Delete what is kept, of a view that is closed and not gone on with."""
        self._store.delete()

    def holds(self, name: PostingId) -> bool | None:
        """Whether a block since the oldest open iteration holds a posting."""
        return self._store.holds(name, self._state.height)

    def _header(self, height: int) -> Header | None:
        block = self._store.block(height)
        return None if block is None else block.header

    def _signed(self, height: int) -> Block | None:
        return self._store.block(height)

    def _own_refusal(self, posting: Posting) -> Refused | None:
        """By the rules about the state, as far as it is known here."""
        now = self._state.fork()
        now.height += 1
        try:
            author = self.verifier.authenticate(now, posting)
            handler_of(posting.body).check(now, posting.body, author)
        except Rejected as error:
            return Refused(error.code, str(error), HTTPStatus.UNPROCESSABLE_ENTITY)
        return None

    # Reading

    def sync(self, *, on_block: OnBlock | None = None) -> int:
        """Verify and take every new header, then the state after the last of them that is vouched for.

        ``on_block`` is called once, with the last block, whose postings are named only.
        Raises ``BoardMisbehaved``, ``PeerUnreachable``.
        """
        start, reached = self._state.height, False
        for claim in self._claims():
            self._check_tip(claim)
            try:
                self._follow_to(claim)
                reached = True
            except PeerUnreachable:
                if not reached:
                    raise
        target = self._vouched_height()
        if target > self._state.height:
            self._arrive(target)
            block = self._store.block(target)
            if on_block is not None and block is not None:
                on_block(block)
        self.watch.look(self._state.height, self._state.time)
        return self._state.height - start

    def _vouched_height(self) -> int:
        """The last height whose roots are vouched for."""
        last = self._store.last
        if last is None:
            return 0
        return last.header.height if covers_roots(self.genesis) else last.header.height - 1

    # Headers (1, 2)

    def _follow_to(self, claim: Stated) -> None:
        """Take the headers up to a height that a node claims, from whoever hands them out."""
        if self._store.last is None and claim.height:
            self._begin(claim)
        while self._last_height < claim.height:
            ask_in_turn(self.transport, self._take_from)

    def _take_from(self, node: Transport) -> None:
        """Take the next headers from a node. Raises ``PeerUnreachable``."""
        self._take(remote_names(node, self._last_height + 1), node)

    @property
    def _last_height(self) -> int:
        last = self._store.last
        return 0 if last is None else last.header.height

    def _begin(self, claim: Stated) -> None:
        """Begin near the newest block: its validators follow from those of genesis, and its past from them.

        Under CometBFT one before the newest, since the newest is vouched for by the next.
        """
        height = claim.height if covers_roots(self.genesis) else max(1, claim.height - 1)

        def begin_with(node: Transport) -> None:
            self._trust_validators(node)
            (block, *_) = remote_names(node, height)
            self._check_header(block, None, node)
            self._store.keep_headers([block])

        ask_in_turn(self.transport, begin_with)

    def _take(self, blocks: Sequence[Block], node: Transport) -> None:
        """Verify headers of a node that follow the last one, and keep them."""
        last, held = self._store.last, list[Block]()
        try:
            for block in blocks:
                stopping.check()
                self._check_header(block, last, node)
                held.append(block)
                last = block
        finally:
            self._store.keep_headers(held)
        if held:
            self.watch.note_block()

    def _check_header(self, block: Block, last: Block | None, node: Transport) -> None:
        """Raises ``PeerUnreachable`` for what nobody signed, ``BoardMisbehaved`` for what they signed."""
        header = block.header
        refused = PeerUnreachable(f"{node.name} sent a header {header.height} that does not count.")
        if merkle_root(block.postings) != header.postings or header.rules != RULE_VERSION:
            raise refused
        self._check_signed(block, node)
        if last is None:
            return
        if header.height != last.header.height + 1 or header.time < last.header.time:
            raise refused
        if header.previous != last.header.hash(self.genesis.hash):
            if name_before(block) != name_of(self.genesis, self._eras, last):
                raise self._forked(last.header.height, block)
            self._store.drop_last()  # its roots were the word of a node; what it is now comes again
            raise refused

    def _check_signed(self, block: Block, node: Transport) -> None:
        """Check the signatures under a header by the validators that are known, or that they announce."""
        try:
            verify_commit(self.genesis, self._eras, block)
        except InvalidBlock as error:
            self._trust_validators(node)
            try:
                verify_commit(self.genesis, self._eras, block)
            except InvalidBlock:
                raise PeerUnreachable(
                    f"{node.name} sent a header {block.header.height} that does not count. {error}"
                ) from None

    def _trust_validators(self, node: Transport) -> None:
        """Learn of changed validators: each change is announced by a block that those before it signed."""
        if covers_roots(self.genesis):
            return
        try:
            height = remote_claim(node).height
            named = remote_outline(node, height, 0, lambda parts: validators_in(parts).eras)
        except PeerUnreachable:
            return
        known = self._eras.eras
        if named.eras[: len(known)] != known:
            return
        begun = [era for era in named.eras[len(known) :] if era.since <= height]
        made = [remote_signed_header(node, self.genesis, named, era.since - 1) for era in begun]
        self._store.keep_boundaries(made)
        self._eras = Eras((*known, *begun))

    # State (3, 4, 6)

    def _arrive(self, height: int) -> None:
        """Take the state after a block, once the postings that were drawn up to there are judged."""
        header = self._store.kept(height).header
        parts, state, leaves = self._fetch_state(header)
        if self._state.height:
            self._check_drawn(self._state, state, parts)
        # By the state before: of an iteration that is over now, somebody may still look for its own posting.
        live = [sitting.iteration for sitting in Sitting.live(self._state)]
        oldest = min([height, *(iteration.opened_at for iteration in live)])
        self._store.keep_outline(height, parts, leaves, oldest=oldest)
        self._parts, self._state, self._trees = parts, state, state.client_trees.copy()
        self._eras = max(self._eras, state.validators.eras, key=lambda eras: len(eras.eras))
        self._prune(state)

    def _prune(self, state: State) -> None:
        needed = {state.epoch} | {s.iteration.epoch for s in Sitting.live(state) if s.is_open}
        for epoch in self._trees.keys() - needed:
            del self._trees[epoch]
            state.client_trees.pop(epoch, None)
        self._store.drop_epochs(needed)

    def _fetch_state(self, header: Header) -> tuple[dict[str, bytes], State, list[tuple[int, int, bytes]]]:
        """Fetch what changed of the outline, and the new leaves."""

        def read(changed: Mapping[str, bytes]) -> tuple[dict[str, bytes], State, int, bytes]:
            parts = {name: changed.get(name, self._parts.get(name, b"")) for name in PARTS}
            size, root = clients_of(header, parts)
            state = read_outline(self.genesis, header, parts, self._trees)
            if any(a != b for a, b in zip(state.validators.eras, self._eras, strict=False)):
                raise NotFromBoard("The outline names other validators than those who signed.")
            return parts, state, size, root

        parts, state, size, root = remote_outline(self.transport, header.height, self._state.height, read)
        known = len(self._trees.get(header.epoch, ClientTree()))
        tree, data = ask_in_turn(self.transport, lambda node: self._grown(node, header, size, root))
        state.client_trees[header.epoch] = tree
        return parts, state, [(header.epoch, known, data)] if data else []

    def _grown(self, node: Transport, header: Header, size: int, root: bytes) -> tuple[ClientTree, bytes]:
        """Fetch all new leaves of the client tree from one node."""
        tree = self._trees.get(header.epoch, ClientTree()).fork()
        data, known = b"", len(tree)
        while (first := known + len(data) // LEAF_BYTES) < size:
            data += remote_leaves(node, header.epoch, first, size - first)
        try:
            tree.append(_commitments(data))
        except ValueError:
            tree = ClientTree()
        if len(tree) != size or tree.root().to_bytes() != root:
            raise PeerUnreachable(
                f"{node.name} sent other leaves than those of the client tree of block {header.height}."
            )
        return tree, data

    def _check_drawn(self, before: State, after: State, parts: Mapping[str, bytes]) -> None:
        """Draw postings of the blocks between two states, and judge them. Raises ``BoardMisbehaved``."""
        expected = max(expected_postings(before), expected_postings(after))
        for height in range(before.height + 1, after.height + 1):
            block = self._store.kept(height)
            number = len(block.postings)
            if height not in self._drawn:
                self._drawn[height] = draw(number, max(expected, number))
            for place in self._drawn[height]:
                stopping.check()
                data = remote_posting(self.transport, height, place, PostingId(block.postings[place]))
                rejected = judge(self.verifier, before, after, block.header, data)
                self.checked += 1
                if rejected is not None:
                    raise self._breach(block, place, data, rejected, before, parts, after)
        for height in [height for height in self._drawn if height <= after.height]:
            del self._drawn[height]

    def _breach(
        self,
        block: Block,
        place: int,
        data: bytes,
        rejected: Rejected,
        before: State,
        parts: Mapping[str, bytes],
        after: State,
    ) -> BoardMisbehaved:
        height = block.header.height
        evidence = PostingEvidence(
            block=self._vouched(height),
            place=place,
            posting=data,
            before=self._vouched(before.height),
            before_parts=dict(self._parts),
            after=self._vouched(after.height),
            after_parts=dict(parts),
            boundaries=[self._boundary(era.since - 1) for era in after.validators.eras if era.since],
        )
        return self._caught(
            f"posting-{height}-{place}",
            evidence.to_bytes(),
            f"Posting {place} of block {height} breaks a rule, and the validators signed it: {rejected}",
        )

    def _vouched(self, height: int) -> Vouched:
        block, following = self._store.kept(height), self._store.block(height + 1)
        follows = None if covers_roots(self.genesis) or following is None else following.to_bytes()
        return Vouched(block.to_bytes(), follows)

    def _boundary(self, height: int) -> bytes:
        block = self._store.block(height)
        return b"" if block is None else block.to_bytes()

    # Opening

    def _load(self) -> State:
        """Go on where the last run stopped; what is kept is checked again as if a node had sent it."""
        height = self._store.height
        block = self._store.block(height)
        if block is None:
            return State.at_genesis(self.genesis)
        parts = self._store.parts()
        trees = {}
        for epoch, data in self._store.leaves().items():
            trees[epoch] = ClientTree()
            trees[epoch].append(_commitments(data))
        try:
            state = read_outline(self.genesis, block.header, parts, trees)
            size, root = clients_of(block.header, parts)
        except FalseOutline as error:
            raise self._store.damaged(str(error)) from None
        if (len(state.clients), state.clients.root().to_bytes()) != (size, root):
            raise self._store.damaged("Its leaves are not those of its headers.")
        self._parts, self._trees, self._eras = parts, trees, state.validators.eras
        return state


def _commitments(data: bytes) -> list[Commitment]:
    """Read leaves. Raises ``ValueError``."""
    return [Commitment.from_bytes(data[at : at + LEAF_BYTES]) for at in range(0, len(data), LEAF_BYTES)]
