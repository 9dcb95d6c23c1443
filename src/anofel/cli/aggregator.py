"""``anofel aggregator``: one member of committees (steps 1.c and 6 to 8)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import JsonOption, note
from anofel.cli.role_options import (
    Directory,
    KeyFileOption,
    PassphraseFileOption,
    WaitOption,
    add_init,
    add_status,
    at_work,
    open_directory,
    show,
    until_stopped,
)
from anofel.ids import Subject

if TYPE_CHECKING:
    from anofel.messages import Run

app = typer.Typer(no_args_is_help=True, help="A member of committees: make their keys, add and open sums.")

ROLE = "aggregator"
add_init(
    app,
    ROLE,
    "Make an aggregator's directory. The subject that it shows is what the others name as a member.",
)


@app.command()
def keygen(
    directory: Directory,
    name: Annotated[
        str, typer.Option(help="What the members call this run; never the same twice.", show_default=False)
    ],
    member: Annotated[
        list[str],
        typer.Option(
            help="A member: its subject or its certificate file, yourself included; repeated.",
            show_default=False,
        ),
    ],
    threshold: Annotated[
        int, typer.Option(help="How many members open a sum; above half.", min=1, show_default=False)
    ],
    scheme: Annotated[str, typer.Option(help="lattice or paillier.")] = "lattice",
    files: Annotated[
        Path | None,
        typer.Option(help="A folder with the round files of all members: one step without the board."),
    ] = None,
    genesis: Annotated[
        Path | None, typer.Option(help="With --files: the genesis file, if the board was never asked.")
    ] = None,
    wait: WaitOption = 3600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a committee's key with the other members, who run the same command at the same time.

    No dealer: nobody ever holds the whole key. Interrupted, the same command goes on. With --files the
    members hand each other the files that appear in a folder; the same command without --files then
    posts what was made.

    Example: anofel aggregator keygen aggregator --name lung-1 --threshold 2 --member a.pem
    --member b.pem --member c.pem --key-file aggregator.key
    """
    from anofel.roles.aggregator.key_ceremony import KeyCeremony, describe_run

    run_ = describe_run(name, [_subject(text) for text in member], threshold, scheme)
    if files is not None:
        _exchange_files(directory, run_, files, genesis, key_file, passphrase_file, as_json=as_json)
        return
    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        ceremony = KeyCeremony(found, board, run_, note)
        ceremony.run(seconds=wait)
        assert ceremony.key_id is not None
        content = {
            "committee": ceremony.key_id.hex(),
            "members": len(run_.members),
            "threshold": threshold,
            "scheme": scheme,
        }
        show("Committee", content, as_json=as_json)


@app.command()
def refresh(
    directory: Directory,
    name: Annotated[
        str,
        typer.Option(help="What the parties call this handover; never the same twice.", show_default=False),
    ],
    committee: Annotated[
        str,
        typer.Option(help="The committee: its name, or 8 digits of its id or more.", show_default=False),
    ],
    member: Annotated[
        list[str] | None,
        typer.Option(help="A new member, by subject or certificate file; repeated. Without: as now."),
    ] = None,
    threshold: Annotated[int, typer.Option(help="How many new members open a sum; 0: as now.", min=0)] = 0,
    dealer: Annotated[
        list[str] | None,
        typer.Option(help="An old member that deals; repeated, t of them. Without: the first t."),
    ] = None,
    wait: WaitOption = 3600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand the committee's key on: new shares, for the same members or others; the public key stays.

    Everybody who deals or receives stops run and runs this at the same time. It serves the committee
    meanwhile, and deletes the old share when the new ones count. Interrupted, the same command goes on.

    Example: anofel aggregator refresh aggregator --name lung-1-spring --committee lung-1
    --key-file aggregator.key
    """
    from anofel.roles.aggregator.key_handover import HandoverPlan, KeyHandover, follow_plan
    from anofel.roles.committee_names import find_committee

    members, dealers = ([_subject(text).hex() for text in texts or []] for texts in (member, dealer))
    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        board.sync()
        meant = find_committee(board.state, committee).key_id.hex()
        plan = HandoverPlan(name=name, committee=meant, members=members, threshold=threshold, dealers=dealers)
        run_ = follow_plan(found.path, board.state, plan)
        handover = KeyHandover(found, board, run_, note)
        handover.run(seconds=wait)
        content = {
            "committee": meant,
            "members": len(run_.members),
            "threshold": run_.threshold,
            "member": handover.member,
        }
        show("Committee", content, as_json=as_json)


@app.command()
def run(
    directory: Directory,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add, count and open sums, until SIGTERM or Ctrl-C; then show the status.

    Example: anofel aggregator run aggregator --key-file aggregator.key
    """
    from anofel.roles.aggregator.role import Aggregator

    with at_work(directory, ROLE, key_file, passphrase_file, daemon=True) as (found, board):
        aggregator = Aggregator(found, board, note)
        with until_stopped():
            aggregator.run()
        show(f"The aggregator in {directory}", aggregator.status(), as_json=as_json)


add_status(app, ROLE, ROLE)


def _exchange_files(
    directory: Path,
    run_: "Run",
    folder: Path,
    genesis: Path | None,
    key_file: Path | None,
    passphrase_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Go on with key generation as far as the files in a folder reach."""
    from anofel.roles.aggregator.key_files import FileCeremony
    from anofel.roles.directory import BOARD
    from anofel.storage.blocks import GENESIS, read_genesis

    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        source = genesis or found.path / BOARD / GENESIS
        if genesis is None and not source.exists():
            raise typer.BadParameter("The board was never asked; give its file.", param_hint="--genesis")
        ceremony = FileCeremony(found, read_genesis(source), run_, folder, note)
        standing = ceremony.step()
    if standing.key_id is None:
        missing = ", ".join(
            f"member {number} ({run_.members[number - 1].hex()[:16]}…)" for number in standing.missing
        )
        note(f"Round {standing.round}: no file of {missing} yet. Give ours to the others.")
    else:
        note("Every round is complete. Post it by the same command without --files.")
    content = {
        "committee": standing.key_id.hex() if standing.key_id else None,
        "member": ceremony.member,
        "round": standing.round,
        "missing": [
            {"member": number, "subject": run_.members[number - 1].hex()} for number in standing.missing
        ],
    }
    show("Key generation by files", content, as_json=as_json)


def _subject(text: str) -> Subject:
    """Read a member: 64 hexadecimal digits, or a certificate in PEM."""
    from anofel.disk.files import read_small_file
    from anofel.pki.certificates import subject_of_certificates

    if len(text) == 64:
        try:
            return Subject(bytes.fromhex(text))
        except ValueError:
            pass
    return subject_of_certificates(read_small_file(Path(text)))
