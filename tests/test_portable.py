"""Locks and files where a system has no ``fcntl``, as on Windows; the real thing runs in a workflow there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from anofel.disk.portable import LockHeld, is_owners_alone, release_lock, take_lock

ROOT = Path(__file__).parents[1]
unix = pytest.mark.skipif(sys.platform == "win32", reason="it imitates Windows, or looks at modes of Unix")
SMALL = ROOT / "src" / "anofel" / "tasks" / "examples" / "small.toml"
WINDOWS = """
import asyncio, os, subprocess, sys, tempfile, types
import fcntl

# msvcrt as its documentation has it, over the locks of this system.
LOCKED = {}
def locking(handle, mode, count):
    assert count == 1 and os.lseek(handle, 0, os.SEEK_CUR) == 0
    if mode == 0:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
for name in ("fcntl", "termios", "resource", "pwd", "grp"):
    sys.modules[name] = None
for name in (
    "geteuid", "getuid", "killpg", "nice", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "pread", "pwrite"
):
    if hasattr(os, name):
        delattr(os, name)
"""


def as_on_windows(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program without what Windows does not have."""
    command = [sys.executable, "-c", WINDOWS + script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


TAKE = """
from pathlib import Path
from anofel.disk.portable import LockHeld, release_lock, take_lock
path = Path(sys.argv[1])
first = take_lock(path)
try:
    take_lock(path)
except LockHeld:
    print("held")
release_lock(first)
release_lock(take_lock(path))
print("free")
"""


def test_one_holds_a_lock_until_it_lets_go(tmp_path: Path) -> None:
    first = take_lock(tmp_path / "lock")
    with pytest.raises(LockHeld):
        take_lock(tmp_path / "lock")
    release_lock(first)
    release_lock(take_lock(tmp_path / "lock"))


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    script = "import sys, pathlib, anofel.disk.portable as p; p.take_lock(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "lock")], check=True)
    release_lock(take_lock(tmp_path / "lock"))


@unix
def test_the_locks_of_windows_do_the_same(tmp_path: Path) -> None:
    done = as_on_windows(TAKE, tmp_path / "lock")
    assert done.stdout.split() == ["held", "free"], done.stderr


@unix
def test_a_file_that_others_may_read_is_not_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    assert is_owners_alone(path.stat())
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        assert not is_owners_alone(path.stat())
    path.chmod(0o600)
    other = os.stat_result([*path.stat()[:4], os.geteuid() + 1, *path.stat()[5:]])
    assert not is_owners_alone(other)


@unix
def test_a_simulation_with_a_board_runs_without_what_windows_lacks(keys: object, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["simulate", SMALL, "--made-up-rows", 100, "--iterations", 1, "--committee", 2]
    script = "from anofel.cli import main; sys.argv[0] = 'anofel'; main()"
    done = as_on_windows(script, *words, "--keys", keys.path, "--out", out, "--json")  # type: ignore[attr-defined]
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iterations"][0]["outcome"] == "summed"
    audited = as_on_windows(script, "audit", out / "board", "--json")
    assert audited.returncode == 0, audited.stderr


@unix
def test_a_role_has_a_key_store_and_is_held_without_what_windows_lacks(tmp_path: Path) -> None:
    script = """
from pathlib import Path
from anofel.disk.keystore import KeyFile
from anofel.roles.directory import RoleBusy, RoleDirectory
path, key = Path(sys.argv[1]) / "role", KeyFile.generate(Path(sys.argv[1]) / "key")
made = dict(role="client", board="http://127.0.0.1:1", genesis_hash=bytes(32))
RoleDirectory.create(path, key, **made, settings={}, secrets={"master": bytes(32)})
with RoleDirectory.open(path, key, role="client"):
    try:
        RoleDirectory.open(path, key, role="client")
    except RoleBusy:
        print("busy")
RoleDirectory.open(path, key, role="client").close()
print("free")
"""
    done = as_on_windows(script, tmp_path)
    assert done.stdout.split() == ["busy", "free"], done.stderr


@unix
def test_what_a_client_imports_is_there_everywhere() -> None:
    """Modules that Windows lacks are imported by those alone that only a node or a certifier needs."""
    modules = (
        "anofel.roles.client.role, anofel.simulation, anofel.cli, anofel.cli.simulate, anofel.cli.client"
    )
    done = as_on_windows(f"import {modules}\nimport anofel.phase2_training.step4_training_process")
    assert done.returncode == 0, done.stderr
