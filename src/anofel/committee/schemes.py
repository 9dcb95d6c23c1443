"""The schemes by name: the only place that knows which there are."""

from anofel.committee.errors import InvalidCommittee
from anofel.committee.interface import Scheme
from anofel.committee.lattice.scheme import Lattice

NAMES = ("lattice",)
DEFAULT = "lattice"


def by_name(name: str) -> Scheme:
    """Return a scheme. Raises ``InvalidCommittee`` for a name that is none."""
    if name == "lattice":
        return Lattice()
    raise InvalidCommittee(f"There is no scheme {name}; there is {', '.join(NAMES)}.")
