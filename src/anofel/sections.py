"""Read a table of a TOML file strictly: every key is known, typed and in range, or the file is refused.

Decimals stay decimals: a task means the same number on every machine, and no float is ever hashed.
"""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from anofel.errors import InvalidInput


class Section:
    """One table of a file, read key by key; :meth:`finish` refuses what was not read."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        if not isinstance(values, Mapping):
            raise InvalidInput(f"[{where}] must be a table.")
        self._values = values
        self._where = where
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def _take(self, key: str, default: Any) -> Any:
        self._read.add(key)
        if key in self._values:
            return self._values[key]
        if default is not None:
            return default
        raise InvalidInput(f"[{self._where}] needs '{key}'.")

    def fail(self, key: str, reason: str) -> InvalidInput:
        """Make the error that says what is wrong with one key."""
        return InvalidInput(f"[{self._where}] {key}: {reason}.")

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """Read an integer within bounds."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail(key, "must be an integer")
        if not low <= value <= high:
            raise self.fail(key, f"must lie between {low} and {high}, but is {value}")
        return value

    def decimal(self, key: str, low: str, high: str, default: str | None = None) -> Decimal:
        """Read a decimal number within bounds (as a number, or as text in canonical form)."""
        value = self._take(key, default)
        try:
            if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
                raise InvalidOperation
            number = Decimal(value)
            if not number.is_finite():
                raise InvalidOperation
        except InvalidOperation:
            raise self.fail(key, "must be a decimal number") from None
        if not Decimal(low) <= number <= Decimal(high):
            raise self.fail(key, f"must lie between {low} and {high}, but is {number}")
        return number

    def text(self, key: str, choices: tuple[str, ...] = (), default: str | None = None) -> str:
        """Read a text, one of `choices` if there are any."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.fail(key, "must be a text in quotes")
        if choices and value not in choices:
            raise self.fail(key, f"must be one of {', '.join(choices)}, but is '{value}'")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Read a list of different texts."""
        values = self._take(key, default)
        if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
            raise self.fail(key, "must be a list of texts")
        if len(set(values)) != len(values):
            raise self.fail(key, "names the same thing twice")
        return tuple(values)

    def integers(
        self, key: str, low: int, high: int, default: tuple[int, ...] | None = None
    ) -> tuple[int, ...]:
        """Read a list of integers within bounds."""
        values = self._take(key, default)
        if not isinstance(values, list | tuple):
            raise self.fail(key, "must be a list of integers")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise self.fail(key, f"must hold integers between {low} and {high}")
        return tuple(values)

    def boolean(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, "must be true or false")
        return value

    def table(self, key: str) -> "Section":
        """Read a table inside this one."""
        return Section(self._take(key, None), f"{self._where}.{key}")

    def tables(self, key: str) -> list["Section"]:
        """Read a list of tables inside this one."""
        values = self._take(key, None)
        if not isinstance(values, list) or not values:
            raise self.fail(key, "must be a list of tables")
        return [Section(value, f"{self._where}.{key} {index + 1}") for index, value in enumerate(values)]

    def finish(self) -> None:
        """Refuse keys that nobody read: a misspelt key must not silently mean its default."""
        unknown = sorted(set(self._values) - self._read)
        if unknown:
            raise InvalidInput(f"[{self._where}] has the unknown key '{unknown[0]}'.")


def plain(number: Decimal) -> str:
    """Write a decimal in its one canonical way: no exponent, no trailing zeros."""
    text = format(number.normalize(), "f")
    return "0" if text == "-0" else text


def canonical_json(value: Any) -> bytes:
    """Encode nested mappings, lists, texts, integers and decimals in their one canonical way."""

    def convert(item: Any) -> Any:
        if isinstance(item, Decimal):
            return plain(item)
        if isinstance(item, Mapping):
            return {str(key): convert(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [convert(entry) for entry in item]
        if isinstance(item, float):
            raise InvalidInput("A canonical document holds no floating-point numbers.")
        return item

    text = json.dumps(convert(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()
