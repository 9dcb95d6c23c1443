"""Postings: a body, its author and the author's signature."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self, get_args

from anofel._core import messages as core
from anofel.errors import InvalidInput, MalformedMessage
from anofel.ids import GenesisHash, PostingId
from anofel.messages.aggregation import Aggregate, CountShare, SumShare
from anofel.messages.certifiers import CertifierKeyOffer, RevokeCertifier
from anofel.messages.clients import Registration, Submission
from anofel.messages.committees import CommitteeKeyVote, DkgRound
from anofel.messages.signing import on_board
from anofel.messages.tasks import EndIteration, EndTask, Model, PrivacyLedger, RejectModel, TaskAnnouncement
from anofel.messages.validators import ChangeValidators, SignChange

Body = (
    CertifierKeyOffer
    | RevokeCertifier
    | Registration
    | DkgRound
    | CommitteeKeyVote
    | TaskAnnouncement
    | Model
    | Submission
    | Aggregate
    | CountShare
    | SumShare
    | EndIteration
    | EndTask
    | PrivacyLedger
    | RejectModel
    | ChangeValidators
    | SignChange
)
"""What can be posted."""

_NUMBERS = {name: number for number, name, _ in core.kinds()}
_BODIES: dict[int, type[Body]] = {_NUMBERS[body.__name__]: body for body in get_args(Body)}
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class ChainAuthor:
    """A role-holder: X.509 certificates in DER, its own first."""

    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class KeyAuthor:
    """A client: the Ed25519 key of this one posting."""

    message_key: bytes


StatedAuthor = ChainAuthor | KeyAuthor
"""Who posts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """A well-formed posting. Whether its signature is valid is for the board to check."""

    kind: int
    author: StatedAuthor
    body: Body
    signature: bytes
    data: bytes = field(repr=False)
    """The exact bytes of the whole posting."""
    id: PostingId = field(init=False, repr=False, compare=False)
    """The posting's name, for inclusion and caches."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", posting_id(self.data))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a whole posting. Raises ``MalformedMessage`` for anything else."""
        read = core.decode_posting(data)
        author = read.author
        return cls(
            kind=read.kind,
            author=KeyAuthor(author) if isinstance(author, bytes) else ChainAuthor(author),
            body=_BODIES[read.kind].from_values(read.body),
            signature=read.signature,
            data=data,
        )

    @property
    def content(self) -> bytes:
        """All bytes before the signature."""
        return self.data[:-_SIGNATURE_BYTES]

    def signed_bytes(self, genesis: GenesisHash) -> bytes:
        """What the author signs, for one board."""
        return _signed_bytes(genesis, self.content)


def posting_id(data: bytes) -> PostingId:
    """The name of a posting, from its bytes."""
    return PostingId(hashlib.sha256(b"anofel/1/posting-id" + data).digest())


def make_posting(
    body: Body, author: StatedAuthor, genesis: GenesisHash, sign: Callable[[bytes], bytes]
) -> Posting:
    """Encode a body, have it signed for one board, and put the parts together.

    Raises ``MalformedMessage`` if the body or the author does not fit its layout.
    """
    kind = _NUMBERS.get(type(body).__name__)
    if kind is None:
        raise InvalidInput(f"a {type(body).__name__} cannot be posted")
    named = author.message_key if isinstance(author, KeyAuthor) else author.chain
    content = core.encode_posting(kind, named, body.values())
    signature = sign(_signed_bytes(genesis, content))
    if len(signature) != _SIGNATURE_BYTES:
        raise MalformedMessage(
            f"{type(body).__name__}.signature: {len(signature)} bytes instead of {_SIGNATURE_BYTES}"
        )
    return Posting.from_bytes(content + signature)


def _signed_bytes(genesis: GenesisHash, content: bytes) -> bytes:
    return on_board(b"anofel/1/posting", genesis, content)
