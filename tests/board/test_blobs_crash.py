"""A process killed with SIGKILL at every point of an upload or a removal leaves a store that repairs itself.

The points are the calls that change the disk: before and after each of them the child kills itself. A killed
process loses nothing that it handed to the kernel, so this shows the order of steps to be right, not that a
disk honours fsync.
"""

import hashlib
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from anofel.storage.blobs.errors import BlobUnknown
from anofel.storage.blobs.store import BlobStore, Usage
from tests.board.test_blobs import has

DATA = b"a blob that is on its way" * 1000
OLD = b"a blob that was there before"

CHILD = """
import os, signal, sys
from pathlib import Path
from anofel.storage.blobs import index as blob_index
from anofel.storage.blobs.store import BlobStore
from tests.board.test_blobs import put
from tests.board.test_blobs_crash import DATA

directory, operation, deadly = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
passed = 0

def point(name):
    global passed
    passed += 1
    os.write(1, (name + "\\n").encode())
    if passed == deadly:
        os.kill(os.getpid(), signal.SIGKILL)

def guarded(name, call):
    def wrapper(*args, **kwargs):
        point("before " + name)
        result = call(*args, **kwargs)
        point("after " + name)
        return result
    return wrapper

store = BlobStore(directory, 1 << 20, 1 << 20)
for name in ("fsync", "replace", "mkdir", "unlink"):
    setattr(os, name, guarded(name, getattr(os, name)))

class Guarded:
    def __init__(self, connection):
        self._connection = connection
    def execute(self, statement, *args):
        call = self._connection.execute
        return (guarded("commit", call) if statement == "COMMIT" else call)(statement, *args)
    def __getattr__(self, name):
        return getattr(self._connection, name)

store._index._connection = Guarded(store._index._connection)
if operation == "upload":
    put(store, DATA)
    point("receipt")
else:
    store.prune(1000)
    os.write(1, b"pruned\\n")
"""


def run_child(directory: Path, operation: str, deadly: int) -> tuple[int, list[str]]:
    result = subprocess.run(
        [sys.executable, "-c", CHILD, str(directory), operation, str(deadly)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode in (0, -signal.SIGKILL), result.stderr
    return result.returncode, result.stdout.split("\n")[:-1]


def check(directory: Path) -> None:
    """Nothing is there but what the index says, and the sums are those of the files."""
    with sqlite3.connect(directory / "index.sqlite") as connection:
        rows = connection.execute("SELECT sha256, length FROM blob WHERE state = 0").fetchall()
        assert connection.execute("SELECT count(*) FROM upload").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM blob WHERE state = 1").fetchone() == (0,)
    connection.close()
    assert {p.name: p.stat().st_size for p in directory.glob("??/??/*")} == {h.hex(): n for h, n in rows}
    assert list((directory / "uploads").iterdir()) == []
    assert all(any(path.iterdir()) for path in directory.glob("??/**/") if path.is_dir())


def prepare(directory: Path) -> bytes:
    with (
        BlobStore(directory, 1 << 20, 1 << 20) as store,
        store.begin(hashlib.sha256(OLD).digest(), len(OLD), expires=5) as upload,
    ):
        upload.write(OLD)
        upload.finish()
    return hashlib.sha256(OLD).digest()


def points(directory: Path, operation: str) -> list[str]:
    prepare(directory)
    code, passed = run_child(directory, operation, 0)
    assert code == 0
    return passed[:-1]


def test_an_upload_killed_at_any_point_is_whole_or_absent(tmp_path):
    named = points(tmp_path / "survey", "upload")
    assert {n.split()[1] for n in named} == {"commit", "fsync", "replace", "mkdir"}
    name = hashlib.sha256(DATA).digest()
    for deadly in range(1, len(named) + 1):
        directory = tmp_path / str(deadly)
        old = prepare(directory)
        code, passed = run_child(directory, "upload", deadly)
        assert code == -signal.SIGKILL
        assert passed == named[:deadly]
        with BlobStore(directory, 1 << 20, 1 << 20) as store:
            assert store.read(old) == OLD
            whole = has(store, name)
            assert whole == (deadly >= len(named))  # only the last commit makes it appear
            assert store.usage().kept == len(OLD) + whole * len(DATA)
            if whole:
                assert store.read(name) == DATA
        check(directory)


def test_a_removal_killed_at_any_point_happened_or_not(tmp_path):
    named = points(tmp_path / "survey", "prune")
    assert {n.split()[1] for n in named} == {"commit", "unlink"}
    for deadly in range(1, len(named) + 1):
        directory = tmp_path / str(deadly)
        old = prepare(directory)
        code, _ = run_child(directory, "prune", deadly)
        assert code == -signal.SIGKILL
        with BlobStore(directory, 1 << 20, 1 << 20) as store:
            if deadly == 1:  # before the first commit
                assert store.read(old) == OLD
                assert store.usage() == Usage(len(OLD), len(OLD), 0)
            else:
                with pytest.raises(BlobUnknown):
                    store.read(old)
                assert store.usage() == Usage(0, 0, 0)
        check(directory)


def test_a_receipt_outlives_a_kill(tmp_path):
    last = len(points(tmp_path / "survey", "upload")) + 1
    prepare(tmp_path / "killed")
    code, passed = run_child(tmp_path / "killed", "upload", last)
    assert code == -signal.SIGKILL
    assert passed[-1] == "receipt"
    with BlobStore(tmp_path / "killed", 1 << 20, 1 << 20) as store:
        assert store.read(hashlib.sha256(DATA).digest()) == DATA
