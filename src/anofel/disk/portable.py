"""What Windows does in another way than Linux and macOS: locks, owners of files, groups of processes.

Client and simulation run on all three. What is not there on Windows is asked for by name, so that a system
without it is told from one with it, whatever it is called.

Security: on Windows the access list of a file decides who may read it. It is not looked at, so there a key
store is as private as the directory that it was made in.
"""

import os
import signal
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt


class LockHeld(Exception):
    """Another process holds the lock."""


def take_lock(path: Path) -> int:
    """Take the lock of a file, which is made if need be, without waiting; it ends with this process.

    Raises ``LockHeld``, ``OSError``.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError:
        os.close(handle)
        raise LockHeld(str(path)) from None
    return handle


def release_lock(handle: int) -> None:
    """Let go of a lock."""
    if fcntl is None:  # Windows lets go of it some time after the file is closed
        with suppress(OSError):
            os.lseek(handle, 0, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    os.close(handle)


def is_owners_alone(status: os.stat_result) -> bool:
    """Whether nobody but this user may read or write a file; on Windows that is not known."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def sync_directory(directory: Path) -> None:
    """Let the names in a directory survive a crash; Windows opens no directory, and keeps them by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started in a session of its own, and all that it started.

    On Windows what it started may live on.
    """
    if not hasattr(os, "killpg"):
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def kill_own_group() -> None:
    """Kill this process and all of its session, at once."""
    if not hasattr(os, "killpg"):
        os._exit(1)
    os.killpg(0, signal.SIGKILL)


def give_way() -> None:
    """Let other processes go first, where the system knows that."""
    if hasattr(os, "nice"):
        os.nice(10)
