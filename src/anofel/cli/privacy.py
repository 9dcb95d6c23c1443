"""``anofel privacy TASK``: explain, calibrate and plot a task's privacy before it runs; attack it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer


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
    trials: Annotated[int, typer.Option(min=100, help="Trials of the attack.")] = 4000,
    max_epsilon: Annotated[
        float | None, typer.Option(help="A client's floor: refuse more ε than this.")
    ] = None,
    min_clients: Annotated[int, typer.Option(min=2, help="A client's floor: refuse smaller sums.")] = 2,
    min_anonymity_set: Annotated[
        int, typer.Option(min=2, help="A client's floor for registered clients.")
    ] = 2,
    anonymity_set: Annotated[int | None, typer.Option(help="How many clients are registered now.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain what a task costs a client, before it runs.

    Examples: anofel privacy task.toml --target-epsilon 0.9 --plot epsilon.png

    anofel privacy task.toml --attack
    """
    from anofel.cli.progress import progress_bar
    from anofel.privacy.explain import explain, with_overrides
    from anofel.sections import Section
    from anofel.task import Task

    chosen = Task.load(task)
    small = None if delta is None else Section({"delta": delta}, "--delta").decimal("delta", "1e-12", "0.1")
    chosen = with_overrides(chosen, delta=small, releases=releases, clients=clients)
    with progress_bar("accounting"):
        report = explain(chosen, target_epsilon)
    if attack:
        report["attack"] = _attack(chosen, trials)
    if plot is not None:
        from anofel.privacy.plot import plot_task

        plot_task(chosen, plot)
        report["plot"] = str(plot)
    if as_json:
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        from anofel.cli.privacy_report import render

        typer.echo(render(report))
    if max_epsilon is not None or min_clients > 2 or min_anonymity_set > 2:
        _check_floors(chosen, max_epsilon, min_clients, min_anonymity_set, anonymity_set)


def _check_floors(
    task: Any, max_epsilon: float | None, min_clients: int, min_anonymity_set: int, anonymity_set: int | None
) -> None:
    from anofel.errors import InvalidInput
    from anofel.privacy.ledger import Floors
    from anofel.privacy.plan import Plan

    if anonymity_set is None:
        if min_anonymity_set > 2:
            raise InvalidInput("--min-anonymity-set needs --anonymity-set, the number of registered clients.")
        anonymity_set = min_anonymity_set

    floors = Floors(
        max_epsilon=float("inf") if max_epsilon is None else max_epsilon,
        delta=float(task.privacy.delta),
        unit="record" if task.privacy.unit == "record" else "client",
        relation=task.privacy.relation,
        min_clients=min_clients,
        min_anonymity_set=min_anonymity_set,
    )
    floors.check_task(Plan.of(task), anonymity_set)
    floors.check_total(Plan.of(task))


def _attack(task: Any, trials: int) -> dict[str, Any]:
    from anofel.cli.progress import progress_bar
    from anofel.errors import InvalidInput
    from anofel.learning.splits import iid
    from anofel.privacy.attack import run_attack
    from anofel.studies.catalogue import study_named
    from anofel.studies.load import load_study

    if not task.study:
        raise InvalidInput("The attack needs a task with a study, whose rows it plays with.")
    train, _ = load_study(study_named(task.study))
    target = iid(train, task.privacy.expected_clients, seed=0)[0]
    results = {}
    with progress_bar("attack") as progress:
        for step, relation in enumerate(("zero-out", "replace"), start=1):
            results[relation] = run_attack(task, target, relation=relation, trials=trials).document()
            progress(step, 2)
    return results
