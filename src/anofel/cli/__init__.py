"""The command line: one file per command group; this file only joins them.

Start-up is a feature: a group's heavy imports happen inside its commands.
"""

import sys

import typer

from anofel.cli import aggregator, ca, certifier, client, model, node, owner, setup, study
from anofel.cli.audit import audit
from anofel.cli.demo import demo
from anofel.cli.privacy import privacy
from anofel.cli.simulate import simulate
from anofel.errors import AnofelError

app = typer.Typer(
    name="anofel",
    help="Anonymous and private federated learning over a public bulletin board.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(aggregator.app, name="aggregator")
app.add_typer(ca.app, name="ca")
app.add_typer(certifier.app, name="certifier")
app.add_typer(client.app, name="client")
app.add_typer(model.app, name="model")
app.add_typer(node.app, name="node")
app.add_typer(owner.app, name="owner")
app.add_typer(setup.app, name="setup")
app.add_typer(study.app, name="study")
app.command()(audit)
app.command()(demo)
app.command()(privacy)
app.command()(simulate)


def main() -> None:
    """Run the command line; a deliberate error becomes one sentence and its exit code."""
    try:
        app()
    except AnofelError as error:
        typer.echo(f"anofel: {error}", err=True)
        sys.exit(error.exit_code)
