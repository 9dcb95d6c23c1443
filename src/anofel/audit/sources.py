"""Where an audit reads a board from: a directory, an archive, or a node over HTTP.

What is damaged there is one sentence: a file that cannot be read is ``StoreError`` or ``DamagedBlob``, a
block that cannot be read is ``UnreadableBlock``.
"""

import hashlib
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from anofel.audit.archive import Archive
from anofel.audit.auditor import UnreadableBlock
from anofel.board import snapshot
from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.board.chain import InvalidBlock, verify_commit
from anofel.board.validators import Eras
from anofel.disk.files import read_small_file
from anofel.errors import AnofelError, InvalidInput, MalformedMessage, PeerUnreachable
from anofel.ids import BlobHash
from anofel.light_client.header_store import FILE as HEADERS
from anofel.light_client.remote import fetch_blob, remote_blocks, remote_height, remote_signed_height
from anofel.messages import Block, Genesis, Header
from anofel.network.transport import Transport
from anofel.node.files import kept_blob_files
from anofel.node.signed import SIGNED, SignedFile
from anofel.proofs.keys import read_key_file
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.attachments import DirectoryAttachments
from anofel.storage.blobs.files import PlaceUnreachable, StoredAttachments
from anofel.storage.blocks import FILE as BLOCKS
from anofel.storage.blocks import GENESIS, BlockStore, StoreError

SCRATCH_BYTES = 1 << 30
"""How much of a remote board's blobs is kept while it is audited; the oldest make room."""
SIGNED_SECONDS = 2.0
"""How long a block may take from the node's note to its database."""
_MAX_GENESIS = 1 << 24


@dataclass(frozen=True)
class BoardSource:
    """A board to be audited."""

    genesis: Genesis
    registration_key: bytes
    submission_key: bytes
    attachments: Attachments
    blocks: Iterator[Block]
    height: int
    """How many blocks there are to be read."""
    height_now: Callable[[Eras], int]
    """How many there are by now, by the newest header that validators signed whom the reader knows; a board
    goes on, and prunes, while it is read.
    """
    faults: tuple[str, ...] = ()
    """What lies beside the blocks and contradicts them."""
    remarks: tuple[str, ...] = ()
    """What lies beside the blocks and was not checked."""

    @cached_property
    def registration(self) -> RegistrationVerifier:
        """What checks registrations. Raises ``InvalidKeyFile``."""
        return RegistrationVerifier.from_bytes(self.registration_key)

    @cached_property
    def submission(self) -> SubmissionVerifier:
        """What checks submissions. Raises ``InvalidKeyFile``."""
        return SubmissionVerifier.from_bytes(self.submission_key)


@contextmanager
def open_source(
    where: str, *, further: Sequence[str] = (), proxy: str | None = None, ca_file: Path | None = None
) -> Iterator[BoardSource]:
    """Open a URL, with ``further`` ones of the same board, a directory or an archive.

    Raises ``StoreError``, ``DamagedArchive`` and what a node that cannot be read gives.
    """
    if where.startswith(("http://", "https://")):
        with tempfile.TemporaryDirectory(prefix="anofel-audit-") as scratch:
            yield _remote(Transport([where, *further], proxy=proxy, ca_file=ca_file), Path(scratch))
        return
    if Path(where).is_file():
        archive = Archive.open(Path(where))
        try:
            yield _archive(archive)
        finally:
            archive.close()
        return
    if (Path(where) / HEADERS).exists() and not (Path(where) / BLOCKS).exists():
        raise InvalidInput(
            f"{where} follows the board's headers and keeps no postings: give an audit a node's address "
            "or its directory. What was found wrong here, anofel evidence shows."
        )
    store = BlockStore(Path(where), read_only=True)
    try:
        yield _directory(Path(where), store)
    finally:
        store.close()


