"""Blobs in object storage, against a real S3 server: the store keeps its rules, and the server keeps ours."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.errors import InvalidInput
from anofel.storage.blobs import s3
from anofel.storage.blobs.errors import (
    BlobHashMismatch,
    BlobLengthMismatch,
    BlobStoreUnwritable,
    BlobUnknown,
    InvalidRange,
)
from anofel.storage.blobs.files import DirectoryFiles, PlaceUnreachable, StoredAttachments
from anofel.storage.blobs.s3 import S3Config, S3Files, s3_name
from anofel.storage.blobs.store import BlobStore, Usage
from tests.board.s3_server import ACCESS, SECRET, S3Server, altering
from tests.board.test_blobs import EXPIRES, digest, has, put

BOARD = bytes(range(32))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
def server(running: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The server with an empty bucket of the test's own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr("anofel.storage.blobs.s3.TRIES", 1)
    running.new_bucket()
    return running


def files(config: S3Config, holder: int = 0) -> S3Files:
    return S3Files(config, s3_name(config, BOARD, holder))


def opened(directory: Path, config: S3Config, holder: int = 0) -> BlobStore:
    return BlobStore(directory, 1 << 24, 1 << 24, files=files(config, holder))


@pytest.fixture
def store(server: S3Server, tmp_path: Path) -> Iterator[BlobStore]:
    with opened(tmp_path / "blobs", server.config) as found:
        yield found


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, "What was waited for did not happen."
        time.sleep(0.02)


def object_name(name: bytes, holder: int = 0) -> str:
    return f"{BOARD.hex()}/{holder}/{name.hex()}"


@pytest.mark.parametrize("data", [b"", b"x", os.urandom(3 << 20)])
def test_a_blob_comes_back_as_it_was(store: BlobStore, server: S3Server, data: bytes) -> None:
    name = put(store, data)
    assert server.objects() == {object_name(name): data}
    assert store.read(name) == data
    assert store.is_sound(name)
    assert store.length(name) == len(data)
    assert [path.name for path in store.directory.rglob(name.hex())] == [], "it is nowhere else"
    assert list((store.directory / "uploads").iterdir()) == []


def test_ranges_end_before_their_end(store: BlobStore) -> None:
    name = put(store, data := os.urandom(1 << 18))
    for start, end in ((0, len(data)), (0, 0), (3, 7), (len(data), len(data)), (9, None)):
        with store.open_range(name, start, end) as reader:
            assert b"".join(reader) == data[start:end]
    with pytest.raises(InvalidRange, match="do not lie within"):
        store.open_range(name, 0, len(data) + 1)


def test_wrong_bytes_never_leave_the_machine(store: BlobStore, server: S3Server) -> None:
    with (
        pytest.raises(BlobHashMismatch, match="do not hash"),
        store.begin(digest(b"right"), 5, expires=EXPIRES) as upload,
    ):
        upload.write(b"wrong")
        upload.finish()
    with (
        pytest.raises(BlobLengthMismatch),
        store.begin(digest(b"right"), 5, expires=EXPIRES) as upload,
    ):
        upload.write(b"righ")
        upload.finish()
    assert server.objects() == {}
    assert store.usage() == Usage(0, 0, 0)


def test_what_the_disk_changed_before_it_was_sent_is_noticed(store: BlobStore, server: S3Server) -> None:
    upload = store.begin(digest(b"right"), 5, expires=EXPIRES)
    upload.write(b"right")
    admit = upload._admit

    def damage(complete) -> None:  # type: ignore[no-untyped-def]
        complete.temporary.write_bytes(b"wrong")
        admit(complete)

    upload._admit = damage
    with pytest.raises(BlobStoreUnwritable, match="damaged on the disk"):
        upload.finish()
    assert server.objects() == {}
    assert store.usage() == Usage(0, 0, 0)


def test_what_is_there_already_is_not_written_again(
    store: BlobStore, server: S3Server, tmp_path: Path
) -> None:
    name = put(store, b"there")
    before = server.path(object_name(name)).stat()
    with opened(tmp_path / "without an index", server.config) as other:
        assert put(other, b"there") == name
    after = server.path(object_name(name)).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_there_and_is_something_else_is_overwritten(store: BlobStore, server: S3Server) -> None:
    name = digest(b"there")
    there = files(server.config)
    there._obstore.put(there._store, name.hex(), b"other")
    assert put(store, b"there") == name
    assert server.objects() == {object_name(name): b"there"}


def test_bytes_that_are_altered_on_their_way_are_not_kept(server: S3Server, tmp_path: Path) -> None:
    data = b"what is sent to the store" * 100

    def alter(piece: bytes) -> bytes:
        return piece.replace(b"what is sent", b"what was sen")

    with (
        altering(server.port, alter, answers=False) as port,
        opened(tmp_path, replace(server.config, endpoint=f"http://127.0.0.1:{port}")) as store,
    ):
        with pytest.raises(BlobStoreUnwritable):
            put(store, data)
        assert server.objects() == {}
        assert store.usage() == Usage(0, 0, 0)
        assert put(store, b"something else") == digest(b"something else"), "the way itself is open"


def test_bytes_that_are_altered_on_their_way_back_are_noticed(server: S3Server, tmp_path: Path) -> None:
    data = b"what is sent to us" * 100

    def alter(piece: bytes) -> bytes:
        return piece.replace(b"what is sent", b"what was sen")

    with opened(tmp_path / "one", server.config) as store:
        name = put(store, data)
    with (
        altering(server.port, alter, answers=True) as port,
        opened(tmp_path / "one", replace(server.config, endpoint=f"http://127.0.0.1:{port}")) as store,
    ):
        with pytest.raises(BlobHashMismatch, match="is damaged s3://board-"):
            store.read(name)
        assert not store.is_sound(name)
        with pytest.raises(DamagedBlob):
            StoredAttachments(store.files).read(name)


def test_damaged_objects_are_replaced(store: BlobStore, server: S3Server, tmp_path: Path) -> None:
    name = put(store, b"right")
    server.path(object_name(name)).write_bytes(b"wrong")
    assert not store.is_sound(name)
    sound = tmp_path / "sound"
    sound.write_bytes(b"right")
    store.restore(name, sound)
    assert store.is_sound(name)
    assert not sound.exists()


def test_what_is_over_is_removed_from_the_bucket(store: BlobStore, server: S3Server) -> None:
    brief = [put(store, b"%d" % number, expires=5) for number in range(40)]
    kept = put(store, b"kept", expires=50)
    assert store.prune(6) == 40
    for name in brief:
        with pytest.raises(BlobUnknown):
            store.read(name)
    until(lambda: server.objects() == {object_name(kept): b"kept"})
    put(store, b"0")  # it may come again
    assert store.read(brief[0]) == b"0"


def test_an_object_that_vanished_is_missing_and_not_sound(store: BlobStore, server: S3Server) -> None:
    name = put(store, b"gone")
    server.path(object_name(name)).unlink()
    assert not store.is_sound(name)
    with pytest.raises(AttachmentMissing, match="is not here") as caught:
        StoredAttachments(store.files).read(name)
    assert caught.value.__cause__ is None


def test_holders_and_boards_share_a_bucket_and_not_their_blobs(server: S3Server, tmp_path: Path) -> None:
    with (
        opened(tmp_path / "one", server.config) as one,
        opened(tmp_path / "other", server.config, holder=1) as other,
    ):
        name = put(one, b"both", expires=5)
        put(other, b"both", expires=50)
        one.prune(6)
        until(lambda: list(server.objects()) == [object_name(name, 1)])
        assert other.read(name) == b"both"


KILLED = """
import os, signal, sys
from pathlib import Path
from anofel.storage.blobs.s3 import S3Config, S3Files
from anofel.storage.blobs.store import BlobStore
from tests.board.test_blobs import put
from tests.board.test_blobs_s3 import opened

