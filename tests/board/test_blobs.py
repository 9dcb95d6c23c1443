"""The blob store as the node uses it."""

import errno
import hashlib
import os
import sqlite3
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.errors import InvalidInput
from anofel.storage.blobs.errors import (
    BlobError,
    BlobHashMismatch,
    BlobLengthMismatch,
    BlobStoreFull,
    BlobStoreUnwritable,
    BlobTooLarge,
    BlobUnknown,
    InvalidRange,
)
from anofel.storage.blobs.store import BlobStore, Usage

EXPIRES = 100


def has(store: BlobStore, sha256: bytes) -> bool:
    """Whether a blob can be read now."""
    try:
        return store.length(sha256) >= 0
    except BlobUnknown:
        return False


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def put(store: BlobStore, data: bytes, expires: int = EXPIRES) -> bytes:
    with store.begin(digest(data), len(data), expires=expires) as upload:
        upload.write(data)
        upload.finish()
    return digest(data)


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and path.parent != directory]


@pytest.fixture
def store(tmp_path: Path):
    with BlobStore(tmp_path / "blobs", max_bytes=1000, pending_bytes=500) as opened:
        yield opened


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(250))])
def test_a_blob_comes_back_as_it_was(store, data):
    name = put(store, data)
    assert has(store, name)
    assert store.length(name) == len(data)
    assert store.read(name) == data
    assert store.files.path(name).read_bytes() == data
    assert store.files.path(name).relative_to(store.directory).parts == (
        name.hex()[:2],
        name.hex()[2:4],
        name.hex(),
    )


def test_ranges_end_before_their_end(store):
    name = put(store, b"0123456789")
    for start, end in ((0, 10), (0, 0), (3, 7), (10, 10), (9, None)):
        with store.open_range(name, start, end) as reader:
            assert b"".join(reader) == b"0123456789"[start:end]
    for start, end in ((-1, 3), (4, 3), (0, 11), (11, None)):
        with pytest.raises(InvalidRange, match="do not lie within"):
            store.open_range(name, start, end)


def test_a_blob_that_is_there_is_not_uploaded_again(store):
    name = put(store, b"again")
    before = store.usage()
    with store.begin(name, 5, expires=EXPIRES) as upload:
        assert upload.present
        upload.write(b"whatever comes is ignored")
        upload.finish()
    assert store.usage() == before
    assert store.read(name) == b"again"
    with pytest.raises(BlobLengthMismatch, match="has 5 bytes, not 6"):
        store.begin(name, 6, expires=EXPIRES)


def test_two_uploads_of_one_blob_both_succeed(store):
    name = digest(b"twice")
    first, second = (store.begin(name, 5, expires=e) for e in (10, 20))
    for upload in (first, second):
        upload.write(b"twice")
    first.finish()
    second.finish()
    assert store.usage() == Usage(5, 5, 0)
    assert store.prune(20) == 0
    assert store.prune(21) == 1


def test_wrong_bytes_are_refused_and_leave_nothing(store):
    with (
        pytest.raises(BlobHashMismatch, match="do not hash"),
        store.begin(digest(b"right"), 5, expires=EXPIRES) as upload,
    ):
        upload.write(b"wrong")
        upload.finish()
    assert store.usage() == Usage(0, 0, 0)
    assert files(store.directory) == []


def test_too_few_and_too_many_bytes_are_refused_and_leave_nothing(store):
    upload = store.begin(digest(b"right"), 5, expires=EXPIRES)
    upload.write(b"righ")
    with pytest.raises(BlobLengthMismatch, match="4 bytes were sent instead of the 5"):
        upload.finish()
    upload = store.begin(digest(b"right"), 5, expires=EXPIRES)
    upload.write(b"righ")
    with pytest.raises(BlobLengthMismatch, match="More bytes were sent"):
        upload.write(b"ty")
    with pytest.raises(BlobError, match="is over"):
        upload.write(b"t")
    assert store.usage() == Usage(0, 0, 0)
    assert files(store.directory) == []


