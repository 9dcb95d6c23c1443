"""What a game is set up with: two small tasks, rows of clients, and a board with a window for posts."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from anofel.messages import Class
from anofel.simulation.parts import SimulatedTask
from anofel.simulation.venue import Venue
from anofel.tasks.task import Task, read_task

Patients = tuple[tuple[int, int, int], ...]
"""Age, blood pressure and whether ill, of each patient: the dataset of one client."""

TASKS: Final = 2
WINDOW: Final = 5
"""In so many blocks a post may come."""
MARGIN: Final = 2
POST_FROM: Final = 1
FEW_ROWS: Final = 4
MANY_ROWS: Final = 200
MEMBERS: Final = 3
THRESHOLD: Final = 2
"""Of each committee."""
MAX_RELEASES: Final = 100_000
_COMMITTEE_BLOCKS: Final = 3
_NEVER: Final = 1 << 30
"""The server posts a model when the adversary wants the next iteration."""
SCHEMA: Final = """\
[schema]
label = "ill"
label_values = ["no", "yes"]

[[schema.column]]
name = "age"
kind = "number"
unit = "years"
low = 0
high = 120
offset = 50
scale = 25

[[schema.column]]
name = "pressure"
kind = "number"
unit = "mmHg"
low = 0
high = 250
offset = 120
scale = 40
"""


@dataclass(frozen=True, kw_only=True)
class GameSetting:
    """The numbers of the tasks of a game."""

    min_clients: int = 2
    noise_multiplier: str = "2"
    max_posts: int = 16

    def task(self, number: int, edition: int = 0) -> Task:
        """Return one of the tasks of the bundle; they differ in their names alone.

        A task is announced once, so the next ``edition`` differs in a number that matters to nobody.
        """
        return read_task(
            {
                "task": {"name": f"study {number}"},
                "model": {"kind": "logistic"},
                "training": {"algorithm": "fedsgd"},
                "rule": {"lr_num": 1, "lr_den": 1},
                "privacy": {
                    "clipping_norm": "1",
                    "noise_multiplier": self.noise_multiplier,
                    "relation": "replace",
                    "max_releases": MAX_RELEASES - edition,
                    "min_clients": self.min_clients,
                    "max_colluders": 0,
                    "max_posts": self.max_posts,
                },
                **tomllib.loads(SCHEMA),
            }
        )

    def parts(self, edition: int = 0) -> list[SimulatedTask]:
        """Return the tasks as a simulation knows them; clients come later."""
        return [SimulatedTask(self.task(number, edition), []) for number in range(TASKS)]


class GameVenue(Venue):
    """A board whose iterations have a window in which clients draw the times of their posts."""

    def size_class(self, tasks: Sequence[SimulatedTask]) -> Class:
        """Give the sizes and deadlines of an iteration."""
        return Class(
            max_length=max(part.plan.dimension for part in tasks),
            max_posts=max(part.task.privacy.max_posts for part in tasks),
            post_from=POST_FROM,
            train=POST_FROM + WINDOW - 1 + MARGIN,
            aggregate=_COMMITTEE_BLOCKS,
            count=_COMMITTEE_BLOCKS,
            sum=_COMMITTEE_BLOCKS,
            model=_NEVER,
        )


def some_rows(number: int, seed: int) -> Patients:
    """Make rows up; they describe nobody."""
    rng = np.random.default_rng(seed)
    ages, pressures = rng.integers(20, 100, number), rng.integers(80, 200, number)
    ill = ages + pressures / 2 + rng.normal(0, 20, number) > 130
    made = zip(ages.tolist(), pressures.tolist(), ill.tolist(), strict=True)
    return tuple((int(age), int(pressure), int(is_ill)) for age, pressure, is_ill in made)


def as_csv(rows: Patients) -> bytes:
    """Write rows as a client keeps them."""
    lines = [f"{age},{pressure},{'yes' if ill else 'no'}" for age, pressure, ill in rows]
    return ("\n".join(["age,pressure,ill", *lines]) + "\n").encode()
