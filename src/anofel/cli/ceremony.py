"""``anofel setup ceremony``: keys that several people make together."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli import ceremony_powers
from anofel.cli.output import JsonOption, note, print_json, print_table, print_text, progress_bar

if TYPE_CHECKING:
    from anofel.proofs.ceremony.receipts import ContributionReceipt
    from anofel.proofs.ceremony.transcript import CeremonyTranscript
    from anofel.proofs.ceremony.verified import Verdict
    from anofel.roles.ceremony.visit import Visit

app = typer.Typer(
    no_args_is_help=True, help="Keys that several people make together, so that nobody can forge."
)
app.add_typer(ceremony_powers.app, name="powers")

Directory = Annotated[Path, typer.Argument(help="The directory of a ceremony.", show_default=False)]
NewDirectory = Annotated[Path, typer.Option(help="A new directory.")]
OtherPowers = Annotated[
    str | None,
    typer.Option(
        "--other-powers-of-tau",
        metavar="BLAKE2B",
        help="Take powers of tau with this hash, not the public ones: only if you trust who made them.",
    ),
]


@app.command()
def new(
    ptau: Annotated[Path, typer.Option(help="The powers of tau: a .ptau file.", show_default=False)],
    out: NewDirectory = Path("ceremony"),
    beacon_source: Annotated[
        str, typer.Option(help="Where the beacon will come from, to be agreed before anybody contributes.")
    ] = "",
    statement: Annotated[
        list[str] | None, typer.Option(help="For a rehearsal: only this statement; may be repeated.")
    ] = None,
    other_powers: OtherPowers = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a ceremony: make the first keys from public powers of tau. Nothing here is secret.

    Example: anofel setup ceremony new --ptau powersOfTau28_hez_final_13.ptau --out ceremony
    --beacon-source "drand round 5000000"
    """
    from anofel.disk.files import FileExists, write_new_directory
    from anofel.errors import InvalidInput
    from anofel.proofs.ceremony.transcript import new_ceremony, read_agreement
    from anofel.proofs.keys import STATEMENTS

    if out.exists():
        raise FileExists(f"{out} exists already; it is not overwritten.")
    if unknown := set(statement or []) - set(STATEMENTS):
        raise InvalidInput(
            f"there is no statement named {min(unknown)!r}; there are {', '.join(STATEMENTS)}."
        )
    with progress_bar("Making the first keys") as progress:
        files = new_ceremony(
            ptau,
            other_powers=_digest(other_powers),
            statements=[name for name in STATEMENTS if name in (statement or STATEMENTS)],
            beacon_source=beacon_source,
            on_progress=progress,
        )
    write_new_directory(out, dict(files))
    agreement = read_agreement(files)
    shown = {
        "directory": str(out),
        "powers_of_tau": agreement.powers,
        "statements": list(agreement.statements),
        "beacon_source": beacon_source,
    }
    if as_json:
        print_json(shown)
        return
    _show(f"A new ceremony in {out}", shown)
    note("Give the directory to the first contributor: anofel setup ceremony contribute IN OUT --name NAME")
    if not beacon_source:
        note(
            "No --beacon-source: agree with everybody where the beacon will come from before they contribute."
        )


