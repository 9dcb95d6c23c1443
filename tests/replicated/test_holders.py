"""What strangers, dead holders and rotten disks do to the blobs of validators, over real HTTP."""

import hashlib
import os
import time
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from anofel.board.attachments import AttachmentMissing
from anofel.board.tickets import role_ticket
from anofel.ids import BlobHash
from anofel.messages import Blob
from anofel.node.files import NodeConfig
from anofel.node.replicated import blobs
from anofel.pki.certificates import Purpose
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blobs.errors import BlobError
from tests.board.s3_server import ACCESS, SECRET, S3Server
from tests.node.support import OCTETS, SECONDS, wait_until
from tests.replicated.holders import Serving, dead, serving
from tests.replicated.support import Validators, make_validators, needs_engine


@pytest.fixture(scope="module")
def validators(tmp_path_factory: pytest.TempPathFactory, keys: KeyDirectory) -> Validators:
    needs_engine()
    return make_validators(tmp_path_factory.mktemp("board"), keys, number=4)


def upload(validators: Validators, number: int, data: bytes) -> httpx2.Response:
    url = f"{validators.url(number)}/v1/blobs/{hashlib.sha256(data).hexdigest()}"
    return httpx2.put(url, content=data, headers=OCTETS, timeout=SECONDS)


def keep(holder: Serving, data: bytes) -> BlobHash:
    """Put a blob into one store."""
    name = BlobHash(hashlib.sha256(data).digest())
    with holder.node.blobs.begin(name, len(data), expires=100) as kept:
        kept.write(data)
        kept.finish()
    return name


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests time out after what no busy machine needs, so a wait for one is told from slow work."""
    monkeypatch.setattr(blobs, "SILENCE_SECONDS", SECONDS / 4)


@pytest.mark.usefixtures("patient")
def test_uploads_at_all_nodes_at_once_do_not_wait_for_each_other(
    validators: Validators, tmp_path: Path
) -> None:
    with serving(validators, tmp_path, 0, 1, 2, 3), ThreadPoolExecutor(48) as clients:
        begun = time.monotonic()
        answers = list(clients.map(lambda turn: upload(validators, turn % 4, os.urandom(20_000)), range(48)))
        assert {answer.status_code for answer in answers} == {201}
        for answer in answers:
            receipts = Blob.from_bytes(answer.content).receipts
            assert len({receipt.holder for receipt in receipts}) >= 3
        assert time.monotonic() - begun < blobs.SILENCE_SECONDS, "nobody waited for a request that timed out"


@pytest.mark.usefixtures("patient")
def test_a_dead_holder_delays_neither_uploads_nor_fetches(validators: Validators, tmp_path: Path) -> None:
    with dead(validators.ports[3]), serving(validators, tmp_path, 0, 1, 2) as holders:
        with ThreadPoolExecutor(12) as clients:
            begun = time.monotonic()
            answers = clients.map(lambda _: upload(validators, 0, os.urandom(5_000)), range(24))
            assert {answer.status_code for answer in answers} == {201}
            assert time.monotonic() - begun < blobs.SILENCE_SECONDS
        begun = time.monotonic()
        names = [keep(holders[1], os.urandom(5_000)) for _ in range(12)]
        for running in [holders[0].node.holders.fetch(name, 50) for name in names]:
            running.result(SECONDS)
        assert time.monotonic() - begun < blobs.SILENCE_SECONDS
        assert all(holders[0].node.blobs.is_sound(name) for name in names)


def test_when_too_many_blobs_wait_for_a_dead_holder_it_is_passed_over(
    validators: Validators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "MOST_WAITING", 3)
    with dead(validators.ports[3]), serving(validators, tmp_path, 0, 1, 2) as holders:
        for _ in range(10):
            assert upload(validators, 0, os.urandom(100)).status_code == 201
        assert holders[0].node.holders._holders[3].sends._number == 3


def test_a_quorum_of_dead_holders_is_said(
    validators: Validators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "SILENCE_SECONDS", 0.5)
    with dead(validators.ports[3]), serving(validators, tmp_path, 0, 1):
        answer = upload(validators, 0, b"two of three")
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")


def test_a_stranger_who_fills_the_caps_keeps_no_validator_from_what_was_decided(
    validators: Validators, tmp_path: Path
) -> None:
    with serving(validators, tmp_path, 0, 1) as holders:
        needed = keep(holders[1], os.urandom(4_000))
        store = holders[0].node.blobs
        store.pending_bytes, store.reserved_bytes = 1_000, 0
        keep(holders[0], os.urandom(990))  # the stranger's
        with pytest.raises(BlobError):
            store.begin(needed, 4_000, expires=10)
        holders[0].node.holders.fetch(needed, 10).result(SECONDS)
        assert store.is_sound(needed)
        assert store.usage().unreferenced == 990, "it takes no room of uploads either"


def test_a_ticket_is_shown_to_the_other_holders(validators: Validators, tmp_path: Path) -> None:
    """Strangers have filled what they may at every holder; a quorum keeps an owner's blob all the same."""
    now, data = int(time.time()), os.urandom(500)
    owner = validators.authority.issue(Purpose.OWNER, "Owner", now - 3600, now + 86_400)
    name = BlobHash(hashlib.sha256(data).digest())
    ticket = urlsafe_b64encode(role_ticket(owner, validators.genesis.hash, name, len(data))).decode()
    with dead(validators.ports[3]), serving(validators, tmp_path, 0, 1, 2) as holders:
        for holder in holders.values():
            store = holder.node.blobs
            store.pending_bytes, store.reserved_bytes = 2_000, 1_000
            keep(holder, os.urandom(990))
        assert upload(validators, 0, data).json()["code"] == "blob-store-full"
        url = f"{validators.url(0)}/v1/blobs/{name.hex()}?ticket={ticket}"
        answer = httpx2.put(url, content=data, headers=OCTETS, timeout=SECONDS)
        assert answer.status_code == 201
        assert {receipt.holder for receipt in Blob.from_bytes(answer.content).receipts} == {0, 1, 2}


