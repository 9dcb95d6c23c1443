"""``anofel track``: a board or a simulation in a tracker of experiments."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import JsonOption, note, print_json, print_text
from anofel.cli.role_options import FurtherBoardOption

if TYPE_CHECKING:
    from anofel.track.results import TrackedIteration

_RUN_SECONDS = 2.0
"""How often a simulation's result is read again."""


def track(
    where: Annotated[
        str,
        typer.Argument(
            help="A node's URL, a board's directory, or what simulate --out wrote.", show_default=False
        ),
    ],
    tensorboard: Annotated[
        Path, typer.Option(help="The directory for TensorBoard; what is there is gone on with.")
    ],
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on with new iterations until Ctrl-C."),
    ] = False,
    further: FurtherBoardOption = None,
    genesis: Annotated[
        str, typer.Option(help="The hash of the genesis that is expected.", show_default="the node's")
    ] = "",
    proxy: Annotated[str | None, typer.Option(help="A SOCKS proxy, socks5h://HOST:PORT.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a board or a simulation in TensorBoard: metrics, ε, counts and model cards.

    It reads what everybody may read. No client logs to a tracker.

    Example: anofel track run --tensorboard logs && tensorboard --logdir logs
    """
    from anofel.stopping import Stopped, stoppable
    from anofel.track.tensorboard import TensorBoardFiles

    values = 0
    with closing(TensorBoardFiles(tensorboard)) as files, ExitStack() as stack, stoppable():
        try:
            for results in _readings(where, further or [], genesis, proxy, ca_file, stack, follow=follow):
                new = files.write(results)
                values += new
                if follow and new:
                    note(f"{new} new values, up to iteration {max(one.iteration for one in results)}.")
        except Stopped:
            if not follow:
                raise
    if as_json:
        print_json({"tensorboard": str(tensorboard), "values": values})
        return
    print_text(f"{values} values were written. Look: tensorboard --logdir {tensorboard}")


def _readings(
    where: str,
    further: list[str],
    genesis: str,
    proxy: str | None,
    ca_file: Path | None,
    stack: ExitStack,
    *,
    follow: bool,
) -> "Iterator[list[TrackedIteration]]":
    """Give all iterations, again and again if they are followed."""
    from anofel.cli.look import open_board
    from anofel.errors import InvalidInput
    from anofel.look.sources import FollowedBoard
    from anofel.simulation.record import RESULT
    from anofel.stopping import pause
    from anofel.track.results import of_board, of_run

    if (Path(where) / RESULT).is_file():
        yield list(of_run(Path(where)))
        while follow:
            pause(_RUN_SECONDS)
            yield list(of_run(Path(where)))
        return
    source = open_board(where, further, genesis, proxy, ca_file, stack)
    stack.callback(source.close)
    if follow and not isinstance(source, FollowedBoard):
        raise InvalidInput("A board's directory is read once; follow the node that serves it instead.")
    yield list(of_board(source.now))
    if not follow or not isinstance(source, FollowedBoard):
        return
    source.start()
    note("Following the board until Ctrl-C, or until every task has ended.")
    height = source.height
    while source.live and not (source.now.studies and all(one.ended for one in source.now.studies)):
        pause(source.now.interval_ms / 1000)
        if source.height != height:
            height = source.height
            yield list(of_board(source.now))
    yield list(of_board(source.now))
    if source.trouble and not source.live:
        raise InvalidInput(f"The board cannot be followed any longer: {source.trouble}")
