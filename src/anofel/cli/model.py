"""``anofel model``: a task's models, to and from the format that other tools read."""

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, progress_bar
from anofel.cli.role_options import (
    CaFileOption,
    FurtherBoardOption,
    ProxyOption,
    TrainerOption,
    board_addresses,
    genesis_hash,
    say_what_a_trainer_may,
    show,
)

if TYPE_CHECKING:
    from anofel.models.integer_model import IntegerModel
    from anofel.tasks.schema import TableSchema

app = typer.Typer(no_args_is_help=True, help="Models of tasks: show, fetch, average, export and import them.")

ModelFile = Annotated[
    Path, typer.Argument(help="A model file, such as those in an owner's models/.", show_default=False)
]


TaskOption = Annotated[
    Path | None,
    typer.Option(help="Its task: the task file, or the .json of model fetch.", show_default=False),
]


@app.command("show")
def show_model(
    model: ModelFile, task: TaskOption = None, trainer: TrainerOption = "", as_json: JsonOption = False
) -> None:
    """Say what a model file holds; with its task also features and classes.

    Example: anofel model show run/models/wards-5.model --task wards/task.toml
    """
    from anofel.models.integer_model import IntegerModel

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
        "second_moment": found.second is not None,
        "tensors": tensors,
    }
    if task is None:
        show(f"The model in {model}", content, as_json=as_json)
        if not as_json:
            note("With --task it also names features and classes.")
        return
    say_what_a_trainer_may(trainer)
    show(f"The model in {model}", content | _names(model, task, trainer), as_json=as_json)


def _names(model: Path, task: Path, trainer: str) -> dict[str, Any]:
    """Name what goes into a task's model and what comes out; of a logistic regression with weights."""
    from anofel.learning.classifier import Classifier
    from anofel.tasks.schema import TableSchema

    classifier = Classifier.load(model, task, trainer)
    found, schema = classifier.task, classifier.task.schema
    names: dict[str, Any] = {"task": found.name, "kind": found.model.kind}
    if isinstance(schema, TableSchema):
        outputs = _outputs(schema)
        names |= {
            "label": schema.label,
            "classes" if schema.target is None else "predicts": ", ".join(outputs),
        }
        features: list[dict[str, Any]] = [{"feature": name} for name in schema.feature_names]
        weights = classifier.model.parameters().get("layer0.weight")
        if found.model.kind == "logistic" and weights is not None:
            columns = (
                ("the hazard",) if schema.event else outputs[1:] if len(outputs) > len(weights) else outputs
            )
            for index, feature in enumerate(features):
                feature |= {
                    f"weight for {value}": round(float(weights[row, index]), 4)
                    for row, value in enumerate(columns)
                }
        return names | {"features": features}
    shape = " × ".join(map(str, schema.shape))
    return names | {"images": shape, "classes": ", ".join(schema.label_values)}


def _outputs(schema: "TableSchema") -> tuple[str, ...]:
    """Name what a model of the schema says."""
    from anofel.tasks.schema import NumberTarget, SurvivalTarget

    if isinstance(schema.target, NumberTarget):
        return (f"{schema.label} in {schema.target.unit}",)
    if isinstance(schema.target, SurvivalTarget):
        return tuple(f"hazard up to {cut} {schema.target.unit}" for cut in schema.target.cuts)
    return schema.label_values


