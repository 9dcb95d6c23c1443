"""The schemes by name: the only place that knows which there are."""

from anofel.committee.errors import InvalidCommittee
from anofel.committee.interface import Scheme
from anofel.committee.lattice.scheme import Lattice
from anofel.committee.paillier.scheme import PaillierScheme

NAMES = ("lattice", "paillier")
DEFAULT = "lattice"


def by_number(number: int) -> Scheme:
    """Return a scheme by its number in messages."""
    return by_name(NAMES[number])


def by_name(name: str) -> Scheme:
    """Return a scheme. Raises ``InvalidCommittee`` for a name that is none."""
    if name == "lattice":
        return Lattice()
    if name == "paillier":
        return PaillierScheme()
    raise InvalidCommittee(f"There is no scheme {name}; there is {', '.join(NAMES)}.")
