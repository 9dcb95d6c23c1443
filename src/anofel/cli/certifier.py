"""``anofel certifier``: judges data and signs (steps 1.a and 1.b)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.option_records import spread
from anofel.cli.output import JsonOption, note, print_json, warn_insecure
from anofel.cli.role_options import (
    CertificateOption,
    Directory,
    KeyFileOption,
    KeyOption,
    NewRole,
    PassphraseFileOption,
    ProofKeysOption,
    WaitOption,
    at_work,
    board_addresses,
    genesis_hash,
    open_directory,
    show,
)

app = typer.Typer(
    no_args_is_help=True, help="The certifier: judges the data of clients that it knows, and signs."
)

ROLE = "certifier"
SubjectOption = Annotated[
    str, typer.Option(help="Who asks, as your private log shall call them.", show_default=False)
]
TypeOption = Annotated[
    int, typer.Option("--type", help="The dataset type, by your policy.", min=0, show_default=False)
]
OutOption = Annotated[Path, typer.Option(help="A new file.", show_default=False)]


@app.command()
@spread(new=NewRole)
def init(
    new: NewRole,
    certificate: CertificateOption,
    key: KeyOption,
    policy: Annotated[Path, typer.Option(help="Your policy file.", show_default=False)],
    keys: ProofKeysOption = None,
    address: Annotated[
        str, typer.Option(help="Where your clients reach you; your invitations carry it.")
    ] = "",
    address_ca_file: Annotated[
        Path | None, typer.Option(help="The roots by which they know that address, in PEM.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a certifier's directory with a new signing key.

    Example: anofel certifier init clinic --board https://board.example --genesis genesis.bin
    --certificate certificate.pem --key key.pem --policy policy.toml --key-file clinic.key
    """
    from anofel.pki.certificates import RoleKey
    from anofel.proofs.ceremony.finished import open_verified
    from anofel.roles.certifier.role import init_certifier

    new.require_absent()
    made = init_certifier(
        new.directory,
        new.unlock(),
        board=board_addresses(new.board),
        genesis_hash=genesis_hash(new.genesis),
        role_key=RoleKey.from_files(certificate, key),
        keys=None if keys is None else open_verified(keys),
        policy=policy,
        proxy=new.proxy,
        ca_file=new.ca_file,
        address=address,
        address_ca=address_ca_file,
    )
    shown = {"directory": str(new.directory), "key": made.to_bytes().hex(), "board": new.board}
    show(f"The certifier in {new.directory}", shown, as_json=as_json)


