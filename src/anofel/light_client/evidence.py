"""What shows that validators signed something wrong, as files that anybody can check without a network.

========================= ==================================================================================
``fork-N-ours``           a signed block N
``fork-N-theirs``         another signed block N, or the next one after it, which names it
``fork-N-validators``     who signed them, if validators came after genesis
``block-N``               a signed block that breaks a rule; an audit of the blocks before it says which
``posting-N-P``           the posting at place P of the signed block N, which breaks a rule by itself
========================= ==================================================================================
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from anofel.board.chain import InvalidBlock, verify_commit, verify_signed
from anofel.board.engines import covers_roots, name_before, name_of
from anofel.board.log import merkle_root
from anofel.board.outline import clients_of, read_outline
from anofel.board.state import State
from anofel.board.validators import Eras
from anofel.board.verification import Verifier
from anofel.errors import AnofelError, InvalidInput, VerificationError
from anofel.light_client.sample import judge
from anofel.messages import Block, Genesis
from anofel.messages.postings import posting_id

DIRECTORY: Final = "evidence"


class NoEvidence(VerificationError):
    """A file does not show what it should."""

    code = "no-evidence"


class Vouched(msgspec.Struct, array_like=True, frozen=True):
    """A header whose roots are vouched for."""

    block: bytes
    """With the names of its postings in their place."""
    following: bytes | None
    """Under CometBFT the next one, whose seal covers the hash of this one."""


class PostingEvidence(msgspec.Struct, frozen=True, tag="posting"):
    """A posting that breaks a rule, with everything that the verdict depends on."""

    block: Vouched
    place: int
    posting: bytes
    before: Vouched
    before_parts: dict[str, bytes]
    """The outline of an earlier block."""
    after: Vouched
    after_parts: dict[str, bytes]
    """The outline of the posting's block or a later one."""
    boundaries: list[bytes]
    """For each change of validators the block that announces it."""

    def to_bytes(self) -> bytes:
        """Write the file."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "PostingEvidence":
        """Read the file. Raises ``NoEvidence``."""
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except msgspec.MsgspecError:
            raise NoEvidence("This is no evidence about a posting.") from None


class ChangedValidators(msgspec.Struct, frozen=True):
    """The validators of a board whose validators changed."""

    eras: Eras
    boundaries: list[bytes]
    """For each change the block that announces it."""

    def to_bytes(self) -> bytes:
        """Write the file."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "ChangedValidators":
        """Read the file. Raises ``NoEvidence``."""
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, AnofelError, ValueError, TypeError, RecursionError):
            raise NoEvidence("These are no validators of a board.") from None


@dataclass(frozen=True)
class Shown:
    """What a file shows."""

    file: str
    sentence: str


def check_posting(evidence: PostingEvidence, genesis: Genesis, verifier: Verifier) -> str:
    """Return what a file shows about a posting. Raises ``NoEvidence``."""
    blocks = {name: _block(getattr(evidence, name)) for name in ("block", "before", "after")}
    parts = {"before": evidence.before_parts, "after": evidence.after_parts}
    states: dict[str, State] = {}
    for name, outline in parts.items():
        header = blocks[name].header
        clients_of(header, outline)
        states[name] = read_outline(genesis, header, outline, {})
    eras = _trusted(genesis, states["after"].validators.eras, evidence.boundaries)
    for name in blocks:
        _check_vouched(genesis, eras, getattr(evidence, name))
    block = blocks["block"]
    heights = [blocks[name].header.height for name in ("before", "block", "after")]
    if not heights[0] < heights[1] <= heights[2]:
        raise NoEvidence("The outlines are not of the blocks around the posting.")
    if merkle_root(block.postings) != block.header.postings:
        raise NoEvidence("The names are not those of the block's postings.")
    if not 0 <= evidence.place < len(block.postings):
        raise NoEvidence("The block has no posting at this place.")
    if posting_id(evidence.posting) != block.postings[evidence.place]:
        raise NoEvidence("The block has another posting at this place.")
    rejected = judge(verifier, states["before"], states["after"], block.header, evidence.posting)
    if rejected is None:
        raise NoEvidence("The posting breaks no rule that can be judged by itself.")
    return (
        f"The validators signed block {heights[1]}, and its posting {evidence.place} breaks "
        f"a rule: {rejected}"
    )


