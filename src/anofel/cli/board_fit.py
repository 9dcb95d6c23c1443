"""Whether a board holds a task, told before anybody starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from anofel.messages import Class
    from anofel.tasks.task import Task

BoardToMeet = Annotated[
    str,
    typer.Option(
        "--board",
        help="A board to meet: its address, its node's directory or its genesis file. Refuses a task that it "
        "would refuse.",
        show_default="default numbers",
    ),
]
BoardProxy = Annotated[
    str, typer.Option("--proxy", help="For the board: a SOCKS proxy, socks5h://HOST:PORT, for example Tor.")
]
BoardRoots = Annotated[
    Path | None, typer.Option("--ca-file", help="For https: the roots to trust, in PEM.", show_default=False)
]


@dataclass(frozen=True)
class Meeting:
    """The size classes that tasks are held against."""

    where: str
    classes: Sequence["Class"]

    def meet(self, task: "Task") -> dict[str, Any]:
        """Say which class holds a task. Raises ``NoSizeClass``, ``DoesNotFit``, ``InvalidInput``."""
        from anofel.board.announcement import check_fits
        from anofel.board.size_classes import size_class_of

        size = self.classes[size_class_of(self.classes, task)]
        check_fits(task, size)
        return {"board": self.where, "max_length": size.max_length, "max_posts": size.max_posts}


def meeting(where: str, ca_file: Path | None, proxy: str = "") -> Meeting:
    """Read the classes of a board; without one those of default numbers. A node's word is not verified."""
    from anofel.board.size_classes import default_classes
    from anofel.messages import Genesis
    from anofel.network.transport import Transport
    from anofel.storage.blocks import GENESIS, read_genesis

    if not where:
        return Meeting("a board of default numbers", default_classes())
    if where.startswith(("http://", "https://")):
        genesis = Transport(where, proxy or None, ca_file, attempts=1).ask(
            "GET", "/v1/genesis", Genesis.from_bytes, max_bytes=1 << 20
        )
    else:
        path = Path(where)
        genesis = read_genesis(path / GENESIS if path.is_dir() else path)
    return Meeting(f"the board '{genesis.name}'", genesis.classes)


def meet_or_say(
    task: "Task", where: str, ca_file: Path | None, proxy: str = "", *, quiet: bool = False
) -> dict[str, Any]:
    """Hold a task against a board and say what holds it.

    A board that was named refuses it here as it would later (``NoSizeClass``, ``DoesNotFit``,
    ``InvalidInput``); of default numbers it is only said.
    """
    from anofel.cli.output import note
    from anofel.errors import AnofelError

    def say(text: str) -> None:
        if not quiet:
            note(text)

    held = meeting(where, ca_file, proxy)
    try:
        found = held.meet(task)
    except AnofelError as error:
        if where:
            raise
        say(f"Not held by {held.where}: {error}")
        return {"board": held.where, "refused": error.code, "detail": str(error)}
    say(
        f"Held by {held.where}: up to {found['max_length']} values in a vector and "
        f"{found['max_posts']} posts in an iteration."
    )
    return found
