"""Blocks one after the other, as a node sends them: each behind its length (u32, little-endian)."""

from anofel.errors import MalformedMessage
from anofel.messages import Block

LENGTH_BYTES = 4


def frame(block: Block) -> bytes:
    """Return a block behind its length."""
    data = block.to_bytes()
    return len(data).to_bytes(LENGTH_BYTES, "little") + data


def unframe(data: bytes) -> list[Block]:
    """Read framed blocks to the last byte. Raises ``MalformedMessage``."""
    blocks, at = [], 0
    while at < len(data):
        start = at + LENGTH_BYTES
        end = start + int.from_bytes(data[at:start], "little")
        if end > len(data):
            raise MalformedMessage("A framed block ends too early.")
        blocks.append(Block.from_bytes(data[start:end]))
        at = end
    return blocks
