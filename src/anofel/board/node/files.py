"""The directory of an embedded node: what the board is, how the node runs, and its keys.

====================== ==================================================================
``genesis.bin``        what the board starts from; everybody gets a copy
``node.toml``          how this node runs; may be edited while it is stopped
``node.key``           the secret that signs headers, for the owner's eyes only
``storage.pem/.key``   the storage role that signs receipts; the key for the owner only
``….verification.key`` the keys whose ids genesis pins
``board.sqlite``       blocks and accepted postings (``store``)
``blobs/``             blobs by hash (``blobs``)
====================== ==================================================================
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from anofel.board.store import GENESIS, StoreError, read_genesis
from anofel.certificates import RoleKey, read_owner_only
from anofel.errors import InvalidInput, InvalidKeyFile
from anofel.files import Secret, read_small_file, write_new_directory
from anofel.keys import read_key_file
from anofel.messages import Genesis
from anofel.primitives import MessageSecret

CONFIG: Final = "node.toml"
NODE_KEY: Final = "node.key"
STORAGE_CERTIFICATE: Final = "storage.pem"
STORAGE_KEY: Final = "storage.key"
BLOBS: Final = "blobs"
STATEMENTS: Final = ("registration", "submission")
GIB: Final = 1 << 30


class NodeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a node runs. Nothing here changes the board."""

    snapshot_blocks: int = 300
    """A snapshot of the state is kept every so many blocks,"""
    snapshot_postings: int = 2000
    """or after so many postings; whatever comes first bounds what a start must verify."""
    receipt_blocks: int = 600
    """For how many blocks a blob is kept that no posting names."""
    max_blob_bytes: int = 100 * GIB
    """All blobs together."""
    max_pending_bytes: int = 10 * GIB
    """Uploads and blobs that no posting names yet."""
    min_free_bytes: int = GIB // 4
    """What uploads leave free on the disk, so that blocks always find room."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1")

    def to_toml(self) -> bytes:
        """Write the file."""
        lines = ["# How this node runs. What the board is stands in genesis.bin."]
        lines += [f"{name} = {getattr(self, name)}" for name in self.__struct_fields__]
        return ("\n".join(lines) + "\n").encode()


@dataclass(frozen=True)
class NodeFiles:
    """Everything that a node reads from its directory, checked against genesis."""

    directory: Path
    genesis: Genesis
    config: NodeConfig
    validator: MessageSecret
    storage: RoleKey
    keys: dict[str, bytes]
    """The verification keys by the name of their statement."""


def write_node(
    directory: Path,
    genesis: Genesis,
    validator: MessageSecret,
    storage: RoleKey,
    keys: dict[str, bytes],
    config: NodeConfig,
) -> None:
    """Write a new node's directory, whole or not at all. Raises ``FileExists``, ``InvalidInput``."""
    files: dict[str, bytes | Secret] = {
        GENESIS: genesis.to_bytes(),
        CONFIG: config.to_toml(),
        NODE_KEY: Secret(validator.to_secret_bytes()),
        STORAGE_CERTIFICATE: storage.chain_pem(),
        STORAGE_KEY: Secret(storage.key_pem()),
    }
    write_new_directory(directory, files | {_key_name(name): data for name, data in keys.items()})


def read_node(directory: Path) -> NodeFiles:
    """Read a node's directory. Raises ``StoreError``, ``InvalidInput``, ``InvalidKeyFile``."""
    if not (directory / GENESIS).exists():
        raise StoreError(f"{directory} is not the directory of a node; make one with anofel node init.")
    genesis = read_genesis(directory / GENESIS)
    return NodeFiles(
        directory=directory,
        genesis=genesis,
        config=_read_config(directory / CONFIG),
        validator=_read_validator(directory / NODE_KEY, genesis),
        storage=_read_storage(directory, genesis),
        keys={
            "registration": _read_key(directory, "registration", genesis.registration_key),
            "submission": _read_key(directory, "submission", genesis.submission_key),
        },
    )


def _key_name(statement: str) -> str:
    return f"{statement}.verification.key"


def _read_config(path: Path) -> NodeConfig:
    try:
        return msgspec.toml.decode(read_small_file(path), type=NodeConfig)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"{path} cannot be used: {error}.") from None


def _read_validator(path: Path, genesis: Genesis) -> MessageSecret:
    try:
        secret = MessageSecret.from_bytes(read_owner_only(path))
    except InvalidKeyFile:
        raise
    except InvalidInput:
        raise InvalidKeyFile(f"{path} is not the key of a node.") from None
    if [validator.key for validator in genesis.validators] != [secret.public_key().to_bytes()]:
        raise InvalidKeyFile(f"{path} is not the key that signs this board's headers, by its genesis.")
    return secret


def _read_storage(directory: Path, genesis: Genesis) -> RoleKey:
    role = RoleKey.from_files(directory / STORAGE_CERTIFICATE, directory / STORAGE_KEY)
    if genesis.holders != (role.chain,):
        raise InvalidKeyFile(
            f"{directory / STORAGE_CERTIFICATE} is not this board's storage holder, by its genesis."
        )
    return role


def _read_key(directory: Path, statement: str, key_id: bytes) -> bytes:
    path = directory / _key_name(statement)
    data = read_key_file(path)
    if hashlib.sha256(data).digest() != key_id:
        raise InvalidKeyFile(f"{path} is not the {statement} verification key that genesis pins.")
    return data
