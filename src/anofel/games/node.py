"""The node of a game: a board in this process, with the clock and the eyes of whoever operates it.

A posting reaches the board at its time within a block, so their order is that of their times. Parties see the
board through ``PartyBoard``, as through a light client: state after the last sealed block, which one chain
follows for all of them, and every question or message to the node is a ``Request``.
"""

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from anofel.board.chain import Chain
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.interface import OnBlock
from anofel.board.openings import Openings
from anofel.board.rule import Rejected
from anofel.board.state import State
from anofel.board.waits import lasting
from anofel.errors import PeerUnreachable
from anofel.games.sight import Request, SeenPost
from anofel.ids import BlobHash
from anofel.messages import Blob, Block, Genesis, Posting, Submission
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard

STATUS_BYTES: Final = 256
"""What an answer to a question for the height takes, about; its size is the same for all."""
Outage = Callable[[Request], bool]
"""Whether a message is lost on its way, so that its sender gets no answer."""


class Node:
    """Takes requests, fills blocks, and writes down what it saw."""

    def __init__(self, board: LocalBoard) -> None:
        self.board = board
        self.followed = Chain(State.at_genesis(board.genesis), board.chain.verifier)
        """What every honest party has verified."""
        self.blocks: list[Block] = []
        self.requests: list[Request] = []
        self.posts: list[SeenPost] = []
        self.refused: list[str] = []
        self.outage: Outage = lambda _request: False
        self._waiting: list[tuple[float, int, Posting, bytes]] = []
        self._offered = 0

    @property
    def height(self) -> int:
        """The last sealed block."""
        return self.followed.state.height

    def note(self, request: Request) -> None:
        """Write a request down. Raises ``PeerUnreachable`` if it is lost on its way."""
        self.requests.append(request)
        if self.outage(request):
            raise PeerUnreachable("The node does not answer.")

    def take(self, time: float, posting: Posting, beside: bytes = b"") -> None:
        """Take a posting that arrives at a time."""
        self._offered += 1
        heapq.heappush(self._waiting, (time, self._offered, posting, beside))

    def next_block(self) -> Block:
        """Admit what arrived before the end of this block, seal it, and let everybody follow it."""
        place = 0
        while self._waiting and self._waiting[0][0] < self.height + 1:
            time, _, posting, beside = heapq.heappop(self._waiting)
            try:
                self.board.post(posting)
            except Rejected as error:
                self.refused.append(error.rule.code)
                continue
            if isinstance(posting.body, Submission):
                self.posts.append(SeenPost(posting, self.height + 1, place, time, beside))
            place += 1
        block = self.board.next_block()
        self.followed.fill_again(block.header, block.postings)
        self.blocks.append(block)
        return block


class _NoTrouble:
    trouble = None


class PartyBoard:
    """The board as one party sees it: what ``LightClient`` is to a role, without HTTP between them."""

    watch = _NoTrouble()

    def __init__(self, node: Node, keys: KeyDirectory, source: str = "") -> None:
        """``source``: the address of a party that uses no proxy."""
        self.node, self._keys, self.source = node, keys, source
        self.now = 0.0
        """This party's clock, in blocks."""
        self.sent: list[bytes] = []
        """The postings of this iteration, by their ids; for the winning conditions alone."""
        self.overhead = 0
        """Bytes that a weakened client adds to every message."""
        self.beside: Callable[[Posting], bytes] = lambda _posting: b""
        """What a weakened client writes beside its submissions."""
        self.is_cut = False
        """Whether the line of this party is cut, so that nothing of it reaches the node."""
        self._shown = 0
        self._read: dict[BlobHash, bytes] = {}

    # Reading

    @property
    def genesis(self) -> Genesis:
        """How the board began."""
        return self.node.board.genesis

    @property
    def state(self) -> State:
        """The state after the last verified block."""
        return self.node.followed.state

    @property
    def keys(self) -> CommitteeKeys:
        """The keys of committees."""
        return self.node.board.keys

    @property
    def openings(self) -> Openings:
        """What committees opened."""
        return self.node.board.openings

    @property
    def attachments(self) -> "PartyBoard":
        """The blobs that postings name."""
        return self

    def read(self, sha256: BlobHash) -> bytes:
        """Fetch a blob, once."""
        if sha256 not in self._read:
            data = self.node.board.attachments.read(sha256)
            self.ask("GET", f"/v1/blobs/{sha256.hex()}", received=len(data))
            self._read[sha256] = data
        return self._read[sha256]

    def proof_keys(self, _say: Any = None) -> KeyDirectory:
        """Return the proof keys of the board, loaded once for all parties."""
        return self._keys

    def sync(self, *, on_block: OnBlock | None = None) -> int:
        """Take every new block."""
        self.ask("GET", "/v1/status", received=STATUS_BYTES)
        new = self.node.blocks[self._shown :]
        if new:
            self.ask("GET", "/v1/blocks", received=sum(len(block.to_bytes()) for block in new))
        self._shown += len(new)
        if on_block is not None:
            for block in new:
                on_block(block)
        return len(new)

    def holds(self, _posting: bytes) -> bool | None:
        """Whether a posting is on the board: the state says it, as to whoever follows whole blocks."""
        return None

    def poll_seconds(self) -> float:
        """The oracle polls for its parties, once in a block."""
        return 0.0

    def lasting(self, blocks: int) -> str:
        """Say how long a wait can be."""
        return lasting(blocks, self.genesis.interval_ms)

    # Writing

    def upload(self, data: bytes | Path, *, ticket: bytes = b"") -> Blob:
        """Store a blob; its ticket goes with it."""
        content = data if isinstance(data, bytes) else data.read_bytes()
        stored = self.node.board.upload(content)
        self.ask(
            "PUT",
            f"/v1/blobs/{stored.sha256.hex()}",
            sent=len(content) + len(ticket),
            received=len(stored.to_bytes()),
        )
        return stored

    def post(self, posting: Posting) -> None:
        """Post."""
        self.ask("POST", "/v1/postings", sent=len(posting.data), received=STATUS_BYTES)
        self.sent.append(posting.id)
        is_submission = isinstance(posting.body, Submission)
        self.node.take(self.now, posting, self.beside(posting) if is_submission else b"")

    def ask(self, method: str, path: str, *, sent: int = 0, received: int = 0) -> None:
        """Send a message to the node. Raises ``PeerUnreachable``."""
        if self.is_cut:
            raise PeerUnreachable("The line is cut.")
        self.node.note(Request(self.now, method, path, sent + self.overhead, received, self.source))
