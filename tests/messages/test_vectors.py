"""The vectors, which a program made from the documentation alone, through the views."""

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from anofel import messages
from anofel._core import messages as core
from anofel.errors import InvalidSignature, MalformedMessage
from anofel.messages import ChainAuthor, KeyAuthor, Posting, make_posting
from anofel.primitives import MessageKey

ROOT = Path(__file__).parents[2]
VECTORS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "vectors" / "messages").glob("*.json")}
MALFORMED = VECTORS.pop("malformed")
POSTINGS = [name for name, vector in VECTORS.items() if "kind" in vector]
RECORDS = [name for name, vector in VECTORS.items() if "kind" not in vector]


def field(vector: dict[str, Any], name: str) -> bytes:
    return bytes.fromhex(vector[name])


def plain(value: object) -> object:
    """A value as the vectors write it."""
    if isinstance(value, bytes):
        return value.hex()
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def test_the_vectors_are_what_the_page_says(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("generator", ROOT / "vectors" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    generator.write(tmp_path)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in (ROOT / "vectors" / "messages").iterdir()}


def test_there_is_one_vector_for_each_layout() -> None:
    assert set(VECTORS) == set(core.layouts())
    assert sorted(POSTINGS) == sorted(name for _, name, _ in core.kinds())


@pytest.mark.parametrize("name", RECORDS)
def test_records_read_and_write_as_in_the_vectors(name: str) -> None:
    vector = VECTORS[name]
    view = getattr(messages, name).from_bytes(field(vector, "bytes"))
    assert plain(view.values()) == vector["body"]
    assert view.to_bytes() == field(vector, "bytes")


@pytest.mark.parametrize("name", POSTINGS)
def test_postings_read_and_write_as_in_the_vectors(name: str) -> None:
    vector = VECTORS[name]
    genesis = field(vector, "genesis")
    posting = Posting.from_bytes(field(vector, "bytes"))
    assert type(posting.body) is getattr(messages, name)
    assert posting.kind == vector["kind"]
    assert plain(posting.body.values()) == vector["body"]
    author = posting.author.chain if isinstance(posting.author, ChainAuthor) else posting.author.message_key
    assert plain(author) == vector["author"]
    assert posting.signature == field(vector, "signature")
    assert posting.id == field(vector, "id")
    signed = posting.signed_bytes(genesis)
    assert hashlib.sha256(signed).digest() == field(vector, "signed_sha256")
    signatures = {signed: posting.signature}
    assert make_posting(posting.body, posting.author, genesis, signatures.__getitem__) == posting


@pytest.mark.parametrize("name", ["Registration", "Submission"])
def test_the_signatures_of_clients_are_valid_on_their_board_alone(name: str) -> None:
    vector = VECTORS[name]
    posting = Posting.from_bytes(field(vector, "bytes"))
    assert isinstance(posting.author, KeyAuthor)
    key = MessageKey.from_bytes(posting.author.message_key)
    key.verify(posting.signed_bytes(field(vector, "genesis")), posting.signature)
    with pytest.raises(InvalidSignature):
        key.verify(posting.signed_bytes(bytes(32)), posting.signature)


def test_the_names_of_things_are_as_in_the_vectors() -> None:
    genesis = messages.Genesis.from_bytes(field(VECTORS["Genesis"], "bytes"))
    assert genesis.hash == field(VECTORS["Genesis"], "hash")
    header = messages.Header.from_bytes(field(VECTORS["Header"], "bytes"))
    assert header.hash(genesis.hash) == field(VECTORS["Header"], "hash")
    assert header.vote_bytes(genesis.hash) == field(VECTORS["Header"], "vote")
    run = messages.Run.from_bytes(field(VECTORS["Run"], "bytes"))
    assert run.run_id(genesis.hash) == field(VECTORS["Run"], "run_id")
    task = Posting.from_bytes(field(VECTORS["TaskAnnouncement"], "bytes"))
    assert isinstance(task.body, messages.TaskAnnouncement)
    named = task.body.task_id(genesis.hash, bytes(range(32)))
    assert named == field(VECTORS["TaskAnnouncement"], "task_id_of_owner_0_to_31")
    blob = messages.Blob.from_bytes(field(VECTORS["Blob"], "bytes"))
    signed = messages.receipt_bytes(genesis.hash, blob.sha256, blob.length, 77)
    assert signed == field(VECTORS["Blob"], "receipt_until_77")


@pytest.mark.parametrize("vector", MALFORMED, ids=lambda vector: vector["what"])
def test_malformed_messages_are_refused_for_the_reason_in_the_vectors(vector: dict[str, Any]) -> None:
    data, name = field(vector, "bytes"), vector["layout"]
    read = Posting.from_bytes if name is None else getattr(messages, name).from_bytes
    with pytest.raises(MalformedMessage) as caught:
        read(data)
    assert str(caught.value).startswith(vector["error"])
    assert caught.value.code == "malformed-message"
