"""What a board starts from (step 0)."""

import hashlib
from dataclasses import dataclass, fields
from functools import lru_cache

from anofel.ids import GenesisHash
from anofel.messages.signing import digest
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator(View):
    """Who may sign headers, and with what weight."""

    key: bytes
    power: int
    chain: tuple[bytes, ...] = ()
    """The certificates of whoever runs it; none where one node makes the blocks."""
    binding: bytes | None = None
    """The certified key's signature of the Ed25519 key, for this genesis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Class(View):
    """A size class of tasks with its limits and deadlines."""

    max_length: int
    max_posts: int
    post_from: int
    train: int
    aggregate: int
    count: int
    sum: int
    model: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(View):
    """The limits of a board."""

    root_window: int
    max_postings: int
    max_block_bytes: int
    grace: int
    max_runs: int
    max_tasks: int
    max_key_bytes: int
    max_model_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Genesis(View):
    """What a board starts from. Its hash is the board's name in everything that is signed."""

    version: int
    name: str
    nonce: bytes
    time: int
    rules: int
    interval_ms: int
    roots: tuple[bytes, ...]
    ownership_key: bytes
    registration_key: bytes
    submission_key: bytes
    ownership_proving_key: bytes
    registration_proving_key: bytes
    submission_proving_key: bytes
    transcript: bytes
    engine: int = 0
    """Which engine makes the blocks (``anofel.board.engines``)."""
    validators: tuple[Validator, ...]
    holders: tuple[tuple[bytes, ...], ...]
    quorum: int
    bundle_size: int
    bundle_wait: int
    classes: tuple[Class, ...]
    limits: Limits
    insecure: str

    @property
    def key_pins(self) -> dict[str, bytes]:
        """The ids of the proof keys, by the names of their fields."""
        names = (field.name for field in fields(self) if field.name.endswith("_key"))
        return {name: getattr(self, name) for name in names}

    @property
    def hash(self) -> GenesisHash:
        """The board's name."""
        return _hash_of(self)


def binding_bytes(nonce: bytes, key: bytes) -> bytes:
    """What a validator's certified key signs: the Ed25519 key that votes for it on one board."""
    return b"anofel/1/validator" + digest("the nonce of genesis", nonce) + digest("the key", key)


@lru_cache(maxsize=4)
def _hash_of(genesis: Genesis) -> GenesisHash:
    """Every block needs it several times."""
    return GenesisHash(hashlib.sha256(b"anofel/1/genesis" + genesis.to_bytes()).digest())
