"""What a validator can show a light client instead of a block that was decided."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from anofel.board.chain import Chain, InvalidBlock
from anofel.messages import Block
from tests.faults.node_process import Findings

_ROOTS = ("certifiers", "clients", "nullifiers", "committees", "tasks", "bundles", "postings")


def forgeries(block: Block, other: Block) -> Iterator[tuple[str, Block]]:
    """Change one thing of a block; ``other`` is another block of the same board."""
    header, seal, postings = block.header, block.seal, block.postings
    assert seal is not None
    assert other.seal is not None
    for name in _ROOTS:
        yield f"another root of {name}", replace(block, header=replace(header, **{name: bytes(32)}))
    yield "a later time", replace(block, header=replace(header, time=header.time + 1))
    yield "another block before it", replace(block, header=replace(header, previous=bytes(32)))
    yield "another height", replace(block, header=replace(header, height=header.height + 1))
    yield "another block in its place", other
    yield "the seal of another block", replace(block, seal=other.seal)
    yield "no seal", replace(block, seal=None)
    for name in ("data", "last_commit", "next_validators", "results", "parts_hash"):
        yield f"a seal with another {name}", replace(block, seal=replace(seal, **{name: bytes(32)}))
    votes = seal.votes
    yield "two of four votes", replace(block, seal=replace(seal, votes=votes[:2]))
    yield "a vote twice", replace(block, seal=replace(seal, votes=(votes[0], votes[0], votes[1])))
    changed = replace(votes[0], validator=votes[1].validator)
    yield "a vote in another's name", replace(block, seal=replace(seal, votes=(changed, *votes[2:])))
    shifted = replace(votes[0], time=votes[0].time + 1)
    yield "a vote of another moment", replace(block, seal=replace(seal, votes=(shifted, *votes[1:])))
    yield "another proposer", replace(block, seal=replace(seal, proposer=(seal.proposer + 1) % 4))
    yield "another round", replace(block, seal=replace(seal, round=seal.round + 1))
    if postings:
        broken = postings[0][:-1] + bytes([postings[0][-1] ^ 1])
        yield "a posting left out", replace(block, postings=postings[1:])
        yield "a posting twice", replace(block, postings=(*postings, postings[0]))
        yield "a changed posting", replace(block, postings=(broken, *postings[1:]))


def try_all(follower: Callable[[], Chain], blocks: list[Block], findings: Findings, most: int) -> None:
    """Show a follower every forgery of some blocks; it refuses each, and then takes the block itself."""
    shown = [block for block in blocks[1:-1] if block.postings][:most]
    for block in shown:
        chain = follower()
        for one in blocks[: block.header.height - 1]:
            chain.follow(one)
        for what, forged in forgeries(block, blocks[block.header.height]):
            try:
                chain.fork().follow(forged)
                findings.violations.append(f"A light client believed {what} at {block.header.height}.")
            except InvalidBlock:
                findings.add("lies")