@app.command()
def contribute(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="The ceremony so far: a directory, or a drop's URL.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new directory for it.", show_default=False)],
    name: Annotated[str, typer.Option(help="Who contributes, for people to read.", show_default=False)],
    receipt: Annotated[
        Path | None, typer.Option(help="A new file for the receipt; by default OUT with .receipt.json.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="The certificate to sign the receipt with.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key.")] = None,
    patience: Annotated[float, typer.Option(help="At a drop: seconds to wait for the turn.", min=1)] = 3600.0,
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    other_powers: OtherPowers = None,
    as_json: JsonOption = False,
) -> None:
    """Verify a ceremony and contribute to it. Your secret is drawn, used and forgotten within this command.

    Example: anofel setup ceremony contribute ceremony ceremony-1 --name "Clinic A"
    --certificate certificate.pem --key key.pem
    """
    from anofel.disk.files import FileExists, write_new_file

    kept = receipt or out.with_name(f"{out.name}.receipt.json")
    for path in (out, kept):
        if path.exists():
            raise FileExists(f"{path} exists already; it is not overwritten.")
    role = _role(certificate, key)
    before, visit = _begin(source, _digest(other_powers), patience, ca_file, role)
    note(f"Verified: {before.num_people} people contributed before you.")
    started = time.monotonic()
    with progress_bar("Contributing") as progress:
        after, locked = before.contribute(name, on_progress=progress)
    made = _receipt(after, name, role)
    after = after.with_receipt(made)
    after.write(out)
    write_new_file(kept, made.to_bytes())
    if visit is not None:
        visit.deliver(after)
    shown = {
        "directory": str(out),
        "receipt": str(kept),
        "signed_by": made.signer,
        "number": made.number,
        "contributions": made.contributions,
        "kept_out_of_swap": locked,
        "seconds": round(time.monotonic() - started, 1),
    }
    if as_json:
        print_json(shown)
        return
    _show(f"Contribution {made.number}, {name}", shown)
    _say_gone(locked)
    note(f"Keep {kept}: it shows later that your contribution is in.")
    note(f"The drop has taken it; {out} is a copy." if visit else f"Hand {out} to the next one.")


@app.command()
def verify(
    directory: Annotated[
        Path, typer.Argument(help="The directory of a ceremony, or of keys from one.", show_default=False)
    ],
    mine: Annotated[
        Path | None, typer.Option(help="Your receipt: check that your contribution is in.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Your certificate: check that you signed the receipt.")
    ] = None,
    root: Annotated[
        list[Path] | None, typer.Option(help="A certificate root in PEM that receipts must lead to.")
    ] = None,
    other_powers: OtherPowers = None,
    as_json: JsonOption = False,
) -> None:
    """Verify everything, from the powers of tau to the last point, and say in how many hands trust lies.

    What was verified is remembered on this machine, so that boards with these keys can be used.

    Example: anofel setup ceremony verify keys --mine ceremony-1.receipt.json
    """
    from anofel.proofs.ceremony.finished import conclude, verify_keys
    from anofel.proofs.ceremony.receipts import ContributionReceipt
    from anofel.proofs.ceremony.transcript import CeremonyTranscript
    from anofel.proofs.keys import CEREMONY, MANIFEST, STATEMENTS, KeyDirectory

    has_keys, other = (directory / MANIFEST).exists(), _digest(other_powers)
    verdict = None
    with progress_bar("Verifying") as progress:
        place = directory / CEREMONY if has_keys else directory
        found = CeremonyTranscript.open(place, other_powers=other, on_progress=progress)
        if has_keys:
            verdict = verify_keys(KeyDirectory.open(directory), other_powers=other, on_progress=progress)
        elif found.has_ended and found.agreement.statements == STATEMENTS:
            verdict = conclude(found, on_progress=progress)
        elif found.has_ended:
            found.check_end()
    checked = [ContributionReceipt.read(mine)] if mine else []
    for receipt in checked:
        receipt.verify(found.hashes)
    _check_signers(found, checked, certificate, root or [])
    shown = _report(found, verdict)
    if as_json:
        print_json(shown)
        return
    rows = [
        [str(n["number"]), n["name"], n["signed_by"] or "–", n["hash"][:32] + "…"]
        for n in shown["contributions"]
    ]
    print_table("Contributions", ["", "name", "receipt signed by", f"hash ({found.keys[0].statement})"], rows)
    _show("The ceremony", {key: value for key, value in shown.items() if key != "contributions"})
    for sentence in _trust(found, verdict):
        print_text(sentence)
    for receipt in checked:
        print_text(f"Your contribution, number {receipt.number} as {receipt.name!r}, is in.")


@app.command()
def finish(
    directory: Directory,
    beacon: Annotated[
        str,
        typer.Option(help="The public random value that was agreed on, in hexadecimal.", show_default=False),
    ],
    out: NewDirectory = Path("keys"),
    other_powers: OtherPowers = None,
    as_json: JsonOption = False,
) -> None:
    """End a ceremony with its beacon and make the keys, with the transcript beside them.

    Example: anofel setup ceremony finish ceremony-3 --beacon 5fb2…c1 --out keys
    """
    from anofel.disk.files import FileExists
    from anofel.errors import WrongUsage
    from anofel.proofs.ceremony.finished import finish as finish_ceremony
    from anofel.proofs.ceremony.transcript import CeremonyTranscript
    from anofel.proofs.keys import STATEMENTS

    if out.exists():
        raise FileExists(f"{out} exists already; it is not overwritten.")
    try:
        value = bytes.fromhex(beacon)
    except ValueError:
        raise WrongUsage("--beacon is not hexadecimal.") from None
    with progress_bar("Verifying the ceremony") as progress:
        found = CeremonyTranscript.open(directory, other_powers=_digest(other_powers), on_progress=progress)
        if found.agreement.statements == STATEMENTS:
            keys, ended = finish_ceremony(found, value, out, on_progress=progress)
            ids = {name: keys.verification[name].key_id.hex() for name in STATEMENTS}
        else:
            ended, ids = found.end(value), {}
            ended.write(out)
    shown = {
        "directory": str(out),
        "transcript": ended.digest.hex(),
        "people": ended.num_people,
        "beacon": ended.agreement.beacon,
        "verification_key_ids": ids,
    }
    if as_json:
        print_json(shown)
        return
    _show(f"The ceremony has ended; {'keys' if ids else 'its last state is'} in {out}", shown)
    if not ids:
        note("This was a rehearsal for some statements; it makes no keys for a board.")
    note("Publish the directory and the transcript digest; everybody verifies: anofel setup ceremony verify")


@app.command()
def serve(
    directory: Directory,
    drop: Annotated[
        Path, typer.Option(help="Where the states are kept; an old one goes on.", show_default=False)
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8480,
    turn_seconds: Annotated[float, typer.Option(help="How long a contributor has.", min=1)] = 1800.0,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            help="Let only institutions with a certificate under this root contribute, once each; PEM; may "
            "be repeated."
        ),
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="For https: the chain in PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="For https: its key in PEM.")] = None,
    other_powers: OtherPowers = None,
    as_json: JsonOption = False,
) -> None:
    """Let contributors come by HTTP, one at a time, until SIGTERM or Ctrl-C. Nothing is trusted to it.

    Example: anofel setup ceremony serve ceremony --drop drop --host 0.0.0.0
    """
    from anofel.roles.ceremony.drop import Drop
    from anofel.roles.ceremony.service import serve as serve_drop
    from anofel.serving.listening import Tls, listen

    if (tls_certificate is None) != (tls_key is None):
        raise typer.BadParameter("--tls-certificate and --tls-key go together.", param_hint="--tls-key")
    tls = Tls(tls_certificate, tls_key) if tls_certificate and tls_key else None
    if tls is not None:
        tls.check()
    with progress_bar("Verifying the ceremony so far") as progress:
        found = Drop.open(
            drop,
            directory,
            other_powers=_digest(other_powers),
            roots=_certificates(root or []),
            turn_seconds=turn_seconds,
            on_progress=progress,
        )
    with listen(host, port) as taken:
        shown = f"[{host}]" if ":" in host else host
        url = f"{'https' if tls else 'http'}://{shown}:{taken.getsockname()[1]}"

        def announce() -> None:
            if as_json:
                print_json({"url": url, "contributions": len(found.state.hashes)})
            else:
                typer.echo(f"Contributors come to {url}; there are {len(found.state.hashes)} contributions.")

        serve_drop(found, taken, tls, on_ready=announce)
    note(f"The newest state is in {drop}." if found.state.hashes else "Nobody has contributed.")


@app.command()
def mirror(
    url: Annotated[str, typer.Argument(help="A drop's URL.", show_default=False)],
    out: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where copies are kept, new or not.", show_default=False)
    ],
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    other_powers: OtherPowers = None,
    as_json: JsonOption = False,
) -> None:
    """Copy what a drop shows, verify it, and refuse it if it takes anything back that a copy here has.

    Run it as often as you like. The directory can be served as a drop of its own if this one is lost.

    Example: anofel setup ceremony mirror https://drop.example:8480 copies
    """
    from anofel.network.transport import Transport
    from anofel.roles.ceremony.mirror import Mirror

    with progress_bar("Verifying the ceremony") as progress:
        kept = Mirror(out, other_powers=_digest(other_powers), on_progress=progress)
        added = kept.update(Transport(url, ca_file=ca_file))
    shown = {
        "directory": str(kept.newest),
        "contributions": len(kept.state.hashes),
        "new_contributions": added,
        "ended": kept.state.has_ended,
        "transcript": kept.state.digest.hex(),
    }
    if as_json:
        print_json(shown)
        return
    _show("The ceremony so far", shown)


