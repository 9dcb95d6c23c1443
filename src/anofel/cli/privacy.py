"""``anofel privacy TASK``: explain, calibrate and plot a task's privacy before it runs; attack it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.board_fit import BoardProxy, BoardRoots, BoardToMeet


def privacy(
    task: Annotated[Path, typer.Argument(help="A task file (docs/task-file.md).")],
    target_epsilon: Annotated[
        float | None, typer.Option(help="Calibrate: which noise, releases or clients reach this ε?")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="Use this δ instead of the task's.")] = None,
    releases: Annotated[
        int | None, typer.Option("--releases", "--rounds", min=1, help="Use this number of releases.")
    ] = None,
    clients: Annotated[int | None, typer.Option(min=2, help="Use this number of clients.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw ε and γ into this PNG file.")] = None,
    attack: Annotated[
        bool, typer.Option("--attack", help="Run membership inference against the sums.")
    ] = False,
    rows: Annotated[
        Path | None, typer.Option(help="With --attack: rows of your own to play with; else the task's study.")
    ] = None,
    trials: Annotated[int, typer.Option(min=100, help="Trials of the attack.")] = 4000,
    max_epsilon: Annotated[
        float | None, typer.Option(help="A client's floor: refuse more ε than this.")
    ] = None,
    min_clients: Annotated[int, typer.Option(min=2, help="A client's floor: refuse smaller sums.")] = 2,
    min_anonymity_set: Annotated[
        int, typer.Option(min=2, help="A client's floor for registered clients.")
    ] = 2,
    max_colluders: Annotated[
        int | None,
        typer.Option(min=0, help="A client's own number of colluders.", show_default="the task's"),
    ] = None,
    anonymity_set: Annotated[int | None, typer.Option(help="How many clients are registered now.")] = None,
    board: BoardToMeet = "",
    proxy: BoardProxy = "",
    ca_file: BoardRoots = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain what a task costs a client, before it runs.

    Examples: anofel privacy task.toml --target-epsilon 0.9 --plot epsilon.png

    anofel privacy task.toml --attack
    """
    from anofel.cli.board_fit import meet_or_say
    from anofel.cli.output import note, progress_bar
    from anofel.disk.sections import read_value
    from anofel.errors import WrongUsage
    from anofel.privacy.explain import explain, with_overrides
    from anofel.tasks.confirmations import unconfirmed_warning
    from anofel.tasks.task import Delta, Task

    chosen = Task.load(task)
    note(unconfirmed_warning(task))
    if rows is not None and not attack:
        raise WrongUsage("--rows goes with --attack; ε follows from the task alone, never from rows.")
    small = None if delta is None else read_value(delta, Delta, "--delta")
    chosen = with_overrides(chosen, delta=small, releases=releases, clients=clients)
    met = meet_or_say(chosen, board, ca_file, proxy, quiet=as_json)
    with progress_bar("accounting"):
        report = explain(chosen, target_epsilon)
    report["board"] = met
    if attack:
        report["attack"] = _attack(chosen, rows, trials)
    if plot is not None:
        from anofel.privacy.plot import plot_task

        plot_task(chosen, plot)
        report["plot"] = str(plot)
    if as_json:
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        from anofel.cli.privacy_report import render

        typer.echo(render(report))
    if max_epsilon is not None or max_colluders is not None or min_clients > 2 or min_anonymity_set > 2:
        _check_floors(chosen, max_epsilon, min_clients, min_anonymity_set, anonymity_set, max_colluders)


def _check_floors(
    task: Any,
    max_epsilon: float | None,
    min_clients: int,
    min_anonymity_set: int,
    anonymity_set: int | None,
    max_colluders: int | None,
) -> None:
    from anofel.errors import WrongUsage
    from anofel.privacy.ledger import Floors
    from anofel.privacy.plan import Plan

    if anonymity_set is None:
        if min_anonymity_set > 2:
            raise WrongUsage("--min-anonymity-set needs --anonymity-set, the number of registered clients.")
        anonymity_set = min_anonymity_set

    floors = Floors(
        max_epsilon=float("inf") if max_epsilon is None else max_epsilon,
        delta=float(task.privacy.delta),
        unit="record" if task.privacy.unit == "record" else "client",
        relation=task.privacy.relation,
        min_clients=min_clients,
        min_anonymity_set=min_anonymity_set,
        max_colluders=task.privacy.max_colluders if max_colluders is None else max_colluders,
    )
    floors.check_task(Plan.of(task), anonymity_set)
    floors.check_total(Plan.of(task))


def _attack(task: Any, rows: Path | None, trials: int) -> dict[str, Any]:
    from anofel.cli.output import progress_bar
    from anofel.errors import InvalidInput
    from anofel.learning.splits import iid
    from anofel.privacy.attack import run_attack
    from anofel.studies.catalogue import study_named
    from anofel.studies.load import load_file, load_study

    if rows is not None:
        target = load_file(rows, task.schema)
    elif task.study:
        train, _ = load_study(study_named(task.study))
        target = iid(train, task.privacy.expected_clients, seed=0)[0]
    else:
        raise InvalidInput(
            "The attack needs rows of one client to play with: give --rows, or a task with a study."
        )
    results = {}
    with progress_bar("attack") as progress:
        for step, relation in enumerate(("zero-out", "replace"), start=1):
            results[relation] = run_attack(task, target, relation=relation, trials=trials).document()
            progress(step, 2)
    return results
