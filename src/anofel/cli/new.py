"""``anofel new``: begin a study with a task file, drafted from rows or copied from an example."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from anofel.cli.flower_options import (
    FlowerDataOption,
    FlowerPythonOption,
    FlowerRunConfigOption,
    InsecureFlowerNetworkOption,
    flower_app,
    say_what_an_app_may,
)
from anofel.cli.output import JsonOption, note, print_json, print_table, print_text

if TYPE_CHECKING:
    from anofel.disk.files import Secret
    from anofel.drafts.columns import Guesses
    from anofel.drafts.task_text import DraftSettings
    from anofel.learning.flower.settings import FlowerApp

FIRST_MODEL: Final = "first.model"


def _examples_that_begin(begun: str) -> list[str]:
    from anofel.tasks.example_files import EXAMPLES

    return [name for name in EXAMPLES if name.startswith(begun)]


def new(
    study: Annotated[Path, typer.Argument(help="A new directory for the study.", show_default=False)],
    rows: Annotated[
        Path | None,
        typer.Option("--from", help="A file of rows: .csv, .parquet or .npz.", show_default=False),
    ] = None,
    label: Annotated[str, typer.Option(help="The column that is predicted.", show_default=False)] = "",
    example: Annotated[
        str,
        typer.Option(
            help="Copy an example instead; a wrong name lists them.",
            autocompletion=_examples_that_begin,
            show_default=False,
        ),
    ] = "",
    clients: Annotated[int, typer.Option(min=4, help="How many hospitals will take part.")] = 8,
    releases: Annotated[int, typer.Option(min=1, help="How many sums may be opened.")] = 20,
    target_epsilon: Annotated[
        float, typer.Option(min=0.01, help="ε of one patient after all of them.")
    ] = 2.0,
    flower_app_directory: Annotated[
        Path | None,
        typer.Option(
            "--flower-app",
            help="A Flower app that trains; with --from and --label, whose rows are what is certified.",
            rich_help_panel="A Flower app",
            show_default=False,
        ),
    ] = None,
    flower_python: FlowerPythonOption = None,
    flower_data: FlowerDataOption = None,
    flower_run_config: FlowerRunConfigOption = None,
    insecure_flower_network: InsecureFlowerNetworkOption = False,
    as_json: JsonOption = False,
) -> None:
    """Begin a study: draft its task from a file of rows, or copy an example.

    The draft holds guesses from your rows; it is not fit to be published before you confirm them.

    Examples: anofel new wards --from patients.csv --label died

    anofel new trial --example support2

    anofel new hearts --from hearts.csv --label died --flower-app app --flower-python env/bin/python
    """
    from anofel.disk.files import write_new_directory
    from anofel.errors import WrongUsage
    from anofel.tasks.example_files import TASK_FILE, example_files

    if rows is not None and not example:
        if not label:
            raise WrongUsage("--from needs --label, the column that is predicted.")
        app = flower_app(
            flower_app_directory,
            flower_python,
            flower_data,
            None,
            flower_run_config,
            insecure_network=insecure_flower_network,
        )
        numbers = {"clients": clients, "releases": releases}
        _draft(study, rows, label, numbers, target_epsilon, app, as_json=as_json)
    elif example and rows is None:
        files = example_files(example)
        write_new_directory(study, files)
        written = [str(study / name) for name in files]
        if as_json:
            print_json({"dir": str(study), "files": written})
        else:
            print_text("Written: " + ", ".join(written) + ".")
            print_text(f"Next: anofel privacy {quote(str(study / TASK_FILE))}")
    else:
        raise WrongUsage("Give --from with a file of rows and --label, or --example with a name; not both.")


def _draft(
    study: Path,
    rows: Path,
    label: str,
    numbers: dict[str, int],
    epsilon: float,
    app: "FlowerApp | None",
    *,
    as_json: bool,
) -> None:
    from anofel.disk.files import write_new_directory
    from anofel.drafts.columns import guess_columns
    from anofel.drafts.task_text import DraftSettings, draft_task
    from anofel.studies.table import read_table
    from anofel.tasks.confirmations import unconfirmed
    from anofel.tasks.example_files import TASK_FILE

    settings = DraftSettings(name=study.name, target_epsilon=epsilon, **numbers)
    guesses = guess_columns(read_table(rows), label)
    if app is None:
        write_new_directory(study, {TASK_FILE: draft_task(guesses, settings).encode()})
    else:
        write_new_directory(study, _flower_files(app, guesses, settings))
    task = study / TASK_FILE
    marks = unconfirmed(task)
    if as_json:
        columns = [{"name": one.name, "is": one.role, "why": one.why} for one in guesses.columns]
        print_json({"dir": str(study), "task": str(task), "unconfirmed": marks, "columns": columns})
        return
    _show(guesses)
    print_text(f"Written: {task}, for {settings.clients} hospitals and ε = {epsilon:g} per patient.")
    note(
        f"{marks} values were taken from your rows, and a task is published: the task shows something of "
        "your patients that ε does not cover, until you replace each by a public constant. "
        "They are marked 'confirm: public constant'."
    )
    print_text(f"Next: anofel privacy {quote(str(task))}")


def _flower_files(
    app: "FlowerApp", guesses: "Guesses", settings: "DraftSettings"
) -> "dict[str, bytes | Secret]":
    """Start the app once; write its task and its first model."""
    from contextlib import closing

    from anofel.drafts.flower_text import FlowerDraft, draft_flower_task
    from anofel.learning.flower.strategies import lost_of, rule_of_strategy
    from anofel.learning.flower.trainer import FlowerTrainer
    from anofel.models.parameters import Layout
    from anofel.models.rules import first_model
    from anofel.tasks.example_files import TASK_FILE
    from anofel.tasks.task import parse_task

    say_what_an_app_may(app)
    with closing(FlowerTrainer(app)) as trainer:
        about, initial = trainer.about, trainer.initial()
    for lost in lost_of(about):
        note(f"Not kept: {lost}")
    draft = FlowerDraft(
        digest=app.digest,
        about=about,
        rule=rule_of_strategy(about["strategy"], about["settings"], settings.releases),
        parameters=Layout.of(initial).size,
    )
    text = draft_flower_task(guesses, settings, draft)
    first = first_model(parse_task(text, settings.name), initial).to_bytes()
    note(f"The first model of the app is {FIRST_MODEL}: anofel owner announce --first-model takes it.")
    return {TASK_FILE: text.encode(), FIRST_MODEL: first}


def _show(guesses: "Guesses") -> None:
    entries: list[list[Any]] = [[one.name or "(no name)", one.role, one.why] for one in guesses.columns]
    print_table(f"Guessed from {guesses.rows:,} rows", ["column", "is", "because"], entries)
    for one in guesses.columns:
        if one.rare:
            note(f"Column '{one.name}' has values that few rows have: {', '.join(one.rare)}.")
