"""The node around its clock: batches, progress, overload, and what happens when it cannot go on."""

import asyncio
import errno
import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from anofel.board.rule import Rejected
from anofel.board.state import Committee, CommitteeShares
from anofel.errors import AnofelError
from anofel.node import api_requests, board_service
from anofel.node import service as node_service
from anofel.node.api import make_app
from anofel.node.api_problems import BadRequest
from anofel.node.board_service import Busy, NodeFailed
from anofel.node.embedded import EmbeddedNode
from anofel.node.files import NodeConfig
from anofel.node.service import NodeService
from anofel.node.transient import is_transient
from anofel.proofs.keys import KeyDirectory
from anofel.serving import connections
from anofel.storage.blocks import StoreError
from tests.node.support import OCTETS, SECONDS, BoardOfTest, make_board

HUGE = 1 << 60
NO = bytes(32)


@pytest.fixture
def board(tmp_path: Path, keys: KeyDirectory) -> BoardOfTest:
    return make_board(tmp_path / "node", keys, config=NodeConfig(min_free_bytes=HUGE))


@pytest.fixture
def service(board: BoardOfTest) -> Iterator[NodeService]:
    """A service whose clock does not run."""
    service = NodeService(EmbeddedNode(board.directory))
    yield service
    service.reader.close()
    service.node.abandon()


@pytest.fixture
def client(service: NodeService) -> TestClient:
    return TestClient(make_app(service), raise_server_exceptions=False)


def test_health_fails_when_blocks_stop(service: NodeService, client: TestClient) -> None:
    assert client.get("/v1/health").status_code == 200
    service._last_block -= 11
    answer = client.get("/v1/health")
    assert (answer.status_code, answer.json()["code"]) == (503, "no-progress")
    assert answer.headers["retry-after"]


def test_a_slow_board_is_not_unhealthy_between_its_blocks(service: NodeService) -> None:
    service.interval = 60
    service._last_block -= 200
    assert service.is_healthy
    service._last_block -= 101
    assert not service.is_healthy


def test_uploads_leave_room_for_blocks(client: TestClient) -> None:
    answer = client.put(f"/v1/blobs/{hashlib.sha256(b'x').hexdigest()}", content=b"x", headers=OCTETS)
    assert (answer.status_code, answer.json()["code"]) == (503, "blob-store-full")
    assert "/" not in answer.json()["detail"]


def test_a_bug_is_answered_without_details(
    service: NodeService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_named: object) -> None:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(service.reader, "framed", fail)
    answer = client.get("/v1/blocks?from=1")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert "42" not in answer.text


def test_too_many_waiting_postings_are_told_to_come_back(
    service: NodeService, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_service, "MAX_WAITING_BYTES", 2)
    answer = client.post("/v1/postings", content=b"abc", headers=OCTETS)
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")


def test_concurrent_postings_share_one_flush(service: NodeService, board: BoardOfTest) -> None:
    batches: list[int] = []
    add_pending = service.node.store.add_pending

    def count(postings, time):  # type: ignore[no-untyped-def]
        batches.append(len(postings))
        add_pending(postings, time)

    service.node.store.add_pending = count  # type: ignore[method-assign]
    postings = [board.posting().data for _ in range(20)]
    role = board.certifier()
    rivals = [board.posting(role).data for _ in range(2)]

    async def play() -> list[object]:
        service.start()
        offered = [service.post(data) for data in [*postings, *rivals, postings[0]]]
        answers = await asyncio.gather(*offered, return_exceptions=True)
        await service.stop()
        return answers

    answers = asyncio.run(play())
    assert sum(isinstance(answer, Rejected) for answer in answers) == 1
    assert sum(batches) == 21
    assert len(batches) <= 2
    assert answers[0].height == answers[-1].height  # type: ignore[attr-defined]


