"""``anofel evidence``: what a client kept of a board that misbehaved, checked again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import JsonOption, print_json

if TYPE_CHECKING:
    from anofel.proofs.keys import StatementName


def evidence(
    view: Annotated[
        Path,
        typer.Argument(
            help="The view of a board that found something: the directory board of a role, or a copy of it.",
            show_default=False,
        ),
    ],
    genesis: Annotated[str | None, typer.Option(help="The hash of the genesis that is expected.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what a client kept as evidence against a board, without a network and without trusting it.

    Exits with 0 if every file shows what it should, and says what: that validators signed two blocks of one
    height, or a posting that breaks a rule.

    Example: anofel evidence ward3/board
    """
    from anofel.board.verification import Verifier
    from anofel.errors import InvalidInput
    from anofel.light_client.evidence import DIRECTORY, shown_by
    from anofel.light_client.remote import check_key
    from anofel.proofs.keys import key_file_name, read_key_file
    from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
    from anofel.storage.attachments import DirectoryAttachments
    from anofel.storage.blocks import GENESIS, read_genesis

    found = read_genesis(view / GENESIS)
    if genesis is not None and found.hash.hex() != genesis:
        raise InvalidInput(f"The evidence is about another board: its genesis is {found.hash.hex()}.")

    def key(name: "StatementName") -> bytes:
        return check_key(
            read_key_file(view / key_file_name(name, "verification")), found, name, "verification"
        )

    verifier = Verifier(
        found.hash,
        RegistrationVerifier.from_bytes(key("registration")),
        SubmissionVerifier.from_bytes(key("submission")),
        DirectoryAttachments(view / "blobs"),
    )
    shown = list(shown_by(view / DIRECTORY, found, verifier))
    if as_json:
        records = [{"file": one.file, "shows": one.sentence} for one in shown]
        print_json({"genesis": found.hash.hex(), "shown": records})
        return
    typer.echo(f"The board '{found.name}', genesis {found.hash.hex()}:")
    for one in shown:
        typer.echo(f"{one.file}: {one.sentence}")
