"""The directory of one role: what people edit, what nobody may read, and what the role has verified.

==================== ==================================================================
``role.toml``        role, board, proxy and the role's settings; no secrets; for editing
``secrets.keystore`` the role's secrets (``anofel.disk.keystore``)
``board/``           the verified view of the board (``LightClient``)
``outbox/``          every posting, stored before it is sent (``Outbox``)
``status.json``      what the role saw and did last, for ``status``
``role.lock``        held by the one process that plays the role
==================== ==================================================================
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from anofel.disk.files import FileExists, Secret, replace_file, write_new_directory
from anofel.disk.keystore import KeyFile, Keystore, Passphrase, Unlock
from anofel.disk.portable import LockHeld, release_lock, take_lock
from anofel.disk.sections import read_toml
from anofel.disk.state_files import DamagedState, decode_state
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import GenesisHash
from anofel.light_client.base import BoardClient
from anofel.light_client.following import Follow, open_board
from anofel.network.address import ProxyAddress
from anofel.network.transport import Transport, parse_addresses
from anofel.roles.outbox import Outbox

CONFIG: Final = "role.toml"
KEYSTORE: Final = "secrets.keystore"
BOARD: Final = "board"
OUTBOX: Final = "outbox"
STATUS: Final = "status.json"
LOCK: Final = "role.lock"

Setting = str | int | bool | list[str]
"""What a setting in ``role.toml`` may be."""


class RoleError(AnofelError):
    """A role's directory cannot be used; the message says why."""

    code = "role-directory"


class RoleBusy(RoleError):
    """Another process plays the role."""

    code = "role-busy"


@dataclass(frozen=True, kw_only=True)
class RoleConfig:
    """``role.toml``."""

    role: str
    board: str | list[str]
    """The board's address, or those of several of its nodes."""
    genesis: str
    """The hash of the board's genesis, in hexadecimal."""
    proxy: str = ""
    ca_file: str = ""
    """Roots for the board's TLS certificate, in PEM; empty for those of the system."""
    settings: dict[str, Setting] = field(default_factory=dict)
    """What the role itself reads."""

    def check(self) -> None:
        """Refuse what cannot work. Raises ``InvalidInput``."""
        parse_addresses(self.board)
        if self.proxy:
            ProxyAddress.parse(self.proxy)
        if len(self.genesis_hash) != 32:
            raise InvalidInput("The genesis hash has 64 hexadecimal digits.")

    @property
    def genesis_hash(self) -> GenesisHash:
        """The board's name. Raises ``InvalidInput``."""
        try:
            return GenesisHash(bytes.fromhex(self.genesis))
        except ValueError:
            raise InvalidInput("The genesis hash has 64 hexadecimal digits.") from None

    def to_toml(self) -> bytes:
        """Write the file."""
        lines = ["# Which role this is and where its board is. Secrets are in secrets.keystore."]
        names = ("role", "board", "genesis", "proxy", "ca_file")
        lines += [f"{name} = {_toml(getattr(self, name))}" for name in names]
        lines += ["", "[settings]", *(f"{name} = {_toml(value)}" for name, value in self.settings.items())]
        return ("\n".join(lines) + "\n").encode()


