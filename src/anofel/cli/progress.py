"""Progress on standard error, so that standard output stays clean for scripts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ShowProgress(Protocol):
    """Moves a bar."""

    def __call__(self, done: int, total: int, what: str | None = None) -> None:
        """Show how much is done, and what is being done if that changed."""
        ...


@contextmanager
def progress_bar(title: str) -> Iterator[ShowProgress]:
    """Show a bar while something takes longer than a moment; call the result with done and total."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    hidden = not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden) as bar:
        row = bar.add_task(title, total=None)

        def update(done: int, total: int, what: str | None = None) -> None:
            bar.update(row, completed=done, total=total, description=what)

        yield update
