"""What a person sees while the demo runs: a live view in a terminal, plain lines elsewhere."""

import time
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from anofel.board.seat import Sitting
from anofel.board.state import Phase, Position, Progress
from anofel.demo.data import DemoStudy
from anofel.demo.plan import INTERVAL_MS
from anofel.demo.play import Demo
from anofel.demo.watch import DemoWatch, Result

EVENT_LINES: Final = 7
ROWS: Final = 8
"""How many iterations are in view."""
ABREAST: Final = 2
"""How many studies stand side by side."""
_STYLES: Final = {"refused": "red", "trouble": "yellow", "outcome": "green", "": "cyan"}
_MARKS: Final = {"refused": "✗", "trouble": "!", "outcome": "Σ", "": "·"}
_MEASURES: Final = ("auc", "accuracy", "loss")


def measure_of(metrics: dict[str, float] | None) -> str:
    """Choose what is shown of a model's quality: the area under the curve where there is one."""
    return next((name for name in _MEASURES if name in (metrics or {})), "accuracy")


class PlainScreen:
    """Lines, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console, self._began = console, time.monotonic()
        self._phase = ""

    def step(self, text: str) -> None:
        """Show a step of the set-up."""
        self._line(text)

    def event(self, text: str, *, kind: str = "") -> None:
        """Show what happened."""
        self._line(f"{_MARKS[kind]} {text}", _STYLES[kind])

    def refresh(self, demo: Demo) -> None:
        """Show where the board stands, when that changes."""
        sitting = demo.watch.sitting if demo.watch else None
        if sitting is None:
            return
        phase = f"iteration {sitting.number} {sitting.bundle.phase.value}"
        if phase != self._phase:
            self._phase = phase
            current = sitting.iteration
            words = f"block {sitting.state.height}: {phase}, {len(current.submissions)} posts"
            self._line(f"{words}, anonymity set {current.num_clients}", "dim")

    def _line(self, text: str, style: str = "") -> None:
        seconds = f"{time.monotonic() - self._began:5.0f} s  "
        self._console.print(Text(seconds, "dim") + Text(text, style), soft_wrap=True)


class LiveScreen:
    """A view that is drawn anew every moment."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._steps: list[tuple[str, float]] = []
        self._events: list[tuple[float, str, str]] = []
        self._began = time.monotonic()
        self._is_training = False

    def __enter__(self) -> "LiveScreen":
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def step(self, text: str) -> None:
        """Show a step of the set-up."""
        self._steps.append((text, time.monotonic()))
        if not self._is_training:
            self._live.update(self._set_up(), refresh=True)

    def event(self, text: str, *, kind: str = "") -> None:
        """Keep what happened for the next drawing."""
        self._events.append((time.monotonic() - self._began, text, kind))

    def refresh(self, demo: Demo) -> None:
        """Draw."""
        watch = demo.watch
        if watch is None or watch.sitting is None:
            self._live.update(self._set_up(), refresh=True)
        else:
            self._is_training = True
            self._live.update(self._training(demo, watch, watch.sitting), refresh=True)

    # Set-up

    def _set_up(self) -> RenderableType:
        table = Table.grid(padding=(0, 2, 0, 0))
        now = time.monotonic()
        for place, (text, began) in enumerate(self._steps):
            is_last = place == len(self._steps) - 1
            ended = now if is_last else self._steps[place + 1][1]
            mark = Text("▸", "bold cyan") if is_last else Text("✓", "green")
            table.add_row(mark, Text(text, "bold" if is_last else ""), Text(f"{ended - began:.0f} s", "dim"))
        parts: list[RenderableType] = [Panel(table, title="anofel demo · set-up", title_align="left")]
        if self._events:
            parts.append(self._event_panel())
        return Group(*parts)

    # Training

    def _training(self, demo: Demo, watch: DemoWatch, sitting: Sitting) -> RenderableType:
        studies = Table.grid(expand=True)
        for _ in demo.studies[:ABREAST]:
            studies.add_column(ratio=1)
        for first in range(0, len(demo.studies), ABREAST):
            studies.add_row(
                *(self._study(demo, watch, study) for study in demo.studies[first : first + ABREAST])
            )
        return Group(self._board_panel(demo, watch, sitting), studies, self._event_panel())

    def _board_panel(self, demo: Demo, watch: DemoWatch, sitting: Sitting) -> Panel:
        state, current = sitting.state, sitting.iteration
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_row("phase", _phase(sitting))
        members = f"{len(state.clients)} registered, {current.num_clients} under this iteration's root"
        table.add_row("anonymity set", members)
        posts = len(current.submissions)
        bar = Text("▮" * posts, "cyan") + Text("▯" * max(0, demo.options.total_clients - posts), "dim")
        table.add_row("submissions", Text.assemble(bar, f"  {posts} posts, each to every committee"))
        for study, position in zip(demo.studies, _ordered(demo, watch, current.positions), strict=True):
            table.add_row(f"shares {study.name}", _shares(position, demo.options.committee))
        title = f"block {state.height} · {demo.processes.running} processes · {demo.seconds:.0f} s"
        step = self._steps[-1][0].lower()
        return Panel(table, title=f"anofel demo · {step} · {title}", title_align="left")

    def _study(self, demo: Demo, watch: DemoWatch, study: DemoStudy) -> Panel:
        results, central = watch.of(study), demo.central.get(study.name)
        measure = measure_of(central)
        table = Table(box=None, padding=(0, 1, 0, 0), expand=True)
        for name in ("", "outcome", "updates", "AUC" if measure == "auc" else measure, "ε"):
            table.add_column(name, justify="left" if name == "outcome" else "right", no_wrap=True)
        for result in results[-ROWS:]:
            table.add_row(*_row(result, measure))
        for _ in range(ROWS - len(results)):
            table.add_row()
        best = "–" if central is None else f"{central[measure]:.3f}"
        table.add_row("", Text("all rows pooled", "dim"), "", Text(best, "dim"), Text("∞", "dim"))
        return Panel(table, title=study.title, title_align="left")

    def _event_panel(self) -> Panel:
        lines = [
            Text.assemble((f"{seconds:4.0f} s ", "dim"), (f"{_MARKS[kind]} {text}", _STYLES[kind]))
            for seconds, text, kind in [e for e in self._events if e[2] != "outcome"][-EVENT_LINES:]
        ]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        height = EVENT_LINES + 2
        return Panel(Group(*lines), title="what happened", title_align="left", height=height)


