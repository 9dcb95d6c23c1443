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
    """The validator's place in the genesis."""
    signature: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(View):
    """A header, the votes for it and its postings, each as its bytes."""

    header: Header
    commit: tuple[Vote, ...]
    postings: tuple[bytes, ...]
