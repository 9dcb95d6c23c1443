"""What a client demands, as options of ``init`` and ``join``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anofel.cli.flower_options import (
    FlowerAppOption,
    FlowerDataOption,
    FlowerMemoryOption,
    FlowerNodeConfigOption,
    FlowerPythonOption,
    FlowerRunConfigOption,
    FlowerSecondsOption,
    InsecureFlowerNetworkOption,
    flower_app,
    flower_settings,
    say_what_an_app_may,
)
from anofel.cli.role_options import TrainerOption, say_what_a_trainer_may

if TYPE_CHECKING:
    from anofel.learning.flower.settings import FlowerApp
    from anofel.roles.directory import Setting

FLOORS = "What you demand"

TaskOption = Annotated[
    str, typer.Option(help="The task to train, by name or id; none is chosen for you.", show_default="none")
]
OwnerOption = Annotated[
    str,
    typer.Option(
        help="Train only tasks of this owner: 16 digits of its subject or more.", show_default="any"
    ),
]
MaxEpsilonOption = Annotated[
    str,
    typer.Option(
        help="The most ε that your data may ever give away, over all tasks.", rich_help_panel=FLOORS
    ),
]
UnitOption = Annotated[str, typer.Option(help="client or record.", rich_help_panel=FLOORS)]
RelationOption = Annotated[str, typer.Option(help="zero-out or replace.", rich_help_panel=FLOORS)]
DeltaOption = Annotated[str, typer.Option(help="The δ of your ε.", rich_help_panel=FLOORS)]
MinClientsOption = Annotated[
    int, typer.Option(help="The fewest clients in a released sum.", min=2, rich_help_panel=FLOORS)
]
MinAnonymitySetOption = Annotated[
    int, typer.Option(help="The fewest registered clients.", min=2, rich_help_panel=FLOORS)
]
MaxColludersOption = Annotated[
    str,
    typer.Option(
        help="How many clients of a sum you reckon with as the owner's own: a number, or all.",
        rich_help_panel=FLOORS,
        show_default="nothing is trained",
    ),
]
MinBundleOption = Annotated[
    int, typer.Option(help="The fewest tasks among which a post hides.", min=1, rich_help_panel=FLOORS)
]
AllowAggregatorOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Every member of every committee must be one of these: O=Clinic A @ CN=Health CA.",
        rich_help_panel=FLOORS,
        show_default="any",
    ),
]
RequireAggregatorOption = Annotated[
    list[str] | None,
    typer.Option(
        help="No committee may open anything without one of these.",
        rich_help_panel=FLOORS,
        show_default="none",
    ),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option(help="A ledger to go on with: of the same subject and table.", show_default="a new one"),
]
FirstWaitOption = Annotated[
    int, typer.Option(help="The most openings to let pass before the first post; drawn.", min=0, max=1000)
]


@dataclass(frozen=True)
class Demands:
    """Which tasks a client trains, and what it demands of them."""

    task: TaskOption = ""
    owner: OwnerOption = ""
    trainer: TrainerOption = ""
    max_epsilon: MaxEpsilonOption = "1"
    unit: UnitOption = "client"
    relation: RelationOption = "zero-out"
    delta: DeltaOption = "0.00001"
    min_clients: MinClientsOption = 2
    min_anonymity_set: MinAnonymitySetOption = 2
    max_colluders: MaxColludersOption = ""
    min_bundle: MinBundleOption = 2
    allow_aggregator: AllowAggregatorOption = None
    require_aggregator: RequireAggregatorOption = None
    ledger: LedgerOption = None
    first_wait: FirstWaitOption = 3
    flower_app: FlowerAppOption = None
    flower_python: FlowerPythonOption = None
    flower_data: FlowerDataOption = None
    flower_node_config: FlowerNodeConfigOption = None
    flower_run_config: FlowerRunConfigOption = None
    flower_seconds: FlowerSecondsOption = 600
    flower_memory: FlowerMemoryOption = 8
    insecure_flower_network: InsecureFlowerNetworkOption = False

    def app(self) -> "FlowerApp | None":
        """Return the Flower app, if one is named. Raises ``InvalidInput``."""
        return flower_app(
            self.flower_app,
            self.flower_python,
            self.flower_data,
            self.flower_node_config,
            self.flower_run_config,
            self.flower_seconds,
            self.flower_memory,
            insecure_network=self.insecure_flower_network,
        )

    def say_what_trains(self) -> None:
        """Say what naming a trainer, or a Flower app, means."""
        app = self.app()
        if app is None:
            say_what_a_trainer_may(self.trainer)
        else:
            say_what_an_app_may(app)

    def settings(self) -> "dict[str, Setting]":
        """Return what stands in ``role.toml``; some only if they were given."""
        found: dict[str, Setting] = {
            "task": self.task,
            "owner": self.owner,
            "max_epsilon": self.max_epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "relation": self.relation,
            "min_clients": self.min_clients,
            "min_anonymity_set": self.min_anonymity_set,
            "min_bundle": self.min_bundle,
            "first_wait": self.first_wait,
        }
        if self.max_colluders:
            given = self.max_colluders
            found["max_colluders"] = int(given) if given.isdecimal() else given
        if self.allow_aggregator:
            found["allowed_aggregators"] = "\n".join(self.allow_aggregator)
        if self.require_aggregator:
            found["required_aggregators"] = "\n".join(self.require_aggregator)
        if self.ledger is not None:
            found["ledger"] = str(self.ledger.absolute())
        if self.trainer:
            found["trainer"] = self.trainer
        if (app := self.app()) is not None:
            found |= flower_settings(app, self.flower_node_config, self.flower_run_config)
        return found


DEFAULT_DEMANDS = Demands()
