"""Every endpoint and every bad request, against a real process over real HTTP."""

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from anofel.board.framing import unframe
from anofel.board.rules import MAX_POSTING_BYTES
from anofel.messages import Blob, Block, Genesis, receipt_bytes
from anofel.node import reader as reader_module
from anofel.node.embedded import EmbeddedNode
from anofel.node.files import NodeConfig
from anofel.node.reader import BlockReader
from anofel.proofs.keys import KeyDirectory
from tests.node.support import OCTETS, SECONDS, BoardOfTest, height, make_board, running, wait_until

FIXED_HEADERS = {
    "access-control-allow-origin",
    "accept-ranges",
    "allow",
    "cache-control",
    "content-length",
    "content-range",
    "content-type",
    "etag",
    "retry-after",
    "transfer-encoding",
}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> BoardOfTest:
    config = NodeConfig(receipt_blocks=30)
    return make_board(tmp_path_factory.mktemp("api") / "node", keys, config=config)


def check_headers(response: httpx2.Response) -> None:
    assert set(response.headers) <= FIXED_HEADERS


@pytest.fixture(scope="module")
def client(board: BoardOfTest) -> Iterator[httpx2.Client]:
    with running(board.directory) as node, httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        client.event_hooks["response"] = [check_headers]
        yield client
        code, errors = node.stop()
        assert code == 0
        assert "good order" in errors
        assert "127.0.0.1" not in errors


def problem(response: httpx2.Response, status: int, code: str) -> dict[str, object]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    content = response.json()
    assert content["status"] == status
    assert content["code"] == code
    assert content["type"].endswith(code)
    assert content["title"]
    assert content["detail"]
    return content


def put(client: httpx2.Client, data: bytes, name: str | None = None) -> httpx2.Response:
    name = name or hashlib.sha256(data).hexdigest()
    return client.put(f"/v1/blobs/{name}", content=data, headers=OCTETS)


def post(client: httpx2.Client, data: bytes) -> httpx2.Response:
    return client.post("/v1/postings", content=data, headers=OCTETS)


# Postings


def test_a_posting_is_accepted_once_and_answered_twice(client: httpx2.Client, board: BoardOfTest) -> None:
    posting = board.posting()
    first = post(client, posting.data)
    assert first.status_code == 202
    assert first.json()["id"] == posting.id.hex()
    wait_until(lambda: height(client) >= first.json()["height"])
    again = post(client, posting.data)
    assert again.status_code == 200
    assert again.json() == first.json()
    block = Block.from_bytes(client.get(f"/v1/blocks/{first.json()['height']}").content)
    assert block.postings.count(posting.data) == 1


def test_postings_that_come_together_are_all_answered(client: httpx2.Client, board: BoardOfTest) -> None:
    postings = [board.posting().data for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda data: post(client, data), postings))
    assert {answer.status_code for answer in answers} == {202}


def test_a_posting_that_breaks_a_rule_names_the_rule_and_the_culprit(
    client: httpx2.Client, board: BoardOfTest
) -> None:
    role = board.certifier("Greedy clinic")
    assert post(client, board.posting(role).data).status_code == 202
    content = problem(post(client, board.posting(role).data), 422, "certifier-has-key")
    assert "Greedy clinic" in str(content["culprit"])


def test_malformed_postings_are_refused(client: httpx2.Client, board: BoardOfTest) -> None:
    data = board.posting().data
    for bad in (b"", b"\1", data[:-1], data + b"\0", os.urandom(200)):
        content = problem(post(client, bad), 400, "malformed-posting")
        assert "culprit" not in content


def test_a_posting_that_is_too_long_is_refused_before_it_is_read(client: httpx2.Client) -> None:
    problem(post(client, bytes(MAX_POSTING_BYTES + 1)), 413, "body-too-large")


def test_a_huge_declared_length_is_refused_at_once(client: httpx2.Client) -> None:
    """No body is ever sent: the answer must come from the headers alone."""
    with socket.create_connection(
        (client.base_url.host, client.base_url.port), timeout=SECONDS
    ) as connection:
        connection.sendall(
            b"POST /v1/postings HTTP/1.1\r\nHost: board\r\nContent-Type: application/octet-stream\r\n"
            b"Content-Length: 999999999999\r\n\r\n"
        )
        assert b" 413 " in connection.recv(4096)


