"""A certifier with a policy, and clients with files of patients, in directories."""

import csv
import json
from pathlib import Path
from typing import Any

from anofel.disk.keystore import KeyFile
from anofel.pki.certificates import RoleKey
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certifier.role import Certifier, init_certifier
from anofel.roles.client.files import init_client
from anofel.roles.directory import RoleDirectory
from tests.patients import DOCUMENT, make_table

TYPE = 7


def toml(value: Any) -> str:
    """Inline TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(entry) for entry in value) + "]"
    return json.dumps(value)


def write_schema(path: Path) -> Path:
    path.write_text(f"schema = {toml(DOCUMENT['schema'])}\n")
    return path


def write_table(path: Path, rows: int = 30, seed: int = 0) -> Path:
    table = make_table(rows, seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(zip(*table.columns.values(), strict=True))
    return path


def write_policy(directory: Path, **changes: object) -> Path:
    write_schema(directory / "schema.toml")
    values = {"type": TYPE, "schema": "schema.toml", "min_rows": 10, "max_rows": 100, "max_duplicates": 3}
    policy = directory / "policy.toml"
    lines = [f"{name} = {toml(value)}" for name, value in (values | changes).items()]
    policy.write_text("[[dataset]]\n" + "\n".join(lines) + "\n")
    return policy


def make_certifier(
    directory: Path, keys: KeyDirectory, role: RoleKey, *, board: str, genesis: bytes, **policy: object
) -> tuple[Path, KeyFile]:
    directory.mkdir(exist_ok=True)
    unlock = KeyFile.generate(directory / "key")
    path = directory / "role"
    init_certifier(
        path,
        unlock,
        board=board,
        genesis_hash=genesis,
        role_key=role,
        keys=keys,
        policy=write_policy(directory, **policy),
    )
    return path, unlock


def open_certifier(path: Path, unlock: KeyFile) -> Certifier:
    return Certifier(RoleDirectory.open(path, unlock, role="certifier"))


def make_client(
    directory: Path,
    keys: KeyDirectory,
    *,
    board: str,
    genesis: bytes,
    seed: int = 0,
    rows: int = 30,
    proxy: str = "",
    **settings: Any,
) -> tuple[Path, KeyFile]:
    directory.mkdir(exist_ok=True)
    unlock = KeyFile.generate(directory / "key")
    path = directory / "role"
    values = {"dataset_type": TYPE, "max_epsilon": "1000", "first_wait": 0, "max_colluders": 0}
    init_client(
        path,
        unlock,
        board=board,
        genesis_hash=genesis,
        data=write_table(directory / "patients.csv", rows, seed),
        schema=write_schema(directory / "schema.toml"),
        keys=keys.path,
        settings={name: value for name, value in (values | settings).items() if value is not None},
        proxy=proxy,
    )
    return path, unlock


def open_client(path: Path, unlock: KeyFile) -> RoleDirectory:
    return RoleDirectory.open(path, unlock, role="client")
