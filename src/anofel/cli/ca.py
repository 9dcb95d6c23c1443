"""``anofel ca``: a small certificate authority for demos and tests, labelled as such."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, print_json, print_table, warn_test_authority

if TYPE_CHECKING:
    from anofel.pki.certificates import Purpose

app = typer.Typer(
    no_args_is_help=True,
    help="Certificates: requests and checks for any authority, and a TEST authority for rehearsals.",
)

Authority = Annotated[Path, typer.Argument(help="The authority's directory.", show_default=False)]
PurposeOption = Annotated[
    str,
    typer.Option(help="operator, certifier, aggregator, owner, storage or validator.", show_default=False),
]
NameOption = Annotated[str, typer.Option(help="Whom the certificate is for.", show_default=False)]
OrganisationOption = Annotated[
    str,
    typer.Option(
        help="The organisation (O) behind the name; by default the name itself. "
        "The members of a committee are of different ones."
    ),
]
DaysOption = Annotated[int, typer.Option(help="How long it is valid, from now.", min=1)]
NewDirectory = Annotated[Path, typer.Option(help="A new directory for the files.", show_default=False)]


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="A new directory for the authority.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Make a TEST authority. It checks nobody's identity; never let it vouch for real institutions.

    Example: anofel ca init ca
    """
    from anofel.pki.testing_ca import ROOT_FILE, ROOT_KEY_FILE, TestAuthority

    authority = TestAuthority.create()
    authority.save(directory)
    warn_test_authority()
    files = {ROOT_FILE: "the root certificate, for genesis", ROOT_KEY_FILE: "its key, secret"}
    _show(f"TEST authority in {directory}", directory, authority.root, files, as_json=as_json)


@app.command()
def issue(
    directory: Authority,
    purpose: PurposeOption,
    name: NameOption,
    out: NewDirectory,
    organisation: OrganisationOption = "",
    days: DaysOption = 365,
    as_json: JsonOption = False,
) -> None:
    """Make a key and its certificate in one step.

    Example: anofel ca issue ca --purpose owner --name "Hospital A" --out owner
    """
    from anofel.pki.testing_ca import CERTIFICATE_FILE, KEY_FILE, TestAuthority, write_role

    authority = TestAuthority.open(directory)
    role = authority.issue(_purpose(purpose), name, not_after=_end(days), organisation=organisation)
    write_role(out, role)
    warn_test_authority()
    files = {CERTIFICATE_FILE: "the chain, leaf first", KEY_FILE: "its key, secret"}
    _show(f"Certificate in {out}", out, role.chain[0], files, as_json=as_json)


@app.command()
def request(
    purpose: PurposeOption,
    name: NameOption,
    out: NewDirectory,
    organisation: OrganisationOption = "",
    as_json: JsonOption = False,
) -> None:
    """Make a key that never leaves you, and a request for its certificate.

    Send request.pem to any authority, also a real one; put its answer beside the key as certificate.pem.

    Example: anofel ca request --purpose aggregator --name "University B" --out aggregator
    """
    from anofel.disk.files import Secret, write_new_directory
    from anofel.pki.testing_ca import KEY_FILE, REQUEST_FILE, make_request

    wanted = _purpose(purpose)
    made = make_request(wanted, name, organisation)
    write_new_directory(out, {KEY_FILE: Secret(made.secret), REQUEST_FILE: made.request})
    files = {REQUEST_FILE: "the request, to be signed", KEY_FILE: "the key, secret"}
    if as_json:
        print_json({"directory": str(out), "purpose": wanted.value, "files": files})
        return
    print_table(f"Request in {out}", ["file", "what it is"], [[n, w] for n, w in files.items()])
    note(f"The authority signs it. In a rehearsal: anofel ca sign CA --request {out / REQUEST_FILE}")