def test_a_body_without_its_length_is_refused(client: httpx2.Client) -> None:
    chunks = (b"x" for _ in range(3))
    problem(client.post("/v1/postings", content=chunks, headers=OCTETS), 411, "length-required")


def test_another_content_type_is_refused(client: httpx2.Client) -> None:
    problem(client.post("/v1/postings", content=b"{}"), 415, "wrong-content-type")


# Genesis, keys, blocks


def test_genesis_and_keys_are_those_of_the_board(client: httpx2.Client, board: BoardOfTest) -> None:
    answer = client.get("/v1/genesis")
    assert Genesis.from_bytes(answer.content) == board.genesis
    assert "immutable" in answer.headers["cache-control"]
    for field, pinned in board.genesis.key_pins.items():
        name = field.removesuffix("_key").replace("_", ".")
        answer = client.get(f"/v1/keys/{name}")
        assert hashlib.sha256(answer.content).digest() == pinned
        assert (answer.headers["etag"], "immutable" in answer.headers["cache-control"]) == (
            f'"{pinned.hex()}"',
            True,
        )
    for name in ("nothing", "submission.verification", "submission.proving.tables", "node"):
        problem(client.get(f"/v1/keys/{name}"), 404, "not-found")


def test_an_etag_saves_the_bytes(client: httpx2.Client) -> None:
    wait_until(lambda: height(client) >= 1)
    for path in ("/v1/genesis", "/v1/keys/submission", "/v1/blocks/1"):
        tag = client.get(path).headers["etag"]
        for asked in (tag, f'"x", {tag}', f"W/{tag}", "*"):
            answer = client.get(path, headers={"If-None-Match": asked})
            assert (answer.status_code, answer.content) == (304, b"")
        assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_pages_of_other_origins_read_what_a_check_needs_and_nothing_else(client: httpx2.Client) -> None:
    allowed = "access-control-allow-origin"
    wait_until(lambda: height(client) >= 1)
    origin = {"Origin": "null"}
    for path in ("/v1/status", "/v1/genesis", "/v1/keys/submission", "/v1/blocks?from=1", "/v1/blocks/1"):
        answer = client.get(path, headers=origin)
        assert (answer.status_code, answer.headers[allowed]) == (200, "*")
        assert "access-control-allow-credentials" not in answer.headers
        assert allowed not in client.get(path).headers
    assert client.get(f"/v1/blobs/{'0' * 64}", headers=origin).headers[allowed] == "*"
    for path in ("/v1/board", "/v1/health", "/metrics", "/v1/openapi.json"):
        assert allowed not in client.get(path, headers=origin).headers
    assert allowed not in client.post("/v1/postings", headers=origin, content=b"x").headers
    assert allowed not in client.options("/v1/postings", headers=origin).headers


def test_status_is_the_last_block(client: httpx2.Client, board: BoardOfTest) -> None:
    wait_until(lambda: height(client) >= 2)
    status = client.get("/v1/status").json()
    block = Block.from_bytes(client.get(f"/v1/blocks/{status['height']}").content)
    assert status["tip"] == block.header.hash(board.genesis.hash).hex()
    assert status["time"] == block.header.time
    assert status["interval_ms"] == 100
    assert status["genesis"] == board.genesis.hash.hex()
    assert "development" in status["insecure"]
    assert (status["validators"], status["may_be_faulty"]) == (1, 0)


def test_headers_are_blocks_without_their_postings(client: httpx2.Client, board: BoardOfTest) -> None:
    posted = post(client, board.posting().data).json()["height"]
    wait_until(lambda: height(client) >= posted + 1)
    whole = unframe(client.get(f"/v1/blocks?from={posted}&limit=2").content)
    bare = unframe(client.get(f"/v1/headers?from={posted}&limit=2").content)
    assert [block.header.height for block in whole] == [posted, posted + 1]
    assert whole[0].postings
    assert [(b.header, b.commit, b.postings) for b in bare] == [(b.header, b.commit, ()) for b in whole]
    assert whole[0].to_bytes() == client.get(f"/v1/blocks/{posted}").content


