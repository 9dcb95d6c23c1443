"""``anofel setup ceremony powers``: powers of tau of our own, where the public file cannot be had."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, print_json, print_table

if TYPE_CHECKING:
    from anofel._core.ceremony import OwnPowers

app = typer.Typer(
    no_args_is_help=True, help="Phase 1 of our own, for those who cannot get the public powers of tau."
)

State = Annotated[Path, typer.Argument(metavar="IN", help="The powers so far.", show_default=False)]
NewState = Annotated[Path, typer.Argument(metavar="OUT", help="A new file for them.", show_default=False)]


@app.command()
def new(
    out: NewState,
    power: Annotated[int, typer.Option(help="For 2^power rows; the statements need 13.", min=2, max=13)] = 13,
    as_json: JsonOption = False,
) -> None:
    """Begin with powers of one; every contributor then multiplies them by powers of a secret.

    Example: anofel setup ceremony powers new powers-0.ptau
    """
    from anofel._core.ceremony import OwnPowers

    _write(out, OwnPowers.start(power), as_json=as_json)


@app.command()
def contribute(
    source: State,
    out: NewState,
    name: Annotated[str, typer.Option(help="Who contributes, for people to read.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Verify the powers so far and contribute. Takes about ten seconds for 2^13; the secrets are wiped.

    Example: anofel setup ceremony powers contribute powers-0.ptau powers-1.ptau --name "Clinic A"
    """
    _refuse_existing(out)
    made = _read(source).contribute(name)
    _write(out, made.data, as_json=as_json)
    swap = "kept out of the swap file" if made.was_locked else "NOT promised to be kept out of the swap file"
    note(f"Your secrets were drawn from the operating system, used, wiped, and {swap}.")


@app.command()
def verify(
    source: State,
    beacon: Annotated[
        str | None, typer.Option(help="The announced beacon: check also that they ended with it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Verify every point and every contribution.

    Example: anofel setup ceremony powers verify powers.ptau --beacon 5fb2…c1
    """
    found = _read(source)
    if beacon is not None:
        found.check_end(_beacon(beacon))
    _show(source, source.read_bytes(), found, as_json=as_json)


@app.command()
def finish(
    source: State,
    out: NewState,
    beacon: Annotated[str, typer.Option(help="The announced public random value, in hexadecimal.")],
    as_json: JsonOption = False,
) -> None:
    """End with the beacon that was announced before anybody contributed.

    Example: anofel setup ceremony powers finish powers-3.ptau powers.ptau --beacon 5fb2…c1
    """
    from anofel._core.ceremony import OwnPowers

    _refuse_existing(out)
    data = _read(source).add_beacon(_beacon(beacon))
    OwnPowers.from_bytes(data).check_end(_beacon(beacon))
    _write(out, data, as_json=as_json)
    digest = hashlib.blake2b(data).hexdigest()
    note(f"Use them with: anofel setup ceremony new --ptau {out} --other-powers-of-tau {digest}")


def _beacon(text: str) -> bytes:
    from anofel.errors import WrongUsage

    try:
        return bytes.fromhex(text)
    except ValueError:
        raise WrongUsage("--beacon is not hexadecimal.") from None


def _read(path: Path) -> "OwnPowers":
    from anofel._core.ceremony import OwnPowers
    from anofel.proofs.ceremony.transcript import read_file

    return OwnPowers.from_bytes(read_file(path))


def _refuse_existing(path: Path) -> None:
    from anofel.disk.files import FileExists

    if path.exists():
        raise FileExists(f"{path} exists already; it is not overwritten.")


def _write(path: Path, data: bytes, *, as_json: bool) -> None:
    from anofel._core.ceremony import OwnPowers
    from anofel.disk.files import write_new_file

    write_new_file(path, data)
    _show(path, data, OwnPowers.from_bytes(data), as_json=as_json)


def _show(path: Path, data: bytes, found: "OwnPowers", *, as_json: bool) -> None:
    from anofel.proofs.ceremony.transcript import printable

    shown: dict[str, Any] = {
        "file": str(path),
        "power": found.power,
        "blake2b": hashlib.blake2b(data).hexdigest(),
        "contributions": [
            {"name": printable(made.name), "is_beacon": made.is_beacon, "hash": made.hash.hex()}
            for made in found.contributions
        ],
    }
    if as_json:
        print_json(shown)
        return
    rows = [[made["name"], made["hash"]] for made in shown["contributions"]]
    print_table(f"Powers of tau in {path}, for 2^{found.power} rows", ["name", "hash"], rows)
    print_table("", ["", ""], [["BLAKE2b-512", shown["blake2b"]]])