directory, bucket, endpoint, operation, when = Path(sys.argv[1]), *sys.argv[2:]
store = opened(directory, S3Config(bucket=bucket, endpoint=endpoint))
call = getattr(S3Files, operation)

def deadly(*arguments):
    if when == "after":
        call(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(S3Files, operation, deadly)
put(store, b"new") if operation == "keep" else store.prune(6)
store.close()
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", ["keep", "remove"])
def test_a_kill_beside_a_request_leaves_nothing_behind(
    server: S3Server, tmp_path: Path, operation: str, when: str
) -> None:
    with opened(tmp_path, server.config) as store:
        old = put(store, b"old", expires=5)
        kept = put(store, b"kept", expires=50)
    result = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), server.bucket, server.config.endpoint, operation, when],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    with opened(tmp_path, server.config) as store:
        left = {object_name(kept): b"kept"}
        if operation == "keep":
            left[object_name(old)] = b"old"
        assert server.objects() == left
        assert store.usage().kept == sum(map(len, left.values()))
        assert has(store, old) == (operation == "keep")


def test_a_store_that_does_not_answer_loses_nothing(server: S3Server, tmp_path: Path) -> None:
    with opened(tmp_path, server.config) as store:
        name, old = put(store, b"here", expires=50), put(store, b"old", expires=5)
        server.stop()
        try:
            with pytest.raises(BlobStoreUnwritable, match="s3://board-[0-9]+/.*: it does not answer"):
                put(store, b"new")
            assert store.usage() == Usage(7, 7, 0), "an upload that failed takes no room"
            with pytest.raises(PlaceUnreachable):
                store.is_sound(name)
            with pytest.raises(AttachmentMissing, match="cannot be had now") as caught:
                StoredAttachments(store.files).read(name)
            assert isinstance(caught.value.__cause__, PlaceUnreachable)
            assert store.prune(6) == 1, "it waits for nobody"
            assert store._removing is not None
            store._removing.result(60)
        finally:
            server.start()
        assert store.read(name) == b"here"
        assert object_name(old) in server.objects()
        store.prune(7)  # with the next block
        until(lambda: list(server.objects()) == [object_name(name)])


