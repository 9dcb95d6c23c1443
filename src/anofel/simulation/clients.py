"""The clients of a simulation as the board meets them: what they post, in whichever processes they live."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from anofel.messages import Header, Posting
from anofel.models.integer_model import IntegerModel
from anofel.simulation.people import SimulatedCertifier
from anofel.studies.dataset import Dataset


@dataclass(frozen=True)
class Newcomer:
    """A client that shall register."""

    number: int
    """Its number among all clients."""
    task: int
    """The place of its task among the tasks of the simulation."""
    place: int
    """Its place among the clients of the task."""
    rows: Dataset


@dataclass(frozen=True)
class SimulatedTurn:
    """A client that shall post in an iteration."""

    client: int
    """Its number."""
    target: int
    """The place of its task in the bundle."""
    position: int
    """How many posts there are up to this one, with it."""


class Clients(Protocol):
    """Owns the secrets of all clients."""

    def register(self, certifier: SimulatedCertifier, newcomers: Sequence[Newcomer]) -> list[Posting]:
        """Let new clients be certified and make their registrations; who is lost makes none."""
        ...

    def look(self, header: Header) -> None:
        """See the board after a block that was just sealed."""
        ...

    def submissions(
        self, turns: Sequence[SimulatedTurn], models: Mapping[int, IntegerModel], at_a_time: int
    ) -> Iterator[list[Posting]]:
        """Train and submit in the open iteration; gives the postings of some turns at a time, in order.

        Who is lost does not post. ``models`` are those of the tasks, by their places in the simulation.
        """
        ...

    def close(self) -> None:
        """End everything that was started."""
        ...
