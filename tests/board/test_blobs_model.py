"""Random sequences of operations: the store behaves like a dictionary with sums."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from anofel.board.blobs.errors import BlobPruned, BlobStoreFull, BlobUnknown
from anofel.board.blobs.store import BlobStore, Usage
from tests.board.test_blobs import digest

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
        self.pruned: set[bytes] = set()
        self.running: dict[int, bytes] = {}

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    def unreferenced(self) -> int:
        return sum(len(d) for d, (_, pinned) in self.kept.items() if not pinned)

    def uploading(self) -> int:
        return sum(len(d) for d in self.running.values())

    def extend(self, data: bytes, expires: int) -> None:
        until = self.kept[data][0]
        self.kept[data][0] = None if until is None else max(until, expires)

    @rule(target=uploads, data=blobs, expires=heights)
    def begin(self, data: bytes, expires: int):
        pending = self.unreferenced() + self.uploading() + len(data)
        total = sum(map(len, self.kept)) + self.uploading() + len(data)
        if data not in self.kept and (pending > PENDING_BYTES or total > MAX_BYTES):
            with pytest.raises(BlobStoreFull):
                self.store.begin(digest(data), len(data), expires=expires)
            return None
        upload = self.store.begin(digest(data), len(data), expires=expires)
        assert upload.present == (data in self.kept)
        if upload.present:
            self.extend(data, expires)
            return None
        self.running[id(upload)] = data
        return upload, data, expires

    @rule(item=uploads, ending=st.sampled_from(["finish", "finish", "abort"]), cut=st.integers(0, 30))
    def end(self, item, ending: str, cut: int) -> None:
        if item is None or id(item[0]) not in self.running:
            return
        upload, data, expires = item
        del self.running[id(upload)]
        upload.write(data[:cut])
        if ending == "abort":
            upload.abort()
            return
        upload.write(data[cut:])
        upload.finish()
        if data in self.kept:
            self.extend(data, expires)
        else:
            self.kept[data] = [expires, False]
            self.pruned.discard(data)

    @rule(data=blobs, until=heights | st.none())
    def pin(self, data: bytes, until: int | None) -> None:
        if data not in self.kept:
            with pytest.raises(BlobPruned if data in self.pruned else BlobUnknown):
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
        self.pruned |= gone

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = BlobStore(self.directory, MAX_BYTES, PENDING_BYTES)
        self.running.clear()

    @rule(data=blobs)
    def read(self, data: bytes) -> None:
        assert self.store.contains(digest(data)) == (data in self.kept)
        if data in self.kept:
            assert self.store.read(digest(data)) == data
        else:
            with pytest.raises(BlobPruned if data in self.pruned else BlobUnknown):
                self.store.read(digest(data))

    @invariant()
    def sums_and_files_agree(self) -> None:
        assert self.store.usage() == Usage(sum(map(len, self.kept)), self.unreferenced(), self.uploading())
        found = {p.name for p in self.directory.glob("??/??/*")}
        assert found == {digest(d).hex() for d in self.kept}


BlobMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestBlobStoreAgainstModel = BlobMachine.TestCase