@app.command()
def sign(
    directory: Authority,
    request: Annotated[Path, typer.Option(help="The request, in PEM.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="A new file for the chain; certificate.pem beside the request.")
    ] = None,
    days: DaysOption = 365,
    as_json: JsonOption = False,
) -> None:
    """Sign a request for a key that its owner keeps. The name is marked as a TEST name.

    Example: anofel ca sign ca --request aggregator/request.pem
    """
    from anofel.disk.files import read_small_file, write_new_file
    from anofel.pki.certificates import chain_to_pem
    from anofel.pki.testing_ca import CERTIFICATE_FILE, SigningRequest, TestAuthority

    authority = TestAuthority.open(directory)
    wanted = SigningRequest.from_pem(read_small_file(request))
    target = out or request.parent / CERTIFICATE_FILE
    chain = authority.sign_request(wanted, not_after=_end(days))
    write_new_file(target, chain_to_pem(chain))
    warn_test_authority()
    files = {target.name: "the chain, leaf first"}
    _show(f"Certificate in {target}", target.parent, chain[0], files, as_json=as_json)


@app.command()
def check(
    certificate: Annotated[Path, typer.Argument(help="The authority's answer, in PEM.", show_default=False)],
    key: Annotated[Path, typer.Option(help="Your key in PEM.", show_default=False)],
    root: Annotated[Path, typer.Option(help="The authority's root, in PEM.", show_default=False)],
    purpose: PurposeOption,
    name: NameOption,
    as_json: JsonOption = False,
) -> None:
    """Check an authority's answer before anything relies on it: key, chain, purpose and name.

    Example: anofel ca check certificate.pem --key x509/key.pem --root root.pem --purpose owner
    --name Institute
    """
    import time

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    from anofel.disk.files import read_small_file
    from anofel.errors import InvalidInput, InvalidKeyFile
    from anofel.pki.certificates import RoleKey, verify_chain

    role = RoleKey.from_files(certificate, key)
    try:
        roots = [
            found.public_bytes(Encoding.DER)
            for found in x509.load_pem_x509_certificates(read_small_file(root))
        ]
    except ValueError:
        raise InvalidInput(f"{root} holds no certificates in PEM.") from None
    verify_chain(role.chain, roots, _purpose(purpose), int(time.time()))
    subject = x509.load_der_x509_certificate(role.chain[0]).subject
    names = [str(found.value) for found in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [name]:
        raise InvalidKeyFile(f"{certificate} is for {', '.join(names) or 'nobody'}, not for {name}.")
    if as_json:
        print_json({"certificate": str(certificate), "purpose": purpose, "name": name})
    else:
        note(f"{certificate} is a certificate for {name} as {purpose}.")


def _purpose(name: str) -> "Purpose":
    from anofel.pki.certificates import Purpose

    try:
        return Purpose(name)
    except ValueError:
        known = ", ".join(purpose.value for purpose in Purpose)
        raise typer.BadParameter(f"{name!r} is none of {known}.", param_hint="--purpose") from None


def _end(days: int) -> int:
    import time

    from anofel.pki.testing_ca import DAY_SECONDS

    return int(time.time()) + days * DAY_SECONDS


def _show(title: str, directory: Path, der: bytes, files: dict[str, str], *, as_json: bool) -> None:
    described = _describe(der)
    if as_json:
        print_json({"directory": str(directory), "test_authority": True, **described, "files": files})
        return
    print_table(title, ["file", "what it is"], [[n, w] for n, w in files.items()])
    print_table("", ["", ""], [[n.replace("_", " "), str(v)] for n, v in described.items() if v is not None])


def _describe(der: bytes) -> dict[str, Any]:
    import hashlib

    from cryptography import x509

    from anofel.pki.certificates import purposes_of

    certificate = x509.load_der_x509_certificate(der)
    purposes = [purpose.value for purpose in purposes_of(certificate)]
    return {
        "name": certificate.subject.rfc4514_string(),
        "purpose": purposes[0] if purposes else None,
        "certificate_id": hashlib.sha256(der).hexdigest(),
        "not_before": certificate.not_valid_before_utc.isoformat(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
    }
