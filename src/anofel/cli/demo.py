"""``anofel demo``: the whole system on this machine."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import JsonOption, note, print_json, print_text
from anofel.stopping import Stopped, stoppable

if TYPE_CHECKING:
    from anofel.demo.play import Demo


def demo(
    study: Annotated[
        list[str] | None,
        typer.Option(help="A study; may be repeated, one task each.", show_default="support2, nwtco"),
    ] = None,
    clients: Annotated[int, typer.Option(help="Clients of each study.", min=4, max=64)] = 8,
    iterations: Annotated[int, typer.Option(help="Sums of each study.", min=1, max=1000)] = 7,
    scheme: Annotated[str, typer.Option(help="lattice or paillier.")] = "lattice",
    committee: Annotated[int, typer.Option(help="Members of each committee.", min=1, max=16)] = 3,
    threshold: Annotated[int, typer.Option(help="How many members open a sum.", min=1, max=16)] = 2,
    validators: Annotated[
        int,
        typer.Option(
            help="How many nodes make the blocks together, each with an engine (make engine); 0: one node.",
            min=0,
            max=16,
        ),
    ] = 0,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="A new directory.", show_default="anofel-demo-… here"),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(help="Seed of the public split of rows over clients; no secret comes from it.", min=0),
    ] = 0,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page",
            help="Keep the board's page up after the end, until Ctrl-C.",
            show_default="in a terminal, where there is a browser",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run every role as its own process over HTTP: real studies, cheaters, a crash, an audit at the end.

    Example: anofel demo --study support2 --study nwtco --clients 8 --iterations 7
    """
    from rich.console import Console

    from anofel.committee import schemes
    from anofel.demo.plan import DEFAULT_STUDIES, Options, default_directory
    from anofel.demo.play import Demo
    from anofel.demo.view import LiveScreen, PlainScreen

    if scheme not in schemes.NAMES:
        raise typer.BadParameter(f"There are {', '.join(schemes.NAMES)}.", param_hint="--scheme")
    options = Options(
        directory=(directory or default_directory()).absolute(),
        studies=tuple(study or DEFAULT_STUDIES),
        clients=clients,
        iterations=iterations,
        scheme=scheme,
        committee=committee,
        threshold=threshold,
        validators=validators,
        seed=seed,
    )
    console = Console(stderr=True)
    screen = LiveScreen(console) if console.is_terminal else PlainScreen(console)
    play = Demo(options, screen)
    try:
        with stoppable(), screen if isinstance(screen, LiveScreen) else nullcontext():
            play.run()
    except Stopped:
        note(f"Stopped; no process is left. {options.directory} can be deleted.")
        raise typer.Exit(1) from None
    _report(play, as_json=as_json)
    if page if page is not None else console.is_terminal and not as_json and _has_browser():
        _keep_page(play)


def _has_browser() -> bool:
    """Whether a person sits before a screen: text browsers on servers do not count."""
    import os
    import sys
    import webbrowser

    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def _keep_page(play: "Demo") -> None:
    """Show the finished board at the address where it was while it ran."""
    from urllib.parse import urlsplit

    from anofel.look.serve import serve
    from anofel.look.sources import BoardOnDisk
    from anofel.serving.listening import listen

    with listen("127.0.0.1", urlsplit(play.url).port or 0) as taken:
        source = BoardOnDisk(play.layout.nodes[0], lambda _done, _all: None)
        serve(source, taken, lambda: note(f"The board's page stays at {play.url}/ until Ctrl-C."))


def _report(play: "Demo", *, as_json: bool) -> None:
    import json

    from anofel.demo.summary import DOCUMENT, PICTURE, document, draw, story
    from anofel.errors import InvalidInput

    try:
        draw(play, play.layout.root / PICTURE)
    except InvalidInput as error:
        note(str(error))
    found = document(play)
    (play.layout.root / DOCUMENT).write_text(json.dumps(found, indent=2) + "\n")
    if as_json:
        print_json(found)
        return
    for heading, sentences in story(play):
        print_text(f"\n{heading}", style="bold")
        for sentence in sentences:
            print_text(f"- {sentence}")
