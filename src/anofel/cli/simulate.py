"""``anofel simulate``: many clients in one process through the same code, for experiments."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, print_json, print_table, print_text
from anofel.cli.progress import progress_bar
from anofel.cli.role_options import TrainerOption, say_what_a_trainer_may

if TYPE_CHECKING:
    from anofel.simulation import IterationResult, SimulatedTask
    from anofel.simulation.studies import RowSource


def simulate(
    tasks: Annotated[
        list[Path] | None, typer.Argument(help="Task files; several are one bundle.", show_default=False)
    ] = None,
    study: Annotated[
        list[str] | None,
        typer.Option(help="A study instead of a task file; its task is made for it.", show_default=False),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(min=2, help="Clients of each task; by default what a task expects, 16 for a study."),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations.")] = 5,
    split: Annotated[
        str, typer.Option(help="How rows are split: iid, by-label, dirichlet:ALPHA (labels), sizes:ALPHA.")
    ] = "iid",
    rows: Annotated[Path | None, typer.Option(help="A file of your own rows, for one task file.")] = None,
    made_up_rows: Annotated[
        int, typer.Option(min=0, help="Make so many rows up for each task; they describe nobody.")
    ] = 0,
    trainer: TrainerOption = "",
    scheme: Annotated[
        str, typer.Option(help="lattice, or paillier (its keys take minutes to make).")
    ] = "lattice",
    committee: Annotated[int, typer.Option(help="Members of each committee.")] = 3,
    threshold: Annotated[int, typer.Option(help="Members that open a sum.")] = 2,
    dropout: Annotated[
        float, typer.Option(help="The probability with which a client misses an iteration.")
    ] = 0.0,
    target_epsilon: Annotated[
        float, typer.Option(help="With --study: ε of all iterations, for single records.")
    ] = 2.0,
    seed: Annotated[int, typer.Option(min=0, help="For the split, the order and the dropouts.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A new directory for models, results and a board to audit.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Proof keys (anofel setup); otherwise development keys are made.")
    ] = None,
    insecure_plain: Annotated[
        bool,
        typer.Option(
            "--insecure-plain", help="No proofs, no encryption, no board: the same integers, much faster."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train with many clients in this process, over the same steps and the same rules of the board.

    Proofs, committee keys and encryption are real unless --insecure-plain leaves them out.

    Examples: anofel simulate --study nwtco --clients 64 --iterations 10 --out run

    anofel simulate task.toml --made-up-rows 5000 --clients 512 --insecure-plain
    """
    from anofel.simulation.record import prepare_directory, write_result
    from anofel.simulation.studies import RowSource

    if out is not None:
        prepare_directory(out)
    source = RowSource(split=split, seed=seed, file=rows, made_up=made_up_rows)
    say_what_a_trainer_may(trainer)
    parts = _parts(tasks or [], study or [], source, clients, iterations, dropout, target_epsilon, trainer)
    settings = {"scheme": scheme, "members": committee, "threshold": threshold}
    document, results = _run(parts, iterations, settings, (dropout, seed), out, keys, insecure_plain)
    if out is not None:
        write_result(out, document, results)
    if as_json:
        print_json(document)
    else:
        _show(document)


def _parts(
    tasks: list[Path],
    studies: list[str],
    source: "RowSource",
    clients: int | None,
    iterations: int,
    dropout: float,
    target_epsilon: float,
    trainer: str,
) -> list["SimulatedTask"]:
    from anofel.errors import InvalidInput
    from anofel.simulation.studies import DEFAULT_CLIENTS, of_study, of_task_file

    if bool(tasks) == bool(studies):
        raise InvalidInput("Give task files, or --study; not both.")
    if source.file is not None and len(tasks) != 1:
        raise InvalidInput("--rows goes with one task file.")
    if trainer and len(tasks) != 1:
        raise InvalidInput("--trainer goes with one task file.")
    parts = [of_task_file(path, source, clients, trainer=trainer) for path in tasks]
    for part in parts:
        if iterations > part.task.privacy.max_releases:
            raise InvalidInput(
                f"The task '{part.task.name}' ends after {part.task.privacy.max_releases} releases, "
                f"and --iterations is {iterations}."
            )
    return parts + [
        of_study(
            name,
            source,
            clients=DEFAULT_CLIENTS if clients is None else clients,
            iterations=iterations,
            dropout=dropout,
            target_epsilon=target_epsilon,
        )
        for name in studies
    ]


def _run(
    parts: list["SimulatedTask"],
    iterations: int,
    committee: dict[str, Any],
    participation: tuple[float, int],
    out: Path | None,
    keys: Path | None,
    insecure_plain: bool,
) -> tuple[dict[str, Any], list["IterationResult"]]:
    from anofel.keys import KeyDirectory
    from anofel.simulation import (
        CommitteeSettings,
        InsecurePlainSimulation,
        Participation,
        Simulation,
    )

    taking_part = Participation(dropout=participation[0], seed=participation[1])
    board = None if out is None or insecure_plain else out / "board"
    with progress_bar("Simulating") as progress:

        def show_progress(what: str, done: int, total: int) -> None:
            progress(done, total, what)

        simulation: Simulation | InsecurePlainSimulation
        if insecure_plain:
            simulation = InsecurePlainSimulation(parts, participation=taking_part, on_progress=show_progress)
        else:
            simulation = Simulation(
                parts,
                committee=CommitteeSettings(**committee),
                participation=taking_part,
                directory=board,
                keys=None if keys is None else KeyDirectory.open(keys),
                on_progress=show_progress,
            )
        found = []
        with simulation:
            for result in simulation.run(iterations):
                found.append(result)
                if not sys.stderr.isatty():  # otherwise the bar shows that it goes on
                    note(_line(result))
            switched_off = simulation.switched_off
    document = {
        "dir": None if out is None else str(out),
        "board": None if board is None else str(board),
        "scheme": None if insecure_plain else committee["scheme"],
        "clients": {part.task.name: len(part.clients) for part in parts},
        "insecure": list(switched_off),
        "iterations": [result.document() for result in found],
    }
    return document, found


def _line(result: "IterationResult") -> str:
    quality = ", ".join(f"{name} {value:.4f}" for name, value in (result.metrics or {}).items())
    text = f"{result.task}, iteration {result.iteration}: {result.outcome}, count {result.count}"
    return f"{text}, ε = {result.epsilon:.3f}. {quality}".rstrip()


def _show(result: dict[str, Any]) -> None:
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
    print_table("Simulation", ["task", "iteration", "outcome", "count", "posts", "ε", *measures], rows)
    insecure = ", ".join(result["insecure"])
    if result["scheme"] is None:
        print_text(f"Switched off: {insecure}. This protected nobody, and nothing of it can be audited.")
    elif insecure:
        print_text(f"Made with test material: {insecure}.")
    if result["board"] is not None:
        print_text(f"Check it: anofel audit {result['board']}")
