"""``anofel client join``: from one file of the certifier to a registered client."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.client_options import DEFAULT_DEMANDS, Demands
from anofel.cli.option_records import spread
from anofel.cli.output import JsonOption, note
from anofel.cli.role_options import (
    KeyFileOption,
    PassphraseFileOption,
    ProofKeysOption,
    ProxyOption,
    WaitOption,
    genesis_hash,
    opened,
    show,
    until_stopped,
)

_CHECK = "What you know by another way"


@spread(demands=Demands)
def join(
    invitation: Annotated[Path, typer.Argument(help="The certifier's invitation.", show_default=False)],
    rows: Annotated[
        Path, typer.Option(help="Your rows: .csv, .parquet or .npz; images as .npz.", show_default=False)
    ],
    directory: Annotated[Path, typer.Option(help="The client's directory, made if it is not there.")] = Path(
        "client"
    ),
    keys: ProofKeysOption = None,
    run: Annotated[
        bool, typer.Option("--run", help="Go on as anofel client run does, until SIGTERM or Ctrl-C.")
    ] = False,
    fingerprint: Annotated[
        str,
        typer.Option(
            help="The invitation's, as the certifier told you.", rich_help_panel=_CHECK, show_default=False
        ),
    ] = "",
    genesis: Annotated[
        str,
        typer.Option(
            help="The hash of the board's genesis, or the genesis file.",
            rich_help_panel=_CHECK,
            show_default=False,
        ),
    ] = "",
    insecure_test_board: Annotated[
        bool,
        typer.Option("--insecure-test-board", help="INSECURE: join a board of test material."),
    ] = False,
    demands: Demands = DEFAULT_DEMANDS,
    proxy: ProxyOption = "",
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take part by one file: make the directory, get the certificate, register. May be repeated.

    The invitation says where the board and the certifier are and what the rows look like. Whom you trust, and
    what your data may give away, is said here and nowhere else.

    Example: anofel client join invitation.json --rows patients.csv --task lung --max-epsilon 2
    --max-colluders 4 --proxy socks5h://127.0.0.1:9050 --key-file client.key --run
    """
    from anofel.roles.certificate_files import JoinDocument
    from anofel.roles.client.join import Choice, Known
    from anofel.roles.client.join import join as join_board
    from anofel.roles.client.role import Client
    from anofel.roles.client.trust import UNSAID
    from anofel.roles.directory import unlock_with

    read = JoinDocument.read(invitation)
    is_new = not directory.exists()
    if is_new and not as_json:
        note(f"The invitation's fingerprint is {read.fingerprint}; compare it with your certifier's.")
        note(f"Your rows are shown to {read.address}, which judges them; the board never sees them.")
        if not proxy:
            note("Without --proxy the board's node sees this machine's address.")
    elif not as_json:
        note(f"Going on in {directory}, with the settings in its role.toml.")
    demands.say_what_trains()
    unlock = unlock_with(key_file, passphrase_file, new=is_new)
    known = Known(
        genesis=genesis_hash(genesis) if genesis else None,
        fingerprint=fingerprint,
        insecure=insecure_test_board,
    )
    choice = Choice(rows=rows, keys=keys, settings=demands.settings(), proxy=proxy)
    join_board(directory, unlock, read, known, choice, note)
    with opened(directory, "client", key_file, passphrase_file, unlock=unlock) as (found, board):
        client = Client(found, board, note)
        with until_stopped():
            size = client.register(seconds=wait)
            found.keep_status(client.status())
            shown: dict[str, Any] = {"directory": str(directory), "epoch": board.state.epoch}
            show("Registered", {**shown, "anonymity_set": size}, as_json=as_json)
            if not (found.config.settings.get("task") or found.config.settings.get("owner")):
                note("No task is named, so nothing is trained: write task = … in role.toml.")
            if client.settings.trust.max_colluders is None:
                note(UNSAID)
            if run:
                client.run()
