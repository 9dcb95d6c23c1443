"""The directory of a validator is that of an embedded node, and more.

====================== ==================================================================
``network.toml``       where the validators are (``network``)
``validator.pem/.key`` the role that vouches for ``node.key``; the key for the owner only
``engine.key``         what names this engine among the others, for the owner only
``engine/``            CometBFT's own files; ``engine/config`` is written anew at each start
====================== ==================================================================

There is no ``signed.bin``: what this validator voted for is in ``engine/data``, and no block is its alone.
"""

from pathlib import Path
from typing import Final

from anofel.disk.files import Secret, write_new_directory
from anofel.errors import InvalidInput, InvalidKeyFile
from anofel.messages import Genesis
from anofel.node.files import (
    CONFIG,
    NODE_KEY,
    STORAGE_CERTIFICATE,
    STORAGE_KEY,
    NodeConfig,
    proof_key_files,
)
from anofel.node.replicated.engine import EngineKeys, new_home
from anofel.node.replicated.network import NETWORK, Network
from anofel.pki.certificates import RoleKey, read_owner_only
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import GENESIS

TRANSPORT_KEY: Final = "engine.key"
VALIDATOR_CERTIFICATE: Final = "validator.pem"
VALIDATOR_KEY: Final = "validator.key"


def write_validator(
    directory: Path,
    genesis: Genesis,
    network: Network,
    *,
    engine: EngineKeys,
    validator: RoleKey,
    storage: RoleKey,
    keys: KeyDirectory,
    config: NodeConfig,
) -> None:
    """Write a validator's directory, whole or not at all. Raises ``FileExists``, ``InvalidInput``."""
    files: dict[str, bytes | Secret] = {
        GENESIS: genesis.to_bytes(),
        CONFIG: config.to_toml(),
        NETWORK: network.to_toml(),
        NODE_KEY: Secret(engine.validator.to_secret_bytes()),
        TRANSPORT_KEY: Secret(engine.transport.to_secret_bytes()),
        VALIDATOR_CERTIFICATE: validator.chain_pem(),
        VALIDATOR_KEY: Secret(validator.key_pem()),
        STORAGE_CERTIFICATE: storage.chain_pem(),
        STORAGE_KEY: Secret(storage.key_pem()),
        **new_home(),
        **proof_key_files(keys),
    }
    write_new_directory(directory, files)


def read_transport_key(directory: Path) -> MessageSecret:
    """Read what names this engine among the others. Raises ``InvalidKeyFile``."""
    path = directory / TRANSPORT_KEY
    try:
        return MessageSecret.from_bytes(read_owner_only(path))
    except InvalidKeyFile:
        raise
    except InvalidInput:
        raise InvalidKeyFile(f"{path} is not the key of an engine.") from None
