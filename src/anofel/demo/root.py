"""Imported first in the process that the others of the demo are forked from: one thread, an end with ours."""

import os
from typing import Final

from anofel.demo.processes import die_with_parent

LIBRARIES: Final = ("RAYON", "OMP", "OPENBLAS", "MKL", "NUMEXPR")

os.environ.update({f"{library}_NUM_THREADS": "1" for library in LIBRARIES})
die_with_parent("anofel-demo")
