"""Load a study or a user's own file: as datasets, or as rows that can be dealt out into files again."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from anofel.errors import InvalidInput
from anofel.studies.catalogue import Study, study_named
from anofel.studies.dataset import Dataset, LabelledRows
from anofel.studies.encoding import TableRows, encode_table
from anofel.studies.fetch import verified_file
from anofel.studies.frames import image_rows, is_saved_dataset, read_saved_dataset, table_of
from anofel.studies.heartbeats import load_heartbeats
from anofel.studies.table import AnyFile, Table, read_arrays, read_table
from anofel.tasks.schema import ImageSchema, Schema, TableSchema

FileRows = TableRows | Dataset
"""Rows as a file holds them: of a table the cells and their encoding; images are their own encoding."""
T = TypeVar("T", bound=LabelledRows)

_TEST_SHARE = 5
"""One row in five is kept for testing where the study itself has no test set."""


def load_study(study: Study, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Load a fetched study: rows to train on, and rows to test on."""
    train, test = study_rows(study, study.schema(), seed)
    return train.dataset, test.dataset


def study_rows(study: Study, schema: Schema, seed: int = 0) -> tuple[FileRows, FileRows]:
    """Load a fetched study as its files hold it: rows to train on, and rows to test on."""
    if isinstance(schema, TableSchema):
        return hold_out(TableRows.of(_table_of(study), schema), seed)
    from anofel.studies import images

    loaders = {"cifar-10": images.load_cifar, "tiny-imagenet": images.load_tiny_imagenet}
    train, test = loaders.get(study.name, images.load_idx)(study)
    return _described(train, schema), _described(test, schema)


def _table_of(study: Study) -> Table:
    if study.name == "ecg5000":
        return load_heartbeats(study)
    return read_table(verified_file(study, f"{study.name}.csv"))


def _described(rows: Dataset, schema: ImageSchema) -> Dataset:
    """Give the rows of a study another schema of the same images: its own, or one with a transform."""
    if (schema.shape, schema.label_values) != (rows.schema.row_shape, rows.schema.label_values):
        raise InvalidInput("The schema does not describe the images of the study: shape or labels differ.")
    return replace(rows, schema=schema)


def chosen_rows(
    study: str, schema: Schema, file: Path | None = None, seed: int = 0
) -> tuple[FileRows, FileRows]:
    """Load a user's own file, or else the study of that name; rows to train on, and rows to test on.

    Raises ``InvalidInput`` and ``StudyNotFetched``.
    """
    if file is not None:
        return hold_out(file_rows(file, schema), seed)
    if not study:
        raise InvalidInput("The task names no study; give a file of rows.")
    return study_rows(study_named(study), schema, seed)


def hold_out(rows: T, seed: int) -> tuple[T, T]:
    """Keep one row in five for testing, by a public seed."""
    order = np.random.default_rng(seed).permutation(len(rows.labels))
    cut = len(order) // _TEST_SHARE
    return rows.take(order[cut:]), rows.take(order[:cut])


def load_file(path: AnyFile, schema: Schema) -> Dataset:
    """Load a user's own file by a schema: a table (CSV, Parquet, NumPy), or images as ``.npz``.

    An image file holds two arrays: ``images`` (unsigned bytes) and ``labels``. A directory may be a dataset
    that ``save_to_disk`` of Hugging Face wrote.
    """
    return file_rows(path, schema).dataset


def load_rows(rows: Any, schema: Schema) -> Dataset:
    """Load rows that are in memory: a data frame, an Arrow table or a Hugging Face dataset, by a schema.

    Columns go by their names, as those of a file do; classes of Hugging Face by the names of their values.
    Images come from one column of images and one of labels. Raises ``InvalidInput``.
    """
    if isinstance(schema, TableSchema):
        return encode_table(table_of(rows, schema), schema)
    return image_rows(rows, schema, labelled=True)


def file_rows(path: AnyFile, schema: Schema) -> FileRows:
    """Load a user's own file by a schema, as the file holds it."""
    if isinstance(path, Path) and is_saved_dataset(path):
        saved = read_saved_dataset(path)
        if isinstance(schema, TableSchema):
            return TableRows.of(table_of(saved, schema), schema)
        return image_rows(saved, schema, labelled=True)
    if isinstance(schema, TableSchema):
        return TableRows.read(path, schema)
    return _load_images(path, schema)


def file_of(rows: FileRows) -> tuple[str, bytes]:
    """Give the ending and the content of a file that ``load_file`` reads as these rows."""
    if isinstance(rows, TableRows):
        return ".csv", rows.table.to_csv()
    content = io.BytesIO()
    np.savez(content, images=rows.features, labels=rows.labels)
    return ".npz", content.getvalue()


def read_image_rows(path: AnyFile, schema: ImageSchema) -> Dataset:
    """Load images that are to be predicted: no labels are needed. Every label is the first one."""
    return _load_images(path, schema, labelled=False)


def _load_images(path: AnyFile, schema: ImageSchema, *, labelled: bool = True) -> Dataset:
    arrays = read_arrays(path)
    wanted = ("images", "labels") if labelled else ("images",)
    if absent := [name for name in wanted if name not in arrays]:
        raise InvalidInput(f"'{path.name}' must hold 'images' and 'labels'; it has no '{absent[0]}'.")
    images = arrays["images"]
    labels = arrays["labels"] if labelled else np.zeros(len(images), np.int32)
    if images.dtype != np.uint8 or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidInput(f"'{path.name}' must hold images as unsigned bytes and labels as integers.")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(schema.label_values):
        last = len(schema.label_values) - 1
        raise InvalidInput(f"'{path.name}' must hold labels from 0 to {last}, one for each label value.")
    if images.ndim == 3 and schema.shape[-1] == 1:
        images = images[..., None]
    return Dataset(images, labels.astype(np.int32), schema)
