"""Rows that are in memory already: data frames, Hugging Face datasets, Arrow tables, arrays.

Whatever has columns by name is read, through the schema like a file; no library is imported for that.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset
from anofel.studies.table import Table, as_text
from anofel.tasks.schema import ImageSchema, TableSchema


def table_of(rows: Any, schema: TableSchema) -> Table:
    """Read whatever has columns by name, or an array in the order of the schema. Raises ``InvalidInput``."""
    if isinstance(rows, str | Path):
        raise InvalidInput(f"'{rows}' names a file and is no rows; predict_file and the commands read files.")
    names = _column_names(rows)
    if names is None and isinstance(rows, Mapping):
        raise InvalidInput("A mapping is no table; make a data frame of it.")
    if names is None:
        return _of_array(np.asarray(rows, dtype=object), schema)
    if twice := [name for name, times in Counter(map(str, names)).items() if times > 1]:
        raise InvalidInput(f"The rows must name every column once; they repeat '{twice[0]}'.")
    cells = {str(name): [as_text(cell) for cell in _cells(rows, name)] for name in names}
    return Table(cells, range(1, len(rows) + 1))


def image_rows(rows: Any, schema: ImageSchema, *, labelled: bool) -> Dataset:
    """Read images, of an array of bytes or of a Hugging Face dataset. Raises ``InvalidInput``.

    Without labels every label is the first one.
    """
    names = _column_names(rows)
    if names is not None:
        return _of_image_column(rows, names, schema, labelled=labelled)
    if labelled:
        raise InvalidInput(
            "An array of images has no labels; give a dataset with an image and a label column."
        )
    images = np.asarray(rows)
    return Dataset(_checked(images, schema), np.zeros(len(images), np.int32), schema)


def is_saved_dataset(path: Path) -> bool:
    """Whether ``save_to_disk`` of Hugging Face wrote this directory."""
    return any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json"))


def read_saved_dataset(path: Path) -> Any:
    """Read such a directory, where the library is installed. Raises ``InvalidInput``."""
    try:
        from datasets import load_from_disk
    except ImportError:
        raise InvalidInput(
            f"'{path}' is a dataset of Hugging Face; to read it: pip install datasets."
        ) from None
    try:
        return load_from_disk(str(path))
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(f"'{path}' is no dataset that Hugging Face can read: {error}.") from None


def _column_names(rows: Any) -> list[Any] | None:
    """List the columns of a frame; None if it is none."""
    named = getattr(rows, "column_names", None)  # Hugging Face and Arrow, whose 'columns' are none
    if isinstance(named, Mapping):
        raise InvalidInput(f"There are several datasets: {', '.join(map(str, named))}; give one of them.")
    if named is None:
        named = getattr(rows, "columns", None)
    return None if named is None else list(named)


def _cells(rows: Any, name: Any) -> list[Any]:
    column = rows[name]
    cells = next(
        (getattr(column, how)() for how in ("tolist", "to_list", "to_pylist") if hasattr(column, how)), None
    )
    cells = list(column) if cells is None else cells
    classes = _class_names(rows, name)
    if classes is None:
        return cells
    return [None if cell is None or cell < 0 else classes[cell] for cell in cells]


def _class_names(rows: Any, name: Any) -> list[str] | None:
    """List the names of a Hugging Face column of classes, which holds their numbers."""
    features = getattr(rows, "features", None)
    feature = features.get(name) if isinstance(features, Mapping) else None
    return getattr(feature, "names", None)


def _of_array(array: NDArray[Any], schema: TableSchema) -> Table:
    if array.ndim != 2 or array.shape[1] != len(schema.columns):
        raise InvalidInput(
            f"An array of rows has two dimensions and the {len(schema.columns)} columns of the schema in "
            f"its order, but this one has the shape {array.shape}; a data frame has them by name."
        )
    cells = {
        column.name: [as_text(cell) for cell in array[:, index].tolist()]
        for index, column in enumerate(schema.columns)
    }
    return Table(cells, range(1, len(array) + 1))


def _of_image_column(rows: Any, names: list[Any], schema: ImageSchema, *, labelled: bool) -> Dataset:
    found = {
        name: type(feature).__name__ for name, feature in (getattr(rows, "features", None) or {}).items()
    }
    images = [name for name in names if found.get(name) == "Image" or name == "image"]
    if len(images) != 1:
        raise InvalidInput(
            f"Images come from one column; of {', '.join(map(str, names))} it is not clear which."
        )
    pixels = [np.asarray(image) for image in rows[images[0]]]
    strange = next((place for place, one in enumerate(pixels) if one.size != np.prod(schema.shape)), None)
    if strange is not None:
        raise InvalidInput(
            f"Image {strange + 1} has the shape {pixels[strange].shape}, and the schema says {schema.shape}."
        )
    stacked = _checked(np.stack(pixels) if pixels else np.zeros((0, *schema.shape), np.uint8), schema)
    if not labelled:
        return Dataset(stacked, np.zeros(len(stacked), np.int32), schema)
    classes = [name for name in names if found.get(name) == "ClassLabel" or name == "label"]
    if len(classes) != 1:
        raise InvalidInput(
            f"Labels come from one column; of {', '.join(map(str, names))} it is not clear which."
        )
    return Dataset(stacked, _label_numbers(rows, classes[0], schema), schema)


def _label_numbers(rows: Any, name: Any, schema: ImageSchema) -> NDArray[np.int32]:
    places = {value: place for place, value in enumerate(schema.label_values)}
    labels = [as_text(cell) for cell in _cells(rows, name)]
    strange = sorted({label for label in labels if label not in places})
    if strange:
        raise InvalidInput(
            f"The schema has no label '{strange[0]}'; it has {', '.join(schema.label_values[:10])}."
        )
    return np.array([places[label] for label in labels], dtype=np.int32)


def _checked(images: NDArray[Any], schema: ImageSchema) -> NDArray[np.uint8]:
    if images.dtype != np.uint8 or images.ndim < 2 or images[:1].size not in (0, np.prod(schema.shape)):
        raise InvalidInput(f"Images are unsigned bytes of the shape {schema.shape}, one after the other.")
    return images.reshape(len(images), *schema.shape)
