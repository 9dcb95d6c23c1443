"""The command line: one file per command group; this file only joins them.

Start-up is a feature: a group's heavy imports happen inside its commands.
"""

import json
import sys
import traceback
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from anofel.cli import (
    aggregator,
    board,
    ca,
    certifier,
    client,
    deploy,
    game,
    model,
    node,
    owner,
    setup,
    study,
)
from anofel.cli.audit import audit
from anofel.cli.demo import demo
from anofel.cli.evidence import evidence
from anofel.cli.help_words import tidy, use_words
from anofel.cli.look import look
from anofel.cli.new import new
from anofel.cli.predict import evaluate, predict
from anofel.cli.privacy import privacy
from anofel.cli.simulate import simulate
from anofel.cli.simulate_run import INTERRUPTED
from anofel.cli.track import track
from anofel.errors import AnofelError

MISTAKE = 70
"""The exit code of a mistake of the program's own (EX_SOFTWARE)."""

TRY: Final = "Try it"
DATA: Final = "Train on your data"
PART: Final = "Take part"
ROLES: Final = "Run a role"
CHECK: Final = "Check a study"
HEADINGS: Final = (TRY, DATA, PART, ROLES, CHECK)
"""Those of the documentation, in its order."""


class _ByHeading(TyperGroup):
    """Shows commands and groups of commands under the same headings; typer shows all groups last."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        def place(name: str) -> int:
            return HEADINGS.index(self.commands[name].rich_help_panel)  # type: ignore[attr-defined]

        return sorted(super().list_commands(ctx), key=place)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the command; programs are told of a Ctrl-C that it did not expect."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if "--json" in sys.argv:
                _say_to_programs("interrupted", "The command was ended by Ctrl-C.", INTERRUPTED)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="anofel",
    cls=_ByHeading,
    help="Anonymous and private federated learning over a public bulletin board.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command, heading in (
    (demo, TRY),
    (simulate, TRY),
    (new, DATA),
    (privacy, DATA),
    (predict, DATA),
    (evaluate, DATA),
    (look, CHECK),
    (audit, CHECK),
    (track, CHECK),
    (evidence, CHECK),
):
    app.command(rich_help_panel=heading)(command)
for group, heading in (
    (study, DATA),
    (model, DATA),
    (client, PART),
    (board, CHECK),
    (deploy, ROLES),
    (node, ROLES),
    (certifier, ROLES),
    (aggregator, ROLES),
    (owner, ROLES),
    (setup, ROLES),
    (ca, ROLES),
    (game, CHECK),
):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2], rich_help_panel=heading)
use_words()
tidy(app)


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
