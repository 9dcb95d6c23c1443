"""What every command prints: results on standard output, everything else on standard error."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]

_WIDE = 160  # where there is no terminal to fit, ids stay in one piece
_stdout = Console() if Console().is_terminal else Console(width=_WIDE)
_stderr = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(value, indent=2))


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; without column names it is a list of names and values."""
    table = Table(title=title, title_justify="left", show_header=any(columns), box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    _stdout.print(table)


def print_text(text: str) -> None:
    """Print a sentence that belongs to the result."""
    _stdout.print(text, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Tell the user something that is not the result."""
    _stderr.print(text, style="dim", highlight=False, soft_wrap=True)


def warn_insecure(what: str) -> None:
    """Say that something must not protect anybody."""
    _stderr.print(
        f"Warning: {what}. Never use these keys for real data.", style="bold yellow", highlight=False
    )


def warn_test_authority() -> None:
    """Say that a certificate of the test authority vouches for nobody."""
    _stderr.print(
        "Warning: this is a TEST certificate authority; it checks nobody's identity.",
        style="bold yellow",
        highlight=False,
    )
