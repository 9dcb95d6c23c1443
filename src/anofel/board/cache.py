"""A dictionary that forgets its oldest entries."""

from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Keeps at most a number of entries; losing one costs time, never correctness."""

    def __init__(self, largest: int) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._largest = largest

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __getitem__(self, key: Key) -> Value:
        return self._entries[key]

    def __setitem__(self, key: Key, value: Value) -> None:
        self._entries[key] = value
        if len(self._entries) > self._largest:
            self._entries.popitem(last=False)
