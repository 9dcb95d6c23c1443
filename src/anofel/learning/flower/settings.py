"""What names a Flower app and bounds it; kept in a role's file, and sent to the process that trains.

The digest of an app covers its files and the settings that differ from its own, so that a task, a certificate
and a client can mean the same app:

    SHA-256( domain ‖ canonical JSON of {files: {path: SHA-256}, config: overrides} )

Files and directories whose names begin with a dot, ``__pycache__`` and compiled modules do not count.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anofel.disk.files import read_small_file
from anofel.disk.sections import canonical_json
from anofel.errors import InvalidInput

AppValue = bool | int | float | str
_DOMAIN: Final = b"anofel.flower-app.v1\0"
_PAIR: Final = re.compile(r'(?:[^\s"]|"[^"]*")+')
"""A word, in which spaces stand between double quotes only."""
_MAX_FILES: Final = 10_000
_MAX_BYTES: Final = 1 << 26
DEFAULT_SECONDS: Final = 600
DEFAULT_GIGABYTES: Final = 8


class FlowerRefused(InvalidInput):
    """A Flower app cannot be used; the message says what would be lost or is missing."""

    code = "flower-refused"


@dataclass(frozen=True, kw_only=True)
class FlowerApp:
    """A Flower app, the Python that runs it, what it may see and how much it may take."""

    directory: str
    python: str
    digest: str = ""
    """What the app must be, in hexadecimal; empty for whatever is there."""
    data: tuple[str, ...] = ()
    """Files and directories that the app may read, beside itself and its Python."""
    node: tuple[tuple[str, AppValue], ...] = ()
    """``node_config``: what the app learns about this node."""
    config: tuple[tuple[str, AppValue], ...] = ()
    """Settings of the run that differ from those in the app's ``pyproject.toml``."""
    seconds: int = DEFAULT_SECONDS
    """The longest that one training may take."""
    gigabytes: int = DEFAULT_GIGABYTES
    """The most memory of the app's process, where the system can bound it."""
    insecure_network: bool = False
    """Whether the app may run where its network cannot be closed."""

    @property
    def name(self) -> str:
        """How messages call it."""
        return Path(self.directory).name

    def manifest(self) -> "Manifest":
        """Read what the app says of itself. Raises ``FlowerRefused``."""
        return Manifest.read(Path(self.directory), dict(self.config))

    def check_digest(self) -> str:
        """Compute the digest and hold it against what the app must be. Raises ``FlowerRefused``."""
        found = app_digest(Path(self.directory), dict(self.config))
        if self.digest and found != self.digest:
            raise FlowerRefused(
                f"The Flower app in {self.directory} is not the one that was chosen: its digest is "
                f"{found[:16]}…, not {self.digest[:16]}…. Take the right files, or choose it anew."
            )
        return found


def app_refused(demanded: str, own: object) -> str:
    """Say why rows that are certified for one app are not trained by ``own``; empty if they are."""
    if not demanded:
        return ""
    if not isinstance(own, FlowerApp):
        return f"the schema names the Flower app {demanded[:16]}…; bring it with --flower-app."
    found = own.check_digest()
    if found != demanded:
        return f"the schema names the Flower app {demanded[:16]}…, and this one is {found[:16]}…."
    return ""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The parts of an app and its settings, from its ``pyproject.toml``."""

    components: dict[str, str]
    config: dict[str, AppValue]

    @classmethod
    def read(cls, directory: Path, overrides: Mapping[str, AppValue]) -> "Manifest":
        """Read it. Raises ``FlowerRefused``, ``InvalidInput``."""
        path = directory / "pyproject.toml"
        try:
            app = tomllib.loads(read_small_file(path).decode())["tool"]["flwr"]["app"]
            components = {part: str(app["components"][part]) for part in ("clientapp", "serverapp")}
            own = _flat(app.get("config", {}))
        except (KeyError, TypeError, AttributeError):
            raise FlowerRefused(
                f"{path} has no [tool.flwr.app.components] with a clientapp and a serverapp."
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FlowerRefused(f"{path} is not TOML: {error}.") from None
        unknown = sorted(set(overrides) - set(own))
        if unknown:
            raise FlowerRefused(f"The app has no setting {', '.join(unknown)}; it has {', '.join(own)}.")
        return cls(components=components, config={**own, **overrides})


def app_digest(directory: Path, overrides: Mapping[str, AppValue]) -> str:
    """Compute the digest of an app, in hexadecimal. Raises ``FlowerRefused``."""
    files: dict[str, str] = {}
    total = 0
    for path in _files(directory):
        data = read_small_file(path, _MAX_BYTES)
        total += len(data)
        if total > _MAX_BYTES or len(files) >= _MAX_FILES:
            raise FlowerRefused(
                f"{directory} holds more than {_MAX_FILES:,} files or {_MAX_BYTES >> 20} MiB; move the data "
                "out of the app and name them with --flower-data."
            )
        files[path.relative_to(directory).as_posix()] = hashlib.sha256(data).hexdigest()
    config = {name: [type(value).__name__, str(value)] for name, value in overrides.items()}
    document: dict[str, Any] = {"files": files, "config": config}
    return hashlib.sha256(_DOMAIN + canonical_json(document)).hexdigest()


def _files(directory: Path) -> Iterable[Path]:
    for place, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if _counts(name))
        for name in sorted(names):
            if _counts(name) and not name.endswith(".pyc"):
                yield Path(place) / name


def _counts(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, AppValue]:
    """Write nested settings with dots, as Flower does."""
    made: dict[str, AppValue] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            made |= _flat(value, f"{prefix}{key}.")
        else:
            made[prefix + key] = value
    return made


def read_pairs(texts: Iterable[str], what: str) -> tuple[tuple[str, AppValue], ...]:
    """Read ``key=value`` pairs as Flower's commands take them: values are TOML. Raises ``InvalidInput``."""
    found: dict[str, AppValue] = {}
    for text in texts:
        for pair in _PAIR.findall(text):
            key, equals, value = pair.partition("=")
            try:
                read = tomllib.loads(f"value = {value}")["value"]
            except tomllib.TOMLDecodeError:
                read = None
            if not equals or not key or not isinstance(read, bool | int | float | str):
                raise InvalidInput(f"{what}: '{pair}' is no key=value; texts stand in double quotes.")
            found[key] = read
    return tuple(found.items())