def test_an_abandoned_upload_leaves_nothing(store):
    with store.begin(digest(b"x"), 1, expires=EXPIRES) as upload:
        upload.write(b"x")
        assert store.usage().uploading == 1
    upload.abort()
    assert store.usage() == Usage(0, 0, 0)
    assert files(store.directory) == []
    with pytest.raises(BlobUnknown):
        store.read(digest(b"x"))


def test_caps_are_checked_before_any_byte(store):
    with pytest.raises(BlobTooLarge, match="501 bytes; this store takes 500"):
        store.begin(bytes(32), 501, expires=EXPIRES)
    first = store.begin(bytes(32), 300, expires=EXPIRES)
    first.write(bytes(300))
    with pytest.raises(BlobStoreFull, match="no posting refers"):
        store.begin(b"\1" * 32, 201, expires=EXPIRES)
    store.begin(b"\1" * 32, 200, expires=EXPIRES).abort()
    first.abort()


def test_bytes_that_were_declared_and_did_not_come_take_no_room(store):
    greedy = [store.begin(bytes([n]) * 32, 500, expires=EXPIRES) for n in range(41)]
    for upload in greedy:
        upload.write(b"xx")
    assert store.usage() == Usage(0, 0, 82)
    put(store, bytes(400))
    assert store.usage() == Usage(400, 400, 82)
    with pytest.raises(BlobStoreFull, match="no posting refers"):
        greedy[0].write(bytes(20))
    assert store.usage() == Usage(400, 400, 80), "who meets the cap half-way is aborted"
    for upload in greedy:
        upload.abort()
    assert store.usage() == Usage(400, 400, 0)


def test_uploads_leave_the_disk_some_room(tmp_path, monkeypatch):
    free = 1000
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=free))
    with BlobStore(tmp_path, 10_000, 10_000, min_free_bytes=400) as store:
        with pytest.raises(BlobStoreFull, match="nearly full"):
            store.begin(bytes(32), 601, expires=EXPIRES)
        upload = store.begin(bytes(32), 600, expires=EXPIRES)
        free = 500
        upload.write(bytes(100))
        with pytest.raises(BlobStoreFull, match="nearly full"):
            upload.write(bytes(101))
        assert store.usage() == Usage(0, 0, 0)


def test_unreferenced_blobs_count_as_pending_until_they_are_pinned(store):
    name = put(store, bytes(400))
    with pytest.raises(BlobStoreFull, match="no posting refers"):
        store.begin(bytes(32), 101, expires=EXPIRES)
    store.pin(name, None)
    assert store.usage() == Usage(400, 0, 0)
    second = put(store, bytes(401))
    store.pin(second, None)
    with pytest.raises(BlobStoreFull, match="no room for 200"):
        store.begin(bytes(32), 200, expires=EXPIRES)
    put(store, bytes(199))
    assert store.usage() == Usage(1000, 199, 0)


def test_strangers_leave_room_for_those_with_a_ticket(tmp_path):
    """1,000 bytes may be pending, of which strangers get 400; who has a ticket may take what they leave."""

    def begin(number: int, length: int, *, ticketed: bool):
        return store.begin(digest(b"%d" % number * length), length, expires=EXPIRES, ticketed=ticketed)

    def keep(number: int, length: int, *, ticketed: bool) -> bytes:
        data = b"%d" % number * length
        with store.begin(digest(data), length, expires=EXPIRES, ticketed=ticketed) as upload:
            upload.write(data)
            upload.finish()
        return digest(data)

    with BlobStore(tmp_path, 10_000, 1000, reserved_bytes=600) as store:
        keep(1, 300, ticketed=False)
        with pytest.raises(BlobStoreFull):
            begin(2, 101, ticketed=False)
        with pytest.raises(BlobTooLarge):
            begin(2, 401, ticketed=False)
        with begin(3, 100, ticketed=False) as under_way:
            under_way.write(b"3" * 60)  # it counts what arrived
            with pytest.raises(BlobStoreFull):
                begin(4, 41, ticketed=False)
        named = keep(5, 500, ticketed=True)
        keep(6, 150, ticketed=True)
        with pytest.raises(BlobStoreFull):
            begin(7, 51, ticketed=True)
        assert store.usage().unreferenced == 950
    with BlobStore(tmp_path, 10_000, 1000, reserved_bytes=600) as store:  # it is written down
        assert store.usage().unreferenced == 950
        with pytest.raises(BlobStoreFull):
            begin(7, 51, ticketed=True)
        begin(8, 50, ticketed=False).abort()
        with pytest.raises(BlobStoreFull):
            begin(8, 101, ticketed=False)
        store.pin(named, None)
        assert store.usage().unreferenced == 450
        begin(9, 550, ticketed=True).abort()
        store.prune(EXPIRES + 1)
        assert store.usage().unreferenced == 0
        begin(10, 400, ticketed=False).abort()


