"""``anofel simulate``: many clients in one process through the same code, for experiments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.board_fit import BoardRoots, BoardToMeet
from anofel.cli.output import JsonOption, note
from anofel.cli.role_options import TrainerOption, say_what_a_trainer_may
from anofel.cli.study import studies_that_begin

if TYPE_CHECKING:
    from anofel.simulation import SimulatedTask
    from anofel.simulation.studies import RowSource


def simulate(
    tasks: Annotated[
        list[Path] | None, typer.Argument(help="Task files; several are one bundle.", show_default=False)
    ] = None,
    study: Annotated[
        list[str] | None,
        typer.Option(
            help="A study instead of a task file; its task is made for it.",
            autocompletion=studies_that_begin,
            show_default=False,
        ),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(min=2, help="Clients of each task; by default what a task expects, 16 for a study."),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations.")] = 5,
    split: Annotated[
        str, typer.Option(help="How rows are split: iid, by-label, dirichlet:ALPHA (labels), sizes:ALPHA.")
    ] = "iid",
    rows: Annotated[
        list[Path] | None,
        typer.Option(help="Your own rows, for one task file: one file to deal out, or one for each client."),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="Rows of the owner's own to measure by; otherwise one in five is kept back."),
    ] = None,
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
    patience: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after so many models in a row that are no better on these rows."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new directory for models, results and a board to audit.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, up to --iterations in all.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw metrics and ε into this PNG file.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Proof keys (anofel setup); otherwise development keys are made.")
    ] = None,
    insecure_plain: Annotated[
        bool,
        typer.Option(
            "--insecure-plain", help="No proofs, no encryption, no board: the same integers, much faster."
        ),
    ] = False,
    board: BoardToMeet = "",
    ca_file: BoardRoots = None,
    as_json: JsonOption = False,
) -> None:
    """Train with many clients in this process, over the same steps and the same rules of the board.

    Proofs, committee keys and encryption are real unless --insecure-plain leaves them out.

    Ctrl-C ends a run early; the same command with --resume goes on with it.

    Examples: anofel simulate --study nwtco --clients 64 --iterations 10 --out run

    anofel simulate task.toml --rows a.csv --rows b.csv --rows c.csv --rows d.csv --out run

    anofel simulate task.toml --made-up-rows 5000 --clients 512 --insecure-plain
    """
    from anofel.cli.board_fit import meet_or_say
    from anofel.cli.simulate_run import Settings, run
    from anofel.simulation.plot import check_plot
    from anofel.simulation.studies import RowSource
    from anofel.tasks.confirmations import unconfirmed_warning
    from anofel.tasks.task import Task

    for path in tasks or []:
        meet_or_say(Task.load(path), board, ca_file, quiet=as_json)
        note(unconfirmed_warning(path))
    if plot is not None:
        check_plot(plot)
    source = RowSource(
        split=split, seed=seed, files=tuple(rows or ()), made_up=made_up_rows, validation=validation
    )
    say_what_a_trainer_may(trainer)
    parts = _parts(tasks or [], study or [], source, clients, iterations, dropout, target_epsilon, trainer)
    run(
        parts,
        Settings(
            iterations=iterations,
            scheme=scheme,
            members=committee,
            threshold=threshold,
            dropout=dropout,
            seed=seed,
            patience=patience,
            out=out,
            resume=resume,
            keys=keys,
            plot=plot,
            insecure_plain=insecure_plain,
            is_own_validation=validation is not None,
        ),
        as_json=as_json,
    )


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
    if (source.files or source.validation) and len(tasks) != 1:
        raise InvalidInput("--rows and --validation go with one task file.")
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
