"""The directory of an embedded node: what the board is, how the node runs, and its keys.

====================== ==================================================================
``genesis.bin``        what the board starts from; everybody gets a copy
``node.toml``          how this node runs; may be edited while it is stopped
``node.key``           the secret that signs headers, for the owner's eyes only
``storage.pem/.key``   the storage role that signs receipts; the key for the owner only
``….key``              the verification and proving keys whose ids genesis pins
``board.sqlite``       blocks and accepted postings (``anofel.storage.blocks``)
``signed.bin``         the last signed block and what was accepted since (``anofel.node.signed``)
``blobs/``             blobs by hash (``anofel.storage.blobs``)
====================== ==================================================================
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from anofel.board.engines import Engine
from anofel.board.validators import MAX_PLACES
from anofel.disk.files import Secret, write_new_directory
from anofel.disk.sections import read_toml
from anofel.errors import InvalidInput, InvalidKeyFile
from anofel.messages import Genesis
from anofel.node.signed import SIGNED, new_file
from anofel.pki.certificates import RoleKey, read_owner_only
from anofel.primitives import MessageSecret
from anofel.proofs.keys import (
    ROLES,
    STATEMENTS,
    KeyDirectory,
    KeyRole,
    StatementName,
    key_file_name,
    pin_name,
    read_key_file,
    served_name,
)
from anofel.storage.blobs.errors import disk_errors
from anofel.storage.blobs.files import HERE, BlobFiles, DirectoryFiles
from anofel.storage.blobs.s3 import S3Config, S3Files, s3_name
from anofel.storage.blobs.store import kept_in
from anofel.storage.blocks import GENESIS, StoreError, read_genesis

CONFIG: Final = "node.toml"
NODE_KEY: Final = "node.key"
STORAGE_CERTIFICATE: Final = "storage.pem"
STORAGE_KEY: Final = "storage.key"
BLOBS: Final = "blobs"
PLACE: Final = "place.txt"
"""Of a validator that came after genesis."""
GIB: Final = 1 << 30
FEWEST_ENGINE_BLOCKS: Final = 100
"""What an engine that was killed may have to play again, and much more."""


Positive = Annotated[int, Meta(ge=1)]
_ONION: Final = re.compile(r"http://[a-z2-7]{56}\.onion(:[0-9]{1,5})?")


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    """How a node runs. Nothing here changes the board."""

    snapshot_blocks: Positive = 300
    """A snapshot of the state is kept every so many blocks,"""
    snapshot_postings: Positive = 2000
    """or after so many postings; whatever comes first bounds what a start must verify."""
    receipt_blocks: Positive = 600
    """For how many blocks a blob is kept that no posting names."""
    max_blob_bytes: Positive = 100 * GIB
    """All blobs together."""
    max_pending_bytes: Positive = 10 * GIB
    """Uploads and blobs that no posting names yet."""
    min_free_bytes: Positive = GIB // 4
    """What uploads leave free on the disk, so that blocks always find room."""
    engine_blocks: Annotated[int, Meta(ge=0)] = 0
    """How many of its own blocks the engine of a validator keeps at least, beside ours; 0 for all."""
    s3: S3Config | None = None
    """Where blobs are kept, if not in the directory."""
    onion: str = ""
    """Where the board is reached through Tor, http://….onion; its page announces it."""

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what cannot be used."""
        if self.onion and not _ONION.fullmatch(self.onion):
            yield "onion", "must be an address of 56 letters and digits, http://….onion"
        if 0 < self.engine_blocks < FEWEST_ENGINE_BLOCKS:
            yield "engine_blocks", f"must be 0, for all, or at least {FEWEST_ENGINE_BLOCKS}"

    def to_toml(self) -> bytes:
        """Write the file."""
        lines = ["# How this node runs. What the board is stands in genesis.bin."]
        lines += [f"{name} = {value}" for name, value in vars(self).items() if name not in ("onion", "s3")]
        lines += [f'onion = "{self.onion}"'] if self.onion else []
        if self.s3 is not None:
            lines += ["", "[s3]", *(f'{name} = "{value}"' for name, value in vars(self.s3).items() if value)]
        return ("\n".join(lines) + "\n").encode()


@dataclass(frozen=True)
class NodeFiles:
    """Everything that a node reads from its directory, checked against genesis."""

    directory: Path
    genesis: Genesis
    config: NodeConfig
    validator: MessageSecret
    storage: RoleKey
    place: int
    """Which validator this node is: one of genesis, or the place that it came to later."""
    holder: int
    """Which storage holder it is."""
    keys: dict[str, bytes]
    """The proof keys by the names under which they are handed out."""

    @property
    def key_ids(self) -> dict[str, bytes]:
        """Their ids, by the same names."""
        pins = self.genesis.key_pins
        return {served_name(name, role): pins[pin_name(name, role)] for name in STATEMENTS for role in ROLES}


def write_node(
    directory: Path,
    genesis: Genesis,
    validator: MessageSecret,
    storage: RoleKey,
    keys: KeyDirectory,
    config: NodeConfig,
) -> None:
    """Write a new node's directory, whole or not at all. Raises ``FileExists``, ``InvalidInput``."""
    files: dict[str, bytes | Secret] = {
        GENESIS: genesis.to_bytes(),
        CONFIG: config.to_toml(),
        NODE_KEY: Secret(validator.to_secret_bytes()),
        STORAGE_CERTIFICATE: storage.chain_pem(),
        STORAGE_KEY: Secret(storage.key_pem()),
        SIGNED: new_file(genesis.hash),
        **proof_key_files(keys),
    }
    write_new_directory(directory, files)