def test_bulk_answers_end_where_the_board_ends(client: httpx2.Client) -> None:
    wait_until(lambda: height(client) >= 3)
    assert client.get("/v1/blocks?from=999999999").content == b""
    assert len(unframe(client.get("/v1/blocks?from=1&limit=1").content)) == 1


@pytest.mark.parametrize(
    "query", ["", "from=0", "from=-1", "from=x", "from=1&from=2", "from=1&limit=0", "from=1&limit=1001"]
)
def test_broken_numbers_are_refused(client: httpx2.Client, query: str) -> None:
    for path in ("/v1/blocks", "/v1/headers"):
        problem(client.get(f"{path}?{query}"), 400, "bad-parameter")


def test_blocks_that_are_not_there_are_refused(client: httpx2.Client) -> None:
    problem(client.get("/v1/blocks/0"), 404, "block-unknown")
    problem(client.get("/v1/blocks/99999999999999999"), 404, "block-unknown")
    problem(client.get("/v1/blocks/one"), 400, "bad-parameter")
    problem(client.get("/v1/blocks/1/"), 404, "not-found")
    problem(client.get("/v1/leaves/1"), 404, "not-found")
    assert "GET" in client.delete("/v1/blocks/1").headers["allow"]
    problem(client.delete("/v1/blocks/1"), 405, "method-not-allowed")


# Blobs


def test_a_blob_is_kept_and_its_receipt_is_signed(client: httpx2.Client, board: BoardOfTest) -> None:
    from anofel.pki.certificates import Purpose, verify_chain

    data = os.urandom(300_000)
    answer = put(client, data)
    assert answer.status_code == 201
    blob, name = Blob.from_bytes(answer.content), hashlib.sha256(data).digest()
    (receipt,) = blob.receipts
    assert (blob.sha256, blob.length) == (name, len(data))
    signed = receipt_bytes(board.genesis.hash, name, len(data), receipt.expires)
    holder = verify_chain(board.genesis.holders[0], board.genesis.roots, Purpose.STORAGE, int(time.time()))
    holder.verify(signed, receipt.signature)
    assert receipt.expires > height(client)
    again = put(client, data)
    assert again.status_code == 200
    assert Blob.from_bytes(again.content).receipts[0].expires >= receipt.expires
    fetched = client.get(f"/v1/blobs/{name.hex()}")
    assert fetched.content == data
    assert fetched.headers["etag"] == f'"{name.hex()}"'
    assert "immutable" in fetched.headers["cache-control"]
    head = client.head(f"/v1/blobs/{name.hex()}")
    assert (head.headers["content-length"], head.content) == (str(len(data)), b"")


def test_wrong_hash_and_wrong_length_are_refused(client: httpx2.Client) -> None:
    name = hashlib.sha256(b"right").hexdigest()
    problem(put(client, b"wrong", name), 422, "blob-hash-mismatch")
    problem(put(client, b"right and more", name), 422, "blob-hash-mismatch")
    problem(client.get(f"/v1/blobs/{name}"), 404, "blob-unknown")
    assert put(client, b"right").status_code == 201
    problem(put(client, b"right and more", name), 422, "blob-length-mismatch")


def test_an_upload_that_breaks_off_leaves_nothing(client: httpx2.Client) -> None:
    name = hashlib.sha256(bytes(100)).hexdigest()
    with socket.create_connection(
        (client.base_url.host, client.base_url.port), timeout=SECONDS
    ) as connection:
        connection.sendall(
            f"PUT /v1/blobs/{name} HTTP/1.1\r\nHost: board\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Length: 100\r\n\r\n".encode()
            + bytes(50)
        )
    wait_until(lambda: "anofel_blob_uploading_bytes 0" in client.get("/metrics").text)
    problem(client.get(f"/v1/blobs/{name}"), 404, "blob-unknown")


