"""How institutions begin a board together: each asks to be a validator, one puts the genesis together.

1. The organiser draws a nonce and tells it to everybody.
2. Each institution makes its keys where they stay, and a request: names, certificates, addresses, and the
   signature of its certified key that binds its voting key to the nonce.
3. The organiser puts the requests into a genesis, with the addresses beside it.
4. Each institution joins: it checks that genesis has its own request, unchanged, and then can run.
"""

import base64
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from anofel.board.engines import Engine, fault_tolerance
from anofel.board.genesis import check_genesis
from anofel.disk.files import FileExists, Secret, read_small_file, replace_file, write_new_directory
from anofel.disk.sections import parse_json, read_toml
from anofel.errors import InvalidInput
from anofel.messages import Genesis, NewValidator, Validator
from anofel.node.files import (
    CONFIG,
    NODE_KEY,
    PLACE,
    STORAGE_CERTIFICATE,
    STORAGE_KEY,
    NodeConfig,
    proof_key_files,
    read_validator,
)
from anofel.node.init import BoardNumbers, BoardTrust, check_usable, genesis_of
from anofel.node.replicated.engine import new_home
from anofel.node.replicated.files import (
    TRANSPORT_KEY,
    VALIDATOR_CERTIFICATE,
    VALIDATOR_KEY,
    read_transport_key,
)
from anofel.node.replicated.init import bound_validator
from anofel.node.replicated.network import NETWORK, Neighbour, Network, check_neighbour, node_id
from anofel.pki.certificates import RoleKey
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import GENESIS, read_genesis

REQUEST: Final = "request.json"
LISTEN: Final = "listen.txt"
NONCE_BYTES: Final = 32
_NONCE: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ValidatorRequest:
    """What an institution sends to the organiser; nothing in it is secret."""

    name: str
    nonce: str
    key: str
    binding: str
    chain: list[str]
    storage_chain: list[str]
    peer: str
    url: str

    def to_json(self) -> bytes:
        """Write the file."""
        return json.dumps(vars(self), indent=1).encode() + b"\n"

    @property
    def validator(self) -> Validator:
        """The validator as genesis lists it."""
        return Validator(
            key=_bytes(self.key), power=1, chain=_chain(self.chain), binding=_bytes(self.binding)
        )

    @property
    def holder(self) -> tuple[bytes, ...]:
        """Its storage role as genesis lists it."""
        return _chain(self.storage_chain)

    def entry(self, power: int) -> NewValidator:
        """The validator as a change of validators brings it; whose place it takes says with what power."""
        validator = replace(self.validator, power=power)
        return NewValidator(
            validator=validator, holder=self.holder, name=self.name, peer=self.peer, url=self.url
        )

    @property
    def neighbour(self) -> Neighbour:
        """Its addresses."""
        return Neighbour(name=self.name, peer=self.peer, url=self.url)


def read_nonce(text: str) -> bytes:
    """Read what the organiser drew. Raises ``InvalidInput``."""
    if not _NONCE.fullmatch(text):
        raise InvalidInput("The nonce of a board is 64 lower-case hexadecimal digits.")
    return bytes.fromhex(text)


def make_request(
    directory: Path,
    *,
    name: str,
    nonce: bytes,
    validator: RoleKey,
    storage: RoleKey,
    listen: str,
    peer: str,
    url: str,
) -> ValidatorRequest:
    """Make a validator's keys and its request in a new directory. Raises ``FileExists``, ``InvalidInput``.

    ``listen``: where its engine listens; ``peer``: how others reach that, HOST:PORT.
    """
    voting, transport = MessageSecret.generate(), MessageSecret.generate()
    bound = bound_validator(validator, voting, nonce)
    assert bound.binding is not None
    request = ValidatorRequest(
        name=name,
        nonce=nonce.hex(),
        key=bound.key.hex(),
        binding=bound.binding.hex(),
        chain=[_text(entry) for entry in validator.chain],
        storage_chain=[_text(entry) for entry in storage.chain],
        peer=f"{node_id(transport.public_key().to_bytes())}@{peer}",
        url=url,
    )
    check_neighbour(request.neighbour)
    files: dict[str, bytes | Secret] = {
        REQUEST: request.to_json(),
        LISTEN: f"{listen}\n".encode(),
        NODE_KEY: Secret(voting.to_secret_bytes()),
        TRANSPORT_KEY: Secret(transport.to_secret_bytes()),
        VALIDATOR_CERTIFICATE: validator.chain_pem(),
        VALIDATOR_KEY: Secret(validator.key_pem()),
        STORAGE_CERTIFICATE: storage.chain_pem(),
        STORAGE_KEY: Secret(storage.key_pem()),
    }
    write_new_directory(directory, files)
    return request


