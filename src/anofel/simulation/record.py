"""What a simulation leaves in a directory: models, results, and the board beside them.

======================  =============================================================
``result.json``         what ``--json`` prints
``models/``             the model after every iteration that made one, as on the board
``board/``              the board, for ``anofel audit``; not there without cryptography
======================  =============================================================
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from anofel.errors import InvalidInput
from anofel.files import write_new_file
from anofel.simulation.parts import IterationResult

RESULT: Final = "result.json"
MODELS: Final = "models"


def prepare_directory(directory: Path) -> None:
    """Make a new directory. Raises ``InvalidInput`` if there is something in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise InvalidInput(f"{directory} is not empty; give the name of a new directory.")
    except OSError as error:
        raise InvalidInput(f"{directory} cannot be made: {error.strerror or error}.") from None


def write_result(directory: Path, document: Mapping[str, Any], results: list[IterationResult]) -> None:
    """Write the results and the models."""
    (directory / MODELS).mkdir()
    for result in results:
        if result.total is not None:
            name = re.sub(r"[^A-Za-z0-9._-]", "_", result.task)
            write_new_file(directory / MODELS / f"{name}-{result.iteration}.model", result.model.to_bytes())
    write_new_file(directory / RESULT, (json.dumps(document, indent=2) + "\n").encode())
