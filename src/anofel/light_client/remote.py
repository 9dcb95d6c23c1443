"""What a node answers, read and checked for form; nothing here says that it is true.

Whatever stands between us and the node may answer in its place. So each question names the only answers
that count, and its caller hears ``PeerUnreachable`` for all others:

1. heights, blocks, genesis and keys: what can be read. No refusal counts.
2. a posting: that it was taken, with its own name, or the code of a rule of the board.
3. a blob that is fetched: bytes with its hash, or that none of the nodes has it.
4. a blob that is stored: a receipt with a valid signature, or that it is too large.

Of several nodes each question goes to one that is drawn for it. What nothing here can check, where the board
stands and whether a posting is refused, is asked of several.
"""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from anofel.board.attachments import AttachmentMissing
from anofel.board.chain import InvalidBlock, verify_commit
from anofel.board.framing import unframe
from anofel.board.rule import RULES
from anofel.board.rules import MAX_POSTING_BYTES
from anofel.board.validators import Eras
from anofel.errors import VerificationError
from anofel.ids import BlobHash, BlockHash, GenesisHash, PostingId
from anofel.light_client.nodes import ask_in_turn, ask_some
from anofel.messages import Block, Genesis, Posting
from anofel.messages.postings import posting_id
from anofel.network.transport import Believe, Content, Refused, Transport
from anofel.proofs.keys import KeyRole, StatementName, pin_name, served_name

MAX_SYNC_BYTES: Final = 64 << 20
MAX_BLOCKS: Final = 1000
"""How many blocks are asked for at once; a node hands out no more."""
MAX_LEAVES: Final = 1 << 17
_NAME_BYTES: Final = 32
MAX_HEIGHT: Final = (1 << 53) - 1
"""Exact in every JSON reader."""

MAX_KEY_BYTES: Final = 4 << 20
"""The longest proof key has a quarter of it."""

NOT_THERE: Final = frozenset({"blob-unknown", "blob-pruned"})
TOO_LARGE: Final = frozenset({"blob-too-large", "body-too-large"})

_HASH: Final = re.compile(r"[0-9a-f]{64}")

T = TypeVar("T")


class Stated(msgspec.Struct, frozen=True):
    """Where a node says that the board stands. Nothing in it is signed."""

    height: int
    tip: BlockHash
    """The hash of that block, as far as the node says it."""
    node: Transport
    """Who says so."""


class NotFromBoard(VerificationError):
    """An answer is none that a node gives to this question; ``Transport`` asks again."""

    code = "not-from-board"


class _Status(msgspec.Struct):
    height: int
    tip: str = ""


class _Taken(msgspec.Struct):
    id: str


