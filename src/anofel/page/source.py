"""Where a page reads its board: a node shows its own, ``anofel look`` one that it follows or has on disk."""

from dataclasses import dataclass
from typing import Protocol

from anofel.ids import GenesisHash, PostingId
from anofel.messages import Block, Posting
from anofel.page.facts import BoardFacts
from anofel.page.postings import PostingFacts, posting_facts

MAX_LISTED = 100
"""Blocks in one list."""
MAX_POSTINGS = 300
"""Postings of a block in a list."""
MAX_KEPT = 1024
"""Blocks that stay read."""


class PageSource(Protocol):
    """A board to be shown. What it says holds for one block; nobody waits for the next one here."""

    live: bool
    """Whether blocks still come."""
    own: bool
    """Whether a node shows its own board; otherwise the page is made where it is read."""
    trouble: str
    """Why no blocks come any more, if that is known."""

    @property
    def onion(self) -> str:
        """Where the board is reached through Tor; empty if nobody says."""
        ...

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
    num_postings: int
    postings: tuple[ListedPosting, ...]
    """The first of them, a few hundred at most."""


_SUMMARIES: dict[tuple[GenesisHash, int], BlockSummary] = {}


def summary(source: PageSource, block: Block) -> BlockSummary:
    """Say what is in a block."""
    postings = [Posting.from_bytes(data) for data in block.postings[:MAX_POSTINGS]]
    return BlockSummary(
        height=block.header.height,
        hash=block.header.hash(source.genesis_hash).hex(),
        time=block.header.time,
        num_postings=len(block.postings),
        postings=tuple(
            ListedPosting(id=one.id.hex(), kind=type(one.body).__name__, num_bytes=len(one.data))
            for one in postings
        ),
    )


def summaries(source: PageSource, before: int, limit: int) -> list[BlockSummary]:
    """Return the blocks below a height, newest first."""
    heights = range(before - 1, max(0, before - 1 - limit), -1)
    return [one for one in (summary_at(source, height) for height in heights) if one is not None]


def summary_at(source: PageSource, height: int) -> BlockSummary | None:
    """Read a block for a list, once: it never changes, and lists overlap."""
    name = source.genesis_hash, height
    found = _SUMMARIES.get(name)
    if found is None and (block := source.block(height)) is not None:
        while len(_SUMMARIES) >= MAX_KEPT:
            _SUMMARIES.pop(next(iter(_SUMMARIES)), None)
        found = _SUMMARIES[name] = summary(source, block)
    return found


def find_posting(source: PageSource, posting_id: PostingId) -> PostingFacts | None:
    """Return a posting of a block by its name."""
    where = source.place_of(posting_id)
    block = source.block(where[0]) if where else None
    if where is None or block is None:
        return None
    height, place = where
    return posting_facts(Posting.from_bytes(block.postings[place]), height, place)
