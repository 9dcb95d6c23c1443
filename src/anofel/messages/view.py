"""What all views share: a frozen record whose bytes the core reads and writes.

A view holds the values of one layout of ``docs/messages.md`` under the names of its fields. It is
not a second codec: it hands its values to the core in their order and takes them back.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

from anofel._core import messages as core


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A record of the board; the name of the class is the name of the layout."""

    def to_bytes(self) -> bytes:
        """The canonical bytes. Raises ``MalformedMessage`` for values that no layout admits."""
        return core.encode(type(self).__name__, self.values())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the canonical bytes. Raises ``MalformedMessage`` for anything else."""
        return cls.from_values(core.decode(cls.__name__, data))

    def values(self) -> tuple[object, ...]:
        """The values in the order of the layout, as the core takes them."""
        return tuple(_plain(getattr(self, field.name)) for field in fields(self))

    @classmethod
    def from_values(cls, values: Iterable[object]) -> Self:
        """The view of values in the order of the layout, as the core gives them."""
        readers = _readers(cls)
        return cls(**{name: read(value) for (name, read), value in zip(readers, values, strict=True)})


def _plain(value: object) -> object:
    if isinstance(value, View):
        return value.values()
    if isinstance(value, (tuple, list)):
        return tuple(_plain(item) for item in value)
    return value


_Reader = Callable[[Any], object]
_READERS: dict[type[View], list[tuple[str, _Reader]]] = {}


def _readers(view: type[View]) -> list[tuple[str, _Reader]]:
    """How to read each field, from the types that the view declares; found out once."""
    if view not in _READERS:
        hints = get_type_hints(view)
        _READERS[view] = [(field.name, _reader(hints[field.name])) for field in fields(view)]
    return _READERS[view]


def _reader(hint: Any) -> _Reader:
    if get_origin(hint) is UnionType:
        inner = _reader(get_args(hint)[0])
        return lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        item = _reader(get_args(hint)[0])
        return lambda values: tuple(item(value) for value in values)
    if isinstance(hint, type) and issubclass(hint, View):
        return hint.from_values
    return lambda value: value