def test_an_unreferenced_blob_is_kept_up_to_the_height_of_its_receipt(store):
    name = put(store, b"x", expires=10)
    assert store.prune(10) == 0
    assert store.read(name) == b"x"
    assert store.prune(11) == 1
    assert not has(store, name)
    for ask in (store.read, store.length, store.open_range, lambda n: store.pin(n, None)):
        with pytest.raises(BlobUnknown, match="There is no blob"):
            ask(name)
    assert store.usage() == Usage(0, 0, 0)


def test_an_expired_blob_leaves_nothing(store):
    before = sorted(store.directory.iterdir())
    neighbour = put(store, b"stays", expires=100)
    beside = sorted(store.directory.rglob("*"))
    for number in range(50):
        put(store, b"%d" % number, expires=10)
    assert store.prune(11) == 50
    assert sorted(store.directory.rglob("*")) == beside
    rows = store._index._connection.execute("SELECT sha256 FROM blob").fetchall()
    assert rows == [(neighbour,)]
    store.prune(101)
    assert sorted(store.directory.iterdir()) == before


def test_a_pin_prolongs_and_never_shortens(store):
    name = put(store, b"x", expires=10)
    store.pin(name, 5)
    assert store.prune(10) == 0
    store.pin(name, 20)
    store.pin(name, 15)
    assert store.prune(20) == 0
    store.pin(name, None)
    store.pin(name, 3)
    put(store, b"x", expires=30)
    assert store.prune(1 << 62) == 0
    assert store.read(name) == b"x"


def test_a_pruned_blob_may_come_again(store):
    name = put(store, b"x", expires=10)
    store.prune(11)
    put(store, b"x", expires=20)
    assert store.read(name) == b"x"
    assert store.usage() == Usage(1, 1, 0)


def test_a_range_that_is_open_survives_pruning(store):
    name = put(store, b"still here", expires=1)
    with store.open_range(name) as reader:
        store.prune(2)
        assert b"".join(reader) == b"still here"


def test_what_is_not_known_is_refused(store):
    for ask in (store.read, store.length, lambda n: store.pin(n, None)):
        with pytest.raises(BlobUnknown, match="There is no blob"):
            ask(bytes(32))
    assert not has(store, bytes(32))


def test_senseless_questions_are_refused(store):
    with pytest.raises(InvalidInput, match="32 bytes, not 3"):
        store.begin(b"abc", 1, expires=EXPIRES)
    with pytest.raises(InvalidInput, match="negative"):
        store.begin(bytes(32), -1, expires=EXPIRES)
    for height in (-1, 1 << 63):
        with pytest.raises(InvalidInput, match="no height"):
            store.begin(bytes(32), 1, expires=height)
        with pytest.raises(InvalidInput, match="no height"):
            store.pin(bytes(32), height)