@app.command()
def enroll(
    directory: Directory,
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Post the signing key on the board and wait until it is listed. May be repeated.

    Example: anofel certifier enroll clinic --key-file clinic.key
    """
    from anofel.roles.certifier.role import Certifier

    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        certifier = Certifier(found)
        height = certifier.enroll(board, seconds=wait, on_wait=note)
        shown = {"key": certifier.key.to_bytes().hex(), "height": height}
        show("The board lists the key", shown, as_json=as_json)


@app.command()
def revoke(
    directory: Directory,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it; it cannot be undone.")] = False,
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take the signing key back for good. Clients that are registered stay so until a new epoch.

    Example: anofel certifier revoke clinic --confirm --key-file clinic.key
    """
    from anofel.roles.certifier.role import Certifier

    if not confirm:
        raise typer.BadParameter("A revoked key is never listed again; say so.", param_hint="--confirm")
    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        certifier = Certifier(found)
        height = certifier.revoke(board, seconds=wait, on_wait=note)
        shown = {"key": certifier.key.to_bytes().hex(), "height": height}
        show("The key is revoked", shown, as_json=as_json)


@app.command()
def nonce(
    directory: Directory,
    subject: SubjectOption,
    dataset_type: TypeOption,
    out: OutOption,
    as_json: JsonOption = False,
) -> None:
    """Draw the nonce of one request, for a client that you know. The file is no secret.

    Example: anofel certifier nonce clinic --subject "Ward 3" --type 7 --out nonce.json
    """
    from anofel.disk.files import write_new_file
    from anofel.roles.certifier.role import CertifierOffice

    made = CertifierOffice.open(directory).draw_nonce(subject, dataset_type)
    write_new_file(out, made.to_bytes() + b"\n")
    show("Nonce", {"file": str(out), "type": dataset_type}, as_json=as_json)


@app.command()
def invite(
    directory: Directory,
    subject: SubjectOption,
    dataset_type: TypeOption,
    out: OutOption,
    token_only: Annotated[
        bool, typer.Option("--token-only", help="Leave out addresses, roots and schema: for client request.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an invitation for a client that you know. The file is a secret of the client.

    It is all that a client needs for anofel client join. Tell it the fingerprint by another way.

    Example: anofel certifier invite clinic --subject "Ward 3" --type 7 --out invitation.json
    """
    from anofel.disk.files import Secret, write_new_file
    from anofel.roles.certifier.role import CertifierOffice

    office = CertifierOffice.open(directory)
    if token_only:
        write_new_file(out, Secret(office.invite(subject, dataset_type).to_bytes() + b"\n"))
        show("Invitation", {"file": str(out), "type": dataset_type}, as_json=as_json)
        return
    made = office.invite_to_join(subject, dataset_type)
    write_new_file(out, Secret(made.to_bytes() + b"\n"))
    shown = {"file": str(out), "type": dataset_type, "fingerprint": made.fingerprint}
    show("Invitation", shown, as_json=as_json)


@app.command()
def certify(
    directory: Directory,
    request: Annotated[Path, typer.Option(help="The client's request.", show_default=False)],
    data: Annotated[Path, typer.Option(help="The data that the client shows.", show_default=False)],
    out: OutOption,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge a request and its data by your policy, and sign. The file is a secret of the client.

    Example: anofel certifier certify clinic --request request.json --data patients.csv
    --out certificate.json --key-file clinic.key
    """
    from anofel.disk.files import Secret, write_new_file
    from anofel.roles.certificate_files import RequestDocument
    from anofel.roles.certifier.role import Certifier

    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        made = Certifier(found).certify(RequestDocument.read(request), data)
    write_new_file(out, Secret(made.to_bytes() + b"\n"))
    show("Certificate", {"file": str(out), "digest": made.d.hex(), "type": made.dt}, as_json=as_json)


@app.command()
def run(
    directory: Directory,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8480,
    tls_certificate: Annotated[Path | None, typer.Option(help="For https: the chain in PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="For https: its key in PEM.")] = None,
    insecure_plain_http: Annotated[
        bool,
        typer.Option("--insecure-plain-http", help="INSECURE: serve other machines without TLS."),
    ] = False,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer invited clients by HTTP until SIGTERM or Ctrl-C. When it is ready, its address is printed.

    Example: anofel certifier run clinic --host 0.0.0.0 --port 443 --tls-certificate fullchain.pem
    --tls-key privkey.pem --key-file clinic.key
    """
    from anofel.roles.certifier.role import Certifier
    from anofel.roles.certifier.service import serve
    from anofel.serving.listening import Tls, listen

    if (tls_certificate is None) != (tls_key is None):
        raise typer.BadParameter("--tls-certificate and --tls-key go together.", param_hint="--tls-key")
    tls = Tls(tls_certificate, tls_key) if tls_certificate and tls_key else None
    if tls is not None:
        tls.check()
    elif host not in ("127.0.0.1", "::1", "localhost"):
        if not insecure_plain_http:
            raise typer.BadParameter("Other machines are served with TLS only.", param_hint="--host")
        warn_insecure("data and certificates travel in the clear")
    with open_directory(directory, ROLE, key_file, passphrase_file) as found:
        certifier = Certifier(found)
        with listen(host, port) as taken:
            shown = f"[{host}]" if ":" in host else host
            url = f"{'https' if tls else 'http'}://{shown}:{taken.getsockname()[1]}"

            def announce() -> None:
                if as_json:
                    print_json({"url": url, "key": certifier.key.to_bytes().hex()})
                else:
                    typer.echo(f"The certifier answers at {url}")

            serve(certifier, taken, tls, on_ready=announce)
    note("The certifier stopped in good order.")


@app.command()
def status(directory: Directory, as_json: JsonOption = False) -> None:
    """Say what the private log holds, also while the certifier serves; no subject is named.

    Example: anofel certifier status clinic
    """
    from anofel.roles.certifier.role import CertifierOffice

    found: dict[str, Any] = CertifierOffice.open(directory).status()
    if not as_json:
        found["types"] = ", ".join(str(number) for number in found["types"])
    show(f"The certifier in {directory}", found, as_json=as_json)
