"""Random sequences of operations: the store behaves like a dictionary with sums."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from anofel.storage.blobs.errors import BlobStoreFull, BlobUnknown
from anofel.storage.blobs.store import BlobStore, Usage
from tests.board.test_blobs import digest, has

MAX_BYTES, PENDING_BYTES = 60, 40
blobs = st.sampled_from([bytes([i]) * length for i, length in enumerate((0, 1, 5, 10, 15, 20, 30))])
heights = st.integers(0, 20)


class BlobMachine(RuleBasedStateMachine):
    """The model: kept blobs with their last height and pin, uploads, and what was pruned."""

    uploads = Bundle("uploads")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.store = BlobStore(self.directory, MAX_BYTES, PENDING_BYTES)
        self.kept: dict[bytes, list] = {}
        self.running: dict[int, int] = {}
        """What has arrived of each upload."""
        self.files: list = []

    def teardown(self) -> None:
        self.close()
        shutil.rmtree(self.directory)

    def close(self) -> None:
        """Close the store with uploads under way, as a crash leaves them."""
        for upload in self.files:
            if upload._file is not None:
                upload._file.close()
        self.files.clear()
        self.store.close()

    def unreferenced(self) -> int:
        return sum(len(d) for d, (_, pinned) in self.kept.items() if not pinned)

    def uploading(self) -> int:
        return sum(self.running.values())

    def is_full(self, more: int) -> bool:
        arrived = self.uploading() + more
        kept = sum(map(len, self.kept))
        return self.unreferenced() + arrived > PENDING_BYTES or kept + arrived > MAX_BYTES

    def extend(self, data: bytes, expires: int) -> None:
        until = self.kept[data][0]
        self.kept[data][0] = None if until is None else max(until, expires)

    @rule(target=uploads, data=blobs, expires=heights)
    def begin(self, data: bytes, expires: int):
        if data not in self.kept and self.is_full(len(data)):
            with pytest.raises(BlobStoreFull):
                self.store.begin(digest(data), len(data), expires=expires)
            return None
        upload = self.store.begin(digest(data), len(data), expires=expires)
        assert upload.present == (data in self.kept)
        if upload.present:
            self.extend(data, expires)
            return None
        self.running[id(upload)] = 0
        self.files.append(upload)
        return upload, data, expires

    def write(self, upload, part: bytes) -> bool:
        """Send a part; False if the store was full, and the upload is over then."""
        if self.is_full(len(part)):
            with pytest.raises(BlobStoreFull):
                upload.write(part)
            del self.running[id(upload)]
            return False
        upload.write(part)
        self.running[id(upload)] += len(part)
        return True

    @rule(item=uploads, cut=st.integers(0, 30))
    def send(self, item, cut: int) -> None:
        if item is None or self.running.get(id(item[0])) != 0 or item[0].present:
            return
        self.write(item[0], item[1][:cut])

    @rule(item=uploads, ending=st.sampled_from(["finish", "finish", "abort"]), cut=st.integers(0, 30))
    def end(self, item, ending: str, cut: int) -> None:
        if item is None or id(item[0]) not in self.running:
            return
        upload, data, expires = item
        sent = self.running[id(upload)]
        if not self.write(upload, data[sent : sent + cut]):
            return
        if ending == "abort":
            del self.running[id(upload)]
            upload.abort()
            return
        if not self.write(upload, data[sent + cut :]):
            return
        del self.running[id(upload)]
        upload.finish()
        if data in self.kept:
            self.extend(data, expires)
        else:
            self.kept[data] = [expires, False]

    @rule(data=blobs, until=heights | st.none())
    def pin(self, data: bytes, until: int | None) -> None:
        if data not in self.kept:
            with pytest.raises(BlobUnknown):
                self.store.pin(digest(data), until)
            return
        self.store.pin(digest(data), until)
        self.kept[data][1] = True
        if until is None:
            self.kept[data][0] = None
        else:
            self.extend(data, until)

    @rule(height=heights)
    def prune(self, height: int) -> None:
        gone = {d for d, (until, _) in self.kept.items() if until is not None and until < height}
        assert self.store.prune(height) == len(gone)
        for data in gone:
            del self.kept[data]

    @rule()
    def restart(self) -> None:
        self.close()
        self.store = BlobStore(self.directory, MAX_BYTES, PENDING_BYTES)
        self.running.clear()

    @rule(data=blobs)
    def read(self, data: bytes) -> None:
        assert has(self.store, digest(data)) == (data in self.kept)
        if data in self.kept:
            assert self.store.read(digest(data)) == data
        else:
            with pytest.raises(BlobUnknown):
                self.store.read(digest(data))

    @invariant()
    def sums_and_files_agree(self) -> None:
        assert self.store.usage() == Usage(sum(map(len, self.kept)), self.unreferenced(), self.uploading())
        found = {p.name for p in self.directory.glob("??/??/*")}
        assert found == {digest(d).hex() for d in self.kept}
        assert all(
            any(directory.iterdir()) for directory in self.directory.glob("??/**/") if directory.is_dir()
        )
        ((rows,),) = self.store._index._connection.execute("SELECT count(*) FROM blob").fetchall()
        assert rows == len(self.kept)


BlobMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestBlobStoreAgainstModel = BlobMachine.TestCase