def test_a_damaged_or_lost_blob_is_fetched_again(validators: Validators, tmp_path: Path) -> None:
    data = os.urandom(3_000)
    with serving(validators, tmp_path, 0, 1) as holders:
        name = keep(holders[1], data)
        keep(holders[0], data)
        store, node = holders[0].node.blobs, holders[0].node
        for harm in (lambda path: path.write_bytes(b"rotten"), lambda path: path.unlink()):
            harm(store.files.path(name))
            read = node._with_blobs(
                node.state, lambda: node._committed.verifier.openings._attachments.read(name)
            )
            assert read == data
            assert store.is_sound(name)


def test_what_a_block_names_and_nobody_gives_is_asked_for_until_it_comes(
    validators: Validators, tmp_path: Path
) -> None:
    data = os.urandom(2_000)
    name = BlobHash(hashlib.sha256(data).digest())
    with serving(validators, tmp_path, 0, 1) as holders:
        node = holders[0].node
        assert node.blobs.promise_all([(name, None)]) == [name]
        with pytest.raises(AttachmentMissing):
            node.holders.fetch(name, 5).result(SECONDS)
        assert node.fetch_owed() == 1
    copies = tmp_path / "again"
    with serving(replace(validators, directory=tmp_path), copies, 0, 1) as holders:  # after a restart
        keep(holders[1], data)
        node = holders[0].node
        assert node.fetch_owed() == 1
        wait_until(lambda: not node.blobs.owed())
        node.blobs.prune(10_000)
        assert node.blobs.read(name) == data, "it is kept for ever, as the block wants it"


def test_a_holder_that_gives_other_bytes_is_passed_over(validators: Validators, tmp_path: Path) -> None:
    data = os.urandom(2_000)
    with serving(validators, tmp_path, 0, 1, 2) as holders:
        name = keep(holders[1], data)
        keep(holders[2], data)
        holders[2].node.blobs.files.path(name).write_bytes(os.urandom(2_000))
        holders[0].node.holders.fetch(name, 50, [2]).result(SECONDS)
        assert holders[0].node.blobs.read(name) == data


def test_a_validator_whose_bucket_loses_blobs_or_does_not_answer_fetches_and_waits(
    validators: Validators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, data = S3Server(tmp_path / "s3"), os.urandom(3_000)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr("anofel.storage.blobs.s3.TRIES", 0)
    begun = validators.copy(0, tmp_path / "begun" / "node0")
    validators.copy(1, tmp_path / "begun" / "node1")
    (begun / "node.toml").write_bytes(NodeConfig(s3=server.config).to_toml())
    try:
        with serving(replace(validators, directory=begun.parent), tmp_path, 0, 1) as holders:
            node = holders[0].node
            name = keep(holders[1], data)
            assert upload(validators, 1, data).status_code == 503, "two of four are no quorum"
            assert list(server.objects().values()) == [data], "it was sent to the other, into the bucket"
            (path,) = (server.path(found) for found in server.objects())
            read = node._committed.verifier.openings._attachments.read
            for harm in (lambda: path.write_bytes(b"rotten"), path.unlink):
                harm()
                assert node._with_blobs(node.state, lambda: read(name)) == data
                assert node.blobs.is_sound(name)
            server.stop()
            with ThreadPoolExecutor(1) as thread:
                waiting = thread.submit(node._with_blobs, node.state, lambda: read(name))
                with pytest.raises(FutureTimeout):
                    waiting.result(3)
                server.start()
                assert waiting.result(SECONDS) == data
    finally:
        server.stop()
