"""``anofel look``: a board in a browser."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import JsonOption, note, print_json, progress_bar
from anofel.cli.role_options import FurtherBoardOption, board_addresses

if TYPE_CHECKING:
    from anofel.look.sources import BoardOnDisk, FollowedBoard


def look(
    where: Annotated[str, typer.Argument(help="The URL of a node, or the directory of a board.")],
    genesis: Annotated[
        str, typer.Option(help="The hash of the genesis that is expected.", show_default="the node's")
    ] = "",
    further: FurtherBoardOption = None,
    port: Annotated[int, typer.Option(help="The port of the page; 0 takes a free one.", max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open it in your browser.")] = False,
    proxy: Annotated[str | None, typer.Option(help="A SOCKS proxy, socks5h://HOST:PORT.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Look at a board in a browser: the page of a node, but made here of what was verified here.

    It ends with Ctrl-C. Nothing can be changed by it, and only this machine can open it.

    Example: anofel look https://board.example
    """
    from anofel.look.serve import serve
    from anofel.serving.listening import listen

    with listen("127.0.0.1", port) as taken, ExitStack() as stack:
        source = open_board(where, further or [], genesis, proxy, ca_file, stack)
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"

        def announce() -> None:
            if as_json:
                print_json({"url": url, "genesis": source.genesis_hash.hex(), "height": source.height})
            else:
                typer.echo(f"The page of the board, at block {source.height}, answers at {url} until Ctrl-C.")
            if browser:
                typer.launch(url)

        serve(source, taken, announce)


def open_board(
    where: str, further: list[str], genesis: str, proxy: str | None, ca_file: Path | None, stack: ExitStack
) -> "BoardOnDisk | FollowedBoard":
    """Open a board by the URLs of nodes or by its directory, verified. Raises ``InvalidInput``."""
    from tempfile import TemporaryDirectory

    from anofel.errors import InvalidInput
    from anofel.light_client.client import LightClient
    from anofel.look.sources import BoardOnDisk, FollowedBoard
    from anofel.messages import Genesis
    from anofel.network.transport import Transport

    is_url = where.startswith(("http://", "https://"))
    with progress_bar("Verifying blocks") as progress:
        if not is_url:
            found = BoardOnDisk(Path(where), progress)
            if genesis and found.genesis_hash.hex() != genesis:
                raise InvalidInput(f"{where} holds another board: its genesis is {found.genesis_hash.hex()}.")
            return found
        transport = Transport(board_addresses([where, *further]), proxy=proxy, ca_file=ca_file)
        stated = transport.ask("GET", "/v1/genesis", Genesis.from_bytes)
        if genesis and stated.hash.hex() != genesis:
            raise InvalidInput(f"{where} serves another board: its genesis is {stated.hash.hex()}.")
        if not genesis:
            note(f"Compare the genesis hash with what you know of this board: {stated.hash.hex()}")
        view = stack.enter_context(TemporaryDirectory(prefix="anofel-look-"))
        client = LightClient(Path(view), transport, genesis_hash=stated.hash, tell=note)
        client.sync(on_block=lambda block: progress(block.header.height, block.header.height))
        return FollowedBoard(client, note)
