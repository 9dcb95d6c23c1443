"""``anofel audit``: re-derive a board from its genesis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import JsonOption, note, print_json, progress_bar
from anofel.cli.role_options import FurtherBoardOption, board_addresses

if TYPE_CHECKING:
    from anofel.audit.auditor import AuditFailed
    from anofel.audit.report import AuditReport


def audit(
    where: Annotated[
        str, typer.Argument(help="The URL of a node, the directory of a board, or an archive of it.")
    ],
    checkpoint: Annotated[
        str | None,
        typer.Option(help="A block seen before: HEIGHT:HASH, or a file with its header."),
    ] = None,
    genesis: Annotated[str | None, typer.Option(help="The hash of the genesis that is expected.")] = None,
    further: FurtherBoardOption = None,
    proxy: Annotated[str | None, typer.Option(help="A SOCKS proxy, socks5h://HOST:PORT.")] = None,
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check everything that a board ever published, alone and without trusting anyone.

    Exits with 0 if every rule was kept, with 1 and the first bad posting, its rule and the reason if not;
    the report lists everything that was found.

    Example: anofel audit http://127.0.0.1:8080 --checkpoint 120:5f3c…
    """
    from anofel.audit.auditor import AuditFailed

    try:
        report = _audit(where, board_addresses(further or []), checkpoint, genesis, proxy, ca_file)
    except AuditFailed as error:  # before the first block
        if as_json:
            print_json({"ok": False, **_place(error)})
        raise
    failed = None if report.ok else AuditFailed.of(report.findings[0])
    if as_json:
        found = report.document()
        print_json({"ok": False, **_place(failed), "report": found} if failed else {"ok": True, **found})
    else:
        from anofel.cli.audit_report import show

        show(report)
        if genesis is None and checkpoint is None:
            note(f"Compare the genesis hash with what you know of this board: {report.genesis}")
    if failed is not None:
        raise failed


def _audit(
    where: str,
    further: list[str],
    checkpoint: str | None,
    genesis: str | None,
    proxy: str | None,
    ca_file: Path | None,
) -> "AuditReport":
    """Follow the board as far as it goes. Raises what keeps the audit from beginning."""
    from anofel.audit.auditor import AuditFailed, Auditor
    from anofel.audit.sources import checkpoint as read_checkpoint
    from anofel.audit.sources import open_source
    from anofel.light_client.watch import Watch

    with (
        open_source(where, further=further, proxy=proxy, ca_file=ca_file) as source,
        progress_bar("Auditing blocks") as progress,
    ):
        if genesis is not None and source.genesis.hash.hex() != genesis:
            raise AuditFailed("The board has another genesis than expected.", height=0, rule="genesis")
        auditor = Auditor(
            source.genesis,
            registration=source.registration,
            submission=source.submission,
            attachments=source.attachments,
            seen=None if checkpoint is None else read_checkpoint(checkpoint, source.genesis),
        )
        for fault in source.faults:
            auditor.add_finding(0, fault, "files", "files beside the blocks")
        auditor.follow(source.blocks, on_block=lambda height: progress(height, source.height))
        report = auditor.finish(source.height_now(auditor.state.validators.eras))
        report.notes += source.remarks
        if report.height:
            Watch(source.genesis.interval_ms, report.notes.append).look(report.height, report.time)
        return report


def _place(error: "AuditFailed") -> dict[str, object]:
    return {"height": error.height, "posting": error.posting, "rule": error.rule, "reason": str(error)}
