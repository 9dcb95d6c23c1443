"""A board as its parties see it, wherever it runs: a light client of a node, or a board in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from anofel.board.attachments import Attachments
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.openings import Openings
from anofel.board.state import State
from anofel.messages import Blob, Block, Genesis, Posting

OnBlock = Callable[[Block], None]


class BoardView(Protocol):
    """What can be read of a board: everything here was verified by the reader."""

    @property
    def genesis(self) -> Genesis:
        """How the board began."""
        ...

    @property
    def state(self) -> State:
        """The state after the last block that was taken."""
        ...

    @property
    def attachments(self) -> Attachments:
        """The blobs that postings name."""
        ...

    @property
    def keys(self) -> CommitteeKeys:
        """The keys of committees."""
        ...

    @property
    def openings(self) -> Openings:
        """What committees opened."""
        ...


class Holder(Protocol):
    """Where blobs of a board are stored."""

    @property
    def genesis(self) -> Genesis:
        """How the board began."""
        ...

    def upload(self, data: bytes | Path, *, ticket: bytes = b"") -> Blob:
        """Store a blob and return it with its receipt; a ticket gets it a reserved place."""
        ...


class Board(BoardView, Holder, Protocol):
    """A board that one can post on."""

    def post(self, posting: Posting) -> object:
        """Post; a retry sends the same bytes."""
        ...

    def sync(self, *, on_block: OnBlock | None = None) -> int:
        """Take every new block and show it; return how many there were."""
        ...
