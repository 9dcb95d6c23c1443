"""A dictionary that forgets its oldest entries; threads may share it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
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
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __getitem__(self, key: Key) -> Value:
        return self._entries[key]

    def found(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return what is kept under some keys."""
        with self._lock:
            return {key: self._entries[key] for key in keys if key in self._entries}

    def get_or(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return what is kept, or make it and keep it; two threads may both make it."""
        try:
            return self._entries[key]
        except KeyError:
            made = self[key] = make()
            return made

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, key: Key, value: Value) -> None:
        with self._lock:
            if key in self._entries:
                self._total -= self._weight(self._entries.pop(key))
            self._entries[key] = value
            self._total += self._weight(value)
            while self._total > self._largest and len(self._entries) > 1:
                _, oldest = self._entries.popitem(last=False)
                self._total -= self._weight(oldest)
