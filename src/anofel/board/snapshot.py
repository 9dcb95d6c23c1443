"""The state as bytes, so that a restart need not replay every block.

A snapshot is this party's own file about blocks that it verified itself. Its hash shows damage, and it is
checked against the roots of the header it belongs to; it is never taken from somebody else. So trees are
kept with their inner nodes: hashing those of a million clients again would take most of a start.
"""

import hashlib
from collections import deque
from dataclasses import dataclass

import msgspec

from anofel.board import roots
from anofel.board.log import MerkleLog
from anofel.board.records import Records
from anofel.board.state import Bundle, CertifierState, Committee, KeyRun, State, TaskState
from anofel.board.validators import ValidatorState
from anofel.errors import InvalidInput
from anofel.ids import BlockHash, KeyId, RunId, TaskId
from anofel.messages import Genesis, Header
from anofel.primitives import CertifierTree, ClientTree, NameSet

FORMAT = 7
_CLIENTS_PER_BLOCK = 400
"""A snapshot takes 4 µs a client to write, and saves 1.7 ms or more for each block or posting to replay."""
_HASH_BYTES = 32


class DamagedSnapshot(InvalidInput):
    """A snapshot is not one of the state it claims to be."""

    code = "damaged-snapshot"


@dataclass
class _Image:
    """A state without the objects of the core."""

    format: int
    height: int
    time: int
    tip: BlockHash
    epoch: int
    certifiers: dict[bytes, CertifierState]
    certifier_nodes: bytes
    certifier_roots: list[bytes]
    client_nodes: dict[int, bytes]
    registered: bytes
    nullifiers: MerkleLog
    runs: dict[RunId, KeyRun]
    committees: dict[KeyId, Committee]
    tasks: dict[TaskId, TaskState]
    bundles: dict[int, Bundle]
    remembered: list[int]
    validators: ValidatorState


def is_worth(state: State, saved: int) -> bool:
    """Whether a snapshot costs less than replaying so many blocks and postings, which it would save."""
    return saved * _CLIENTS_PER_BLOCK >= len(state.clients)


def encode(state: State) -> bytes:
    """Write the state after a block."""
    image = _Image(
        format=FORMAT,
        height=state.height,
        time=state.time,
        tip=state.tip,
        epoch=state.epoch,
        certifiers=dict(state.certifiers),
        certifier_nodes=state.certifier_tree.node_bytes(),
        certifier_roots=state.certifier_roots,
        client_nodes={epoch: tree.node_bytes() for epoch, tree in state.client_trees.items()},
        registered=state.registered.to_bytes(),
        nullifiers=state.nullifiers,
        runs=dict(state.runs),
        committees=dict(state.committees),
        tasks=dict(state.tasks),
        bundles=dict(state.bundles),
        remembered=list(state.remembered),
        validators=state.validators,
    )
    content = msgspec.msgpack.encode(image)
    return hashlib.sha256(content).digest() + content


def decode(data: bytes, genesis: Genesis, header: Header) -> State:
    """Read the state after a block, and check it against the block's header. Raises ``DamagedSnapshot``."""
    content = data[_HASH_BYTES:]
    if hashlib.sha256(content).digest() != data[:_HASH_BYTES]:
        raise DamagedSnapshot("The snapshot has other bytes than were written.")
    try:
        image = msgspec.msgpack.decode(content, type=_Image)
        state = _restore(image, genesis)
    except (msgspec.MsgspecError, InvalidInput, ValueError, KeyError) as error:
        raise DamagedSnapshot(f"The snapshot cannot be read: {error}.") from None
    found = (state.height, state.time, state.tip, state.epoch, roots.certifiers(state), roots.clients(state))
    rest = (roots.nullifiers(state), roots.committees(state), roots.tasks(state), roots.bundles(state))
    expected = (header.height, header.time, header.hash(genesis.hash), header.epoch)
    stated = (header.certifiers, header.clients, header.nullifiers, header.committees)
    if found + rest != expected + stated + (header.tasks, header.bundles):
        raise DamagedSnapshot(f"The snapshot is not the state after block {header.height}.")
    return state


def _restore(image: _Image, genesis: Genesis) -> State:
    if image.format != FORMAT:
        raise InvalidInput(f"it has format {image.format} instead of {FORMAT}")
    return State(
        genesis=genesis,
        genesis_hash=genesis.hash,
        validators=image.validators,
        height=image.height,
        time=image.time,
        tip=image.tip,
        epoch=image.epoch,
        certifiers=Records(image.certifiers),
        certifier_tree=CertifierTree.from_node_bytes(image.certifier_nodes),
        certifier_roots=image.certifier_roots,
        client_trees={
            epoch: ClientTree.from_node_bytes(nodes) for epoch, nodes in image.client_nodes.items()
        },
        registered=NameSet.from_bytes(image.registered),
        nullifiers=image.nullifiers,
        runs=Records(image.runs),
        committees=Records(image.committees),
        tasks=Records(image.tasks),
        bundles=Records(image.bundles, nested=True),
        remembered=deque(image.remembered),
    )
