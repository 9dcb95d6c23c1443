"""A node's directory, opened as what it is: one node, or a validator among others."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Final

from anofel.board.engines import Engine
from anofel.errors import InvalidInput
from anofel.network.address import BoardAddress
from anofel.node.board_node import BoardNode
from anofel.node.board_service import BoardService
from anofel.node.embedded import EmbeddedNode
from anofel.node.files import NODE_KEY, read_place, read_validator
from anofel.node.replicated.engine import find_engine
from anofel.node.replicated.files import read_transport_key
from anofel.node.replicated.network import read_network
from anofel.node.replicated.node import ReplicatedNode
from anofel.node.replicated.requests import REQUEST, read_request
from anofel.node.replicated.service import ReplicatedService
from anofel.node.service import NodeService
from anofel.storage.blocks import GENESIS, StoreError, read_genesis

DEFAULT_PORT: Final = 8470


def open_service(
    directory: Path,
    *,
    on_replay: Callable[[int, int], None] | None = None,
    today: date | None = None,
    last_signed: int | None = None,
) -> tuple[BoardNode, Callable[[], BoardService]]:
    """Open a node, and say how to serve it once there is an event loop.

    ``today`` and ``last_signed`` are for one node alone (``EmbeddedNode``). Raises ``AnofelError``.
    """
    if not _is_replicated(directory):
        node = EmbeddedNode(directory, on_replay=on_replay, today=today, last_signed=last_signed)
        return node, lambda: NodeService(node)
    if today is not None or last_signed is not None:
        raise InvalidInput(
            "--today and --last-signed are for a board of one node; here validators agree on blocks."
        )
    engine, key = find_engine(), read_transport_key(directory)
    validator = ReplicatedNode(directory, on_replay=on_replay)
    return validator, lambda: ReplicatedService(validator, engine, key)


def port_of(directory: Path) -> int:
    """Return the port that others expect a node at."""
    if not _is_replicated(directory):
        return DEFAULT_PORT
    genesis = read_genesis(directory / GENESIS)
    if read_place(directory) is not None:
        return BoardAddress.parse(read_request(directory / REQUEST).url).port
    _, own = read_validator(directory / NODE_KEY, genesis)
    return BoardAddress.parse(read_network(directory, genesis).validator[own].url).port


def _is_replicated(directory: Path) -> bool:
    if not (directory / GENESIS).exists():
        raise StoreError(f"{directory} is not the directory of a node; make one with anofel node init.")
    return read_genesis(directory / GENESIS).engine == Engine.COMETBFT