def _phase(sitting: Sitting) -> Text:
    if sitting.is_open:
        left = max(0, sitting.iteration.close_by - sitting.state.height) * INTERVAL_MS / 1000
        return Text(f"iteration {sitting.number} open: clients train and post, {left:.0f} s left", "bold")
    words = {
        Phase.CLOSED: "closed: the committees add, count and open",
        Phase.WAITING: "over: the owners make the next models",
        Phase.ENDED: "was the last one",
    }
    return Text(f"iteration {sitting.number} {words[sitting.bundle.phase]}", "bold")


def _ordered(demo: Demo, watch: DemoWatch, positions: list[Position]) -> list[Position]:
    """Return the positions in the order of the demo's studies."""
    names = {study.name: place for place, study in enumerate(demo.studies)}
    return sorted(positions, key=lambda position: names[watch.name_of(position.task_id)])


def _shares(position: Position, members: int) -> Text:
    def dots(number: int) -> Text:
        return Text("●" * number, "green") + Text("○" * (members - number), "dim")

    return Text.assemble(
        "sum stated ",
        dots(len(position.aggregates)),
        "  count ",
        dots(len(position.count_shares)),
        "  sum ",
        dots(len(position.sum_shares)),
        f"  {_progress(position)}",
    )


def _progress(position: Position) -> str:
    if position.progress is Progress.COLLECTING:
        return ""
    count = "" if position.count is None else f", {position.count} updates"
    return f"{position.progress.value}{count}"


def _row(result: Result, measure: str) -> tuple[str | Text, ...]:
    quality = "–" if result.metrics is None else f"{result.metrics[measure]:.3f}"
    epsilon = "–" if result.epsilon is None else f"{result.epsilon:.2f}"
    outcome = Text(result.outcome, "green" if result.outcome == "summed" else "yellow")
    return (
        str(result.iteration),
        outcome,
        "–" if result.count is None else str(result.count),
        quality,
        epsilon,
    )
