"""Where a page reads its board: a node shows its own, ``anofel look`` one that it follows or has on disk."""

from dataclasses import dataclass
from typing import Protocol

from anofel.ids import GenesisHash, PostingId
from anofel.messages import Block, Posting
from anofel.page.facts import BoardFacts
from anofel.page.postings import PostingFacts, posting_facts

MAX_LISTED = 100
"""Blocks in one list."""


class PageSource(Protocol):
    """A board to be shown. What it says holds for one block; nobody waits for the next one here."""

    live: bool
    """Whether blocks still come."""

    @property
    def genesis_hash(self) -> GenesisHash:
        """Which board it is."""
        ...

    @property
    def height(self) -> int:
        """The last block."""
        ...

    async def facts(self) -> BoardFacts:
        """Say what the board looks like after its last block."""
        ...

    def block(self, height: int) -> Block | None:
        """Return a block. Any thread may ask."""
        ...

    def place_of(self, posting_id: PostingId) -> tuple[int, int] | None:
        """Return height and place of a posting in a block. Any thread may ask."""
        ...


@dataclass(frozen=True, kw_only=True)
class ListedPosting:
    """A posting in the list of its block."""

    id: str
    kind: str
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class BlockSummary:
    """A block in a list."""

    height: int
    hash: str
    time: int
    postings: tuple[ListedPosting, ...]


def summary(source: PageSource, block: Block) -> BlockSummary:
    """Say what is in a block."""
    postings = [Posting.from_bytes(data) for data in block.postings]
    return BlockSummary(
        height=block.header.height,
        hash=block.header.hash(source.genesis_hash).hex(),
        time=block.header.time,
        postings=tuple(
            ListedPosting(id=one.id.hex(), kind=type(one.body).__name__, num_bytes=len(one.data))
            for one in postings
        ),
    )


def summaries(source: PageSource, before: int, limit: int) -> list[BlockSummary]:
    """Return the blocks below a height, newest first."""
    found = []
    for height in range(before - 1, max(0, before - 1 - limit), -1):
        block = source.block(height)
        if block is not None:
            found.append(summary(source, block))
    return found


def find_posting(source: PageSource, posting_id: PostingId) -> PostingFacts | None:
    """Return a posting of a block by its name."""
    where = source.place_of(posting_id)
    block = source.block(where[0]) if where else None
    if where is None or block is None:
        return None
    height, place = where
    return posting_facts(Posting.from_bytes(block.postings[place]), height, place)