def read_json(data: bytes, kind: type[T]) -> T:
    """Read JSON. Raises ``NotFromBoard``, also for what is nested too deeply."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NotFromBoard("The node's answer is not the JSON that was asked for.") from None


def remote_genesis(transport: Transport, genesis_hash: GenesisHash) -> Genesis:
    """Fetch the genesis that has this hash. Raises ``PeerUnreachable``."""

    def read(data: bytes) -> Genesis:
        genesis = Genesis.from_bytes(data)
        if genesis.hash != genesis_hash:
            raise NotFromBoard(another_genesis(genesis, genesis_hash))
        return genesis

    return transport.ask("GET", "/v1/genesis", read)


def another_genesis(genesis: Genesis, wanted: bytes | None) -> str:
    """Say that a board is another one."""
    return f"The board has the genesis {genesis.hash.hex()[:16]}…, not {(wanted or b'').hex()[:16]}…."


def remote_key(transport: Transport, genesis: Genesis, name: StatementName, role: KeyRole) -> bytes:
    """Fetch a proof key that genesis pins. Raises ``PeerUnreachable``."""
    return transport.ask(
        "GET",
        f"/v1/keys/{served_name(name, role)}",
        lambda data: check_key(data, genesis, name, role),
        max_bytes=MAX_KEY_BYTES,
    )


def check_key(data: bytes, genesis: Genesis, name: StatementName, role: KeyRole) -> bytes:
    """Return a proof key if it is the one that genesis pins. Raises ``NotFromBoard``."""
    if hashlib.sha256(data).digest() != genesis.key_pins[pin_name(name, role)]:
        raise NotFromBoard(f"The {name} {role} key is not the one that genesis pins.")
    return data


def remote_height(transport: Transport, verified: int = 0) -> int:
    """Return the height that a node claims; one below ``verified`` is no answer.

    Nothing in it is signed, so a lower one shows nothing: it is a node that lags, or somebody else.
    """
    return remote_claim(transport, verified).height


def remote_claim(transport: Transport, least: int = 0) -> Stated:
    """Return where a node says that the board stands; a height below ``least`` is no answer."""

    def read(data: bytes) -> Stated:
        said = read_json(data, _Status)
        if not 0 <= said.height <= MAX_HEIGHT:
            raise NotFromBoard("The node states no height.")
        if said.height < least:
            raise NotFromBoard(f"The node states {said.height} blocks, and {least} are verified here.")
        tip = bytes.fromhex(said.tip) if _HASH.fullmatch(said.tip) else b""
        return Stated(said.height, BlockHash(tip), transport)

    return transport.ask("GET", "/v1/status", read)


def remote_signed_height(transport: Transport, genesis: Genesis, validators: Eras, verified: int) -> int:
    """Return the height of the newest header that a node hands out with its validators' signatures.

    It is not linked to the blocks that are verified here. Validators who sign a header far ahead leave
    evidence: the block that they sign at that height one day is another. ``validators``: as far as they are
    known here; a header of validators who came after that does not count.
    """

    def read(node: Transport) -> int:
        height = remote_height(node, verified)
        if height > verified:
            remote_signed_header(node, genesis, validators, height)
        return height

    return ask_in_turn(transport, read)  # the height is that of whoever hands out the header


def remote_signed_header(transport: Transport, genesis: Genesis, validators: Eras, height: int) -> Block:
    """Return a block without its postings that its validators signed. Raises ``PeerUnreachable``."""

    def read(data: bytes) -> Block:
        blocks = unframe(data)
        if len(blocks) != 1 or blocks[0].header.height != height:
            raise NotFromBoard(f"The node claims to have block {height} and sent another header.")
        try:
            verify_commit(genesis, validators, blocks[0])
        except InvalidBlock as error:
            raise NotFromBoard(f"The header that the node claims to have does not count. {error}") from None
        return blocks[0]

    return transport.ask("GET", f"/v1/headers?from={height}&limit=1", read, max_bytes=MAX_SYNC_BYTES)


def remote_blocks(transport: Transport, first: int, waited: Callable[[], float] = lambda: 0.0) -> list[Block]:
    """Return blocks from a height on that the node claims to have; one at least.

    ``waited`` says for how many seconds no new block came; a node that hands out none is named with it.
    """

    def read(data: bytes) -> list[Block]:
        blocks = unframe(data)
        if not blocks:
            raise NotFromBoard(
                f"The node claims to have block {first} and does not hand it out; "
                f"the last new block came {waited():.0f} seconds ago."
            )
        if any(block.header.height != height for height, block in enumerate(blocks, start=first)):
            raise NotFromBoard(f"The node sent other blocks than those from {first} on.")
        return blocks

    return transport.ask("GET", f"/v1/blocks?from={first}&limit={MAX_BLOCKS}", read, max_bytes=MAX_SYNC_BYTES)


def remote_names(transport: Transport, first: int) -> list[Block]:
    """Return blocks from a height on, one at least, with names of postings in place of the postings."""

    def read(data: bytes) -> list[Block]:
        blocks = unframe(data)
        if not blocks:
            raise NotFromBoard(f"The node claims to have block {first} and does not hand out its header.")
        if any(block.header.height != height for height, block in enumerate(blocks, start=first)):
            raise NotFromBoard(f"The node sent other headers than those from {first} on.")
        if any(len(name) != _NAME_BYTES for block in blocks for name in block.postings):
            raise NotFromBoard("The node sent something else than names of postings.")
        return blocks

    return transport.ask("GET", f"/v1/names?from={first}&limit={MAX_BLOCKS}", read, max_bytes=MAX_SYNC_BYTES)


def remote_outline(transport: Transport, height: int, known: int, read: Callable[[dict[str, bytes]], T]) -> T:
    """Return what ``read`` makes of the parts of an outline that differ from those of a known block."""

    def decode(data: bytes) -> T:
        try:
            parts = msgspec.msgpack.decode(data, type=dict[str, bytes])
        except msgspec.MsgspecError:
            raise NotFromBoard("The node sent no outline.") from None
        return read(parts)

    path = f"/v1/outline?height={height}&known={known}"
    return transport.ask("GET", path, decode, max_bytes=MAX_SYNC_BYTES)


def remote_leaves(transport: Transport, epoch: int, first: int, number: int) -> bytes:
    """Return leaves of a client tree from a place on; one at least, and no more than so many."""

    def read(data: bytes) -> bytes:
        if not data or len(data) % _NAME_BYTES or len(data) > number * _NAME_BYTES:
            raise NotFromBoard("The node sent other leaves than were asked for.")
        return data

    path = f"/v1/leaves?epoch={epoch}&from={first}&limit={min(number, MAX_LEAVES)}"
    return transport.ask("GET", path, read, max_bytes=MAX_LEAVES * _NAME_BYTES)


def remote_posting(transport: Transport, height: int, place: int, name: PostingId) -> bytes:
    """Return the posting at a place of a block, which has this name."""

    def read(data: bytes) -> bytes:
        if posting_id(data) != name:
            raise NotFromBoard(f"The node sent another posting than the one at place {place} of {height}.")
        return data

    return transport.ask("GET", f"/v1/blocks/{height}/postings/{place}", read, max_bytes=MAX_POSTING_BYTES)


def send_posting(transport: Transport, posting: Posting, takers: int, believe: Believe) -> None:
    """Offer a posting until so many different nodes took it, or all were asked.

    Raises ``Refused`` with the code of a rule, if ``believe`` says so.
    """

    def read(data: bytes) -> None:
        if read_json(data, _Taken).id != posting.id.hex():
            raise NotFromBoard("The node took another posting.")

    def offer(node: Transport) -> None:
        node.ask("POST", "/v1/postings", read, body=posting.data, codes=RULES)

    ask_some(transport, offer, takers, believe)


def send_blob(
    transport: Transport,
    sha256: BlobHash,
    data: Content,
    read: Callable[[bytes], T],
    believe: Believe,
    ticket: bytes = b"",
) -> T:
    """Store a blob and return what ``read`` makes of the receipts.

    Raises ``Refused`` if it is too large and ``believe`` says so.
    """
    shown = f"?ticket={urlsafe_b64encode(ticket).decode()}" if ticket else ""
    path = f"/v1/blobs/{sha256.hex()}{shown}"
    return transport.ask("PUT", path, read, body=data, codes=TOO_LARGE, believe=believe)


def fetch_blob(transport: Transport, genesis: Genesis, sha256: BlobHash, path: Path) -> None:
    """Fetch a blob into a file, checked against its hash. Raises ``AttachmentMissing``."""
    largest = max(genesis.limits.max_key_bytes, genesis.limits.max_model_bytes)
    number = len(transport.addresses)

    def believe(refusal: Refused, nodes: int) -> Refused | None:
        return refusal if nodes >= number else None

    try:
        transport.download(
            f"/v1/blobs/{sha256.hex()}",
            path,
            max_bytes=largest,
            sha256=sha256,
            codes=NOT_THERE,
            believe=believe,
        )
    except Refused as error:
        raise AttachmentMissing(sha256) from error
