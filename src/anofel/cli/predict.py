"""``anofel predict`` and ``anofel evaluate``: use a trained model on rows of one's own."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, print_json, print_text
from anofel.cli.role_options import TrainerOption, say_what_a_trainer_may, show

ModelFile = Annotated[
    Path, typer.Argument(help="A model file, of simulate, model fetch or an owner.", show_default=False)
]
TaskOption = Annotated[
    Path, typer.Option(help="Its task: the task file, or the .json of model fetch.", show_default=False)
]


def predict(
    model: ModelFile,
    task: TaskOption,
    rows: Annotated[
        Path, typer.Option(help="Rows with the task's columns; they need no label.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="A new CSV file instead of standard output.")] = None,
    trainer: TrainerOption = "",
    as_json: JsonOption = False,
) -> None:
    """Give the probability of every class for every row, as CSV; or what else the task predicts.

    Example: anofel predict run/models/wards-best.model --task wards/task.toml --rows new.csv
    """
    from anofel.disk.files import Secret, write_new_file
    from anofel.learning.classifier import Classifier

    say_what_a_trainer_may(trainer)
    classifier = Classifier.load(model, task, trainer)
    probabilities, lines = classifier.predict_file(rows)
    entries = [
        {"line": line, **classifier.columns(row)} for line, row in zip(lines, probabilities, strict=True)
    ]
    if out is not None:
        write_new_file(out, Secret(_csv(entries).encode()))  # what a patient is told to have is private
        note(f"{len(entries):,} predictions are in {out}, which only you can read.")
    if as_json:
        print_json({"file": None if out is None else str(out), "rows": entries})
    elif out is None:
        typer.echo(_csv(entries), nl=False)


def evaluate(
    model: ModelFile,
    task: TaskOption,
    rows: Annotated[Path, typer.Option(help="Rows with the task's columns and labels.", show_default=False)],
    trainer: TrainerOption = "",
    as_json: JsonOption = False,
) -> None:
    """Measure a model on rows with labels: loss, accuracy, and with two classes the area under the curve.

    A number is measured by its root mean squared error, survival by the concordance index.

    Example: anofel evaluate run/models/wards-best.model --task wards/task.toml --rows held-out.csv
    """
    from anofel.learning.classifier import Classifier
    from anofel.learning.evaluate import evaluate_on
    from anofel.studies.load import load_file

    say_what_a_trainer_may(trainer)
    classifier = Classifier.load(model, task, trainer)
    dataset = load_file(rows, classifier.task.schema)
    found = evaluate_on(classifier.task, dataset, classifier.trainer)(classifier.model)
    content: dict[str, Any] = {"rows": len(dataset), **found}
    if as_json:
        print_json(content)
        return
    shown = {name: f"{value:.4f}" if isinstance(value, float) else value for name, value in content.items()}
    show(f"{classifier.task.name} on {rows}", shown, as_json=False)
    print_text("These figures come from your rows; the task's ε does not cover them if you publish them.")


def _csv(entries: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(entries[0]), lineterminator="\n")
    writer.writeheader()
    for entry in entries:
        writer.writerow(
            {name: f"{cell:.6f}" if isinstance(cell, float) else cell for name, cell in entry.items()}
        )
    return text.getvalue()
