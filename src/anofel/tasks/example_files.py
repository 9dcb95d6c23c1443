"""The example tasks that come with the package, and the programs that some of them need."""

from importlib import resources
from typing import Final

from anofel.disk.sections import nearest
from anofel.errors import InvalidInput

EXAMPLES: Final = (
    "custom",
    "mnist-four",
    "mnist-lenet5",
    "nwtco",
    "nwtco-survival",
    "own-module",
    "scikit-learn",
    "small",
    "support2",
    "support2-stay",
)
_PROGRAMS: Final = {
    "custom": "custom_model.py",
    "own-module": "own_module.py",
    "scikit-learn": "own_estimator.py",
}
"""What trains the tasks that leave training to their users."""
TASK_FILE: Final = "task.toml"


def example_text(name: str) -> str:
    """Give the task file of an example. Raises ``InvalidInput``."""
    if name not in EXAMPLES:
        raise InvalidInput(
            f"There is no example '{name}'{nearest(name, EXAMPLES)}; there are {', '.join(EXAMPLES)}."
        )
    return _read(f"{name}.toml")


def example_files(name: str) -> dict[str, bytes]:
    """Give all files of an example by their names in a user's directory. Raises ``InvalidInput``."""
    files = {TASK_FILE: example_text(name).encode()}
    program = _PROGRAMS.get(name)
    return files if program is None else files | {program: _read(program).encode()}


def _read(file: str) -> str:
    return resources.files("anofel.tasks").joinpath(f"examples/{file}").read_text("utf-8")
