"""Blocks as answers to requests: read-only, beside the one process that writes.

A connection of its own sees only what is committed, and never waits for verification.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from anofel.board.framing import frame
from anofel.ids import PostingId
from anofel.messages import Block, Header
from anofel.storage.blocks import BlockStore

PIECE_BYTES: Final = 64 << 10


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

    def place_of(self, posting_id: PostingId) -> tuple[int, int] | None:
        """Return height and place of a posting that a block holds."""
        with self._lock:
            return self._store.place_of(posting_id)

    def signed_header(self, height: int) -> Block | None:
        """Return a block without its postings."""
        with self._lock:
            return self._store.signed_header(height)

    def named(self, height: int) -> Block | None:
        """Return a block with the names of its postings in place of the postings."""
        with self._lock:
            signed = self._store.signed_header(height)
            return None if signed is None else replace(signed, postings=self._store.names(height))

    def posting(self, height: int, place: int) -> bytes | None:
        """Return the posting at a place of a block."""
        with self._lock:
            return self._store.posting(height, place)

    def height_of(self, name: PostingId) -> int | None:
        """Return the block of a posting; None if no block has it."""
        with self._lock:
            return self._store.height_of(name)

    def framed(
        self,
        first: int,
        limit: int,
        max_bytes: int,
        *,
        read: Callable[[int], Block | None] | None = None,
    ) -> Iterator[bytes]:
        """Give consecutive framed blocks: at most ``limit``, and past ``max_bytes`` none but the first.

        ``read`` may leave their postings out, or give names in their place. They come in pieces of about
        ``PIECE_BYTES`` and are read one by one: who waits for a slow reader holds one block of them.
        """
        size, piece = 0, b""
        read = self.block if read is None else read
        for height in range(first, first + limit):
            block = read(height)
            if block is None:
                break
            framed = frame(block)
            size += len(framed)
            if height > first and size > max_bytes:
                break
            piece += framed
            if len(piece) >= PIECE_BYTES:
                yield piece
                piece = b""
        if piece:
            yield piece