def test_a_block_that_cannot_be_kept_stops_the_node(service: NodeService, board: BoardOfTest) -> None:
    def full(*_arguments: object) -> None:
        raise StoreError("The disk of somewhere is full.")

    service.node.store.append = full  # type: ignore[method-assign]

    async def play() -> None:
        service.start()
        await asyncio.wait_for(service.closing.wait(), 10)
        with pytest.raises(NodeFailed, match="The node stopped: The disk of somewhere is full"):
            await service.post(board.posting().data)
        assert not service.is_healthy
        await service.stop()

    asyncio.run(play())


def test_a_stop_answers_everybody_who_waits(service: NodeService, board: BoardOfTest) -> None:
    entered, go_on = threading.Event(), threading.Event()
    admit = service.node.admit

    def slowly(offered):  # type: ignore[no-untyped-def]
        entered.set()
        go_on.wait(SECONDS)
        return admit(offered)

    service.node.admit = slowly  # type: ignore[method-assign]

    async def play() -> list[object]:
        service.start()
        first = asyncio.create_task(service.post(board.posting().data))
        await asyncio.to_thread(entered.wait, SECONDS)
        second = asyncio.create_task(service.post(board.posting().data))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(service.stop())
        answers = await asyncio.gather(first, second, return_exceptions=True)
        go_on.set()
        await stopping
        return answers

    answers = asyncio.run(play())
    assert all(isinstance(answer, Busy) for answer in answers)


def test_a_silent_sender_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SILENCE_SECONDS", 0.05)

    async def silence() -> dict[str, object]:
        await asyncio.sleep(SECONDS)
        return {}

    async def read() -> None:
        request = Request({"type": "http", "headers": [], "method": "POST", "path": "/"}, silence)
        async for _ in api_requests.body_chunks(request, 5):
            pass

    with pytest.raises(BadRequest) as caught:
        asyncio.run(read())
    assert (caught.value.status, caught.value.code) == (408, "too-slow")


