"""``anofel new``: begin a study with a task file, drafted from rows or copied from an example."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, print_json, print_table, print_text

if TYPE_CHECKING:
    from anofel.drafts.columns import Guesses


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
    as_json: JsonOption = False,
) -> None:
    """Begin a study: draft its task from a file of rows, or copy an example.

    The draft holds guesses from your rows; it is not fit to be published before you confirm them.

    Examples: anofel new wards --from patients.csv --label died

    anofel new trial --example support2
    """
    from anofel.disk.files import write_new_directory
    from anofel.errors import InvalidInput
    from anofel.tasks.example_files import TASK_FILE, example_files

    if bool(example) == (rows is not None):
        raise InvalidInput("Give --from with a file of rows and --label, or --example with a name; not both.")
    if example:
        files = example_files(example)
        write_new_directory(study, files)
        written = [str(study / name) for name in files]
        if as_json:
            print_json({"dir": str(study), "files": written})
        else:
            print_text("Written: " + ", ".join(written) + ".")
            print_text(f"Next: anofel privacy {study / TASK_FILE}")
        return
    assert rows is not None
    if not label:
        raise InvalidInput("--from needs --label, the column that is predicted.")
    _draft(study, rows, label, {"clients": clients, "releases": releases}, target_epsilon, as_json=as_json)


def _draft(
    study: Path, rows: Path, label: str, numbers: dict[str, int], epsilon: float, *, as_json: bool
) -> None:
    from anofel.disk.files import write_new_directory
    from anofel.drafts.columns import guess_columns
    from anofel.drafts.task_text import DraftSettings, draft_task
    from anofel.studies.table import read_table
    from anofel.tasks.confirmations import unconfirmed
    from anofel.tasks.example_files import TASK_FILE

    settings = DraftSettings(name=study.name, target_epsilon=epsilon, **numbers)
    guesses = guess_columns(read_table(rows), label)
    write_new_directory(study, {TASK_FILE: draft_task(guesses, settings).encode()})
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
    print_text(f"Next: anofel privacy {task}")


def _show(guesses: "Guesses") -> None:
    entries: list[list[Any]] = [[one.name or "(no name)", one.role, one.why] for one in guesses.columns]
    print_table(f"Guessed from {guesses.rows:,} rows", ["column", "is", "because"], entries)
    for one in guesses.columns:
        if one.rare:
            note(f"Column '{one.name}' has values that few rows have: {', '.join(one.rare)}.")
