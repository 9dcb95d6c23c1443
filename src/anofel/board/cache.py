"""A dictionary that forgets its oldest entries."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Keeps entries up to a total weight; losing one costs time, never correctness."""

    def __init__(self, largest: int, weight: Callable[[Value], int] = lambda _value: 1) -> None:
        """``weight``: of one entry; without it the entries are counted."""
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._largest = largest
        self._weight = weight
        self._total = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __getitem__(self, key: Key) -> Value:
        return self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, key: Key, value: Value) -> None:
        if key in self._entries:
            self._total -= self._weight(self._entries.pop(key))
        self._entries[key] = value
        self._total += self._weight(value)
        while self._total > self._largest and len(self._entries) > 1:
            _, oldest = self._entries.popitem(last=False)
            self._total -= self._weight(oldest)