def test_what_the_machine_refuses_for_a_moment_is_tried_again(
    service: NodeService,
    board: BoardOfTest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No descriptor is left while a block is sealed and while a posting is kept, each time half-way."""
    monkeypatch.setattr(node_service, "RETRY_SECONDS", 0.01)
    node, failures = service.node, {"seal": 5, "append": 5, "commit": 5}
    seal, append, commit = type(node.chain).seal, node.store.append, node._commit

    def sometimes(name: str, call, *arguments):  # type: ignore[no-untyped-def]
        if failures[name]:
            failures[name] -= 1
            if name == "seal":
                call(*arguments)  # the state has gone on, the disk has not
            raise OSError(errno.EMFILE, "Too many open files")
        return call(*arguments)

    monkeypatch.setattr(type(node.chain), "seal", lambda chain: sometimes("seal", seal, chain))
    monkeypatch.setattr(node.store, "append", lambda *a: sometimes("append", append, *a))
    monkeypatch.setattr(node, "_commit", lambda accepted: sometimes("commit", commit, accepted))
    data = board.posting().data

    async def play() -> int:
        service.start()
        accepted = await asyncio.wait_for(service.post(data), 60)
        assert await service.wait_for_block(accepted.height + 2, 60)
        await service.stop()
        return accepted.height

    height = asyncio.run(play())
    assert service.failed is None
    assert set(failures.values()) == {0}
    assert caplog.text.count("tries again") == 1
    again = EmbeddedNode(board.directory)
    assert again.store.block(height).postings == (data,)  # type: ignore[union-attr]
    assert [block.header.height for block in again.store.blocks(1)] == list(range(1, again.store.height + 1))
    again.close()


def test_an_error_is_transient_by_what_it_was_made_of() -> None:
    def wrapped(cause: Exception) -> Exception:
        try:
            raise StoreError("somewhere cannot be used") from cause
        except StoreError as error:
            return error

    busy = sqlite3.OperationalError("unable to open database file")
    busy.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    for cause in (OSError(errno.EMFILE, ""), OSError(errno.ENFILE, ""), MemoryError(), busy):
        assert is_transient(cause)
        assert is_transient(wrapped(cause))
    for cause in (OSError(errno.ENOSPC, ""), OSError(errno.EIO, ""), full, ValueError()):
        assert not is_transient(cause)
        assert not is_transient(wrapped(cause))


@pytest.mark.parametrize("error", [NodeFailed("The disk of /srv/x is full."), StoreError("/srv/x is gone.")])
def test_strangers_are_not_told_where_the_node_lives(
    service: NodeService, client: TestClient, error: AnofelError, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.failed = error
    answer = client.post("/v1/postings", content=b"abc", headers=OCTETS)
    assert (answer.status_code, answer.json()["code"]) == (503, error.code)
    assert "/srv" not in answer.text


def test_health_tells_when_a_committee_key_cannot_be_read(
    tmp_path: Path, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_service, "BLOB_CHECK_SECONDS", 0.02)
    node = EmbeddedNode(make_board(tmp_path / "node", keys).directory)
    name = hashlib.sha256(b"a key").digest()
    with node.blobs.begin(name, 5, expires=1 << 40) as upload:
        upload.write(b"a key")
        upload.finish()
    path = node.blobs.files.path(name)
    shares = CommitteeShares(NO, name, (), 2, 0)
    node.state.committees[NO] = Committee(NO, 0, shares)
    service = NodeService(node)

    async def until(broken: bool) -> None:
        async with asyncio.timeout(SECONDS):
            while bool(service.unreadable_keys) != broken:
                await asyncio.sleep(0.01)

    async def play() -> list[tuple[int, str]]:
        check, answers = asyncio.create_task(service._check_blobs()), []
        client = TestClient(make_app(service))
        for content, broken in ((b"a key", False), (b"a kei", True), (b"a key", False), (None, True)):
            path.unlink() if content is None else path.write_bytes(content)
            await until(broken)
            answer = await asyncio.to_thread(client.get, "/v1/health")
            answers.append((answer.status_code, answer.json().get("code", "")))
        check.cancel()
        await asyncio.gather(check, return_exceptions=True)
        return answers

    fine, broken = (200, ""), (503, "committee-key-unreadable")
    assert asyncio.run(play()) == [fine, broken, fine, broken]
    service.reader.close()
    node.abandon()


def test_health_tells_when_anything_that_is_kept_for_ever_cannot_be_read(
    tmp_path: Path, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of it is read each time, and the parts come to all of it."""
    monkeypatch.setattr(board_service, "BLOB_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(board_service, "BLOB_CHECK_BYTES", 10)
    node = EmbeddedNode(make_board(tmp_path / "node", keys).directory)
    names = []
    for number in range(9):
        data = b"blob %d" % number
        names.append(hashlib.sha256(data).digest())
        with node.blobs.begin(names[-1], len(data), expires=1 << 40) as upload:
            upload.write(data)
            upload.finish()
    node.blobs.pin_all((name, None) for name in names[1:])
    first = node.blobs.kept_for_ever(b"", 10)
    assert first == sorted(names[1:])[:2], "a part, and nothing that may expire"
    for name in (names[0], max(names[1:])):
        node.blobs.files.path(name).write_bytes(b"rotten")
    service = NodeService(node)

    async def play() -> tuple[int, str, str]:
        check = asyncio.create_task(service._check_blobs())
        async with asyncio.timeout(SECONDS):
            while not service.unreadable:
                await asyncio.sleep(0.01)
        answer = await asyncio.to_thread(TestClient(make_app(service)).get, "/v1/health")
        check.cancel()
        await asyncio.gather(check, return_exceptions=True)
        return answer.status_code, answer.json()["code"], answer.json()["detail"]

    status, code, detail = asyncio.run(play())
    assert (status, code) == (503, "kept-blob-unreadable")
    assert max(names[1:]).hex() in detail
    assert names[0].hex() not in detail
    service.reader.close()
    node.abandon()
