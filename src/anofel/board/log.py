"""Hashes over growing lists: Merkle trees (RFC 6962) and a plain chain."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

EMPTY = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    """Hash a leaf."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash an inner node."""
    return hashlib.sha256(b"\1" + left + right).digest()


@dataclass(slots=True)
class MerkleLog:
    """The root of an append-only list, in memory that grows with the logarithm of its size."""

    size: int = 0
    peaks: list[bytes] = field(default_factory=list)
    """Roots of the full subtrees, largest first."""

    def append(self, entry: bytes) -> None:
        """Add one entry."""
        node, size = leaf_hash(entry), self.size
        while size & 1:
            node, size = node_hash(self.peaks.pop(), node), size >> 1
        self.peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        """Return the Merkle tree hash of RFC 6962 §2.1."""
        if not self.peaks:
            return EMPTY
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root


@dataclass(slots=True)
class MerkleTree:
    """The same root over a list whose entries may change; a change costs its way to the root."""

    levels: list[list[bytes]] = field(default_factory=lambda: [[]])
    """Nodes, leaves first. A last node without a neighbour stands for itself one level up."""

    def update(self, entries: Mapping[int, bytes]) -> None:
        """Set entries by their places; new places follow the last one."""
        places = sorted(entries)
        if not places:
            return
        for place in places:
            _put(self.levels[0], place, leaf_hash(entries[place]))
        for above, level in enumerate(self.levels, start=1):
            if len(level) <= 1:
                return
            if above == len(self.levels):
                self.levels.append([])
            places = sorted({place // 2 for place in places})
            for place in places:
                pair = level[2 * place : 2 * place + 2]
                _put(self.levels[above], place, node_hash(*pair) if len(pair) == 2 else pair[0])

    def root(self) -> bytes:
        """Return the Merkle tree hash of RFC 6962 §2.1."""
        return self.levels[-1][0] if self.levels[0] else EMPTY


def _put(nodes: list[bytes], place: int, node: bytes) -> None:
    if place == len(nodes):
        nodes.append(node)
    else:
        nodes[place] = node


def merkle_root(entries: Iterable[bytes]) -> bytes:
    """Return the root of a whole list."""
    log = MerkleLog()
    for entry in entries:
        log.append(entry)
    return log.root()


def chained(previous: bytes, entry: bytes) -> bytes:
    """Return the next link of a hash chain."""
    return hashlib.sha256(previous + entry).digest()
