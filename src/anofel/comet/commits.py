"""CometBFT's header, and what its validators sign, from our header and a seal: hashing alone.

The engine's header of a height has our genesis or the header before as its ``app_hash``, the postings under
``data_hash``, and the block's time. So the precommits of a height vouch for the height, the time, the block
before and the postings; our sub-roots follow from those, and the next block names their hash.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from anofel.comet.wire import message, number, octets, sfixed64, text, timestamp, uvarint
from anofel.messages import EngineBlock, EngineVote, Genesis, Header, Seal, Validator

EMPTY: Final = hashlib.sha256(b"").digest()
"""The root of nothing."""
ADDRESS_BYTES: Final = 20
_PRECOMMIT: Final = 2
_CHAIN_DIGITS: Final = 40


def chain_id(genesis: Genesis) -> str:
    """Return the board's name in the engine, which allows 50 characters."""
    return f"anofel-{genesis.hash.hex()[:_CHAIN_DIGITS]}"


def address_of(key: bytes) -> bytes:
    """Return how the engine names a validator."""
    return hashlib.sha256(key).digest()[:ADDRESS_BYTES]


def engine_order(validators: Sequence[Validator]) -> list[int]:
    """Return the places of validators in the engine's order: more power first, then by address."""
    return sorted(
        range(len(validators)),
        key=lambda place: (-validators[place].power, address_of(validators[place].key)),
    )


def validators_hash(validators: Sequence[Validator]) -> bytes:
    """Return the engine's hash of a set of validators."""
    ordered = (validators[place] for place in engine_order(validators))
    return merkle([message(1, octets(1, v.key)) + number(2, v.power) for v in ordered])


def data_hash(postings: Sequence[bytes]) -> bytes:
    """Return the engine's root of the postings of a block."""
    return merkle([hashlib.sha256(data).digest() for data in postings])


def merkle(leaves: Sequence[bytes]) -> bytes:
    """Return the Merkle tree hash of RFC 6962 over whole leaves."""
    nodes = [hashlib.sha256(b"\0" + leaf).digest() for leaf in leaves]
    if not nodes:
        return EMPTY
    while len(nodes) > 1:  # a last node without a neighbour stands for itself one level up
        pairs = [nodes[at : at + 2] for at in range(0, len(nodes), 2)]
        nodes = [hashlib.sha256(b"\1" + b"".join(p)).digest() if len(p) == 2 else p[0] for p in pairs]
    return nodes[0]


@dataclass(frozen=True, slots=True)
class EngineHeader:
    """The engine's header of a block, as our header and its seal give it."""

    chain: str
    header: Header
    seal: Seal
    validators: bytes
    """The hash of the validators who sign it."""
    proposer: bytes
    """The address of who proposed it."""

    @classmethod
    def of(
        cls, genesis: Genesis, validators: Mapping[int, Validator], header: Header, seal: Seal
    ) -> "EngineHeader":
        """Put the header together. ``validators``: those who make the block, by their places."""
        proposer = address_of(validators[seal.proposer].key)
        return cls(chain_id(genesis), header, seal, validators_hash(list(validators.values())), proposer)

    def hash(self) -> bytes:
        """Return the hash that precommits name."""
        header, seal = self.header, self.seal
        return merkle(
            [
                number(1, seal.block_version) + number(2, seal.app_version),
                text(1, self.chain),
                number(1, header.height),
                timestamp(header.time, seal.nanos),
                _block_id(seal.last),
                octets(1, seal.last_commit),
                octets(1, seal.data),
                octets(1, self.validators),
                octets(1, seal.next_validators),
                octets(1, seal.consensus),
                octets(1, header.previous),
                octets(1, seal.results),
                octets(1, seal.evidence),
                octets(1, self.proposer),
            ]
        )

    def vote_bytes(self, named: bytes, vote: EngineVote) -> bytes:
        """Return what a validator signs when it precommits to this block; ``named`` is ``hash()``."""
        this = EngineBlock(hash=named, parts=self.seal.parts, parts_hash=self.seal.parts_hash)
        body = (
            number(1, _PRECOMMIT)
            + sfixed64(2, self.header.height)
            + sfixed64(3, self.seal.round)
            + message(4, _block_id(this))
            + message(5, timestamp(vote.time, vote.nanos))
            + text(6, self.chain)
        )
        return uvarint(len(body)) + body


def _block_id(block: EngineBlock | None) -> bytes:
    if block is None:  # before the first block
        return message(2, b"")
    return octets(1, block.hash) + message(2, number(1, block.parts) + octets(2, block.parts_hash))
