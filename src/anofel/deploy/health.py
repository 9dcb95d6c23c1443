"""Whether the role in a directory is well: what a container engine or a monitor asks every minute."""

import time
from pathlib import Path
from typing import Final

from anofel.disk.sections import read_toml
from anofel.errors import AnofelError
from anofel.node.reader import BlockReader
from anofel.roles.directory import CONFIG, RoleConfig, read_status
from anofel.storage.blocks import FILE, GENESIS, read_genesis

STALE_SECONDS: Final = 600
"""How long a role may not have looked at the board."""


class NotWell(AnofelError):
    """A role is not well; the message says why."""

    code = "not-well"


def check_health(path: Path) -> str:
    """Say how a role is. Raises ``NotWell``.

    A node: its last block is younger than ten minutes, or than ten intervals. A role that follows the board:
    it looked at it within ten minutes. A certifier keeps no such time; its directory is whole.
    """
    if (path / GENESIS).exists() and (path / FILE).exists():
        return _node(path)
    if not (path / CONFIG).is_file():
        raise NotWell(f"{path} is no directory of a role yet.")
    role = read_toml(path / CONFIG, RoleConfig).role
    if role == "certifier":
        return "the certifier's directory is whole"
    status = read_status(path, role=role)
    age = int(time.time()) - int(status.get("time", 0))
    if age > STALE_SECONDS:
        raise NotWell(f"The {role} last looked at the board {age} seconds ago.")
    if status.get("trouble"):
        raise NotWell(str(status["trouble"]))
    return f"the {role} looked at the board {age} seconds ago"


def _node(path: Path) -> str:
    genesis, reader = read_genesis(path / GENESIS), BlockReader(path)
    try:
        header = reader.header(reader.height())
    finally:
        reader.close()
    age = int(time.time()) - (genesis.time if header is None else header.time)
    if age > max(STALE_SECONDS, genesis.interval_ms // 100):
        raise NotWell(f"The board's last block is {age} seconds old.")
    return f"the last block is {age} seconds old"
