"""``anofel node change`` and ``anofel node sign``: validators decide who makes the blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, print_json, print_table
from anofel.cli.role_options import BoardOption, CaFileOption, ProxyOption, WaitOption, board_addresses

if TYPE_CHECKING:
    from anofel.light_client.client import LightClient
    from anofel.pki.certificates import RoleKey
    from anofel.roles.validators import Proposed

Own = Annotated[Path, typer.Argument(help="The directory of your validator.", show_default=False)]


def change(
    directory: Own,
    board: BoardOption,
    request: Annotated[
        Path | None, typer.Option(help="The request.json of who comes; without it the place becomes empty.")
    ] = None,
    place: Annotated[
        int | None, typer.Option(help="Whose place; without it the next free one is filled.", min=0, max=255)
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(help="The first block of the changed validators.", show_default="600 blocks on"),
    ] = None,
    proxy: ProxyOption = "",
    ca_file: CaFileOption = None,
    wait: WaitOption = 600,
    as_json: JsonOption = False,
) -> None:
    """Propose to add, replace or take away a validator; more than two thirds have to sign.

    Example: anofel node change validator --board https://board.example --request lab.json
    """
    from anofel.node.replicated.requests import read_request
    from anofel.roles.validators import propose_change

    if request is None and place is None:
        raise typer.BadParameter("Give --request to add a validator, or --place to empty one.")
    asked = None if request is None else read_request(request)
    with _as_validator(directory, board, proxy, ca_file) as (client, role):
        made = propose_change(
            client, role, place=place, request=asked, since=since, seconds=wait, on_wait=note
        )
    _show("A change of validators", made, as_json=as_json)
    if not as_json and not made.decided:
        note(f"The others sign it with: anofel node sign DIRECTORY {made.name.hex()[:16]} --board …")
    if not as_json and asked is not None:
        note(f"Who comes joins with: anofel node join … --place {made.place}")


def sign(
    directory: Own,
    digits: Annotated[str, typer.Argument(help="The change: 8 of its digits or more.", show_default=False)],
    board: BoardOption,
    confirm: Annotated[bool, typer.Option("--confirm", help="Sign what was shown.")] = False,
    proxy: ProxyOption = "",
    ca_file: CaFileOption = None,
    wait: WaitOption = 600,
    as_json: JsonOption = False,
) -> None:
    """Show a change of validators that another one proposed, and sign it with --confirm.

    Example: anofel node sign validator 4fe1… --board https://board.example --confirm
    """
    from anofel.roles.validators import find_change, open_change, sign_change

    with _as_validator(directory, board, proxy, ca_file) as (client, role):
        client.sync()
        name = find_change(client.state, digits)
        if not confirm:
            found = open_change(client.state, name)
            entry = found.change.entry
            shown: dict[str, Any] = {
                "change": name.hex(),
                "place": found.change.place,
                "comes": "nobody" if entry is None else entry.name,
                "url": "" if entry is None else entry.url,
                "key": "" if entry is None else entry.validator.key.hex(),
                "since": found.change.since,
                "signed_by": ", ".join(map(str, found.signed)),
            }
            _print("Nothing is signed yet", shown, as_json=as_json)
            if not as_json:
                note("Compare the key with who comes, by telephone; then give --confirm.")
            return
        made = sign_change(client, role, name, seconds=wait, on_wait=note)
    _show("The change", made, as_json=as_json)


@contextmanager
def _as_validator(
    directory: Path, board: list[str], proxy: str, ca_file: Path | None
) -> "Iterator[tuple[LightClient, RoleKey]]":
    """Follow the board from genesis on, beside the node, with the key that vouches for this validator."""
    from tempfile import TemporaryDirectory

    from anofel.light_client.client import LightClient
    from anofel.network.transport import Transport
    from anofel.node.replicated.files import VALIDATOR_CERTIFICATE, VALIDATOR_KEY
    from anofel.pki.certificates import RoleKey
    from anofel.storage.blocks import GENESIS, read_genesis

    role = RoleKey.from_files(directory / VALIDATOR_CERTIFICATE, directory / VALIDATOR_KEY)
    genesis = read_genesis(directory / GENESIS)
    with TemporaryDirectory(prefix="anofel-") as view:
        client = LightClient(
            Path(view), Transport(board_addresses(board), proxy or None, ca_file), genesis_hash=genesis.hash
        )
        try:
            yield client, role
        finally:
            client.close()


def _show(title: str, made: "Proposed", *, as_json: bool) -> None:
    shown = {"change": made.name.hex(), "place": made.place, "since": made.since, "decided": made.decided}
    _print(title, shown, as_json=as_json)


def _print(title: str, shown: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(shown)
        return
    rows = [[key.replace("_", " "), str(value)] for key, value in shown.items() if value != ""]
    print_table(title, ["", ""], rows)
