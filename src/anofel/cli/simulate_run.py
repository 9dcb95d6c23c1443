"""How ``anofel simulate`` runs: iteration by iteration, each kept and shown before the next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import typer

from anofel.cli.output import note, print_json, print_table, print_text, progress_bar

if TYPE_CHECKING:
    from anofel.simulation import InsecurePlainSimulation, IterationResult, SimulatedTask, Simulation
    from anofel.simulation.parts import OnProgress
    from anofel.simulation.record import RunRecord
    from anofel.simulation.selection import BestModels
    from anofel.simulation.workers import Workers

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the options say about a run."""

    iterations: int
    scheme: str
    members: int
    threshold: int
    dropout: float
    seed: int
    patience: int | None
    out: Path | None
    resume: bool
    keys: Path | None
    plot: Path | None
    insecure_plain: bool
    workers: int | None
    dask: str
    worker_seconds: float
    is_own_validation: bool


def run(parts: Sequence["SimulatedTask"], settings: Settings, *, as_json: bool) -> None:
    """Run, keep and show a simulation. Raises ``InvalidInput``; Ctrl-C ends it with what is done."""
    from anofel.simulation.selection import BestModels

    workers = _workers(settings)
    record = _record(settings)
    best = BestModels(settings.patience)
    parts = [_goes_on(part, record, best) for part in parts]
    earlier = [] if record is None else record.iterations
    done = max((entry["iteration"] for entry in earlier), default=0)
    journal = _Journal(parts, settings, record, best, earlier)
    interrupted = False
    if done < settings.iterations:
        journal.board = None if record is None or settings.insecure_plain else record.board()
        interrupted = _run(parts, settings, workers, settings.iterations - done, journal)
    if settings.plot is not None:
        from anofel.simulation.plot import plot_run

        plot_run(journal.iterations, settings.plot)
    document = journal.document()
    if as_json:
        print_json(document)
    else:
        _show(document, settings, best)
    if interrupted:
        _say_how_to_go_on(settings, len(journal.iterations))
        raise typer.Exit(INTERRUPTED)


def _workers(settings: Settings) -> "Workers | None":
    from anofel.errors import WrongUsage
    from anofel.simulation.workers import Workers

    if settings.workers is None and not settings.dask:
        return None
    if settings.insecure_plain:
        raise WrongUsage("--workers and --dask are for real cryptography; --insecure-plain has none.")
    return Workers(
        number=settings.workers or 0, dask=settings.dask, seconds=settings.worker_seconds, on_loss=note
    )


def _record(settings: Settings) -> "RunRecord | None":
    from anofel.errors import WrongUsage
    from anofel.simulation.record import RunRecord

    if settings.out is None:
        if settings.resume:
            raise WrongUsage("--resume needs --out, the directory of the run.")
        return None
    return RunRecord.resume(settings.out) if settings.resume else RunRecord.new(settings.out)


def _goes_on(part: "SimulatedTask", record: "RunRecord | None", best: "BestModels") -> "SimulatedTask":
    """Let a task begin where an earlier run ended."""
    if record is None or not record.document:
        return part
    found = record.best(part.task.name)
    if found is not None:
        best.best[part.task.name] = found
    return replace(part, begun=record.begun(part.task))


class _Journal:
    """What was done, kept on disk after every iteration."""

    def __init__(
        self,
        parts: Sequence["SimulatedTask"],
        settings: Settings,
        record: "RunRecord | None",
        best: "BestModels",
        earlier: list[dict[str, Any]],
    ) -> None:
        self._parts, self._settings, self._record = parts, settings, record
        self.best = best
        self.iterations = earlier
        self.board: Path | None = None
        self.insecure: tuple[str, ...] = ()
        if record is not None and not record.document:
            record.write(self.document())

    def add(self, result: "IterationResult", card: str) -> None:
        """Keep the result of an iteration, and the card of its model."""
        is_best = self.best.watch(result)
        self.iterations.append(result.document())
        if self._record is not None:
            self._record.keep(result, card, is_best=is_best)
            self._record.write(self.document())
        note(_line(result))

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        settings = self._settings
        return {
            "dir": None if settings.out is None else str(settings.out),
            "board": None if self.board is None or not self.board.is_dir() else str(self.board),
            "scheme": None if settings.insecure_plain else settings.scheme,
            "clients": {part.task.name: len(part.clients) for part in self._parts},
            "tasks": {part.task.name: part.task.digest().hex() for part in self._parts},
            "insecure": list(self.insecure),
            "best": {
                name: {"iteration": found.iteration, "loss": found.loss}
                for name, found in self.best.best.items()
            },
            "iterations": self.iterations,
        }


