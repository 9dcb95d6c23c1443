"""Blocks as answers to requests: read-only, beside the one process that writes.

A connection of its own sees only what is committed, and never waits for verification.
"""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from anofel.board.store import FILE, StoreError
from anofel.messages import Block, Header, Vote

FRAME_BYTES = 4
"""A framed block is its length (u32, little-endian), then its canonical bytes."""


class BlockReader:
    """The committed blocks of one directory; its threads share it."""

    def __init__(self, directory: Path) -> None:
        """Open a board's file. Raises ``StoreError``."""
        self._lock = threading.Lock()
        path = (directory / FILE).resolve()
        try:
            self._connection = sqlite3.connect(
                f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
            )
            self.height()
        except sqlite3.Error as error:
            raise StoreError(f"{directory} holds no board that can be read: {error}.") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def height(self) -> int:
        """Return the last block; 0 before the first."""
        ((height,),) = self._rows("SELECT coalesce(max(height), 0) FROM block")
        return int(height)

    def header(self, height: int) -> Header | None:
        """Return a header."""
        rows = self._rows("SELECT header FROM block WHERE height = ?", height)
        return Header.from_bytes(rows[0][0]) if rows else None

    def num_postings(self, height: int) -> int:
        """Return how many postings a block holds."""
        ((number,),) = self._rows("SELECT count(*) FROM posting WHERE height = ?", height)
        return int(number)

    def block(self, height: int, *, with_postings: bool = True) -> bytes | None:
        """Return a block's canonical bytes; without its postings, what vouches for the header remains."""
        header = self.header(height)
        if header is None:
            return None
        votes = self._rows("SELECT vote FROM vote WHERE height = ? ORDER BY place", height)
        query = "SELECT data FROM posting WHERE height = ? ORDER BY place"
        postings = self._rows(query, height) if with_postings else []
        commit = tuple(Vote.from_bytes(vote) for (vote,) in votes)
        return Block(header=header, commit=commit, postings=tuple(data for (data,) in postings)).to_bytes()

    def framed(self, first: int, limit: int, max_bytes: int, *, with_postings: bool = True) -> bytes:
        """Return consecutive framed blocks: at most ``limit``, and past ``max_bytes`` none but the first."""
        frames: list[bytes] = []
        size = 0
        for block in self._blocks(first, limit, with_postings=with_postings):
            size += FRAME_BYTES + len(block)
            if frames and size > max_bytes:
                break
            frames.append(len(block).to_bytes(FRAME_BYTES, "little") + block)
        return b"".join(frames)

    def _blocks(self, first: int, limit: int, *, with_postings: bool) -> Iterator[bytes]:
        for height in range(first, first + limit):
            block = self.block(height, with_postings=with_postings)
            if block is None:
                return
            yield block

    def _rows(self, query: str, *values: object) -> list[tuple[bytes, ...]]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()