@app.command()
def fetch(
    board: Annotated[
        str,
        typer.Argument(
            help="The board's address, or the directory of a role that takes part.", show_default=False
        ),
    ],
    task: Annotated[
        str, typer.Argument(help="The task's name, or the beginning of its id.", show_default=False)
    ],
    genesis: Annotated[
        str,
        typer.Option(
            help="The hash of the board's genesis, or the genesis file.", show_default="a role knows its own"
        ),
    ] = "",
    further: FurtherBoardOption = None,
    iteration: Annotated[
        int | None,
        typer.Option(min=0, help="The model after this iteration; 0: the first.", show_default="the newest"),
    ] = None,
    out: Annotated[Path, typer.Option(help="The directory for the files.")] = Path("."),
    proxy: ProxyOption = "",
    ca_file: CaFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a model, its card and its task from a board, every block of which is verified from genesis on.

    Examples: anofel model fetch client wards

    anofel model fetch https://board.example wards --genesis genesis.bin
    """
    import tempfile

    from anofel.disk.files import replace_file, write_new_file
    from anofel.errors import InvalidInput
    from anofel.light_client.client import LightClient
    from anofel.models.card import digest_of
    from anofel.models.files import card_of_file, model_name, task_name
    from anofel.network.transport import Transport
    from anofel.page.facts import card_of, facts_of
    from anofel.roles.model_reader import ModelReader
    from anofel.stopping import stoppable

    if not out.is_dir():
        raise InvalidInput(f"There is no directory '{out}' for the files.")
    place = _place(board, further or [], genesis, proxy, ca_file)
    transport = Transport(
        place.board,
        place.proxy or None,
        place.ca_file,
        on_wait=lambda words, seconds: note(f"{words}; again in {seconds:.0f} s"),
    )
    note(transport.warning or "")
    with tempfile.TemporaryDirectory(prefix="anofel-board-") as scratch, stoppable():
        view = LightClient(
            Path(scratch) / "board", transport, genesis_hash=genesis_hash(place.genesis), tell=note
        )
        try:
            reader = ModelReader(view, task)
            with progress_bar("Verifying blocks"):
                view.sync(on_block=reader.observe)
            found, height = reader.fetch(iteration), view.state.height
            facts = facts_of(view.state)
        finally:
            view.close()
    model_file, task_file = (
        out / model_name(found.task.name, found.iteration),
        out / task_name(found.task.name),
    )
    write_new_file(model_file, found.model.to_bytes())
    study = facts.study(found.task_id.hex())
    assert study is not None, "the model is one of this board"
    digest = digest_of(found.model)
    card = card_of(facts, study, model=digest, iteration=found.iteration)
    replace_file(card_of_file(model_file), card.encode())
    if not task_file.is_file() or task_file.read_bytes() != found.task.to_bytes():
        write_new_file(task_file, found.task.to_bytes())
    content = {
        "model": str(model_file),
        "task": str(task_file),
        "card": str(card_of_file(model_file)),
        "id": found.task_id.hex(),
        "iteration": found.iteration,
        "newest": found.newest,
        "digest": digest,
        "verified_blocks": height,
    }
    show("Fetched", content, as_json=as_json)
    if not as_json:
        note(f"Use it: anofel predict {quote(str(model_file))} --task {quote(str(task_file))} --rows FILE")


@dataclass(frozen=True)
class _Place:
    """Which board is read, and how it is reached."""

    board: list[str]
    genesis: str
    proxy: str
    ca_file: Path | None


def _place(board: str, further: list[str], genesis: str, proxy: str, ca_file: Path | None) -> _Place:
    """Take from a role's directory what was not said, or refuse an address without a genesis."""
    from anofel.disk.sections import read_toml
    from anofel.errors import WrongUsage
    from anofel.roles.directory import CONFIG, RoleConfig

    if (Path(board) / CONFIG).is_file():
        known = read_toml(Path(board) / CONFIG, RoleConfig)
        roots = ca_file or (Path(known.ca_file) if known.ca_file else None)
        own = [known.board] if isinstance(known.board, str) else known.board
        return _Place(
            board_addresses([*own, *further]), genesis or known.genesis, proxy or known.proxy, roots
        )
    if not genesis:
        raise WrongUsage(
            f"'{board}' is not the directory of a role, so --genesis must say which board it is."
        )
    return _Place(board_addresses([board, *further]), genesis, proxy, ca_file)


@app.command()
def average(
    models: Annotated[
        list[Path], typer.Argument(help="Two or more model files of one task.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="A new file.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Average a task's models: less noise than in the last one, and no more ε.

    Example: anofel model average owner/models/digits-5[1-9].model --out digits.model
    """
    from anofel.disk.files import read_each, write_new_file
    from anofel.models.integer_model import IntegerModel

    made = IntegerModel.average(read_each(models, IntegerModel.load))
    write_new_file(out, made.to_bytes())
    show("Averaged", {"models": len(models), "out": str(out), "digest": made.digest().hex()}, as_json=as_json)


@app.command()
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="A new file.", show_default=False)],
    file_format: Annotated[
        str, typer.Option("--format", help="safetensors, or onnx: with the schema's rules, needs --task.")
    ] = "safetensors",
    task: TaskOption = None,
    trainer: TrainerOption = "",
    double: Annotated[
        bool, typer.Option("--double", help="64-bit numbers instead of 32-bit ones: more digits survive.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model as safetensors, for PyTorch and others, or as ONNX, which others run as it stands.

    Its card goes with it: the one beside the model, or one made of --task.

    Examples: anofel model export run/models/digits-5.model --out lenet5.safetensors

    anofel model export run/models/wards-5.model --task wards/task.toml --format onnx --out wards.onnx
    """
    from anofel.disk.files import replace_file, write_new_file
    from anofel.errors import WrongUsage
    from anofel.models.files import card_of_file
    from anofel.models.integer_model import IntegerModel

    found = IntegerModel.load(model)
    if file_format == "safetensors":
        from anofel.models.exchange import to_safetensors

        data = to_safetensors(found, double=double)
    elif file_format != "onnx":
        raise WrongUsage(f"There is no format '{file_format}'; use safetensors or onnx.")
    elif task is None:
        raise WrongUsage("--format onnx needs --task, whose schema becomes part of the file.")
    elif double:
        raise WrongUsage("--double is for safetensors; ONNX has the precision of the network.")
    else:
        from anofel.learning.classifier import Classifier
        from anofel.learning.onnx_export import to_onnx

        say_what_a_trainer_may(trainer)
        data = to_onnx(Classifier.load(model, task, trainer))
    card = _card(model, found, task)
    write_new_file(out, data)
    content: dict[str, Any] = {"file": str(out), "parameters": found.layout.size}
    if card is None:
        note("It has no card: none stands beside the model, and --task does not say what the model is of.")
    else:
        replace_file(card_of_file(out), card.encode())
        content["card"] = str(card_of_file(out))
    show("Exported", content, as_json=as_json)


def _card(path: Path, model: "IntegerModel", task: Path | None) -> str | None:
    """Give the card beside a model if it is that model's; otherwise make one, if the task is known."""
    from anofel.disk.files import read_small_file
    from anofel.models.card import digest_of, is_card_of, model_card
    from anofel.models.files import card_of_file
    from anofel.tasks.task import Task

    beside, digest = card_of_file(path), digest_of(model)
    if beside.is_file():
        text = read_small_file(beside).decode(errors="replace")
        if is_card_of(text, digest):
            return text
    return None if task is None else model_card(Task.load(task), digest=digest)


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
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", help="For the rules integer-adam and integer-yogi, which keep two."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn safetensors into a model file; says whether it is, bit by bit, the one that was exported.

    Example: anofel model import lenet5.safetensors --scale-bits 16 --out first.model
    """
    from anofel.disk.files import write_new_file
    from anofel.models.exchange import from_safetensors

    made = from_safetensors(tensors, scale_bits, companions=2 if adaptive else int(momentum))
    write_new_file(out, made.model.to_bytes())
    content = {
        "file": str(out),
        "digest": made.model.digest().hex(),
        "parameters": made.model.layout.size,
        "as_exported": made.is_same,
    }
    show("Imported", content, as_json=as_json)
