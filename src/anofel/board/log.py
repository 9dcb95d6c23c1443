"""Hashes over growing lists: a Merkle log (RFC 6962) and a plain chain."""

import hashlib
from collections.abc import Iterable, Sequence
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


def merkle_root(entries: Iterable[bytes]) -> bytes:
    """Return the root of a whole list."""
    log = MerkleLog()
    for entry in entries:
        log.append(entry)
    return log.root()


def inclusion_path(entries: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of RFC 6962 §2.1.1 for one entry."""
    if len(entries) == 1:
        return []
    split = 1 << (len(entries) - 1).bit_length() - 1
    left, right = entries[:split], entries[split:]
    if index < split:
        return [*inclusion_path(left, index), merkle_root(right)]
    return [*inclusion_path(right, index - split), merkle_root(left)]


def root_from_path(entry: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the root that a path leads to (RFC 9162 §2.1.3.2); a path of a wrong length leads nowhere."""
    node, last = leaf_hash(entry), size - 1
    for sibling in path:
        if last == 0:
            return b""
        if index & 1 or index == last:
            node = node_hash(sibling, node)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        index, last = index >> 1, last >> 1
    return node if last == 0 else b""


def chained(previous: bytes, entry: bytes) -> bytes:
    """Return the next link of a hash chain."""
    return hashlib.sha256(previous + entry).digest()
