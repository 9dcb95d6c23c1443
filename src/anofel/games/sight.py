"""What an adversary sees without corrupting anybody: the board, and what reaches its node, with times.

A time is counted in blocks: 7.25 lies in the eighth block, a quarter of an interval after block 7 was sealed.
"""

import hashlib
from dataclasses import dataclass, field

from anofel.committee.interface import Int64Vector
from anofel.messages import Posting, Submission


@dataclass(frozen=True, slots=True)
class Request:
    """One message to the node, on a connection of its own (``docs/transport.md``)."""

    time: float
    method: str
    path: str
    sent: int
    """Bytes of the body."""
    received: int
    """Bytes of the answer."""
    source: str = ""
    """The address that it comes from; empty through a proxy, where every message has another one."""


@dataclass(frozen=True, slots=True)
class SeenPost:
    """A submission on the board."""

    posting: Posting
    height: int
    """Of its block."""
    place: int
    """Among the postings of the block."""
    arrived: float
    """When the node had it."""
    beside: bytes = b""
    """What a weakened client writes beside its posting; ours writes nothing."""

    @property
    def body(self) -> Submission:
        """The submission."""
        assert isinstance(self.posting.body, Submission)
        return self.posting.body


@dataclass(frozen=True)
class SeenOutcome:
    """What a committee opened."""

    progress: str
    count: int | None
    total: Int64Vector | None = field(repr=False, default=None)


@dataclass
class IterationSeen:
    """One iteration, from the end of the one before to its own end."""

    number: int
    opened_at: int = 0
    closed_at: int = 0
    client_root: bytes = b""
    requests: list[Request] = field(default_factory=list)
    posts: list[SeenPost] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Codes with which the board refused postings."""
    outcomes: tuple[SeenOutcome, ...] = ()
    """Of each task of the bundle."""
    models: tuple[bytes, ...] = ()
    """The models that opened it."""

    def model_names(self) -> list[str]:
        """How the models are called by those who fetch them."""
        return [hashlib.sha256(model).hexdigest() for model in self.models]

    def uploads(self) -> dict[str, float]:
        """When each payload reached the node first, by its name."""
        found: dict[str, float] = {}
        for request in self.requests:
            if request.method == "PUT":
                found.setdefault(request.path.rsplit("/", 1)[1], request.time)
        return found
