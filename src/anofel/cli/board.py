"""``anofel board``: a board in one file."""

from pathlib import Path
from typing import Annotated

import typer

from anofel.cli.output import JsonOption, print_json, progress_bar

app = typer.Typer(help="Take a board with you in one file.", no_args_is_help=True)


@app.command()
def export(
    where: Annotated[str, typer.Argument(help="The URL of a node, or the directory of a board.")],
    file: Annotated[Path, typer.Argument(help="The archive that is written; it must not be there yet.")],
    payloads: Annotated[
        bool,
        typer.Option(help="Whether the encrypted updates go with it; without them no sum is added again."),
    ] = True,
    proxy: Annotated[str | None, typer.Option(help="A SOCKS proxy, socks5h://HOST:PORT.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write genesis, proof keys, blocks and blobs of a board into one file, as they are.

    Nothing is checked: anofel audit and the verifier page read such a file and check it.

    Example: anofel board export run/board board.anofel
    """
    from anofel.audit.archive import write_archive
    from anofel.audit.sources import open_source
    from anofel.disk.files import new_large_file

    with (
        open_source(where, proxy=proxy, ca_file=ca_file) as source,
        progress_bar("Writing blocks") as progress,
        new_large_file(file) as out,
    ):
        written = write_archive(
            out,
            genesis=source.genesis.to_bytes(),
            registration=source.registration_key,
            submission=source.submission_key,
            blocks=source.blocks,
            attachments=source.attachments,
            payloads=payloads,
            on_block=lambda height: progress(height, source.height),
        )
    if as_json:
        print_json(
            {"blocks": written.blocks, "blobs": written.blobs, "missing": written.missing, "file": str(file)}
        )
        return
    typer.echo(f"Written: {file}, {written.blocks} blocks and {written.blobs} blobs.")
    if written.missing:
        typer.echo(f"{written.missing} blobs were not there; payloads are pruned in time.")
    typer.echo(f"Check it: anofel audit {file}")