def test_uploads_are_bounded_before_they_are_read(client: httpx2.Client) -> None:
    name = hashlib.sha256(b"x").hexdigest()
    problem(put(client, bytes((1 << 20) + 1), name), 413, "body-too-large")
    chunks = (b"x" for _ in range(1))
    problem(client.put(f"/v1/blobs/{name}", content=chunks, headers=OCTETS), 411, "length-required")
    problem(client.put(f"/v1/blobs/{name}", content=b"x"), 415, "wrong-content-type")
    problem(put(client, b"x", "AB" * 32), 400, "bad-parameter")
    problem(client.get("/v1/blobs/abc"), 400, "bad-parameter")


def test_ranges_of_a_blob(client: httpx2.Client) -> None:
    data = bytes(range(200))
    name = hashlib.sha256(data).hexdigest()
    put(client, data)
    path, tag = f"/v1/blobs/{name}", f'"{name}"'

    def ask(text: str, **more: str) -> httpx2.Response:
        return client.get(path, headers={"Range": text, **more})

    for text, start, stop in (
        ("bytes=0-9", 0, 10),
        ("bytes=190-", 190, 200),
        ("bytes=-7", 193, 200),
        ("bytes=150-999", 150, 200),
        ("bytes=-999", 0, 200),
    ):
        answer = ask(text)
        assert (answer.status_code, answer.content) == (206, data[start:stop])
        assert answer.headers["content-range"] == f"bytes {start}-{stop - 1}/200"
    for text in ("bytes=200-", "bytes=-0"):
        problem(ask(text), 416, "blob-range")
        assert ask(text).headers["content-range"] == "bytes */200"
    for text in ("bytes=9-3", "bytes=0-1,5-6", "lines=1-2", "bytes=-"):
        assert (ask(text).status_code, ask(text).content) == (200, data)
    assert ask("bytes=0-9", **{"If-Range": tag}).status_code == 206
    assert ask("bytes=0-9", **{"If-Range": '"other"'}).status_code == 200
    assert ask("bytes=0-9", **{"If-None-Match": tag}).status_code == 304
    assert client.head(path, headers={"Range": "bytes=0-9"}).headers["content-length"] == "10"


def test_a_blob_that_no_posting_names_is_gone_after_its_receipt(client: httpx2.Client) -> None:
    data = os.urandom(50)
    path = f"/v1/blobs/{hashlib.sha256(data).hexdigest()}"
    expires = Blob.from_bytes(put(client, data).content).receipts[0].expires
    wait_until(lambda: client.get(path).status_code != 200)
    assert height(client) >= expires - 1, "the status may tell of the block a moment after it is made"
    problem(client.get(path), 404, "blob-unknown")
    assert client.head(path).status_code == 404
    assert put(client, data).status_code == 201


# Pages and operators


def events(client: httpx2.Client, number: int, last: str | None = None) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", "/v1/events", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        for line in stream.iter_lines():
            name, _, value = line.partition(": ")
            if name:
                event[name] = value
            elif event.get("event") == "block":
                found.append({"id": event["id"], **json.loads(event["data"])})
                event = {}
            if len(found) == number:
                return found
    return found


def test_events_come_for_every_block_and_resume(client: httpx2.Client, board: BoardOfTest) -> None:
    new = events(client, 2)
    assert [int(str(event["id"])) for event in new] == [new[0]["height"], int(str(new[0]["id"])) + 1]
    old = events(client, 3, last="1")
    assert [event["height"] for event in old] == [2, 3, 4]
    block = Block.from_bytes(client.get("/v1/blocks/2").content)
    assert old[0]["hash"] == block.header.hash(board.genesis.hash).hex()
    assert old[0]["postings"] == len(block.postings)
    problem(client.get("/v1/events", headers={"Last-Event-ID": "x"}), 400, "bad-parameter")


def test_subscribers_are_bounded(client: httpx2.Client) -> None:
    from anofel.node.api_operator import MAX_SUBSCRIBERS

    address = (client.base_url.host, client.base_url.port)
    taken = []
    try:
        for _ in range(MAX_SUBSCRIBERS):
            connection = socket.create_connection(address, timeout=SECONDS)
            connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: board\r\n\r\n")
            assert b" 200 " in connection.recv(4096)
            taken.append(connection)
        problem(client.get("/v1/events"), 503, "busy")
        assert height(client) > 0
    finally:
        for connection in taken:
            connection.close()
    wait_until(lambda: len(events(client, 1)) == 1 if _is_free(client) else False)


