"""Read ECG5000: a heartbeat in each line, its class and 140 samples between tabs; columns have no names."""

from anofel.errors import InvalidInput
from anofel.studies.catalogue import Study
from anofel.studies.fetch import verified_file
from anofel.studies.table import Table
from anofel.tasks.schema import BEAT_COLUMNS, BEAT_LABEL


def load_heartbeats(study: Study) -> Table:
    """Read a fetched copy: the published rows to train on, then those to test on."""
    rows = [
        line.split("\t")
        for part in ("TRAIN", "TEST")
        for line in verified_file(study, f"ECG5000_{part}.tsv").read_text("ascii").splitlines()
    ]
    names = (BEAT_LABEL, *BEAT_COLUMNS)
    if not rows or any(len(row) != len(names) for row in rows):
        raise InvalidInput(f"A line of '{study.name}' is not a class and {len(BEAT_COLUMNS)} samples.")
    columns = {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}
    return Table(columns, range(1, len(rows) + 1))
