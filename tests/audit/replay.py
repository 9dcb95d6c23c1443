"""Replays of a recorded history that begin at any block, with verdicts kept between them."""

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from anofel._core import messages as core
from anofel.audit.sources import open_source
from anofel.board import snapshot
from anofel.board.chain import Chain
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.messages import Block, Genesis, Posting


@dataclass
class Replay:
    """The blocks of a history and the state before each."""

    genesis: Genesis
    blocks: list[Block]
    before: list[bytes]
    """Snapshots; the first is of block 1 and stands for the state before block 2."""
    verifier: Verifier

    @classmethod
    def of(cls, directory: Path) -> "Replay":
        with open_source(str(directory)) as source:
            verifier = Verifier(
                source.genesis.hash, source.registration, source.submission, source.attachments
            )
            return cls.following(Chain(State.at_genesis(source.genesis), verifier), source.blocks)

    @classmethod
    def following(cls, chain: Chain, history: Iterable[Block]) -> "Replay":
        """Follow a history from genesis."""
        blocks, before = [], []
        for block in history:
            chain.follow(block)
            blocks.append(block)
            before.append(snapshot.encode(chain.state))
        return cls(chain.state.genesis, blocks, before, chain.verifier)

    def chain_before(self, height: int) -> Chain:
        """The chain up to the block before the given one."""
        if height == 1:
            return Chain(State.at_genesis(self.genesis), self.verifier)
        header = self.blocks[height - 2].header
        return Chain(snapshot.decode(self.before[height - 2], self.genesis, header), self.verifier)

    def first(self, kind: str) -> tuple[int, int]:
        """Height and place of the first posting of a kind."""
        for block in self.blocks:
            for place, data in enumerate(block.postings):
                if type(Posting.from_bytes(data).body).__name__ == kind:
                    return block.header.height, place
        raise AssertionError(f"There is no {kind} in the history.")


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    """The bytes with one bit changed."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def plain_encoder() -> ModuleType:
    """The encoder of the vectors, which follows the documentation alone."""
    path = Path(__file__).parents[2] / "vectors" / "messages.py"
    spec = importlib.util.spec_from_file_location("vectors_messages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENCODER = plain_encoder()


def fields_of(posting: Posting) -> dict[str, range]:
    """Where each field of a posting lies in its bytes."""
    name = type(posting.body).__name__
    end, spans = len(posting.data) - 64, []
    for (field, kind), value in zip(core.layout(name), posting.body.values(), strict=True):
        spans.append((field, len(ENCODER.encode(kind, value))))
    start = end - sum(length for _, length in spans)
    found = {"version": range(1), "kind": range(1, 2), "author": range(2, start)}
    for field, length in spans:
        found[field] = range(start, start + length)
        start += length
    return found | {"signature": range(end, end + 64)}
