"""``anofel client``: trains on its own data, and nobody learns that it does (steps 1.b and 3 to 5)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.client_join import join
from anofel.cli.client_options import Demands
from anofel.cli.option_records import spread
from anofel.cli.output import JsonOption, note, print_json
from anofel.cli.role_options import (
    Directory,
    KeyFileOption,
    NewRole,
    PassphraseFileOption,
    ProofKeysOption,
    WaitOption,
    add_status,
    at_work,
    board_addresses,
    genesis_hash,
    open_directory,
    opened,
    show,
    until_stopped,
)
from anofel.cli.status_tables import of_client

app = typer.Typer(
    no_args_is_help=True, help="The client: gets its data certified, registers anonymously, trains."
)

ROLE = "client"
app.command()(join)


@app.command()
@spread(new=NewRole, demands=Demands, without_default=("max_epsilon",))
def init(
    new: NewRole,
    data: Annotated[
        Path, typer.Option(help="Your rows: .csv, .parquet or .npz; images as .npz.", show_default=False)
    ],
    schema: Annotated[
        Path,
        typer.Option(
            help="A file with a schema table or a study's name, such as the task file.", show_default=False
        ),
    ],
    demands: Demands,
    keys: ProofKeysOption = None,
    dataset_type: Annotated[int, typer.Option("--type", help="The dataset type.", min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a client's directory with a new master key. The data stays where it is.

    Example: anofel client init ward3 --board https://board.example --genesis genesis.bin
    --data patients.csv --schema task.toml --type 7 --task lung --max-epsilon 2
    --max-colluders 4 --proxy socks5h://127.0.0.1:9050 --key-file ward3.key
    """
    from anofel.proofs.keys import KeyDirectory
    from anofel.roles.client.files import init_client
    from anofel.roles.client.trust import UNSAID

    new.require_absent()
    if keys is not None:
        KeyDirectory.open(keys, note).check_proving_keys()
    init_client(
        new.directory,
        new.unlock(),
        board=board_addresses(new.board),
        genesis_hash=genesis_hash(new.genesis),
        data=data,
        schema=schema,
        keys=keys,
        settings={"dataset_type": dataset_type, **demands.settings()},
        proxy=new.proxy,
        ca_file=new.ca_file,
        say=note,
    )
    shown = {"directory": str(new.directory), "board": new.board}
    show(f"The client in {new.directory}", shown, as_json=as_json)
    demands.say_what_trains()
    if not demands.max_colluders and not as_json:
        note(UNSAID)
    if not new.proxy and not as_json:
        note("Without --proxy the board's node sees this machine's address.")


