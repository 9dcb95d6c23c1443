"""What is put back, so that an adversary shows that it would see it: one weakening for each leak.

Nothing of this is reachable from a role that ships: a weakening replaces a class of the game, or a function
of a step for as long as the game lasts.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from anofel.games.parties import PlayedClient
from anofel.simulation.committees import SimulatedCommittee


def _honest_majority(members: int, threshold: int) -> int:
    return members - threshold


@dataclass(frozen=True, kw_only=True)
class Weakening:
    """One leak, put back."""

    name: str
    about: str
    """What is different, in one sentence."""
    is_papers: bool = False
    """Whether the paper has it so."""
    client: type[PlayedClient] = PlayedClient
    committee: type[SimulatedCommittee] = SimulatedCommittee
    proxy: bool = True
    """Whether clients reach the node through a proxy that hides their address."""
    around: Callable[[Any], AbstractContextManager[Any]] = lambda _oracle: nullcontext()
    """Holds while the game lasts."""
    corruptible: Callable[[int, int], int] = _honest_majority
    colluders: Callable[[int], int] = lambda own: own
    """With how many colluders a client reckons that would reckon with so many by itself."""


NOTHING_PUT_BACK = Weakening(name="", about="The program as it ships.")


@contextmanager
def replaced(target: Any, name: str, value: Any) -> Iterator[None]:
    """Replace a function or a class of a step while a game lasts."""
    with patch.object(target, name, value):
        yield
