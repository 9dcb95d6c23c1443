"""What keeps a Flower app to itself: no network, no other files, no process that outlives it.

In this order, the first that works on this machine:

1. bubblewrap (``bwrap``): namespaces of its own for network, processes and files. It sees the system's
   programs and libraries, its Python, itself and the data that it was given, all read-only; what it writes is
   gone with it.
2. ``unshare``: namespaces of its own for network and processes, and temporary files that are gone with it. It
   sees all files that the user sees, and sockets are files: what listens at one of them can be asked to use
   its network.
3. nothing: only if the user says so (``--insecure-flower-network``); what it starts may then outlive it.

With both it has no terminal either, in which it could type commands.

Not closed by any of them: the CPU's side channels, and what training itself puts into the update.
"""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from anofel.learning.flower.settings import FlowerApp, FlowerRefused

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_LOOKED_UP: Final = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/mime.types",
    "/sys/devices/system/cpu",
)
"""What the loader and libraries read, and nothing that names the machine or its users."""
_KEPT: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "OMP_NUM_THREADS",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "HF_DATASETS_CACHE",
    "TORCH_HOME",
)
"""Variables of the environment that an app gets; others may hold secrets."""
_SECONDS: Final = 60
_ASK: Final = """
import json, sys
print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]))
"""
NETWORK_CLOSED: Final = "It has no network."
FILES_CLOSED: Final = (
    "It sees the system's programs, its Python, itself and the data it was given, and no other files."
)
FILES_OPEN: Final = (
    "It sees every file that you may read, since bubblewrap (bwrap) is not here or may not make namespaces."
)
NETWORK_OPEN: Final = "INSECURE: it has this machine's network, and could send your data anywhere."


@dataclass(frozen=True)
class Isolation:
    """How an app is started, and what that keeps from it."""

    kind: str
    prefix: tuple[str, ...]
    sentences: tuple[str, ...]
    """What it can and cannot do, for people."""

    @property
    def has_own_files(self) -> bool:
        """Whether what the app writes is gone with it."""
        return self.kind == "bubblewrap"


def isolation_of(app: FlowerApp, worker: Path) -> Isolation:
    """Choose the isolation of an app. Raises ``FlowerRefused`` if its network cannot be closed."""
    if app.insecure_network:
        return Isolation("none", (), (NETWORK_OPEN, FILES_OPEN))
    if _works(*_SEALED, "--ro-bind", "/", "/"):
        return Isolation("bubblewrap", _sealed(app, worker), (NETWORK_CLOSED, FILES_CLOSED))
    if _works(*_UNSHARED):
        return Isolation("unshare", _UNSHARED, (NETWORK_CLOSED, FILES_OPEN))
    raise FlowerRefused(
        "The network of the Flower app cannot be closed here: neither bwrap (bubblewrap) nor unshare may "
        "make namespaces. Install bubblewrap, or allow it with --insecure-flower-network."
    )


def environment() -> dict[str, str]:
    """Give the variables that an app gets."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


# A session of its own has no terminal; the process that is started here stays in the one of its parent, with
# which it is ended.
_SEALED: Final = (
    *("bwrap", "--unshare-all", "--new-session", "--die-with-parent"),
    *("--proc", "/proc", "--dev", "/dev"),
)
_UNSHARED: Final = (
    *("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *("sh", "-c", 'mount -t tmpfs -o mode=700 tmpfs "${TMPDIR:-/tmp}" && exec setsid "$@"', "sh"),
)
"""Its temporary files are in memory: whoever kills it cannot clean up after it."""


@cache
def _works(*command: str) -> bool:
    """Whether a way of isolation works here, tried on a program that does nothing."""
    nothing = shutil.which("true")
    if shutil.which(command[0]) is None or nothing is None:
        return False
    try:
        done = subprocess.run([*command, nothing], capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _sealed(app: FlowerApp, worker: Path) -> tuple[str, ...]:
    command = list(_SEALED)
    for place in _SYSTEM:
        if os.path.islink(place):
            command += ["--symlink", os.readlink(place), place]
        else:
            command += ["--ro-bind-try", place, place]
    for place in _LOOKED_UP:
        command += ["--ro-bind-try", place, place]
    command += ["--tmpfs", "/tmp"]  # noqa: S108 - one of the app's own, in memory
    if "HOME" in os.environ:
        command += ["--tmpfs", os.environ["HOME"]]
    for place in dict.fromkeys([*_python_paths(app.python), app.directory, str(worker), *app.data]):
        command += ["--ro-bind", place, place]
    return (*command, "--chdir", app.directory, "--remount-ro", "/", "--")


@cache
def _python_paths(python: str) -> tuple[str, ...]:
    """Ask an interpreter where it keeps itself and its packages. Raises ``FlowerRefused``."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK], capture_output=True, timeout=_SECONDS, check=True, env=environment()
        )
        told: list[str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise FlowerRefused(f"'{python}' is not a Python that starts; name the one of the app.") from None
    places = [Path(python), *(Path(text) for text in told if text)]
    found = {str(place.absolute()) for place in places if place.exists()}
    found |= {str(place.resolve()) for place in places if place.exists()}
    whole = sorted(place for place in found if not place.startswith(("/usr/", "/bin/", "/lib")))
    return tuple(place for place in whole if not any(place.startswith(f"{other}/") for other in whole))
