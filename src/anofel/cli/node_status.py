"""Where a board stands, from its node or from its directory."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def status_of_directory(directory: Path) -> dict[str, Any]:
    """Read a directory, also while its node runs. Raises ``StoreError``."""
    from anofel.node.files import BLOBS
    from anofel.node.reader import BlockReader
    from anofel.storage.blobs.index import stored_bytes
    from anofel.storage.blocks import FILE, GENESIS, StoreError, read_genesis

    if not (directory / GENESIS).exists():
        raise StoreError(f"{directory} is not the directory of a node; make one with anofel node init.")
    genesis = read_genesis(directory / GENESIS)
    found: dict[str, Any] = {
        "name": genesis.name,
        "genesis": genesis.hash.hex(),
        "height": 0,
        "tip": genesis.hash.hex(),
        "time": genesis.time,
        "interval_ms": genesis.interval_ms,
        "rules": genesis.rules,
        "insecure": genesis.insecure,
    }
    if (directory / FILE).exists():
        reader = BlockReader(directory)
        header = reader.header(reader.height())
        reader.close()
        if header is not None:
            found |= {"height": header.height, "tip": header.hash(genesis.hash).hex(), "time": header.time}
    found["board_bytes"] = _size(directory, f"{FILE}*")
    found["blob_bytes"] = stored_bytes(directory / BLOBS)
    return found


def status_of_url(url: str, ca_file: Path | None, proxy: str = "") -> dict[str, Any]:
    """Ask a node. Raises ``PeerUnreachable``, ``InvalidInput``."""
    from anofel.light_client.remote import read_json
    from anofel.network.transport import Transport

    board = Transport(url, proxy or None, ca_file, attempts=1)
    return board.ask("GET", "/v1/status", lambda data: read_json(data, dict[str, Any]), max_bytes=1 << 16)


def for_people(found: dict[str, Any]) -> dict[str, Any]:
    """Write times, durations and sizes as people read them; what a node says beyond that stays."""
    shown = dict(found)
    if isinstance(found.get("time"), int):
        shown["time"] = f"{datetime.fromtimestamp(found['time'], UTC):%Y-%m-%d %H:%M:%S} UTC"
    if "interval_ms" in found:
        shown["interval_ms"] = f"{found['interval_ms'] / 1000:g} s"
    for name in ("board_bytes", "blob_bytes"):
        if name in found:
            shown[name] = f"{found[name] / 1e6:.1f} MB"
    names = {
        "interval_ms": "a block every",
        "time": "last block",
        "board_bytes": "board",
        "blob_bytes": "files",
    }
    return {names.get(name, name): value for name, value in shown.items()}


def _size(directory: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in directory.glob(pattern) if path.is_file())