def proof_key_files(keys: KeyDirectory) -> dict[str, bytes]:
    """Return the proof keys as every node holds them."""
    return {key_file_name(name, role): keys.file(name, role).read() for name in STATEMENTS for role in ROLES}


def read_node(directory: Path) -> NodeFiles:
    """Read a node's directory. Raises ``StoreError``, ``InvalidInput``, ``InvalidKeyFile``."""
    if not (directory / GENESIS).exists():
        raise StoreError(f"{directory} is not the directory of a node; make one with anofel node init.")
    genesis = read_genesis(directory / GENESIS)
    validator, place = read_validator(directory / NODE_KEY, genesis)
    storage, holder = _read_storage(directory, genesis)
    return NodeFiles(
        directory=directory,
        genesis=genesis,
        config=read_toml(directory / CONFIG, NodeConfig),
        validator=validator,
        storage=storage,
        place=place,
        holder=holder,
        keys={
            served_name(name, role): _read_key(directory, name, role, genesis)
            for name in STATEMENTS
            for role in ROLES
        },
    )


def blob_files(files: NodeFiles) -> BlobFiles:
    """Return where a node keeps blobs. Raises ``InvalidInput``, ``PlaceUnreachable``."""
    config = files.config.s3
    if config is None:
        return DirectoryFiles(files.directory / BLOBS)
    return S3Files(config, s3_name(config, files.genesis.hash, files.holder))


def kept_blob_files(directory: Path) -> BlobFiles:
    """Return where the node of a directory, or of a copy of it, kept blobs when it last ran.

    Raises ``InvalidInput``, ``BlobStoreUnwritable``.
    """
    where = kept_in(directory / BLOBS)
    if where == HERE:
        return DirectoryFiles(directory / BLOBS)
    config = read_toml(directory / CONFIG, NodeConfig).s3
    if config is None:
        raise InvalidInput(f"Blobs are kept in {where}, and {directory / CONFIG} has no [s3].")
    with disk_errors(directory / BLOBS):
        return S3Files(config, where)


def read_place(directory: Path) -> int | None:
    """Return the place that this validator came to after genesis, if it did. Raises ``InvalidInput``."""
    path = directory / PLACE
    if not path.exists():
        return None
    text = path.read_text().strip()
    if not text.isdecimal() or int(text) >= MAX_PLACES:
        raise InvalidInput(f"{path} does not hold the place of a validator.")
    return int(text)


def read_validator(path: Path, genesis: Genesis) -> tuple[MessageSecret, int]:
    """Read the key that votes, and say which validator it is. Raises ``InvalidKeyFile``.

    Whether the board took up one that came after genesis stands in its blocks.
    """
    try:
        secret = MessageSecret.from_bytes(read_owner_only(path))
    except InvalidKeyFile:
        raise
    except InvalidInput:
        raise InvalidKeyFile(f"{path} is not the key of a node.") from None
    place = read_place(path.parent)
    if place is not None and genesis.engine == Engine.COMETBFT:
        return secret, place
    known, own = [validator.key for validator in genesis.validators], secret.public_key().to_bytes()
    if own not in known or (genesis.engine == Engine.EMBEDDED and len(known) > 1):
        raise InvalidKeyFile(f"{path} is not the key that signs this board's headers, by its genesis.")
    return secret, known.index(own)


def _read_storage(directory: Path, genesis: Genesis) -> tuple[RoleKey, int]:
    role = RoleKey.from_files(directory / STORAGE_CERTIFICATE, directory / STORAGE_KEY)
    place = read_place(directory)
    if place is not None and genesis.engine == Engine.COMETBFT:
        return role, place
    if role.chain not in genesis.holders or (genesis.engine == Engine.EMBEDDED and len(genesis.holders) > 1):
        raise InvalidKeyFile(
            f"{directory / STORAGE_CERTIFICATE} is not this board's storage holder, by its genesis."
        )
    return role, genesis.holders.index(role.chain)


def _read_key(directory: Path, name: StatementName, role: KeyRole, genesis: Genesis) -> bytes:
    path = directory / key_file_name(name, role)
    data = read_key_file(path)
    if hashlib.sha256(data).digest() != genesis.key_pins[pin_name(name, role)]:
        raise InvalidKeyFile(f"{path} is not the {name} {role} key that genesis pins.")
    return data