class RoleDirectory:
    """One role, opened by one process at a time."""

    def __init__(self, path: Path, config: RoleConfig, secrets: Keystore, lock: int) -> None:
        self.path = path
        self.config = config
        self.secrets = secrets
        """Changes are kept by ``secrets.save()``."""
        self.outbox = Outbox(path / OUTBOX)
        self._lock: int | None = lock

    @classmethod
    def create(
        cls,
        path: Path,
        unlock: Unlock,
        *,
        role: str,
        board: str | Sequence[str],
        genesis_hash: GenesisHash,
        proxy: str = "",
        ca_file: Path | None = None,
        settings: Mapping[str, Setting] | None = None,
        secrets: Mapping[str, bytes] | None = None,
        files: Mapping[str, bytes | Secret] | None = None,
    ) -> None:
        """Make a role's directory, whole or not at all. Raises ``FileExists``, ``InvalidInput``."""
        if path.exists() or path.is_symlink():
            raise FileExists(f"{path} exists already; it is not overwritten.")
        config = RoleConfig(
            role=role,
            board=board_setting(board),
            genesis=genesis_hash.hex(),
            proxy=proxy,
            ca_file="" if ca_file is None else str(ca_file.absolute()),
            settings=dict(settings or {}),
        )
        config.check()
        locked = _locked_secrets(unlock, role, secrets or {})
        own: dict[str, bytes | Secret] = {CONFIG: config.to_toml(), KEYSTORE: Secret(locked)}
        write_new_directory(path, {**(files or {}), **own}, mode=0o700)

    @classmethod
    def open(cls, path: Path, unlock: Unlock, *, role: str) -> Self:
        """Open a role's directory and hold it. Raises ``RoleError``, ``RoleBusy``, ``KeystoreError``."""
        config = read_config(path, role=role)
        lock = _lock_of(path)
        try:
            return cls(path, config, Keystore.open(path / KEYSTORE, unlock, role=role), lock)
        except BaseException:
            release_lock(lock)
            raise

    def connect(
        self, on_wait: Callable[[str], None] = lambda _what: None, *, follow: Follow = "all"
    ) -> BoardClient:
        """Open the verified view of the board; the first time genesis and keys are fetched and checked.

        ``follow``: whether every posting is verified, or headers and a sample (``header_client``), or which
        of both the size of the board says. ``on_wait`` is told when the board does not answer at once, stands
        still or has another time than this machine. Raises ``PeerUnreachable``.
        """
        transport = Transport(
            self.config.board,
            self.config.proxy or None,
            Path(self.config.ca_file) if self.config.ca_file else None,
            on_wait=lambda words, seconds: on_wait(f"{words}; trying again in {seconds:.0f} s"),
        )
        return open_board(
            self.path / BOARD,
            transport,
            genesis_hash=self.config.genesis_hash,
            tell=on_wait,
            follow=follow,
        )

    def keep_setting(self, name: str, value: Setting) -> None:
        """Write a setting into ``role.toml``."""
        settings = {**self.config.settings, name: value}
        self.config = replace(self.config, settings=settings)
        replace_file(self.path / CONFIG, self.config.to_toml())

    def keep_status(self, status: Mapping[str, Any]) -> None:
        """Keep what ``status`` shows; the last one wins."""
        replace_file(self.path / STATUS, (json.dumps(status, indent=2) + "\n").encode())

    def close(self) -> None:
        """Let the next process have the directory."""
        if self._lock is not None:
            release_lock(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def board_setting(addresses: str | Sequence[str]) -> str | list[str]:
    """Return addresses as ``role.toml`` and invitations have them: one alone is a text."""
    said = [addresses] if isinstance(addresses, str) else list(addresses)
    return said[0] if len(said) == 1 else said


def read_config(path: Path, *, role: str) -> RoleConfig:
    """Read ``role.toml``. Raises ``RoleError``, ``InvalidInput``."""
    if not (path / CONFIG).is_file():
        raise RoleError(f"{path} is not the directory of a role; make one with anofel {role} init.")
    config = read_toml(path / CONFIG, RoleConfig)
    if config.role != role:
        raise RoleError(f"{path} is the directory of the role {config.role!r}, not {role!r}.")
    config.check()
    return config


def read_status(path: Path, *, role: str) -> dict[str, Any]:
    """Return what the role saw and did last, also while it runs; empty if it never ran."""
    read_config(path, role=role)
    try:
        return decode_state((path / STATUS).read_bytes(), dict[str, Any], str(path / STATUS))
    except FileNotFoundError:
        return {}
    except DamagedState:
        raise RoleError(f"{path / STATUS} is damaged; the role writes it again when it runs.") from None


def unlock_with(key_file: Path | None, passphrase_file: Path | None, *, new: bool = False) -> Unlock:
    """Return what opens a key store: a key file, a passphrase file, or else a passphrase from the terminal.

    With ``new`` a key file that is not there is made, and a passphrase is asked for twice.
    """
    if key_file is not None and passphrase_file is not None:
        raise InvalidInput("Give a key file or a passphrase file, not both.")
    if key_file is not None:
        return KeyFile.generate(key_file) if new and not key_file.exists() else KeyFile(key_file)
    if passphrase_file is not None:
        return Passphrase.read(passphrase_file)
    return Passphrase.ask(confirm=new)


def _locked_secrets(unlock: Unlock, role: str, secrets: Mapping[str, bytes]) -> bytes:
    """Return a new key store's bytes; only the locked file ever touches the disk."""
    with tempfile.TemporaryDirectory(prefix="anofel-") as directory:
        path = Path(directory) / KEYSTORE
        store = Keystore.create(path, unlock, role=role)
        for name, value in secrets.items():
            store[name] = value
        store.save()
        return path.read_bytes()


def _lock_of(path: Path) -> int:
    try:
        return take_lock(path / LOCK)
    except LockHeld:
        raise RoleBusy(f"Another process plays the role in {path}.") from None


def _toml(value: Setting) -> str:
    """Write a value; strings of JSON without escapes beyond the basic ones are strings of TOML."""
    return json.dumps(value, ensure_ascii=False)
