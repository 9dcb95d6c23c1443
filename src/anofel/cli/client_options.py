"""What a client demands, as options of ``init`` and ``join``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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


def where_given(
    max_colluders: str,
    allow_aggregator: list[str] | None,
    require_aggregator: list[str] | None,
    ledger: Path | None,
    trainer: str,
) -> "dict[str, Setting]":
    """Return the settings that stand in ``role.toml`` only if they were given."""
    found: dict[str, Setting] = {}
    if max_colluders:
        found["max_colluders"] = int(max_colluders) if max_colluders.isdecimal() else max_colluders
    if allow_aggregator:
        found["allowed_aggregators"] = "\n".join(allow_aggregator)
    if require_aggregator:
        found["required_aggregators"] = "\n".join(require_aggregator)
    if ledger is not None:
        found["ledger"] = str(ledger.absolute())
    if trainer:
        found["trainer"] = trainer
    return found
