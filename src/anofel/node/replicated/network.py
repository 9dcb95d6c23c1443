"""``network.toml`` of a validator: where the others are. It can be edited; who they are stands in genesis."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from anofel.board.validators import Era
from anofel.disk.sections import read_toml
from anofel.errors import InvalidInput
from anofel.messages import Genesis
from anofel.network.address import BoardAddress

NETWORK: Final = "network.toml"
_PEER: Final = re.compile(r"[0-9a-f]{40}@(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")
_NODE_ID_BYTES: Final = 20


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A validator as others reach it."""

    name: str
    peer: str
    """Where its engine listens, ID@HOST:PORT; the id is that of its transport key."""
    url: str
    """Where its node answers over HTTP."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """All validators, in the order of genesis."""

    listen: str
    """Where this validator's engine listens, HOST:PORT."""
    validator: list[Neighbour] = field(default_factory=list)

    def to_toml(self) -> bytes:
        """Write the file."""
        lines = ["# Where the validators are, in the order of genesis.", f'listen = "{self.listen}"']
        for neighbour in self.validator:
            lines += ["", "[[validator]]"]
            lines += [f'{name} = "{value}"' for name, value in vars(neighbour).items()]
        return ("\n".join(lines) + "\n").encode()


def node_id(key: bytes) -> str:
    """Return how the engine names the owner of a transport key."""
    return hashlib.sha256(key).digest()[:_NODE_ID_BYTES].hex()


def check_neighbour(neighbour: Neighbour) -> None:
    """Refuse addresses that cannot be right. Raises ``InvalidInput``."""
    if not _PEER.fullmatch(neighbour.peer):
        raise InvalidInput(f"{neighbour.peer!r} is no address of an engine; it is ID@HOST:PORT.")
    BoardAddress.parse(neighbour.url)


def addresses_in(path: Path) -> list[str]:
    """Return where the nodes of a network.toml answer over HTTP. Raises ``InvalidInput``."""
    found = read_toml(path, Network)
    for neighbour in found.validator:
        BoardAddress.parse(neighbour.url)
    return [neighbour.url for neighbour in found.validator]


def present(network: Network, era: Era, own: int) -> dict[int, Neighbour]:
    """Return the other validators of an era by their places; the board says where later ones are reached."""
    found = {}
    for place in era.validators.keys() - {own}:
        address = era.addresses.get(place)
        found[place] = (
            network.validator[place]
            if address is None
            else Neighbour(name=address.name, peer=address.peer, url=address.url)
        )
    return dict(sorted(found.items()))


def read_network(directory: Path, genesis: Genesis) -> Network:
    """Read the file. Raises ``InvalidInput``, ``InvalidDocument``."""
    found = read_toml(directory / NETWORK, Network)
    if len(found.validator) != len(genesis.validators):
        raise InvalidInput(
            f"{directory / NETWORK} names {len(found.validator)} validators; "
            f"genesis has {len(genesis.validators)}."
        )
    for neighbour in found.validator:
        check_neighbour(neighbour)
    return found
