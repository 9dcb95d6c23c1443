"""``anofel setup``: make, inspect and export proof keys."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli import ceremony
from anofel.cli.output import JsonOption, note, print_json, print_table, progress_bar, warn_insecure
from anofel.cli.role_options import in_words

if TYPE_CHECKING:
    from anofel.proofs.keys import KeyDirectory

app = typer.Typer(
    no_args_is_help=True, help="Proof keys: make them in a ceremony or for development, inspect, export."
)
app.add_typer(ceremony.app, name="ceremony")

Directory = Annotated[Path, typer.Argument(help="A directory of keys.", show_default=False)]


@app.command()
def dev(
    directory: Annotated[Path, typer.Argument(help="A new directory for the keys.")] = Path("keys"),
    as_json: JsonOption = False,
) -> None:
    """Make keys for development, in seconds. They are insecure: whoever made them can prove anything.

    Example: anofel setup dev keys
    """
    from anofel.proofs.keys import INSECURE_ORIGIN, STATEMENTS, make_insecure_development_keys

    with progress_bar("Making keys") as progress:
        keys = make_insecure_development_keys(
            directory, on_progress=lambda name: progress(STATEMENTS.index(name), len(STATEMENTS))
        )
    warn_insecure(INSECURE_ORIGIN)
    ids = {name: keys.verification[name].key_id.hex() for name in STATEMENTS}
    if as_json:
        print_json({"directory": str(directory), "origin": keys.origin, "verification_key_ids": ids})
        return
    print_table(
        f"Keys in {directory}", ["statement", "verification key id"], [[n, i] for n, i in ids.items()]
    )


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A directory of keys or one key file.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Say what a key file or every key of a directory is, and refuse what cannot be used.

    Example: anofel setup inspect keys/submission.verification.key
    """
    from anofel.proofs.keys import INSECURE_ORIGIN, KeyDirectory

    if path.is_dir():
        directory = KeyDirectory.open(path)
        pinned = [*directory.proving.values(), *directory.verification.values()]
        described = [_describe(file.path, file.key_id) for file in pinned]
        for key in described:
            key["origin"] = directory.origin
            key["powers_of_tau"] = _powers(directory)
    else:
        described = [_describe(path, None)]
    if any(key["origin"] == INSECURE_ORIGIN for key in described):
        warn_insecure(INSECURE_ORIGIN)
    if as_json:
        print_json(described)
        return
    for key in described:
        rows = [[name.replace("_", " "), in_words(value)] for name, value in key.items() if name != "file"]
        print_table(key["file"], ["", ""], rows)


@app.command()
def export(
    directory: Directory,
    statement: Annotated[str, typer.Argument(help="ownership, registration or submission.")],
    out: Annotated[Path, typer.Option(help="A new directory for the exported files.")] = Path("export"),
    proof: Annotated[Path | None, typer.Option(help="A proof of 128 bytes to export as proof.json.")] = None,
    inputs: Annotated[
        Path | None, typer.Option(help="Its public inputs, 32 bytes each, to export as public.json.")
    ] = None,
    example: Annotated[
        bool,
        typer.Option("--example", help="Add a proof, public inputs and a witness made up for the purpose."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Export a verification key for snarkjs and the constraint system as an iden3 .r1cs file.

    Example: anofel setup export keys submission --example --out export
    """
    from anofel.proofs.export import export_statement
    from anofel.proofs.keys import INSECURE_ORIGIN, KeyDirectory

    keys = KeyDirectory.open(directory)
    if keys.is_insecure:
        warn_insecure(INSECURE_ORIGIN)
    files = export_statement(keys, statement, out, proof=proof, inputs=inputs, example=example)
    if as_json:
        print_json({"directory": str(out), "files": files})
        return
    print_table(f"Exported to {out}", ["file", "what it is"], [[n, w] for n, w in files.items()])
    if {"proof.json", "public.json"} <= files.keys():
        note(f"To check it: cd {out} && snarkjs groth16 verify verification_key.json public.json proof.json")


def _powers(directory: "KeyDirectory") -> str:
    """Name the powers of tau of a ceremony, and whether they are the public ones."""
    from anofel.proofs.ceremony.transcript import PUBLIC_POWERS
    from anofel.proofs.ceremony.verified import recall

    verdict = recall(directory.transcript) if directory.is_verified else None
    if verdict is None:
        return ""
    return verdict.powers + (
        " (public)" if verdict.powers == PUBLIC_POWERS.hex() else " (NOT the public ones)"
    )


def _describe(path: Path, pinned: bytes | None) -> dict[str, Any]:
    """Load a key as a user would, so that what cannot be used is refused here too."""
    from anofel._core import keys as core
    from anofel.proofs import statements as proofs
    from anofel.proofs.keys import read_key_file

    data = read_key_file(path)
    found = core.describe(data)
    name = found.statement.capitalize()
    if found.role == "proving":
        getattr(proofs, f"{name}Prover").from_bytes(data, pinned or found.key_id, threads=1)
    else:
        getattr(proofs, f"{name}Verifier").from_bytes(data, threads=1)
    shape = core.shape(found.statement)
    return {
        "file": str(path),
        "statement": found.statement,
        "role": found.role,
        "origin": found.origin,
        "transcript": found.transcript.hex() if any(found.transcript) else "",
        "key_id": found.key_id.hex(),
        "id_is_pinned": pinned is not None,
        "bytes": len(data),
        "constraints": shape.constraints,
        "variables": shape.variables,
        "public_inputs": ", ".join(shape.public_inputs),
        "shape": found.shape.hex(),
    }
