"""The compiled core of anofel; the modules of the package re-export what users need."""

from anofel._core import ceremony as ceremony
from anofel._core import committee as committee
from anofel._core import count as count
from anofel._core import keys as keys
from anofel._core import lattice as lattice
from anofel._core import messages as messages
from anofel._core import noise as noise
from anofel._core import primitives as primitives
from anofel._core import proofs as proofs
from anofel._core import trees as trees
from anofel._core import update_rule as update_rule

__version__: str
