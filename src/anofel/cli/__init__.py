"""The command line: one file per command group; this file only joins them.

Start-up is a feature: a group's heavy imports happen inside its commands.
"""

import json
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from anofel.cli import aggregator, ca, certifier, client, deploy, model, node, owner, setup, study
from anofel.cli.audit import audit
from anofel.cli.demo import demo
from anofel.cli.look import look
from anofel.cli.new import new
from anofel.cli.predict import evaluate, predict
from anofel.cli.privacy import privacy
from anofel.cli.simulate import simulate
from anofel.errors import AnofelError

MISTAKE = 70
"""The exit code of a mistake of the program's own (EX_SOFTWARE)."""

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
app.add_typer(deploy.app, name="deploy")
app.add_typer(model.app, name="model")
app.add_typer(node.app, name="node")
app.add_typer(owner.app, name="owner")
app.add_typer(setup.app, name="setup")
app.add_typer(study.app, name="study")
app.command()(audit)
app.command()(demo)
app.command()(evaluate)
app.command()(look)
app.command()(new)
app.command()(predict)
app.command()(privacy)
app.command()(simulate)


_display_type = TyperOption.display_type_rich


def _without_flags(option: TyperOption, ctx: typer.Context) -> str | None:
    """Say nothing of a flag's type: it takes no value."""
    return None if option.is_flag else _display_type(option, ctx)


TyperOption.display_type_rich = _without_flags  # type: ignore[assignment, method-assign]


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"anofel {version('anofel')}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Anonymous and private federated learning over a public bulletin board."""


_WRONG_USAGE: Any = typer.BadParameter.__base__
"""What all mistakes in a command are for typer, which does not export it."""


def main() -> None:
    """Run the command line; a deliberate error becomes one sentence and its exit code.

    Anything else is a mistake of the program. It has a code of its own, with which a role is started
    again: a client that has been charged must come back and post.
    """
    try:
        sys.exit(app(standalone_mode=False) if "--json" in sys.argv else app())
    except AnofelError as error:
        if "--json" in sys.argv:
            _say_to_programs(error.code, str(error), error.exit_code)
        typer.echo(f"anofel: {error}", err=True)
        sys.exit(error.exit_code)
    except _WRONG_USAGE as error:  # with --json alone: typer shows others by itself
        _say_to_programs("wrong-usage", error.format_message(), error.exit_code)
        typer.echo(f"anofel: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except typer.Abort:  # a prompt that nobody answered
        if "--json" in sys.argv:
            _say_to_programs("aborted", "The command was ended before it began its work.", 1)
        typer.echo("Aborted.", err=True)
        sys.exit(1)
    except Exception:
        traceback.print_exc()
        sys.exit(MISTAKE)


def _say_to_programs(code: str, message: str, exit_code: int) -> None:
    failed = {"error": code, "message": message, "exit_code": exit_code}
    typer.echo(json.dumps(failed, indent=2))
