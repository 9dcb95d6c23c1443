"""``anofel model``: a task's models, to and from the format that other tools read."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.output import JsonOption
from anofel.cli.role_options import show

app = typer.Typer(no_args_is_help=True, help="Models of tasks: show them, export and import safetensors.")

ModelFile = Annotated[
    Path, typer.Argument(help="A model file, such as those in an owner's models/.", show_default=False)
]


@app.command("show")
def show_model(model: ModelFile, as_json: JsonOption = False) -> None:
    """Say what a model file holds.

    Example: anofel model show owner/models/3f….model
    """
    from anofel.learning.integer_model import IntegerModel

    found = IntegerModel.load(model)
    tensors = [
        {"tensor": name, "shape": " × ".join(map(str, shape)) or "1"}
        for name, shape in zip(found.layout.names, found.layout.shapes, strict=True)
    ]
    content: dict[str, Any] = {
        "digest": found.digest().hex(),
        "parameters": found.layout.size,
        "scale_bits": found.scale_bits,
        "momentum": found.velocity is not None,
        "tensors": tensors,
    }
    show(f"The model in {model}", content, as_json=as_json)


@app.command()
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="A new .safetensors file.", show_default=False)],
    double: Annotated[
        bool, typer.Option("--double", help="64-bit numbers instead of 32-bit ones: more digits survive.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model as safetensors, for PyTorch and others. Needs no PyTorch.

    Example: anofel model export owner/models/3f….model --out lenet5.safetensors
    """
    from anofel.files import write_new_file
    from anofel.learning.exchange import to_safetensors
    from anofel.learning.integer_model import IntegerModel

    found = IntegerModel.load(model)
    write_new_file(out, to_safetensors(found, double=double))
    show("Exported", {"file": str(out), "parameters": found.layout.size}, as_json=as_json)


@app.command("import")
def import_model(
    tensors: Annotated[Path, typer.Argument(help="A .safetensors file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="A new model file.", show_default=False)],
    scale_bits: Annotated[
        int | None,
        typer.Option(min=0, max=40, help="f: integers at scale 2^f; of an exported model its own."),
    ] = None,
    momentum: Annotated[
        bool, typer.Option("--momentum", help="For a task whose rule has momentum; it starts at zero.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn safetensors into a model file; says whether it is, bit by bit, the one that was exported.

    Example: anofel model import lenet5.safetensors --scale-bits 16 --out first.model
    """
    from anofel.files import write_new_file
    from anofel.learning.exchange import from_safetensors

    made = from_safetensors(tensors, scale_bits, momentum=momentum)
    write_new_file(out, made.model.to_bytes())
    content = {
        "file": str(out),
        "digest": made.model.digest().hex(),
        "parameters": made.model.layout.size,
        "as_exported": made.is_same,
    }
    show("Imported", content, as_json=as_json)