def test_a_bucket_that_cannot_be_used_is_one_sentence(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PlaceUnreachable, match="s3://missing/.*: there is no such bucket"):
        files(replace(server.config, bucket="missing"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not this one")
    with pytest.raises(PlaceUnreachable, match="its secret key is another one") as caught:
        files(server.config)
    assert "not this one" not in str(caught.value)
    assert ACCESS not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "Error performing PUT http://169.254.169.254/latest/api/token - status code: 403 Forbidden",
            "no keys are in the environment",
        ),
        ("Error performing PUT http://s3/a - status code: 507 <Error>what a store says", "with status 507"),
        ("Error performing PUT http://s3/a - HTTP error: error sending request", "does not answer"),
    ],
)
def test_what_a_store_says_is_not_repeated(said: str, sentence: str) -> None:
    assert sentence in s3._reason(said)
    assert "what a store says" not in s3._reason(said)


def test_blobs_of_a_directory_move_to_the_bucket(server: S3Server, tmp_path: Path) -> None:
    with BlobStore(tmp_path, 1 << 20, 1 << 20) as store:
        names = [put(store, b"%d" % number) for number in range(5)]
        usage = store.usage()
    left = tmp_path / "left"
    left.write_bytes(DirectoryFiles(tmp_path).read(names[0]))
    for _ in range(2):  # a start that was killed before it removed one file is finished by the next
        with opened(tmp_path, server.config) as store:
            assert store.usage() == usage
            assert [store.read(name) for name in names] == [b"%d" % number for number in range(5)]
        assert list(tmp_path.glob("??/??/*")) == []
        DirectoryFiles(tmp_path).keep(names[0], left) if left.exists() else None
    assert len(server.objects()) == 5


def test_a_place_is_not_changed_by_mistake(server: S3Server, tmp_path: Path) -> None:
    with opened(tmp_path, server.config) as store:
        put(store, b"there")
    for other in (None, files(server.config, holder=1)):
        with pytest.raises(BlobStoreUnwritable, match="are kept in s3://board-[0-9]+/.*, and not in"):
            BlobStore(tmp_path, 1 << 20, 1 << 20, files=other)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    config = S3Config(bucket="board")
    with pytest.raises(InvalidInput, match=r"pip install 'anofel\[s3\]'"):
        files(config)


def test_a_large_blob_takes_little_memory(store: BlobStore) -> None:
    """What is sent is mapped, not copied."""
    name = hashlib.sha256(bytes(32 << 20)).digest()
    store.max_bytes = store.pending_bytes = 1 << 30

    def anonymous() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) << 10

    if not Path("/proc/self/status").exists():
        pytest.skip("Only Linux says how much memory is a process's own.")
    before = anonymous()
    with store.begin(name, 32 << 20, expires=EXPIRES) as upload:
        for _ in range(32):
            upload.write(bytes(1 << 20))
        upload.finish()
    with store.open_range(name) as reader:
        assert sum(map(len, reader)) == 32 << 20
    assert anonymous() - before < 24 << 20


def test_the_rules_are_in_the_same_words() -> None:
    page = (Path(__file__).parents[2] / "docs" / "blobs.md").read_text()

    def rules(text: str) -> list[str]:
        (found,) = re.findall(r"^1\. A blob is put only.+?(?=^\n|\Z)", text, re.M | re.S)
        return found.replace("``", "`").split()

    assert rules(page) == rules(s3.__doc__ or "")