def read_request(path: Path) -> ValidatorRequest:
    """Read a request. Raises ``InvalidInput``, ``InvalidDocument``."""
    request = parse_json(read_small_file(path), ValidatorRequest, str(path))
    check_neighbour(request.neighbour)
    return request


def make_genesis(
    directory: Path,
    requests: list[ValidatorRequest],
    *,
    name: str,
    nonce: bytes,
    trust: BoardTrust,
    keys: KeyDirectory,
    clock: BoardNumbers,
    allow_insecure_keys: bool,
) -> Genesis:
    """Put requests into a genesis, in a new directory with everybody's addresses. Raises ``AnofelError``."""
    if directory.exists():
        raise FileExists(f"{directory} exists already; it is not overwritten.")
    check_usable(keys, allow_insecure_keys=allow_insecure_keys)
    others = [request.name for request in requests if request.nonce != nonce.hex()]
    if others:
        raise InvalidInput(f"These requests are for another nonce: {', '.join(others)}.")
    validators = tuple(request.validator for request in requests)
    genesis = genesis_of(
        name=name,
        trust=trust,
        keys=keys,
        clock=clock,
        nonce=nonce,
        engine=Engine.COMETBFT,
        validators=validators,
        holders=tuple(request.holder for request in requests),
        quorum=len(validators) - (len(validators) - 1) // 3,
    )
    network = Network(listen="", validator=[request.neighbour for request in requests])
    write_new_directory(directory, {GENESIS: genesis.to_bytes(), NETWORK: network.to_toml()})
    return genesis


def join(
    directory: Path, genesis_file: Path, network_file: Path, keys: KeyDirectory, place: int | None = None
) -> tuple[Genesis, int]:
    """Make a request's directory one that can run; return genesis and how many validators may be faulty.

    1. Genesis can start a board, and pins the proof keys that are here.
    2. It lists this request's validator and storage role as they were asked for, at the same place.
    3. The addresses are as many as the validators, and this one's are those of its request.

    With a ``place`` it comes after genesis, which does not list it (2, 3): the board's validators decide
    about it. Until the block from which on it is a validator its node follows the others.

    Raises ``AnofelError``; then nothing has changed.
    """
    if (directory / GENESIS).exists():
        raise FileExists(f"{directory} has joined a board already.")
    request = read_request(directory / REQUEST)
    genesis = read_genesis(genesis_file)
    check_genesis(genesis)
    if keys.pins() != {name: getattr(genesis, name) for name in keys.pins()}:
        raise InvalidInput(f"Genesis pins other proof keys than those in {keys.path}.")
    read_transport_key(directory)
    if place is None:
        network = _listed(directory, genesis, request, network_file)
    else:
        network = _read_network(network_file, genesis)
        if request.nonce != genesis.nonce.hex():
            raise InvalidInput("The request is for another board: its nonce is not that of this genesis.")
    listen = read_small_file(directory / LISTEN).decode().strip()
    files: dict[str, bytes | Secret] = {
        CONFIG: NodeConfig().to_toml(),
        NETWORK: replace(network, listen=listen).to_toml(),
        **proof_key_files(keys),
        **new_home(),
        **({} if place is None else {PLACE: f"{place}\n".encode()}),
    }
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(directory / name, content)
    replace_file(directory / GENESIS, genesis.to_bytes())  # last: with it the directory is a node's
    return genesis, fault_tolerance(genesis)


def _listed(directory: Path, genesis: Genesis, request: ValidatorRequest, network_file: Path) -> Network:
    """Check that genesis lists a request, with its addresses beside it."""
    _, place = read_validator(directory / NODE_KEY, genesis)
    holder = genesis.holders[place] if place < len(genesis.holders) else None
    if genesis.validators[place] != request.validator or holder != request.holder:
        raise InvalidInput("Genesis does not list this validator as it asked.")
    network = _read_network(network_file, genesis)
    if network.validator[place] != request.neighbour:
        raise InvalidInput(f"{network_file} has other addresses for this validator than its request.")
    return network


def _read_network(path: Path, genesis: Genesis) -> Network:
    network = read_toml(path, Network)
    if len(network.validator) != len(genesis.validators):
        raise InvalidInput(f"{path} does not name the validators of this genesis.")
    for neighbour in network.validator:
        check_neighbour(neighbour)
    return network


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _chain(entries: list[str]) -> tuple[bytes, ...]:
    try:
        return tuple(base64.b64decode(entry, validate=True) for entry in entries)
    except ValueError:
        raise InvalidInput("A certificate in the request is not in base64.") from None


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInput("A key or signature in the request is not in hexadecimal digits.") from None
