"""A trained model that predicts rows of any kind; scikit-learn takes it as a fitted classifier.

Rows go through the schema of the task as in training, so what a model sees is what it learned from.
scikit-learn itself is not needed.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.trainer import Predictor, Trainer
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from anofel.studies.dataset import Dataset
from anofel.studies.encoding import TableRows, encode_unlabelled
from anofel.studies.frames import image_rows, table_of
from anofel.studies.load import read_image_rows
from anofel.studies.table import AnyFile
from anofel.tasks.schema import ImageSchema, NumberTarget, SurvivalTarget, TableSchema
from anofel.tasks.task import Task


class NotThisTasksModel(InvalidInput):
    """A model has other tensors than the models of the task."""

    code = "not-this-tasks-model"


class Classifier:
    """A model together with its task; ``predict_proba`` takes rows with the columns of the task's schema."""

    _estimator_type = "classifier"

    def __init__(self, model: IntegerModel, task: Task, trainer: Trainer | None = None) -> None:
        """A custom task needs its ``trainer``. Raises ``NotThisTasksModel`` and ``InvalidInput``."""
        predictor = trainer_of(task) if trainer is None else trainer
        if not isinstance(predictor, Predictor):
            raise InvalidInput(f"The trainer of task '{task.name}' has no 'probabilities' to predict with.")
        if Layout.of(predictor.initial()) != model.layout:
            raise NotThisTasksModel(
                f"The model has other tensors than the models of task '{task.name}'; "
                "anofel model show lists them."
            )
        self.model, self.task, self.trainer = model, task, trainer
        self.predictor = predictor
        self.target = task.schema.target if isinstance(task.schema, TableSchema) else None
        """What is predicted, where it is not a class."""
        self.classes_ = _classes(task.schema.label_values)
        """The values of the label; whole numbers if all of them are written as such."""
        if isinstance(task.schema, TableSchema):
            self.feature_names_in_ = np.array([column.name for column in task.schema.columns], dtype=object)
            self.n_features_in_ = len(self.feature_names_in_)
        else:
            self.n_features_in_ = int(np.prod(task.schema.row_shape))

    @classmethod
    def load(cls, model: Path | str, task: Path | str, trainer: str = "") -> Self:
        """Read a model file and its task file; ``trainer`` names a custom task's own, as module:function."""
        found = Task.load(task)
        return cls(IntegerModel.load(model), found, trainer_of(found, trainer) if trainer else None)

    def __repr__(self) -> str:
        return f"Classifier(<{self.task.name}, {self.model.layout.size:,} parameters>)"

    # Predictions

    def predict_proba(self, rows: Any) -> NDArray[np.float64]:
        """Give the probability of every class, in the order of ``classes_``, one line per row.

        For a number as the target, the number; for survival, the probability of surviving each interval.

        ``rows`` is a data frame with the schema's columns by name, an array with them in the schema's order
        (of images: unsigned bytes), or a ``Dataset``. Raises ``RowDoesNotFit`` and ``ColumnsDoNotFit``.
        """
        dataset = rows if isinstance(rows, Dataset) else self._encoded(rows)
        return self.predictor.probabilities(self.model.parameters(), dataset)

    def predict(self, rows: Any) -> NDArray[Any]:
        """Give the likeliest class of every row; for other targets the number, or the expected survival."""
        if isinstance(self.target, NumberTarget):
            return self.predict_proba(rows)[:, 0]
        if isinstance(self.target, SurvivalTarget):
            expected: NDArray[Any] = self.predict_proba(rows).sum(axis=1)
            return expected
        predicted: NDArray[Any] = self.classes_[self.predict_proba(rows).argmax(axis=1)]
        return predicted

    def score(self, rows: Any, labels: Any) -> float:
        """Give the share of rows whose likeliest class is the label."""
        if self.target is not None:
            raise InvalidInput("The target is no class; anofel.learning.evaluate measures such models.")
        return float((self.predict(rows) == np.asarray(labels)).mean())

    def columns(self, row: NDArray[np.float64]) -> dict[str, str | float]:
        """Name what is predicted of one row, as ``anofel predict`` writes it."""
        if isinstance(self.target, NumberTarget):
            return {"predicted": float(row[0]), "unit": self.target.unit}
        if isinstance(self.target, SurvivalTarget):
            names = (f"survival to {cut} {self.target.unit}" for cut in self.target.cuts)
            return {name: float(share) for name, share in zip(names, row, strict=True)}
        values = self.task.schema.label_values
        shares = {f"probability {value}": float(share) for value, share in zip(values, row, strict=True)}
        return {"predicted": values[int(row.argmax())], **shares}

    def predict_file(self, path: AnyFile | str) -> tuple[NDArray[np.float64], list[int]]:
        """Give the probabilities for the rows of a file, and where each stands; no label is needed."""
        schema = self.task.schema
        file = Path(path) if isinstance(path, str) else path
        if isinstance(schema, TableSchema):
            rows = TableRows.read(file, schema, labelled=False)
            return self.predict_proba(rows.dataset), list(rows.table.lines)
        dataset = read_image_rows(file, schema)
        return self.predict_proba(dataset), list(range(1, len(dataset) + 1))

    def _encoded(self, rows: Any) -> Dataset:
        schema = self.task.schema
        if isinstance(schema, ImageSchema):
            return image_rows(rows, schema, labelled=False)
        return encode_unlabelled(table_of(rows, schema), schema)

    # What scikit-learn asks of a classifier

    def fit(self, *_rows: Any, **_options: Any) -> Self:
        """Refuse: a task trains its models. ``sklearn.frozen.FrozenEstimator`` keeps others from asking."""
        raise InvalidInput("The model was trained by its task's clients; it is not fitted again.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - the name is scikit-learn's
        """Give what the classifier was made of."""
        return {"model": self.model, "task": self.task, "trainer": self.trainer}

    def set_params(self, **parameters: Any) -> Self:
        """Make it of other parts."""
        self.__init__(**(self.get_params() | parameters))  # type: ignore[misc]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=len(self.classes_) > 2),
            input_tags=InputTags(string=True, allow_nan=True),
        )


def _classes(values: tuple[str, ...]) -> NDArray[Any]:
    if all(value.lstrip("-").isascii() and value.lstrip("-").isdecimal() for value in values):
        numbers = np.array([int(value) for value in values])
        if [str(number) for number in numbers] == list(values):
            return numbers
    return np.array(values)
