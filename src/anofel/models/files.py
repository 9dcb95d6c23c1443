"""Names of files that hold models and their tasks: by task and iteration, so that people find them."""

import re


def model_name(task: str, which: int | str) -> str:
    """Name the file of the model that stands after an iteration."""
    return f"{_plain(task)}-{which}.model"


def task_name(task: str) -> str:
    """Name the file of a task that came from a board, in its canonical encoding."""
    return f"{_plain(task)}.task.json"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
