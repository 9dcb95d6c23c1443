"""The studies of a demo: rows for every client, a task file, and the model that pooled data would give."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np

from anofel.demo.plan import DELTA, TARGET_EPSILON, Options, StageLayout
from anofel.disk.files import write_new_file
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.learning.build import network_of
from anofel.learning.evaluate import evaluate_on
from anofel.learning.splits import iid
from anofel.models.integer_model import IntegerModel
from anofel.privacy.calibrate import noise_multiplier
from anofel.privacy.plan import Plan
from anofel.roles.role import Say
from anofel.studies.bundled import BUNDLED, bundled_named, load_bundled
from anofel.studies.catalogue import STUDIES, Study, study_named
from anofel.studies.encoding import TableRows
from anofel.studies.fetch import fetch, verified_file
from anofel.studies.load import hold_out
from anofel.studies.table import Table, read_table
from anofel.tasks.schema import TableSchema, table_schema_text
from anofel.tasks.task import Task

FALLBACK: Final = {"support2": "breast-cancer", "nwtco": "diabetes"}
"""What stands in for a study that cannot be fetched."""
_CENTRAL_STEPS: Final = 400
_CENTRAL_RATE: Final = 4.0


@dataclass(frozen=True)
class Recipe:
    """How a study is trained in few iterations."""

    rate: Decimal
    """Learning rate for the mean gradient of a record."""
    momentum: Decimal
    clipping_norm: Decimal
    short: str
    """What is predicted, in few words."""


_RECIPES: Final = {
    "support2": Recipe(Decimal(3), Decimal("0.3"), Decimal(4), "SUPPORT2 · death in hospital"),
    "nwtco": Recipe(Decimal(6), Decimal("0.3"), Decimal(3), "Wilms' tumour · relapse"),
    "breast-cancer": Recipe(Decimal(1), Decimal("0.5"), Decimal(4), "breast tumour · malignant"),
    "diabetes": Recipe(Decimal(3), Decimal("0.5"), Decimal(1), "diabetes · fast progression"),
}


@dataclass(frozen=True)
class DemoStudy:
    """One study as the demo runs it."""

    study: Study
    number: int
    """Its dataset type, from 1."""
    pooled: TableRows
    """The rows of all clients together."""
    parts: tuple[TableRows, ...]
    """The rows of each client."""
    held_out: TableRows
    """The rows that the owner measures by."""

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study.name

    @property
    def title(self) -> str:
        """What is predicted, in few words."""
        return _RECIPES[self.name].short

    def client(self, number: int) -> str:
        """The name of a client's directory; it never leaves the machine."""
        return f"{self.name}-client-{number}"

    def member(self, number: int) -> str:
        """The name of a member of the study's committee."""
        return f"{self.name}-aggregator-{number}"

    @property
    def owner(self) -> str:
        """The name of the study's owner."""
        return f"{self.name}-owner"

    @property
    def largest(self) -> int:
        """The most rows of a client."""
        return max(len(part.labels) for part in self.parts)


def load_studies(options: Options, say: Say) -> list[DemoStudy]:
    """Fetch the studies, or say why not and take bundled ones; deal out the rows."""
    found: list[DemoStudy] = []
    for number, name in enumerate(options.studies, start=1):
        study, table = _rows(name, say)
        if study.name in {other.name for other in found}:
            raise InvalidInput(f"The study {study.name} stands in for another one and cannot be used twice.")
        schema = study.schema()
        assert isinstance(schema, TableSchema)
        train, test = hold_out(TableRows.of(table, schema), options.seed)
        parts = tuple(iid(train, options.clients, options.seed))
        found.append(DemoStudy(study, number, train, parts, test))
    return found


def _rows(name: str, say: Say) -> tuple[Study, Table]:
    bundled = bundled_named(name)
    if bundled is not None:
        return bundled, load_bundled(name)
    if name not in _RECIPES:
        known = [study.name for study in (*STUDIES, *BUNDLED) if study.name in _RECIPES]
        raise InvalidInput(f"The demo knows the studies {', '.join(known)}, not '{name}'.")
    study = study_named(name)
    try:
        fetch(study)
    except (PeerUnreachable, InvalidInput) as error:
        instead = FALLBACK[name]
        say(f"{error}")
        say(f"{name} could not be fetched; {instead}, which comes with scikit-learn, stands in for it.")
        return _rows(instead, say)
    return study, read_table(verified_file(study, f"{name}.csv"))


# Files


def write_files(study: DemoStudy, options: Options, layout: StageLayout) -> Task:
    """Write the task file and everybody's rows."""
    layout.data.mkdir(exist_ok=True)
    write_new_file(layout.task(study.name), task_text(study, options, Decimal(1)).encode())
    plan = Plan.of(Task.load(layout.task(study.name)))
    noise = noise_multiplier(plan, TARGET_EPSILON, "zero-out")
    layout.task(study.name).write_text(task_text(study, options, noise))
    for number, part in enumerate(study.parts, start=1):
        write_new_file(layout.rows(study.client(number)), part.table.to_csv())
    write_new_file(layout.rows(study.owner), study.held_out.table.to_csv())
    return Task.load(layout.task(study.name))


def task_text(study: DemoStudy, options: Options, noise: Decimal) -> str:
    """Write the task file of a study: unit ``record``, so a client sends the sum over its rows."""
    recipe, schema = _RECIPES[study.name], table_schema_text(study.name)
    return f"""# Made by anofel demo.
[task]
name = "{study.name}"
dataset_type = {study.number}

[model]
kind = "logistic"
scale_bits = 12

[training]
algorithm = "fedsgd"

# A client sends the sum over its rows: the rate is {recipe.rate} for the mean of {study.largest} rows.
[rule]
lr_num = {round(recipe.rate * 100)}
lr_den = {study.largest * 100}
momentum = {round(recipe.momentum * 65536)}

[privacy]
unit = "record"
clipping_norm = {recipe.clipping_norm}
noise_multiplier = {noise}
delta = {DELTA}
max_releases = {options.iterations}
min_clients = {options.min_clients}
max_colluders = {options.max_colluders}
expected_clients = {options.clients}
max_posts = {options.total_clients}
records_per_client = {study.largest}

[schema]
{schema.replace("[[column]]", "[[schema.column]]")}"""


def policy_text(studies: list[DemoStudy], layout: StageLayout) -> str:
    """Write a certifier's policy: the schema of every study, and how many rows a client may show."""
    lines = ["# Made by anofel demo. Rows are rounded by the schema, so different patients may look alike."]
    for study in studies:
        lines += [
            "[[dataset]]",
            f"type = {study.number}",
            f'schema = "{layout.task(study.name).name}"',
            "min_rows = 10",
            f"max_rows = {study.largest}",
            f"max_duplicates = {study.largest}",
        ]
    return "\n".join(lines) + "\n"


# The peer


def central_quality(study: DemoStudy, task: Task) -> dict[str, float]:
    """Train on all rows at one place, without privacy, and measure as the owner does."""
    pooled = study.pooled.dataset
    network, inputs = network_of(task), pooled.inputs()
    parameters = network.initial()
    velocity = {name: np.zeros_like(array) for name, array in parameters.items()}
    for _ in range(_CENTRAL_STEPS):
        gradient = network.gradient(parameters, inputs, pooled.labels)
        for name, array in gradient.items():
            velocity[name] = 0.9 * velocity[name] - _CENTRAL_RATE / 10 * array
            parameters[name] = parameters[name] + velocity[name]
    model = IntegerModel.from_parameters(parameters, task.model.scale_bits)
    return evaluate_on(task, study.held_out.dataset)(model)