def test_subscribers_that_come_at_once_are_bounded_as_well(client: httpx2.Client) -> None:
    from anofel.node.api_operator import MAX_SUBSCRIBERS

    wait_until(lambda: _is_free(client))
    address = (client.base_url.host, client.base_url.port)
    crowd = [socket.create_connection(address, timeout=SECONDS) for _ in range(190)]
    try:
        for connection in crowd:
            connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: board\r\n\r\n")
        answers = [connection.recv(4096).split()[1] for connection in crowd]
    finally:
        for connection in crowd:
            connection.close()
    assert set(answers) == {b"200", b"503"}
    assert answers.count(b"200") <= MAX_SUBSCRIBERS
    wait_until(lambda: _is_free(client))


def _is_free(client: httpx2.Client) -> bool:
    with client.stream("GET", "/v1/events") as stream:
        return stream.status_code == 200


def test_health_and_metrics(client: httpx2.Client, board: BoardOfTest) -> None:
    post(client, board.posting().data)
    put(client, os.urandom(77))
    assert client.get("/v1/health").json()["status"] == "ok"
    text = client.get("/metrics").text
    assert 'anofel_postings_accepted_total{kind="CertifierKeyOffer"}' in text
    assert "anofel_height" in text
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert all(name.startswith("anofel_") for name in names)
    labels = {line.split("{")[1].split("=")[0] for line in text.splitlines() if "{" in line}
    assert labels <= {"kind", "code"}


def test_blocks_come_once_per_interval_and_never_early(client: httpx2.Client) -> None:
    start, first = time.monotonic(), height(client)
    wait_until(lambda: height(client) >= first + 8)
    made, elapsed = height(client) - first, time.monotonic() - start
    assert made <= elapsed / 0.1 + 1


def test_tls_is_served_from_files(tmp_path: Path, keys: KeyDirectory) -> None:
    import ssl

    from tests.node.certificate import write_tls_files

    board = make_board(tmp_path / "node", keys)
    certificate, key = write_tls_files(tmp_path)
    extra = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    with running(board.directory, *extra) as node:
        assert node.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        with httpx2.Client(base_url=node.url, verify=context) as client:
            assert client.get("/v1/status").json()["genesis"] == board.genesis.hash.hex()
        with httpx2.Client(base_url=node.url) as stranger, pytest.raises(httpx2.ConnectError):
            stranger.get("/v1/status")
        assert node.stop()[0] == 0


def test_blocks_are_read_from_the_disk_as_their_reader_takes_them(
    tmp_path: Path, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_board(tmp_path / "lazy", keys)
    node = EmbeddedNode(board.directory)
    for _ in range(20):
        node.admit([board.posting().data])
        node.seal()
    monkeypatch.setattr(reader_module, "PIECE_BYTES", 1)
    reader, read = BlockReader(board.directory), list[int]()
    block = reader.block
    monkeypatch.setattr(reader, "block", lambda height: (read.append(height), block(height))[1])
    pieces = reader.framed(1, 20, 4 << 20)
    next(pieces)
    assert read == [1]
    assert len(list(pieces)) == 19
    reader.close()
    node.close()


def test_headers_are_given_without_reading_postings(
    board: BoardOfTest, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: height(client) > 2)
    reader, asked = BlockReader(board.directory), list[str]()
    rows = reader._store._rows
    monkeypatch.setattr(
        reader._store, "_rows", lambda query, *values: asked.append(query) or rows(query, *values)
    )
    blocks = unframe(b"".join(reader.framed(1, 3, 4 << 20, read=reader.signed_header)))
    assert [block.header.height for block in blocks] == [1, 2, 3]
    assert all(block.commit and not block.postings for block in blocks)
    assert not any("posting" in query for query in asked)
    reader.close()
