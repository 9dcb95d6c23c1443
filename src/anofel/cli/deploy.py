"""``anofel deploy``: a deployment from one file of parties."""

from pathlib import Path
from typing import Annotated

import typer

from anofel.cli.output import JsonOption, note, print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Plan a deployment: a directory for each machine.")


@app.command()
def plan(
    parties: Annotated[Path, typer.Argument(help="Who takes part, and where.", show_default=False)],
    out: Annotated[Path, typer.Option(help="A new directory for the plan.")] = Path("plan"),
    as_json: JsonOption = False,
) -> None:
    """Write one directory for each machine: a script, a unit, a checklist and public files; no secret.

    Each task is held against the board first. Every machine's operator runs its script, carries what the
    checklist says, and runs it again.

    Example: anofel deploy plan parties.toml --out plan
    """
    from anofel.deploy.parties import read_parties
    from anofel.deploy.plan import make_plan

    machines = make_plan(read_parties(parties), parties.parent, out)
    if as_json:
        print_json({"plan": str(out), "machines": [machine.name for machine in machines]})
        return
    rows = [[machine.name, machine.title] for machine in machines]
    print_table(f"The plan in {out}", ["directory", "for"], rows)
    note(f"Give each operator their directory. Everywhere: sh go.sh. As containers: {out}/compose.yaml.")


@app.command()
def health(
    directory: Annotated[Path, typer.Argument(help="The directory of a node or a role.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Say whether the role in a directory is well. Exit code 1 if not.

    Example: anofel deploy health aggregator
    """
    from anofel.deploy.health import check_health

    found = check_health(directory)
    if as_json:
        print_json({"well": True, "finding": found})
    else:
        typer.echo(f"Well: {found}.")
