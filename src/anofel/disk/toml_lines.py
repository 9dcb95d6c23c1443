"""On which line of a TOML file a key stands, which the parser does not tell."""

import re
import tomllib
from collections.abc import Iterator

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+)\s*=""")


class TomlLines:
    """The lines of a text that tomllib could parse."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, int] = {}
        """By path; the second table of a list ``a.b`` is called ``a.b 2``, as problems call it."""
        counts: dict[str, int] = {}
        table = ""
        for number, line in _statements(text):
            if header := _HEADER.match(line):
                *outer, name = (part.strip(" \"'") for part in header[2].split("."))
                table = ""
                for part in outer:
                    table = _inside(table, part)
                    table += f" {counts[table]}" if table in counts else ""
                    self._lines.setdefault(table, number)
                table = _inside(table, name)
                if header[1] == "[[":
                    self._lines.setdefault(table, number)
                    counts[table] = counts.get(table, 0) + 1
                    table += f" {counts[table]}"
                self._lines[table] = number
            elif key := _KEY.match(line):
                path = _inside(table, key[1].strip("\"'"))
                self._lines[path] = number
                self._lines.setdefault(path.rpartition(".")[0], number)  # a table that only dotted keys make

    def find(self, table: str, key: str) -> int | None:
        """Return the line of a key, or else of the nearest table around it that has one."""
        path = _inside(table, key)
        while path:
            for name in (path, re.sub(r" \d+$", "", path)):  # an entry of a list that stands in one line
                if name in self._lines:
                    return self._lines[name]
            path = path.rpartition(".")[0]
        return None


def _inside(table: str, key: str) -> str:
    return f"{table}.{key}" if table and key else table or key


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Give each line that begins something; what a value needs of further lines is passed over."""
    pending = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not pending:
            yield number, line
        key = _KEY.match(line)
        if pending or key:
            pending = f"{pending}\n{line}" if pending else "x =" + line[key.end() :]  # type: ignore[union-attr]
            try:
                tomllib.loads(pending)
            except tomllib.TOMLDecodeError:
                continue
            pending = ""
