"""Anonymous and private federated learning over a public bulletin board.

These names are the interface (``docs/python-api.md``); every other module is inner and may change. A name is
imported when it is first used, so that ``import anofel`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anofel.audit import AuditFailed, Auditor, AuditReport
    from anofel.audit.sources import open_source
    from anofel.errors import AnofelError
    from anofel.learning.classifier import Classifier
    from anofel.learning.estimators import EstimatorTrainer
    from anofel.learning.evaluate import evaluate_on
    from anofel.learning.functions import array_trainer
    from anofel.learning.splits import split_rows
    from anofel.learning.trainer import LocalUpdate
    from anofel.light_client.client import LightClient
    from anofel.models.integer_model import IntegerModel
    from anofel.models.parameters import Parameters
    from anofel.network.transport import Transport
    from anofel.simulation import (
        CommitteeSettings,
        InsecurePlainSimulation,
        IterationResult,
        Participation,
        SimulatedTask,
        Simulation,
        Workers,
        made_up_rows,
    )
    from anofel.studies.catalogue import study_named
    from anofel.studies.dataset import Dataset
    from anofel.studies.load import hold_out, load_file, load_rows, load_study
    from anofel.tasks.task import Task
    from anofel.track.results import read_results

    __version__: str

__all__ = [
    "AnofelError",
    "AuditFailed",
    "AuditReport",
    "Auditor",
    "Classifier",
    "CommitteeSettings",
    "Dataset",
    "EstimatorTrainer",
    "InsecurePlainSimulation",
    "IntegerModel",
    "IterationResult",
    "LightClient",
    "LocalUpdate",
    "Parameters",
    "Participation",
    "SimulatedTask",
    "Simulation",
    "Task",
    "Transport",
    "Workers",
    "__version__",
    "array_trainer",
    "evaluate_on",
    "hold_out",
    "load_file",
    "load_rows",
    "load_study",
    "made_up_rows",
    "open_source",
    "read_results",
    "split_rows",
    "study_named",
]

_HOMES: Final = {
    "anofel.audit": ("AuditFailed", "AuditReport", "Auditor"),
    "anofel.audit.sources": ("open_source",),
    "anofel.errors": ("AnofelError",),
    "anofel.learning.classifier": ("Classifier",),
    "anofel.learning.estimators": ("EstimatorTrainer",),
    "anofel.learning.evaluate": ("evaluate_on",),
    "anofel.learning.functions": ("array_trainer",),
    "anofel.learning.splits": ("split_rows",),
    "anofel.learning.trainer": ("LocalUpdate",),
    "anofel.light_client.client": ("LightClient",),
    "anofel.models.integer_model": ("IntegerModel",),
    "anofel.models.parameters": ("Parameters",),
    "anofel.network.transport": ("Transport",),
    "anofel.simulation": (
        "CommitteeSettings",
        "InsecurePlainSimulation",
        "IterationResult",
        "Participation",
        "SimulatedTask",
        "Simulation",
        "Workers",
        "made_up_rows",
    ),
    "anofel.studies.catalogue": ("study_named",),
    "anofel.studies.dataset": ("Dataset",),
    "anofel.studies.load": ("hold_out", "load_file", "load_rows", "load_study"),
    "anofel.tasks.task": ("Task",),
    "anofel.track.results": ("read_results",),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("anofel")
    elif name in _HOME_OF:
        found = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'anofel' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
