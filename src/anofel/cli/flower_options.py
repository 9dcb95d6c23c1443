"""The options that name a Flower app, for every command that trains with one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.output import note

if TYPE_CHECKING:
    from anofel.learning.flower.settings import FlowerApp
    from anofel.roles.directory import Setting

_PANEL = "A Flower app"

FlowerAppOption = Annotated[
    Path | None,
    typer.Option(
        help="The app's directory, with its pyproject.toml; code that you trust with your data.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
FlowerPythonOption = Annotated[
    Path | None,
    typer.Option(
        help="The Python of the app's own environment, where flwr is installed.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
FlowerDataOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="A file or directory that the app may read, at the same path.",
        rich_help_panel=_PANEL,
        show_default="nothing",
    ),
]
FlowerNodeConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        help="What the app learns about this node: partition-id=0.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
FlowerRunConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A setting of the run in place of the app's: learning-rate=0.1.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
FlowerSecondsOption = Annotated[
    int, typer.Option(help="The longest that one training may take.", min=1, rich_help_panel=_PANEL)
]
FlowerMemoryOption = Annotated[
    int, typer.Option(help="The most memory of the app, in GiB.", min=1, rich_help_panel=_PANEL)
]
InsecureFlowerNetworkOption = Annotated[
    bool,
    typer.Option(
        "--insecure-flower-network",
        help="INSECURE: run the app with network, and without any isolation.",
        rich_help_panel=_PANEL,
    ),
]


def flower_app(
    directory: Path | None,
    python: Path | None,
    data: list[Path] | None = None,
    node_config: list[str] | None = None,
    run_config: list[str] | None = None,
    seconds: int = 600,
    memory: int = 8,
    *,
    insecure_network: bool = False,
) -> "FlowerApp | None":
    """Make the app of the options, with the digest that it has now. Raises ``InvalidInput``."""
    from dataclasses import replace

    from anofel.errors import InvalidInput, WrongUsage
    from anofel.learning.flower.settings import FlowerApp, read_pairs

    if directory is None:
        if python or data or node_config or run_config or insecure_network:
            raise WrongUsage("The options of a Flower app need --flower-app, its directory.")
        return None
    if python is None:
        raise WrongUsage("--flower-app needs --flower-python, the Python of the app's own environment.")
    missing = [str(path) for path in data or () if not path.exists()]
    if missing:
        raise InvalidInput(f"--flower-data: {', '.join(missing)} is not there.")
    app = FlowerApp(
        directory=str(directory.resolve()),
        python=str(python.absolute()),  # not resolved: a link is what makes it an environment
        data=tuple(str(path.resolve()) for path in data or ()),
        node=read_pairs(node_config or (), "--flower-node-config"),
        config=read_pairs(run_config or (), "--flower-run-config"),
        seconds=seconds,
        gigabytes=memory,
        insecure_network=insecure_network,
    )
    app.manifest()
    return replace(app, digest=app.check_digest())


def flower_settings(app: "FlowerApp", node: list[str] | None, run: list[str] | None) -> "dict[str, Setting]":
    """Return what stands in ``role.toml``."""
    found: dict[str, Setting] = {
        "flower_app": app.directory,
        "flower_digest": app.digest,
        "flower_python": app.python,
        "flower_data": list(app.data),
        "flower_node_config": list(node or ()),
        "flower_run_config": list(run or ()),
        "flower_seconds": app.seconds,
        "flower_memory": app.gigabytes,
    }
    if app.insecure_network:
        found["insecure_flower_network"] = True
    return found


def say_what_an_app_may(app: "FlowerApp") -> None:
    """Say what a Flower app can do here. Raises ``FlowerRefused`` if its network cannot be closed."""
    from anofel.learning.flower.process import isolation_here

    note(
        f"The Flower app '{app.name}' ({app.digest[:16]}…) is code that sees your data. "
        + " ".join(isolation_here(app).sentences)
    )