def _run(
    parts: Sequence["SimulatedTask"],
    settings: Settings,
    workers: "Workers | None",
    iterations: int,
    journal: _Journal,
) -> bool:
    """Run iterations until they are done, or in vain, or Ctrl-C; whether it was Ctrl-C."""
    with progress_bar("Simulating") as progress:

        def show_progress(what: str, done: int, total: int) -> None:
            progress(done, total, what)

        try:
            with _simulation(parts, settings, workers, journal.board, show_progress) as simulation:
                journal.insecure = simulation.switched_off
                for result in simulation.run(iterations):
                    journal.add(result, simulation.card(result))
                    if journal.best.is_over and result.task == parts[-1].task.name:
                        note(f"Stopped early: no model was better for {settings.patience} iterations.")
                        break
        except KeyboardInterrupt:
            return True
    return False


def _simulation(
    parts: Sequence["SimulatedTask"],
    settings: Settings,
    workers: "Workers | None",
    board: Path | None,
    on_progress: "OnProgress",
) -> "Simulation | InsecurePlainSimulation":
    from anofel.proofs.keys import KeyDirectory
    from anofel.simulation import CommitteeSettings, InsecurePlainSimulation, Participation, Simulation

    taking_part = Participation(dropout=settings.dropout, seed=settings.seed)
    if settings.insecure_plain:
        return InsecurePlainSimulation(parts, participation=taking_part, on_progress=on_progress)
    committee = CommitteeSettings(
        scheme=settings.scheme, members=settings.members, threshold=settings.threshold
    )
    return Simulation(
        parts,
        committee=committee,
        participation=taking_part,
        directory=board,
        keys=None if settings.keys is None else KeyDirectory.open(settings.keys),
        on_progress=on_progress,
        workers=workers,
    )


def _line(result: "IterationResult") -> str:
    quality = ", ".join(f"{name} {value:.4f}" for name, value in (result.metrics or {}).items())
    text = f"{result.task}, iteration {result.iteration}: {result.outcome}, count {result.count}"
    return f"{text}, ε = {result.epsilon:.3f}. {quality}".rstrip()


def _say_how_to_go_on(settings: Settings, done: int) -> None:
    if not done:
        goes_on = "" if settings.out is None else " Start again with the same command and --resume."
        note(f"Interrupted before the first result.{goes_on}")
    elif settings.out is None:
        note(f"Interrupted after {done} results. Without --out nothing was kept but what is shown here.")
    else:
        note(
            f"Interrupted after {done} results, all kept in {settings.out}. "
            "Go on with the same command and --resume; what was under way is done again."
        )


def _show(result: dict[str, Any], settings: Settings, best: "BestModels") -> None:
    measures = sorted({name for entry in result["iterations"] for name in entry["metrics"] or {}})
    rows = [
        [
            entry["task"],
            str(entry["iteration"]),
            entry["outcome"],
            "–" if entry["count"] is None else str(entry["count"]),
            str(entry["posts"]),
            f"{entry['epsilon']:.3f}",
            *(f"{(entry['metrics'] or {}).get(name, float('nan')):.4f}" for name in measures),
        ]
        for entry in result["iterations"]
    ]
    columns = ["task", "iteration", "outcome", "count", "posts", "ε", *measures]
    names = {entry["task"] for entry in result["iterations"]}
    if len(names) == 1:  # a column less fits a narrow terminal
        columns, rows = columns[1:], [row[1:] for row in rows]
    if rows:
        print_table(f"Simulation of {', '.join(sorted(names))}", columns, rows)
    if best.best:
        _say_best(settings, best)
    insecure = ", ".join(result["insecure"])
    if result["scheme"] is None:
        print_text(f"Switched off: {insecure}. This protected nobody, and nothing of it can be audited.")
    elif insecure:
        print_text(f"Made with test material: {insecure}.")
    if result["board"] is not None:
        print_text(f"Check it: anofel audit {quote(result['board'])}")
    if settings.plot is not None:
        print_text(f"Plot: {settings.plot}")


def _say_best(settings: Settings, best: "BestModels") -> None:
    from anofel.models.files import model_name
    from anofel.simulation.record import MODELS

    for name, found in best.best.items():
        where = "" if settings.out is None else f": {settings.out / MODELS / model_name(name, 'best')}"
        print_text(f"Best model of {name}: iteration {found.iteration}, loss {found.loss:.4f}{where}")
    if settings.is_own_validation:
        print_text(
            "It was chosen on rows of the owner's own. The models were released anyway, so the choice costs "
            "clients no ε; on clients' rows it would. Its figures on these rows are too good."
        )
    else:
        print_text(
            "It was chosen on rows that were kept back from the clients. In a deployment they must be the "
            "owner's own: then the choice costs clients no ε; on clients' rows it would."
        )
