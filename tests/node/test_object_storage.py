"""A node that keeps its blobs in object storage, as a real process beside a real S3 server."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from anofel.audit.sources import open_source
from anofel.cli.node_status import status_of_directory
from anofel.disk.sections import InvalidDocument, parse_toml
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.ids import BlobHash
from anofel.messages import Blob
from anofel.node.files import NodeConfig, kept_blob_files
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blobs.s3 import S3Config
from tests.board.s3_server import ACCESS, SECRET, S3Server
from tests.node.support import OCTETS, SECONDS, height, make_board, running, wait_until


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    server = S3Server(tmp_path / "s3")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr("anofel.storage.blobs.s3.TRIES", 0)
    yield server
    server.stop()


def name_of(data: bytes) -> BlobHash:
    return BlobHash(hashlib.sha256(data).digest())


def test_a_node_gives_what_it_keeps_in_a_bucket(server: S3Server, keys: KeyDirectory, tmp_path: Path) -> None:
    """It moves what was in its directory, serves ranges, bears an outage, and its audit finds the blobs."""
    directory = make_board(tmp_path / "node", keys).directory
    old, new, late = os.urandom(5_000), os.urandom(70_000), os.urandom(300)
    with running(directory) as node, httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        assert client.put(f"/v1/blobs/{name_of(old).hex()}", content=old, headers=OCTETS).status_code == 201
        node.stop()
    config = NodeConfig(s3=replace(server.config, prefix="a/b"))
    (directory / "node.toml").write_bytes(config.to_toml())
    with running(directory) as node, httpx2.Client(base_url=node.url, timeout=SECONDS) as client:
        assert client.get(f"/v1/blobs/{name_of(old).hex()}").content == old
        path = f"/v1/blobs/{name_of(new).hex()}"
        answer = client.put(path, content=new, headers=OCTETS)
        assert (answer.status_code, len(Blob.from_bytes(answer.content).receipts)) == (201, 1)
        part = client.get(path, headers={"Range": "bytes=1000-1999"})
        assert (part.status_code, part.content) == (206, new[1000:2000])
        assert sorted(server.objects().values()) == sorted([old, new])
        assert all(found.startswith("a/b/") for found in server.objects())
        server.stop()
        refused = client.put(f"/v1/blobs/{name_of(late).hex()}", content=late, headers=OCTETS)
        assert (refused.status_code, refused.json()["code"]) == (503, "blob-store-unwritable")
        assert "s3://" not in refused.text, "where blobs are is the operator's affair"
        before = height(client)
        wait_until(lambda: height(client) > before)  # blocks go on
        server.start()
        assert client.put(f"/v1/blobs/{name_of(late).hex()}", content=late, headers=OCTETS).status_code == 201
        code, errors = node.stop()
    assert code == 0, errors
    assert list((directory / "blobs").glob("??/??/*")) == []
    assert status_of_directory(directory)["blob_bytes"] == len(old + new + late)
    with open_source(str(directory)) as source:
        assert source.attachments.read(name_of(new)) == new
        server.stop()
        with pytest.raises(PeerUnreachable, match="cannot be had now"):
            source.attachments.read(name_of(new))
        server.start()
    (directory / "node.toml").write_bytes(NodeConfig().to_toml())
    with pytest.raises(InvalidInput, match="has no .s3."):
        kept_blob_files(directory)


def test_a_node_without_its_bucket_says_so_and_ends(
    server: S3Server, keys: KeyDirectory, tmp_path: Path
) -> None:
    config = NodeConfig(s3=replace(server.config, bucket="nobodys"))
    directory = make_board(tmp_path / "node", keys, config=config).directory
    result = subprocess.run(
        [sys.executable, "-m", "anofel", "node", "run", str(directory), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 1
    assert "there is no such bucket" in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert SECRET not in result.stderr


def test_the_table_of_a_bucket_is_read_as_it_is_written() -> None:
    config = NodeConfig(s3=S3Config(bucket="a-bucket", endpoint="https://s3.example", prefix="x/y"))
    assert parse_toml(config.to_toml(), NodeConfig, "node.toml") == config
    assert parse_toml(NodeConfig().to_toml(), NodeConfig, "node.toml").s3 is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bucket", "No"),
        ("bucket", "a/b"),
        ("endpoint", "s3.example"),
        ("endpoint", "https://key:secret@s3.example"),
        ("prefix", "/a"),
        ("prefix", "a/../b"),
    ],
)
def test_a_table_of_a_bucket_that_cannot_be_used_is_refused(key: str, value: str) -> None:
    table = {"bucket": "a-bucket"} | {key: value}
    text = "[s3]\n" + "".join(f'{name} = "{found}"\n' for name, found in table.items())
    with pytest.raises(InvalidDocument, match=f"s3.*{key}"):
        parse_toml(text, NodeConfig, "node.toml")