class _Blobs:
    """Blobs of a directory; whatever keeps one from being read is one sentence."""

    def __init__(self, blobs: Attachments) -> None:
        self._blobs = blobs

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob. Raises ``AttachmentMissing``, ``DamagedBlob``, ``PeerUnreachable``."""
        try:
            return self._blobs.read(sha256)
        except AttachmentMissing as error:
            if isinstance(error.__cause__, PlaceUnreachable):  # nothing is known of the blob
                raise PeerUnreachable(str(error)) from error
            raise
        except OSError as error:
            reason = error.strerror or error
            raise DamagedBlob(sha256, f"cannot be read: {reason}") from error


class _Scratch:
    """Blobs of a node, fetched when they are needed; the oldest go, so that the disk does not fill up."""

    def __init__(self, directory: Path, transport: Transport, genesis: Genesis, most: int) -> None:
        self._blobs = DirectoryAttachments(directory, partial(fetch_blob, transport, genesis))
        self._lengths: OrderedDict[BlobHash, int] = OrderedDict()
        self._total, self._most = 0, most

    def read(self, sha256: BlobHash) -> bytes:
        """Return a blob. Raises ``AttachmentMissing`` and ``DamagedBlob``."""
        data = _Blobs(self._blobs).read(sha256)
        self._total += len(data) - self._lengths.pop(sha256, 0)
        self._lengths[sha256] = len(data)
        while len(self._lengths) > 1 and self._total > self._most:
            oldest, length = self._lengths.popitem(last=False)
            self._blobs.remove(oldest)
            self._total -= length
        return data


def _directory(directory: Path, store: BlockStore) -> BoardSource:
    kept, height = store.snapshot(), store.height
    faults = [
        _genesis_fault(directory / GENESIS, store.genesis),
        _signed_fault(directory / SIGNED, store),
        None if kept is None else _snapshot_fault(store, *kept),
    ]
    remarks = []
    if pending := len(store.pending()):
        remarks.append(f"{pending} postings wait for a block; they were not checked.")
    return BoardSource(
        genesis=store.genesis,
        registration_key=read_key_file(directory / "registration.verification.key"),
        submission_key=read_key_file(directory / "submission.verification.key"),
        attachments=_Blobs(StoredAttachments(kept_blob_files(directory))),
        blocks=_stored_blocks(store, height),
        height=height,
        height_now=partial(_stored_height_now, store, height),
        faults=tuple(fault for fault in faults if fault is not None),
        remarks=tuple(remarks),
    )


def _archive(archive: Archive) -> BoardSource:
    return BoardSource(
        genesis=Genesis.from_bytes(archive.genesis),
        registration_key=archive.registration,
        submission_key=archive.submission,
        attachments=archive,
        blocks=_archived_blocks(archive),
        height=archive.height,
        height_now=lambda _validators: archive.height,
    )


def _archived_blocks(archive: Archive) -> Iterator[Block]:
    for at, data in enumerate(archive.blocks(), start=1):
        try:
            block = Block.from_bytes(data)
        except MalformedMessage as error:
            raise UnreadableBlock(at, f"Block {at}: {error}") from None
        yield block


def _stored_blocks(store: BlockStore, height: int) -> Iterator[Block]:
    for at in range(1, height + 1):
        try:
            store.check_names(at)
            block = store.block(at)
        except (StoreError, MalformedMessage) as error:
            raise UnreadableBlock(at, f"Block {at}: {error}") from None
        if block is None:
            raise UnreadableBlock(at, f"Block {at} is missing.")
        yield block


def _genesis_fault(path: Path, genesis: Genesis) -> str | None:
    """Compare the file that is handed to others with the genesis that the blocks follow."""
    if not path.exists():
        return None
    try:
        same = read_small_file(path, _MAX_GENESIS) == genesis.to_bytes()
    except InvalidInput as error:
        return str(error)
    return None if same else f"{path} is not the genesis of the blocks beside it."


def _signed_fault(path: Path, store: BlockStore) -> str | None:
    """Compare what the node noted as signed with the blocks."""
    if not path.exists():  # a client's view; whoever signs has one
        return None
    try:
        signed = SignedFile(path, read_only=True)
    except StoreError as error:
        return str(error)
    signed.close()
    height, deadline = signed.promised.height, time.monotonic() + SIGNED_SECONDS
    while store.height < height and time.monotonic() < deadline:
        time.sleep(0.05)  # a node stores a block before it notes it, so this is rare
    header = store.header(height)
    found = store.genesis.hash if height == 0 else header and header.hash(store.genesis.hash)
    if found == signed.promised.hash:
        return None
    return f"The node signed block {height} ({signed.promised.hash.hex()[:16]}…), and its blocks lack it."


def _snapshot_fault(store: BlockStore, height: int, data: bytes) -> str | None:
    """Compare the state that a node starts from with the header that it belongs to."""
    try:
        header = store.header(height)
        if header is None:
            return f"The snapshot is of block {height}, which is not there."
        snapshot.decode(data, store.genesis, header)
    except (AnofelError, LookupError) as error:  # the latter: an epoch that it does not hold
        return f"The snapshot of block {height} is not that of its header: {error}"
    return None


def _remote(transport: Transport, scratch: Path) -> BoardSource:
    genesis = transport.ask("GET", "/v1/genesis", Genesis.from_bytes)
    height = remote_height(transport)
    return BoardSource(
        genesis=genesis,
        registration_key=transport.ask("GET", "/v1/keys/registration", bytes),
        submission_key=transport.ask("GET", "/v1/keys/submission", bytes),
        attachments=_Scratch(scratch, transport, genesis, SCRATCH_BYTES),
        blocks=_remote_blocks(transport, height),
        height=height,
        height_now=partial(_height_now, transport, genesis, height),
    )


def _remote_blocks(transport: Transport, height: int) -> Iterator[Block]:
    at = 1
    while at <= height:
        blocks = remote_blocks(transport, at)
        yield from blocks[: height - at + 1]
        at += len(blocks)


def _height_now(transport: Transport, genesis: Genesis, height: int, validators: Eras) -> int:
    with suppress(PeerUnreachable):
        return remote_signed_height(transport, genesis, validators, height)
    return height


def _stored_height_now(store: BlockStore, height: int, validators: Eras) -> int:
    with suppress(StoreError, MalformedMessage, InvalidBlock):
        newest = store.signed_header(store.height)
        if newest is not None:
            verify_commit(store.genesis, validators, newest)
            return max(height, newest.header.height)
    return height


def checkpoint(text: str, genesis: Genesis) -> tuple[int, bytes]:
    """Read a checkpoint: HEIGHT:HASH, or a file with a header. Raises ``InvalidInput``."""
    height, _, digest = text.partition(":")
    if height.isdecimal() and len(digest) == 2 * hashlib.sha256().digest_size:
        try:
            return int(height), bytes.fromhex(digest)
        except ValueError:
            raise InvalidInput(f"{digest} is not a hash in hexadecimal digits.") from None
    try:
        header = Header.from_bytes(read_small_file(Path(text)))
    except MalformedMessage:
        raise InvalidInput(f"The checkpoint {text} is no block header.") from None
    return header.height, header.hash(genesis.hash)