@app.command()
def request(
    directory: Directory,
    nonce: Annotated[Path | None, typer.Option(help="By files: the certifier's nonce.")] = None,
    out: Annotated[Path | None, typer.Option(help="By files: a new file for the request.")] = None,
    certifier: Annotated[str, typer.Option(help="By HTTP: the certifier's address.")] = "",
    invitation: Annotated[Path | None, typer.Option(help="By HTTP: the certifier's invitation.")] = None,
    certifier_ca_file: Annotated[
        Path | None, typer.Option(help="By HTTPS: the roots to trust, in PEM.")
    ] = None,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a certifier that knows you for a certificate over your data.

    Example, by files: anofel client request ward3 --nonce nonce.json --out request.json --key-file ward3.key

    Then send request.json and the data to the certifier, and keep its answer with anofel client accept.

    Example, by HTTP: anofel client request ward3 --certifier https://clinic.example
    --invitation invitation.json --key-file ward3.key
    """
    from anofel.disk.files import write_new_file
    from anofel.network.transport import Transport
    from anofel.roles.certificate_files import InvitationDocument, NonceDocument
    from anofel.roles.client.request import make_request, request_by_http

    by_files, by_http = nonce is not None and out is not None, bool(certifier) and invitation is not None
    if by_files == by_http:
        raise typer.BadParameter("Give --nonce and --out, or --certifier and --invitation.")
    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        if nonce is not None and out is not None:
            made = make_request(found, NonceDocument.read(nonce))
            write_new_file(out, made.to_bytes() + b"\n")
            show("Request", {"file": str(out), "digest": made.d.hex(), "type": made.dt}, as_json=as_json)
        elif invitation is not None:
            transport = Transport(certifier, ca_file=certifier_ca_file)
            kept = request_by_http(found, transport, InvitationDocument.read(invitation))
            show("Certificate", {"digest": kept.d.hex(), "type": kept.dt}, as_json=as_json)


@app.command()
def accept(
    directory: Directory,
    certificate: Annotated[Path, typer.Argument(help="The certifier's answer.", show_default=False)],
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a certificate and keep it in the key store.

    Example: anofel client accept ward3 certificate.json --key-file ward3.key
    """
    from anofel.roles.client.request import accept_file

    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        kept = accept_file(found, certificate)
    show("Certificate", {"digest": kept.d.hex(), "type": kept.dt}, as_json=as_json)
    if not as_json:
        note(f"It is in the key store now; {certificate} can be deleted.")


@app.command()
def register(
    directory: Directory,
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register anonymously and wait until the board shows it. May be repeated.

    Example: anofel client register ward3 --key-file ward3.key
    """
    from anofel.roles.client.role import Client

    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        client = Client(found, board, note)
        size = client.register(seconds=wait)
        found.keep_status(client.status())
        shown = {"epoch": board.state.epoch, "anonymity_set": size}
        show("Registered", shown, as_json=as_json)


@app.command()
def train(
    directory: Directory,
    cover: Annotated[bool, typer.Option("--cover", help="Post without training: all bits 0, no ε.")] = False,
    wait: WaitOption = 86400,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take part in one iteration, the next that can be. Exit code 1 if it is refused.

    Example: anofel client train ward3 --key-file ward3.key
    """
    from anofel.roles.client.role import Client

    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        client = Client(found, board, note, cover=cover, once=True)
        client.run(seconds=wait)
        turn = client.turns_taken()[-1]
        shown: dict[str, Any] = {
            "bundle": turn.bundle,
            "iteration": turn.iteration,
            "posted": turn.accepted,
            "skipped": turn.skipped,
            "reason": turn.reason,
        }
        show("Iteration", shown, as_json=as_json)
        if not turn.accepted:
            raise typer.Exit(1)


@app.command()
def run(
    directory: Directory,
    cover: Annotated[bool, typer.Option("--cover", help="Post without training: all bits 0, no ε.")] = False,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register if needed and take part in every iteration, until SIGTERM or Ctrl-C.

    Example: anofel client run ward3 --key-file ward3.key
    """
    from anofel.roles.client.role import Client

    with opened(directory, ROLE, key_file, passphrase_file) as (found, board):
        client = Client(found, board, note, cover=cover)
        with until_stopped():
            client.run()
        found_now = client.status() if as_json else of_client(client.status())
        show(f"The client in {directory}", found_now, as_json=as_json)


add_status(app, ROLE, "ward3", of_client)


@app.command()
def doctor(
    directory: Directory,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check clock, disk, board, schema, keys, certificate and task; post nothing. Exit code 1 if not fit.

    Example: anofel client doctor ward3 --key-file ward3.key
    """
    from anofel.roles.client.doctor import Doctor, as_records

    with opened(directory, ROLE, key_file, passphrase_file) as (found, board):
        findings = Doctor(found, board).examine()
    fit = all(finding.ok for finding in findings)
    show(f"The client in {directory}", {"fit": fit, "checks": as_records(findings)}, as_json=as_json)
    if not fit:
        raise typer.Exit(1)


@app.command()
def receipt(
    directory: Directory,
    out: Annotated[Path, typer.Option(help="A new file for the receipt; only you can read it.")],
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write which postings are yours, so that the verifier page can show you what became of them.

    No node is asked. Whoever sees the file knows that you took part, and which postings are yours.

    Example: anofel client receipt ward3 --out receipt.json --key-file ward3.key
    """
    from anofel.disk.files import Secret, write_new_file
    from anofel.roles.client.receipt import receipt_of

    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        write_new_file(out, Secret(receipt_of(found)))
    show("Receipt", {"file": str(out)}, as_json=as_json)
    if not as_json:
        note("Show it to nobody, and delete it when you have looked: it names all your postings.")


@app.command()
def leave(
    directory: Directory,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Do it; without this it only says what it means.")
    ] = False,
    destroy_key: Annotated[
        bool, typer.Option("--destroy-key", help="Also delete the master key and the certificate, for ever.")
    ] = False,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop taking part; says first what cannot be undone, and how a lost key is replaced.

    Example: anofel client leave ward3 --confirm --key-file ward3.key
    """
    from anofel.roles.client.leave import CONSEQUENCES, leave_board

    if not as_json:
        for sentence in CONSEQUENCES:
            typer.echo(f"- {sentence}")
    if not confirm:
        if as_json:
            print_json({"left": False, "consequences": list(CONSEQUENCES)})
        note("Nothing was changed. Add --confirm to leave.")
        return
    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        leave_board(found, destroy_key=destroy_key)
    show(f"The client in {directory}", {"left": True, "key_destroyed": destroy_key}, as_json=as_json)
