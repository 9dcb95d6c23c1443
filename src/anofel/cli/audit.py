"""``anofel audit``: re-derive a board from its genesis."""

from pathlib import Path
from typing import Annotated

import typer

from anofel.cli.output import JsonOption, note, print_json
from anofel.cli.progress import progress_bar


def audit(
    where: Annotated[str, typer.Argument(help="The URL of a node, or the directory of a board.")],
    checkpoint: Annotated[
        str | None,
        typer.Option(help="A block seen before: HEIGHT:HASH, or a file with its header."),
    ] = None,
    genesis: Annotated[str | None, typer.Option(help="The hash of the genesis that is expected.")] = None,
    proxy: Annotated[str | None, typer.Option(help="A SOCKS proxy, socks5h://HOST:PORT.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check everything that a board ever published, alone and without trusting anyone.

    Exits with 0 if every rule was kept, with 1 and the first bad posting, its rule and the reason if not.

    Example: anofel audit http://127.0.0.1:8080 --checkpoint 120:5f3c…
    """
    from anofel.audit.auditor import AuditFailed, Auditor
    from anofel.audit.sources import checkpoint as read_checkpoint
    from anofel.audit.sources import open_source

    try:
        with (
            open_source(where, proxy=proxy, ca_file=ca_file) as source,
            progress_bar("Auditing blocks") as progress,
        ):
            if genesis is not None and source.genesis.hash.hex() != genesis:
                raise AuditFailed("The board has another genesis than expected.", height=0, rule="genesis")
            auditor = Auditor(
                source.genesis,
                registration=source.registration,
                submission=source.submission,
                attachments=source.attachments,
            )
            for number, block in enumerate(source.blocks, start=1):
                auditor.take(block)
                progress(number, source.height)
            if checkpoint is not None:
                auditor.check_seen(*read_checkpoint(checkpoint, source.genesis))
            report = auditor.finish()
    except AuditFailed as error:
        if as_json:
            place = {"height": error.height, "posting": error.posting, "rule": error.rule}
            print_json({"ok": False, **place, "reason": str(error)})
        raise
    if as_json:
        print_json({"ok": True, **report.document()})
        return
    from anofel.cli.audit_report import show

    show(report)
    if genesis is None and checkpoint is None:
        note(f"Compare the genesis hash with what you know of this board: {report.genesis}")
