"""What every command prints: results on standard output, everything else on standard error."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]

_WIDE = 160  # where there is no terminal to fit, ids stay in one piece
_stdout = Console() if Console().is_terminal else Console(width=_WIDE)
_stderr = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2))


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; without column names it is a list of names and values.

    Columns move closer before a cell folds.
    """

    def made(gap: int) -> Table:
        table = Table(show_header=any(columns), box=None, padding=(0, gap, 0, 0))
        for column in columns:
            table.add_column(escape(column), overflow="fold")
        for row in rows:
            table.add_row(*map(escape, row))
        return table

    _stdout.print(title, style="table.title", highlight=False, markup=False)  # as wide as it is
    unbounded = _stdout.options.update(max_width=10_000)
    wanted = _stdout.measure(made(2), options=unbounded).maximum
    _stdout.print(made(2 if wanted <= _stdout.width else 1))


def print_text(text: str, style: str = "") -> None:
    """Print a sentence that belongs to the result. Square brackets are text: `anofel[demo]` stays whole."""
    _stdout.print(text, style=style or None, highlight=False, soft_wrap=True, markup=False)


def note(text: str) -> None:
    """Tell the user something that is not the result; nothing, if there is nothing to tell."""
    if not text:
        return
    _stderr.print(text, style="dim", highlight=False, soft_wrap=True, markup=False)


def warn_insecure(what: str) -> None:
    """Say that something must not protect anybody."""
    _stderr.print(
        f"Warning: {what}. Never use these keys for real data.",
        style="bold yellow",
        highlight=False,
        markup=False,
    )


def warn_test_authority() -> None:
    """Say that a certificate of the test authority vouches for nobody."""
    _stderr.print(
        "Warning: this is a TEST certificate authority; it checks nobody's identity.",
        style="bold yellow",
        highlight=False,
    )


class ShowProgress(Protocol):
    """Moves a bar."""

    def __call__(self, done: int, total: int, what: str | None = None) -> None:
        """Show how much is done, and what is being done if that changed."""
        ...


@contextmanager
def progress_bar(title: str) -> Iterator[ShowProgress]:
    """Show a bar while something takes longer than a moment; call the result with done and total."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    hidden = not _stderr.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=_stderr, transient=True, disable=hidden) as bar:
        row = bar.add_task(title, total=None)

        def update(done: int, total: int, what: str | None = None) -> None:
            bar.update(row, completed=done, total=total, description=what)

        yield update
