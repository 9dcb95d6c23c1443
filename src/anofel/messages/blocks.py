"""Blocks: a header, the votes for it and its postings."""

import hashlib
from dataclasses import dataclass

from anofel.ids import BlockHash, GenesisHash
from anofel.messages.signing import on_board
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(View):
    """The head of a block: the previous one, the postings and the roots of the state after it."""

    height: int
    time: int
    previous: BlockHash
    postings: bytes
    certifiers: bytes
    clients: bytes
    nullifiers: bytes
    committees: bytes
    tasks: bytes
    bundles: bytes
    epoch: int
    rules: int

    def hash(self, genesis: GenesisHash) -> BlockHash:
        """The name of this block on a board."""
        return BlockHash(hashlib.sha256(on_board(b"anofel/1/header", genesis, self.to_bytes())).digest())

    def vote_bytes(self, genesis: GenesisHash) -> bytes:
        """What a validator signs when it votes for this block."""
        return on_board(b"anofel/1/vote", genesis, self.hash(genesis))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote(View):
    """A validator's signature of a header."""

    validator: int
    """The validator's place."""
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBlock(View):
    """What CometBFT calls a block: the hash of its header, and its parts."""

    hash: bytes
    parts: int
    parts_hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVote(View):
    """A validator's precommit under CometBFT, with its own time."""

    validator: int
    """The validator's place."""
    time: int
    nanos: int
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(View):
    """What vouches for a block under CometBFT: the rest of the engine's header, and the precommits."""

    block_version: int
    app_version: int
    nanos: int
    last: EngineBlock | None
    last_commit: bytes
    data: bytes
    """The engine's root of the postings."""
    next_validators: bytes
    consensus: bytes
    results: bytes
    evidence: bytes
    proposer: int
    """The validator's place."""
    round: int
    parts: int
    parts_hash: bytes
    votes: tuple[EngineVote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(View):
    """A header, what vouches for it and its postings, each as its bytes."""

    header: Header
    commit: tuple[Vote, ...]
    """The votes, where one node makes the blocks."""
    seal: Seal | None = None
    """What CometBFT's validators signed, where they make the blocks."""
    postings: tuple[bytes, ...]
