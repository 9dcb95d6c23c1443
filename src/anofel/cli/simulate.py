"""``anofel simulate``: many clients through the same code, for experiments, in one process or in workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from anofel.cli.board_fit import BoardProxy, BoardRoots, BoardToMeet
from anofel.cli.flower_options import (
    FlowerDataOption,
    FlowerMemoryOption,
    FlowerNodeConfigOption,
    FlowerPythonOption,
    FlowerRunConfigOption,
    FlowerSecondsOption,
    InsecureFlowerNetworkOption,
    flower_app,
    say_what_an_app_may,
)
from anofel.cli.output import JsonOption, note
from anofel.cli.role_options import TrainerOption, say_what_a_trainer_may
from anofel.cli.study import studies_that_begin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anofel.learning.flower.settings import FlowerApp
    from anofel.simulation import SimulatedTask
    from anofel.simulation.studies import RowSource

DEFAULT_ITERATIONS: Final = 5
ORDER_SECONDS: Final = 1800.0
"""As ``anofel.simulation.workers`` has it; what is shown in ``--help`` imports nothing heavy."""


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
    iterations: Annotated[
        int | None,
        typer.Option(min=1, help="Iterations.", show_default="5, or the rounds of a Flower app"),
    ] = None,
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
        float,
        typer.Option(
            help="ε of all iterations: for single records with --study, for whole clients with --flower-app."
        ),
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
    flower_app_directory: Annotated[
        Path | None,
        typer.Option(
            "--flower-app",
            help="A Flower app to train with; without a task file its task is made.",
            rich_help_panel="A Flower app",
            show_default=False,
        ),
    ] = None,
    flower_python: FlowerPythonOption = None,
    flower_data: FlowerDataOption = None,
    flower_node_config: FlowerNodeConfigOption = None,
    flower_run_config: FlowerRunConfigOption = None,
    flower_seconds: FlowerSecondsOption = 600,
    flower_memory: FlowerMemoryOption = 8,
    insecure_flower_network: InsecureFlowerNetworkOption = False,
    clipping_norm: Annotated[
        float,
        typer.Option(
            help="The longest update of a client, where the task is made.", rich_help_panel="A Flower app"
        ),
    ] = 1.0,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(
            help="The noise in clipping norms, in place of --target-epsilon.",
            rich_help_panel="A Flower app",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="So many processes own the clients; otherwise all are in this one.",
            show_default=False,
        ),
    ] = None,
    dask: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Workers on the machines of this Dask scheduler, all or --workers."
        ),
    ] = "",
    worker_seconds: Annotated[
        float, typer.Option(help="The longest that a worker may take over one client.")
    ] = ORDER_SECONDS,
    insecure_plain: Annotated[
        bool,
        typer.Option(
            "--insecure-plain", help="No proofs, no encryption, no board: the same integers, much faster."
        ),
    ] = False,
    board: BoardToMeet = "",
    proxy: BoardProxy = "",
    ca_file: BoardRoots = None,
    as_json: JsonOption = False,
) -> None:
    """Train with many clients, over the same steps and the same rules of the board.

    Proofs, committee keys and encryption are real unless --insecure-plain leaves them out.

    Ctrl-C ends a run early; the same command with --resume goes on with it.

    Examples: anofel simulate --study nwtco --clients 64 --iterations 10 --out run

    anofel simulate task.toml --rows a.csv --rows b.csv --rows c.csv --rows d.csv --out run

    anofel simulate --study support2 --clients 5000 --iterations 1 --workers 8 --out run

    anofel simulate task.toml --made-up-rows 5000 --clients 512 --insecure-plain

    anofel simulate --flower-app quickstart --flower-python env/bin/python --clients 10 --out run
    """
    from anofel.cli.board_fit import meet_or_say
    from anofel.cli.simulate_run import Settings, run
    from anofel.disk.files import read_each
    from anofel.simulation.plot import check_plot
    from anofel.simulation.studies import RowSource
    from anofel.tasks.confirmations import unconfirmed_warning
    from anofel.tasks.task import Task

    for path, task in zip(tasks or [], read_each(tasks or [], Task.load), strict=True):
        meet_or_say(task, board, ca_file, proxy, quiet=as_json)
        note(unconfirmed_warning(path))
    if plot is not None:
        check_plot(plot)
    source = RowSource(
        split=split, seed=seed, files=tuple(rows or ()), made_up=made_up_rows, validation=validation
    )
    say_what_a_trainer_may(trainer)
    app = flower_app(
        flower_app_directory,
        flower_python,
        flower_data,
        flower_node_config,
        flower_run_config,
        flower_seconds,
        flower_memory,
        insecure_network=insecure_flower_network,
    )
    if app is not None:
        say_what_an_app_may(app)
        parts = [
            _flower_part(
                app,
                tasks or [],
                bool(study or trainer),
                source,
                clients,
                iterations,
                dropout,
                _Privacy(clipping_norm, target_epsilon, noise_multiplier),
            )
        ]
    else:
        wanted = DEFAULT_ITERATIONS if iterations is None else iterations
        parts = _parts(tasks or [], study or [], source, clients, wanted, dropout, target_epsilon, trainer)
    run(
        parts,
        Settings(
            iterations=_iterations(parts, iterations, made=app is not None and not tasks),
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
            workers=workers,
            dask=dask,
            worker_seconds=worker_seconds,
            is_own_validation=validation is not None,
        ),
        as_json=as_json,
    )


@dataclass(frozen=True)
class _Privacy:
    """What the options say about a task that is made for a Flower app."""

    clipping_norm: float
    target_epsilon: float
    noise_multiplier: float | None


def _iterations(parts: "Sequence[SimulatedTask]", asked: int | None, *, made: bool) -> int:
    """How many iterations to run; a task that was made for an app has as many releases as it wants."""
    if asked is not None:
        return asked
    return parts[0].task.privacy.max_releases if made else DEFAULT_ITERATIONS


def _flower_part(
    app: "FlowerApp",
    tasks: list[Path],
    others: bool,
    source: "RowSource",
    clients: int | None,
    iterations: int | None,
    dropout: float,
    privacy: _Privacy,
) -> "SimulatedTask":
    from decimal import Decimal

    from anofel.errors import WrongUsage
    from anofel.simulation.flower import DEFAULT_CLIENTS, of_flower_app, of_task_and_app
    from anofel.tasks.task import Task

    if others or len(tasks) > 1:
        raise WrongUsage("--flower-app goes with one task file or none, and without --study and --trainer.")
    if tasks:
        return of_task_and_app(Task.load(tasks[0]), app, source, clients, note)
    if source.files or source.made_up or source.validation:
        raise WrongUsage("Without a task file the app loads its own rows; --rows has nothing to say.")
    noise = privacy.noise_multiplier
    return of_flower_app(
        app,
        clients=DEFAULT_CLIENTS if clients is None else clients,
        iterations=iterations,
        dropout=dropout,
        clipping_norm=Decimal(str(privacy.clipping_norm)),
        target_epsilon=privacy.target_epsilon,
        noise=None if noise is None else Decimal(str(noise)),
        say=note,
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
    from anofel.errors import InvalidInput, WrongUsage
    from anofel.simulation.studies import DEFAULT_CLIENTS, of_study, of_task_file

    if bool(tasks) == bool(studies):
        raise WrongUsage("Give task files, or --study; not both.")
    if (source.files or source.validation) and len(tasks) != 1:
        raise WrongUsage("--rows and --validation go with one task file.")
    if trainer and len(tasks) != 1:
        raise WrongUsage("--trainer goes with one task file.")
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
