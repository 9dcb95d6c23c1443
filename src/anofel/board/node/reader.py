"""Blocks as answers to requests: read-only, beside the one process that writes.

A connection of its own sees only what is committed, and never waits for verification.
"""

import threading
from pathlib import Path

from anofel.board.framing import frame
from anofel.board.store import BlockStore
from anofel.messages import Block, Header


class BlockReader:
    """The committed blocks of one directory; threads share it."""

    def __init__(self, directory: Path) -> None:
        """Open a board's file. Raises ``StoreError``."""
        self._store = BlockStore(directory, read_only=True)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._store.close()

    def height(self) -> int:
        """Return the last block; 0 before the first."""
        with self._lock:
            return self._store.height

    def header(self, height: int) -> Header | None:
        """Return a header."""
        with self._lock:
            return self._store.header(height)

    def block(self, height: int) -> Block | None:
        """Return a block."""
        with self._lock:
            return self._store.block(height)

    def framed(self, first: int, limit: int, max_bytes: int, *, with_postings: bool = True) -> bytes:
        """Return consecutive framed blocks: at most ``limit``, and past ``max_bytes`` none but the first.

        Without its postings a block still has what vouches for its header.
        """
        frames: list[bytes] = []
        size = 0
        for height in range(first, first + limit):
            block = self.block(height)
            if block is None:
                break
            postings = block.postings if with_postings else ()
            framed = frame(Block(header=block.header, commit=block.commit, postings=postings))
            size += len(framed)
            if frames and size > max_bytes:
                break
            frames.append(framed)
        return b"".join(frames)