def test_a_damaged_file_is_noticed(store):
    name = put(store, b"right")
    store.files.path(name).write_bytes(b"wrong")
    with pytest.raises(BlobHashMismatch, match="damaged on the disk"):
        store.read(name)
    store.files.path(name).write_bytes(b"wr")
    with pytest.raises(BlobLengthMismatch, match="shorter"):
        store.read(name)


def test_everything_is_there_after_a_restart(tmp_path):
    with BlobStore(tmp_path, 1000, 500) as store:
        kept, brief = put(store, b"kept"), put(store, b"brief", expires=5)
        store.pin(kept, None)
        gone = put(store, b"gone", expires=1)
        store.prune(2)
        usage = store.usage()
    with BlobStore(tmp_path, 1000, 500) as store:
        assert store.usage() == usage == Usage(9, 5, 0)
        assert store.read(kept) == b"kept"
        with pytest.raises(BlobUnknown):
            store.read(gone)
        assert store.prune(6) == 1
        assert not has(store, brief)


def test_one_process_owns_a_directory(store):
    with pytest.raises(BlobStoreUnwritable, match="in use by another process"):
        BlobStore(store.directory, 1, 1)


def fail_with(code: int):
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.open", "pathlib.Path.replace"])
@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (errno.ENOSPC, BlobStoreFull, "The disk of .* is full"),
        (errno.EROFS, BlobStoreUnwritable, "cannot be used: Read-only file system"),
    ],
)
def test_a_disk_that_takes_nothing_has_a_sentence(store, monkeypatch, call, code, error, sentence):
    upload = store.begin(digest(b"x"), 1, expires=EXPIRES)
    with monkeypatch.context() as patch:
        patch.setattr(call, fail_with(code))
        with pytest.raises(error, match=sentence):
            upload.write(b"x")
            upload.finish()
    assert store.usage() == Usage(0, 0, 0)
    assert files(store.directory) == []
    put(store, b"x")


def test_an_index_that_takes_nothing_leaves_no_file_behind(store, monkeypatch):
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    upload = store.begin(digest(b"x"), 1, expires=EXPIRES)
    upload.write(b"x")
    with monkeypatch.context() as patch:

        def fail(*_args: object) -> None:
            raise full

        patch.setattr(store._index, "finish_upload", fail)
        with pytest.raises(BlobStoreFull, match="disk of .* is full"):
            upload.finish()
    assert files(store.directory) == []
    assert store.usage() == Usage(0, 0, 0)


def test_a_directory_that_cannot_be_made_has_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BlobStoreUnwritable, match="cannot be used"):
        BlobStore(tmp_path / "file", 1, 1)


def test_an_index_that_is_none_has_a_sentence(tmp_path):
    (tmp_path / "index.sqlite").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(BlobStoreUnwritable, match="index of"):
        BlobStore(tmp_path, 1, 1)


def test_memory_stays_small(tmp_path):
    length, piece = 64 << 20, bytes(1 << 20)
    whole = hashlib.sha256()
    for _ in range(64):
        whole.update(piece)
    with BlobStore(tmp_path, length, length) as store:
        tracemalloc.start()
        with store.begin(whole.digest(), length, expires=EXPIRES) as upload:
            for _ in range(64):
                upload.write(piece)
            upload.finish()
        with store.open_range(whole.digest()) as reader:
            assert sum(len(part) for part in reader) == length
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 << 20


def test_threads_share_a_store(tmp_path):
    blobs = [bytes([i]) * (100 + i) for i in range(24)]
    failures: list[BaseException] = []

    def work(part: int, store: BlobStore) -> None:
        try:
            for data in blobs[part % 4 :: 2]:
                store.pin(put(store, data), None)
                assert store.read(digest(data)) == data
                store.prune(1)
        except BaseException as error:
            failures.append(error)

    with BlobStore(tmp_path, 1 << 20, 1 << 20) as store:
        threads = [threading.Thread(target=work, args=(i, store)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        total = sum(len(data) for data in blobs)
        assert store.usage() == Usage(total, 0, 0)
        assert sum(path.stat().st_size for path in files(tmp_path)) == total