def check_fork(ours: Block, theirs: Block, genesis: Genesis, changed: ChangedValidators | None = None) -> str:
    """Return what two blocks show, if validators of genesis signed them, or those who came later.

    Raises ``NoEvidence``.
    """
    eras = Eras.of(genesis) if changed is None else _trusted(genesis, changed.eras, changed.boundaries)
    for block in (ours, theirs):
        try:
            verify_commit(genesis, eras, block)
        except InvalidBlock as error:
            raise NoEvidence(f"One of the blocks was not signed. {error}") from None
    height, name = ours.header.height, name_of(genesis, eras, ours)
    same = theirs.header.height == height and name_of(genesis, eras, theirs) != name
    follows = theirs.header.height == height + 1 and name_before(theirs) != name
    if not same and not follows:
        raise NoEvidence("The two blocks do not contradict each other.")
    return f"The validators signed two different blocks {height}."


def check_block(block: Block, genesis: Genesis) -> None:
    """Check that validators signed a block with these postings. Raises ``NoEvidence``."""
    try:
        verify_signed(genesis, Eras.of(genesis), block)
    except InvalidBlock as error:
        raise NoEvidence(str(error)) from None
    if merkle_root(posting_id(data) for data in block.postings) != block.header.postings:
        raise NoEvidence("The postings are not those that the header names.")


def shown_by(directory: Path, genesis: Genesis, verifier: Verifier) -> Iterator[Shown]:
    """Say what the files of a directory show. Raises ``NoEvidence``, ``InvalidInput``."""
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    if not files:
        raise InvalidInput(f"There is no evidence in {directory}.")
    for path in files:
        kind, height, *_ = [*path.name.split("-"), ""]
        if kind == "posting":
            sentence = check_posting(PostingEvidence.from_bytes(path.read_bytes()), genesis, verifier)
            yield Shown(path.name, sentence)
        elif path.name.endswith("-theirs"):
            ours = directory / path.name.replace("-theirs", "-ours")
            one, other = (Block.from_bytes(file.read_bytes()) for file in (ours, path))
            told = directory / path.name.replace("-theirs", "-validators")
            changed = ChangedValidators.from_bytes(told.read_bytes()) if told.exists() else None
            yield Shown(path.name, check_fork(one, other, genesis, changed))
        elif kind == "block":
            check_block(Block.from_bytes(path.read_bytes()), genesis)
            yield Shown(
                path.name, f"The validators signed this block {height}; an audit says which rule it breaks."
            )


def _block(vouched: Vouched) -> Block:
    return Block.from_bytes(vouched.block)


def _trusted(genesis: Genesis, eras: Eras, boundaries: list[bytes]) -> Eras:
    """Check that each era of validators was announced by a block that those before it signed."""
    if eras.eras[:1] != Eras.of(genesis).eras:
        raise NoEvidence("The first validators are not those of genesis.")
    announced = {block.header.height: block for block in map(Block.from_bytes, boundaries)}
    for era in eras.eras[1:]:
        block = announced.get(era.since - 1)
        if block is None:
            raise NoEvidence("A change of validators is not shown.")
        try:
            verify_commit(genesis, eras, block)
        except InvalidBlock as error:
            raise NoEvidence(str(error)) from None
    return eras


def _check_vouched(genesis: Genesis, eras: Eras, vouched: Vouched) -> None:
    block = _block(vouched)
    try:
        verify_commit(genesis, eras, block)
        if covers_roots(genesis):
            return
        following = Block.from_bytes(vouched.following or b"")
        verify_commit(genesis, eras, following)
    except InvalidBlock as error:
        raise NoEvidence(str(error)) from None
    named = following.header.previous == block.header.hash(genesis.hash)
    if following.header.height != block.header.height + 1 or not named:
        raise NoEvidence("Nothing vouches for the roots of a header.")
