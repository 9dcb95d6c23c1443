"""The state as bytes, so that a restart need not replay every block.

A snapshot is this party's own file about blocks that it verified itself. Its hash shows damage, and it is
checked against the roots of the header it belongs to; it is never taken from somebody else.
"""

import hashlib
from dataclasses import dataclass

import msgspec

from anofel.board import roots
from anofel.board.log import MerkleLog
from anofel.board.state import Bundle, Certifier, Committee, KeyRun, State, TaskState
from anofel.errors import InvalidInput
from anofel.messages import Genesis, Header
from anofel.primitives import CertifierTree, ClientTree

FORMAT = 1
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
    tip: bytes
    epoch: int
    certifiers: dict[bytes, Certifier]
    certifier_leaves: bytes
    certifier_roots: list[bytes]
    client_leaves: dict[int, bytes]
    registered: list[bytes]
    nullifiers: MerkleLog
    runs: dict[bytes, KeyRun]
    committees: dict[bytes, Committee]
    tasks: dict[bytes, TaskState]
    bundles: dict[int, Bundle]


def encode(state: State) -> bytes:
    """Write the state after a block."""
    image = _Image(
        format=FORMAT,
        height=state.height,
        time=state.time,
        tip=state.tip,
        epoch=state.epoch,
        certifiers=state.certifiers,
        certifier_leaves=state.certifier_tree.leaf_bytes(),
        certifier_roots=state.certifier_roots,
        client_leaves={epoch: tree.leaf_bytes() for epoch, tree in state.client_trees.items()},
        registered=sorted(state.registered),
        nullifiers=state.nullifiers,
        runs=state.runs,
        committees=state.committees,
        tasks=state.tasks,
        bundles=state.bundles,
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
        height=image.height,
        time=image.time,
        tip=image.tip,
        epoch=image.epoch,
        certifiers=image.certifiers,
        certifier_tree=CertifierTree.from_leaf_bytes(image.certifier_leaves),
        certifier_roots=image.certifier_roots,
        client_trees={
            epoch: ClientTree.from_leaf_bytes(leaves) for epoch, leaves in image.client_leaves.items()
        },
        registered=set(image.registered),
        nullifiers=image.nullifiers,
        runs=image.runs,
        committees=image.committees,
        tasks=image.tasks,
        bundles=image.bundles,
    )