def _begin(
    source: str, other: bytes | None, patience: float, ca_file: Path | None, role: Any
) -> "tuple[CeremonyTranscript, Visit | None]":
    """Read or fetch the ceremony so far and verify it; at a drop, wait for the turn first."""
    from anofel.proofs.ceremony.transcript import CeremonyTranscript

    visit = None
    if source.startswith(("http://", "https://")):
        from anofel.network.transport import Transport
        from anofel.roles.ceremony.visit import Visit

        visit = Visit(Transport(source, ca_file=ca_file), role)
        seconds = visit.wait(patience, note)
        note(f"It is your turn, for {seconds:.0f} seconds.")
    with progress_bar("Verifying the ceremony so far") as progress:
        if visit is not None:
            return visit.fetch(other_powers=other, on_progress=progress), visit
        return CeremonyTranscript.open(Path(source), other_powers=other, on_progress=progress), None


def _digest(text: str | None) -> bytes | None:
    from anofel.errors import WrongUsage

    if text is None:
        return None
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != 64:
        raise WrongUsage("--other-powers-of-tau takes the BLAKE2b-512 of the file, 128 hexadecimal digits.")
    return digest


def _role(certificate: Path | None, key: Path | None) -> Any:
    from anofel.errors import WrongUsage
    from anofel.pki.certificates import RoleKey

    if (certificate is None) != (key is None):
        raise WrongUsage("--certificate and --key belong together.")
    return None if certificate is None or key is None else RoleKey.from_files(certificate, key)


