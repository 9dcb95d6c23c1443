"""The outlines of the last blocks, for clients in header mode, and the leaves of the client trees.

They are written down while the state rests after a block, since it moves on before anybody asks. Threads
share them. Everybody gets the same bytes for the same block.
"""

import threading
from collections import OrderedDict
from typing import Final

import msgspec

from anofel.board.outline import PARTS, part_of
from anofel.board.state import State
from anofel.errors import AnofelError
from anofel.messages import Header

KEPT_BLOCKS: Final = 256
"""For so long an outline is handed out: a client that read a header asks for what is under it soon."""
LEAF_BYTES: Final = 32


class OutlineUnknown(AnofelError):
    """The outline of a block is not here, or not any more."""

    code = "outline-unknown"


class Outlines:
    """What every client of a large board fetches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[int, dict[str, bytes]] = OrderedDict()
        self._roots: dict[int, dict[str, bytes]] = {}
        self._leaves: dict[int, bytearray] = {}

    def note(self, state: State, header: Header) -> None:
        """Write down the state after a block."""
        found = {name: getattr(header, name) for name in PARTS}
        last = next(reversed(self._parts), None)
        before = {} if last is None else self._roots[last]
        parts = {
            name: self._parts[last][name]
            if last is not None and before[name] == root and last < header.height
            else part_of(state, name)
            for name, root in found.items()
        }
        fresh = {
            epoch: tree.leaf_bytes(len(self._leaves.get(epoch, b"")) // LEAF_BYTES)
            for epoch, tree in state.client_trees.items()
        }
        with self._lock:
            self._parts[header.height], self._roots[header.height] = parts, found
            while len(self._parts) > KEPT_BLOCKS:
                del self._roots[self._parts.popitem(last=False)[0]]
            for epoch in self._leaves.keys() - fresh.keys():
                del self._leaves[epoch]
            for epoch, leaves in fresh.items():
                self._leaves.setdefault(epoch, bytearray()).extend(leaves)

    def outline(self, height: int, known: Header | None) -> bytes:
        """Return the outline of a block, without the parts that a known header has the same root for.

        Raises ``OutlineUnknown``.
        """
        with self._lock:
            if height not in self._parts:
                raise OutlineUnknown(f"The outline of block {height} is not here.")
            parts, found = self._parts[height], self._roots[height]
        changed = {
            name: part for name, part in parts.items() if known is None or getattr(known, name) != found[name]
        }
        return msgspec.msgpack.encode(changed)

    def leaves(self, epoch: int, first: int, limit: int) -> bytes:
        """Return leaves of a client tree from a place on. Raises ``OutlineUnknown``."""
        with self._lock:
            if epoch not in self._leaves:
                raise OutlineUnknown(f"The client tree of epoch {epoch} is not here any more.")
            return bytes(self._leaves[epoch][first * LEAF_BYTES : (first + limit) * LEAF_BYTES])
