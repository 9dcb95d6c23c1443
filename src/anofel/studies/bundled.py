"""Real data that lies on the disk already, inside an installed package, for a machine without a network.

scikit-learn carries two small medical studies as files. They are read, checked by SHA-256 and given
names for their columns; the package itself is not imported.
"""

import gzip
import hashlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from anofel.errors import InvalidInput
from anofel.studies.catalogue import Study
from anofel.studies.fetch import ChecksumMismatch
from anofel.studies.table import Table

BUNDLED: Final = (
    Study(
        name="breast-cancer",
        title="Wisconsin breast cancer: is a tumour malignant",
        rows=569,
        licence="data CC BY 4.0 as published by the UCI repository; carrying package BSD-3-Clause",
        source=None,
    ),
    Study(
        name="diabetes",
        title="Diabetes: does the disease progress fast within a year",
        rows=442,
        licence="data from Efron et al. 2004, no licence stated; carrying package BSD-3-Clause",
        source=None,
    ),
)
"""The studies that come with scikit-learn."""

FAST_PROGRESSION: Final = 150
"""Above this the yearly progression of diabetes (25 to 346) counts as fast; a round number."""

_PINNED: Final = {
    "breast_cancer.csv": "fed3eb72d0575ef6192293f5093c6e801b1476b577d0386bf4455504522172ed",
    "diabetes_data_raw.csv.gz": "7fc0ded571454b1982210d3bb43f0aca44eae01a0b8654a3b24022bdb6b38009",
    "diabetes_target.csv.gz": "8e53f65eb811df43c206f3534bb3af0e5fed213bc37ed6ba36310157d6023803",
}
_TUMOUR: Final = (
    "radius", "texture", "perimeter", "area", "smoothness",
    "compactness", "concavity", "concave points", "symmetry", "fractal dimension",
)  # fmt: skip
_PATIENT: Final = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")


def bundled_named(name: str) -> Study | None:
    """Find a bundled study by name."""
    return next((study for study in BUNDLED if study.name == name), None)


def load_bundled(name: str) -> Table:
    """Read a bundled study. Raises ``InvalidInput`` if its package is not installed, ``ChecksumMismatch``."""
    readers: dict[str, Callable[[], Table]] = {"breast-cancer": _breast_cancer, "diabetes": _diabetes}
    return readers[name]()


def _breast_cancer() -> Table:
    rows = [line.split(",") for line in _read("breast_cancer.csv").decode().splitlines()[1:]]
    names = [f"{which} {name}" for which in ("mean", "error", "worst") for name in _TUMOUR]
    diagnosis = ["malignant" if row[-1] == "0" else "benign" for row in rows]
    return _table(names, [row[:-1] for row in rows], "diagnosis", diagnosis)


def _diabetes() -> Table:
    rows = [line.split() for line in gzip.decompress(_read("diabetes_data_raw.csv.gz")).decode().splitlines()]
    targets = gzip.decompress(_read("diabetes_target.csv.gz")).decode().split()
    fast = ["fast" if float(target) > FAST_PROGRESSION else "slow" for target in targets]
    return _table(list(_PATIENT), rows, "progression", fast)


def _table(names: list[str], rows: list[list[str]], label: str, labels: Sequence[str]) -> Table:
    """Put the columns together, with a number for each patient, which identifies it."""
    numbers = range(1, len(rows) + 1)
    columns = {"patient": [str(number) for number in numbers]}
    columns |= {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}
    return Table(columns | {label: list(labels)}, numbers)


def _read(name: str) -> bytes:
    data = (_package() / "datasets" / "data" / name).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != _PINNED[name]:
        raise ChecksumMismatch(
            f"'{name}' of scikit-learn has SHA-256 {found}, but {_PINNED[name]} is pinned."
        )
    return data


def _package() -> Path:
    """Where scikit-learn lies; finding it imports nothing."""
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise InvalidInput("This data comes with scikit-learn: pip install 'anofel[demo]'.")
    return Path(found.origin).parent
