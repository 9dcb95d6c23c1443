"""Blocks one after the other, as a node sends them: each behind its length (u32, little-endian)."""

from anofel.errors import MalformedMessage
from anofel.framing import Malformed, Reader, Writer
from anofel.messages import Block


def frame(block: Block) -> bytes:
    """Return a block behind its length."""
    return Writer().framed(block.to_bytes()).done()


def unframe(data: bytes) -> list[Block]:
    """Read framed blocks to the last byte. Raises ``MalformedMessage``."""
    blocks, reader = [], Reader(data)
    try:
        while reader.left:
            blocks.append(Block.from_bytes(reader.framed()))
    except Malformed:
        raise MalformedMessage("A framed block ends too early.") from None
    return blocks
