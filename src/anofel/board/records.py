"""The records of one kind, in the order in which they came, with the Merkle root of their digests.

A board only adds records, and most of them rest: their task ended, their key was made long ago. A record
tells its collection when one of its fields is set, so a block hashes what changed and looks at what is
live, and its work does not grow with what has ended. Everything kept here beside the records themselves
follows from them: whoever loads a snapshot makes it again.
"""

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import fields
from typing import Any, Self, TypeVar

from anofel.board.log import MerkleTree

Key = TypeVar("Key")
T = TypeVar("T")


class Record:
    """A record that its collection hears of."""

    __slots__ = ("_reports",)

    _reports: tuple[dict[Any, None], Any]
    """Where to say that it changed, and under which name; nothing while it is in no collection."""

    @property
    def is_live(self) -> bool:
        """Whether the end of a block may have to look at this record."""
        return False

    def fork(self) -> Self:
        """Return a record that changes by itself; it is in no collection yet."""
        return forked(self)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        reports = getattr(self, "_reports", None)
        if reports is not None:
            heard, key = reports
            heard[key] = None


def forked(record: T) -> T:
    """Copy a record with the containers in it, not what they contain."""
    made = object.__new__(type(record))
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        object.__setattr__(made, field.name, value.copy() if isinstance(value, _CONTAINERS) else value)
    return made


_CONTAINERS = (dict, list, set)
R = TypeVar("R", bound=Record)


class Records(MutableMapping[Key, R]):
    """Records by name; none is ever removed."""

    def __init__(self, records: dict[Key, R] | None = None, *, nested: bool = False) -> None:
        """``nested``: records have parts that change without telling, as long as the record is live."""
        self._records: dict[Key, R] = {}
        self._places: dict[Key, int] = {}
        self._heard: dict[Key, None] = {}
        """Which records changed since somebody asked."""
        self._live: dict[Key, None] = {}
        self._stale: dict[Key, None] = {}
        """Which records changed since the last root."""
        self._tree = MerkleTree()
        self._nested = nested
        self._borrowed: set[Key] = set()
        """Which records are still those of the collection that this one was forked from."""
        self.update(records or {})

    def fork(self) -> "Records[Key, R]":
        """Return a collection that goes on by itself, as long as this one rests.

        Its records are copied when somebody first looks at them.
        """
        made = Records[Key, R](nested=self._nested)
        made._records, made._places = self._records.copy(), self._places.copy()
        made._heard, made._live, made._stale = self._heard.copy(), self._live.copy(), self._stale.copy()
        made._tree = MerkleTree([level.copy() for level in self._tree.levels])
        made._borrowed = set(self._records)
        return made

    def __getitem__(self, key: Key) -> R:
        if key in self._borrowed:
            self._borrowed.remove(key)
            record = self._records[key] = self._records[key].fork()
            record._reports = (self._heard, key)
        return self._records[key]

    def __setitem__(self, key: Key, record: R) -> None:
        self._places.setdefault(key, len(self._places))
        self._borrowed.discard(key)
        self._records[key] = record
        record._reports = (self._heard, key)

    def __delitem__(self, key: Key) -> None:
        raise TypeError("a board only grows")

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[Key]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def resting(self) -> Iterator[R]:
        """Go through all records in their order, for reading alone: a fork need not copy them first."""
        return iter(self._records.values())

    def live(self) -> list[R]:
        """Return the live records in their order."""
        self._listen()
        self._live = {key: None for key in self._live if self._records[key].is_live}
        return [self[key] for key in sorted(self._live, key=self._places.__getitem__)]

    def first_live(self) -> R | None:
        """Return the record that has been live for longest."""
        self._listen()
        while self._live:
            key = next(iter(self._live))
            if self._records[key].is_live:
                return self[key]
            del self._live[key]
        return None

    def root(self, digest: Callable[[R], bytes]) -> bytes:
        """Return the Merkle root of the digests of all records, in their order; always by the same digest."""
        self._listen()
        stale = self._stale | self._live if self._nested else self._stale
        self._tree.update({self._places[key]: digest(self._records[key]) for key in stale})
        self._stale = {}
        return self._tree.root()

    def _listen(self) -> None:
        for key in self._heard:
            self._stale[key] = None
            if self._records[key].is_live:
                self._live[key] = None
        self._heard.clear()  # the records keep it