def _receipt(after: "CeremonyTranscript", name: str, role: Any) -> "ContributionReceipt":
    from anofel.proofs.ceremony.receipts import ContributionReceipt

    return ContributionReceipt.make(
        name=name,
        number=len(after.hashes),
        powers=after.powers_digest,
        beacon_source=after.agreement.beacon_source,
        hashes=after.hashes[-1],
        role=role,
    )


def _check_signers(
    found: "CeremonyTranscript",
    mine: "list[ContributionReceipt]",
    certificate: Path | None,
    roots: list[Path],
) -> None:
    from anofel.errors import WrongUsage

    if certificate is not None:
        if not mine:
            raise WrongUsage("--certificate needs --mine, the receipt that it should have signed.")
        for receipt in mine:
            receipt.expect_signer(_certificates([certificate])[0])
    trusted = _certificates(roots)
    for receipt in (*found.receipts, *mine) if trusted else ():
        receipt.verify_signer(trusted)


def _certificates(paths: list[Path]) -> list[bytes]:
    """Return the certificates of files in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    from anofel.disk.files import read_each, read_small_file
    from anofel.errors import InvalidInput

    def read(path: Path) -> list[x509.Certificate]:
        data = read_small_file(path)
        try:
            return x509.load_pem_x509_certificates(data)
        except ValueError:
            raise InvalidInput(f"{path} holds no certificates in PEM.") from None

    return [made.public_bytes(Encoding.DER) for found in read_each(paths, read) for made in found]


def _report(found: "CeremonyTranscript", verdict: "Verdict | None") -> dict[str, Any]:
    signers = {receipt.number: receipt.signer for receipt in found.receipts}
    contributions = [
        {
            "number": place,
            "name": name,
            "signed_by": signers.get(place, ""),
            "hash": next(iter(hashes.values())).hex(),
        }
        for place, (name, hashes) in enumerate(zip(found.names, found.hashes, strict=True), start=1)
    ]
    return {
        "contributions": contributions,
        "people": found.num_people,
        "signed_receipts": sum(receipt.is_signed for receipt in found.receipts),
        "ended": found.has_ended,
        "statements": list(found.agreement.statements),
        "powers_of_tau": found.agreement.powers,
        "powers_are_public": _is_public(found),
        "beacon_source": found.agreement.beacon_source,
        "beacon": found.agreement.beacon,
        "transcript": found.digest.hex(),
        "verified_here": verdict is not None,
        "key_ids": verdict.pins if verdict else {},
    }


def _is_public(found: "CeremonyTranscript") -> bool:
    from anofel.proofs.ceremony.transcript import PUBLIC_POWERS

    return found.powers_digest == PUBLIC_POWERS


def _trust(found: "CeremonyTranscript", verdict: "Verdict | None") -> list[str]:
    from anofel.proofs.ceremony.transcript import PUBLIC_POWERS_PEOPLE

    people = found.num_people
    said = [
        f"Forging takes the secrets of all {people} contributors; one who forgot its own is enough."
        if people
        else "Nobody has contributed yet."
    ]
    if _is_public(found):
        said.append(
            f"The same holds for the {PUBLIC_POWERS_PEOPLE} contributors to the public powers of tau."
        )
    else:
        said.append("The powers of tau are NOT the public ones: whoever made them alone could forge.")
    if not found.has_ended:
        said.append("The ceremony has not ended: these are no keys yet.")
    elif verdict is not None:
        said.append(f"Everything holds. Compare the transcript digest with others: {verdict.transcript}")
    else:
        said.append("Everything holds; it is a rehearsal for some statements and makes no keys for a board.")
    return said


def _say_gone(locked: bool) -> None:
    swap = (
        "it was kept out of the swap file" if locked else "the system did NOT promise to keep it out of swap"
    )
    note(
        f"Your secret was drawn from the operating system, used and wiped; it was never written, and {swap}."
    )


def _show(title: str, values: dict[str, Any]) -> None:
    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, dict):
            return "\n".join(f"{name} {item}" for name, item in value.items()) or "–"
        return ", ".join(value) if isinstance(value, list) else str(value) or "–"

    print_table(title, ["", ""], [[name.replace("_", " "), text(value)] for name, value in values.items()])
