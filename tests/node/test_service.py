"""The node around its clock: batches, progress, overload, and what happens when it cannot go on."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from anofel.board.node import api_requests
from anofel.board.node import service as node_service
from anofel.board.node.api import make_app
from anofel.board.node.api_problems import BadRequest
from anofel.board.node.embedded import EmbeddedNode
from anofel.board.node.files import NodeConfig
from anofel.board.node.service import Busy, NodeFailed, NodeService
from anofel.board.rule import Rejected
from anofel.board.store import StoreError
from anofel.keys import KeyDirectory
from tests.node.support import OCTETS, BoardOfTest, make_board

HUGE = 1 << 60


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
        go_on.wait(10)
        return admit(offered)

    service.node.admit = slowly  # type: ignore[method-assign]

    async def play() -> list[object]:
        service.start()
        first = asyncio.create_task(service.post(board.posting().data))
        await asyncio.to_thread(entered.wait, 10)
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
    monkeypatch.setattr(api_requests, "SILENCE_SECONDS", 0.05)

    async def silence() -> dict[str, object]:
        await asyncio.sleep(10)
        return {}

    async def read() -> None:
        request = Request({"type": "http", "headers": [], "method": "POST", "path": "/"}, silence)
        async for _ in api_requests.body_chunks(request, 5):
            pass

    with pytest.raises(BadRequest) as caught:
        asyncio.run(read())
    assert (caught.value.status, caught.value.code) == (408, "too-slow")
