"""Where an audit reads a board from: a directory, or a node over HTTP."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anofel.audit.auditor import AuditFailed
from anofel.board.attachments import Attachments, DirectoryAttachments
from anofel.board.framing import unframe
from anofel.board.remote import MAX_SYNC_BYTES, fetch_blob, remote_height
from anofel.board.store import BlockStore, StoreError
from anofel.errors import InvalidInput, MalformedMessage
from anofel.keys import read_key_file
from anofel.messages import Block, Genesis, Header
from anofel.proofs import RegistrationVerifier, SubmissionVerifier
from anofel.transport import Transport

BLOBS = "blobs"


@dataclass(frozen=True)
class Source:
    """A board to be audited."""

    genesis: Genesis
    registration: RegistrationVerifier
    submission: SubmissionVerifier
    attachments: Attachments
    blocks: Iterator[Block]
    height: int
    """How many blocks there are; for the progress bar."""


@contextmanager
def open_source(where: str, *, proxy: str | None = None, ca_file: Path | None = None) -> Iterator[Source]:
    """Open a URL or a directory."""
    if where.startswith(("http://", "https://")):
        with tempfile.TemporaryDirectory(prefix="anofel-audit-") as scratch:
            yield _remote(Transport(where, proxy=proxy, ca_file=ca_file), Path(scratch))
    else:
        yield _directory(Path(where))


def _directory(directory: Path) -> Source:
    store = BlockStore(directory, read_only=True)

    def blocks() -> Iterator[Block]:
        for height in range(1, store.height + 1):
            try:
                store.check_names(height)
                block = store.block(height)
            except (StoreError, MalformedMessage) as error:
                raise AuditFailed(f"Block {height}: {error}", height=height, rule="store") from None
            if block is None:
                raise AuditFailed(f"Block {height} is missing.", height=height, rule="store")
            yield block

    return Source(
        genesis=store.genesis,
        registration=RegistrationVerifier.from_bytes(
            read_key_file(directory / "registration.verification.key")
        ),
        submission=SubmissionVerifier.from_bytes(read_key_file(directory / "submission.verification.key")),
        attachments=DirectoryAttachments(directory / BLOBS),
        blocks=blocks(),
        height=store.height,
    )


def _remote(transport: Transport, scratch: Path) -> Source:
    genesis = Genesis.from_bytes(transport.get("/v1/genesis"))

    height = remote_height(transport)
    return Source(
        genesis=genesis,
        registration=RegistrationVerifier.from_bytes(transport.get("/v1/keys/registration")),
        submission=SubmissionVerifier.from_bytes(transport.get("/v1/keys/submission")),
        attachments=DirectoryAttachments(scratch, partial(fetch_blob, transport, genesis)),
        blocks=_remote_blocks(transport, height),
        height=height,
    )


def _remote_blocks(transport: Transport, height: int) -> Iterator[Block]:
    at = 1
    while at <= height:
        data = transport.get(f"/v1/blocks?from={at}&limit=256", max_bytes=MAX_SYNC_BYTES)
        try:
            blocks = unframe(data)
        except MalformedMessage as error:
            raise AuditFailed(f"Block {at}: {error}", height=at, rule="block") from None
        if not blocks:
            raise AuditFailed(f"Block {at} is missing.", height=at, rule="block")
        yield from blocks[: height - at + 1]
        at += len(blocks)


def checkpoint(text: str, genesis: Genesis) -> tuple[int, bytes]:
    """Read a checkpoint: HEIGHT:HASH, or a file with a header. Raises ``InvalidInput``."""
    height, _, digest = text.partition(":")
    if height.isdecimal() and len(digest) == 2 * hashlib.sha256().digest_size:
        try:
            return int(height), bytes.fromhex(digest)
        except ValueError:
            raise InvalidInput(f"{digest} is not a hash in hexadecimal digits.") from None
    try:
        header = Header.from_bytes(Path(text).read_bytes())
    except OSError as error:
        raise InvalidInput(f"The checkpoint {text} cannot be read: {error.strerror or error}.") from None
    return header.height, header.hash(genesis.hash)
