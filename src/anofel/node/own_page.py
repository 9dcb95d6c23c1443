"""What a node's page reads: the node itself.

The worker gathers the facts, once for each block, however many look: a viewer costs the node a template.
"""

import asyncio

from anofel.board.state import State
from anofel.ids import GenesisHash, PostingId
from anofel.messages import Block
from anofel.node.board_service import BoardService
from anofel.page.facts import BoardFacts, Tip, board_facts


class OwnPage:
    """The board of a running node (``PageSource``)."""

    live, own, trouble = True, True, ""

    def __init__(self, service: BoardService) -> None:
        self._service = service
        self._facts: BoardFacts | None = None
        self._turn = asyncio.Lock()

    @property
    def onion(self) -> str:
        """Where the board is reached through Tor."""
        return self._service.node.config.onion

    @property
    def genesis_hash(self) -> GenesisHash:
        """Which board it is."""
        return self._service.node.genesis.hash

    @property
    def height(self) -> int:
        """The last block."""
        return self._service.tip.height

    async def facts(self) -> BoardFacts:
        """Say what the board looks like after its last block."""
        async with self._turn:
            if self._facts is None or self._facts.height != self.height:
                self._facts = await self._service.read(self._gather)
            return self._facts

    def _gather(self, state: State) -> BoardFacts:
        tip = self._service.tip
        return board_facts(
            state,
            Tip(height=tip.height, hash=tip.hash.hex(), time=tip.time),
            self._service.node.metrics.refusals,
        )

    def block(self, height: int) -> Block | None:
        """Return a block."""
        return self._service.reader.block(height)

    def place_of(self, posting_id: PostingId) -> tuple[int, int] | None:
        """Return height and place of a posting in a block."""
        return self._service.reader.place_of(posting_id)
