"""Names of files that hold models and their tasks: by task and iteration, so that people find them."""

import re
from pathlib import Path


def model_name(task: str, which: int | str) -> str:
    """Name the file of the model that stands after an iteration."""
    return f"{plain_name(task)}-{which}.model"


def card_of_file(model: Path) -> Path:
    """Name the file of the card that stands beside a model, in whatever format it is."""
    return model.with_suffix(".card.md")


def task_name(task: str) -> str:
    """Name the file of a task that came from a board, in its canonical encoding."""
    return f"{plain_name(task)}.task.json"


def plain_name(name: str) -> str:
    """Write a name as part of a file's."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
