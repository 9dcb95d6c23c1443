"""Load a study or a user's own file as datasets."""

from pathlib import Path

import numpy as np

from anofel.errors import InvalidInput
from anofel.studies.catalogue import Study
from anofel.studies.dataset import Dataset
from anofel.studies.fetch import verified_file
from anofel.studies.schema import ImageSchema, Schema, TableSchema
from anofel.studies.table import encode_table, read_table

_TEST_SHARE = 5
"""One row in five is kept for testing where the study itself has no test set."""


def load_study(study: Study, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Load a fetched study: rows to train on, and rows to test on."""
    schema = study.schema()
    if isinstance(schema, TableSchema):
        whole = encode_table(read_table(verified_file(study, f"{study.name}.csv")), schema)
        return hold_out(whole, seed)
    from anofel.studies import images

    if study.name == "cifar-10":
        return images.load_cifar(study)
    if study.name == "tiny-imagenet":
        return images.load_tiny_imagenet(study)
    return images.load_idx(study)


def hold_out(dataset: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Keep one row in five for testing, by a public seed."""
    order = np.random.default_rng(seed).permutation(len(dataset))
    cut = len(dataset) // _TEST_SHARE
    return dataset.take(order[cut:]), dataset.take(order[:cut])


def load_file(path: Path, schema: Schema) -> Dataset:
    """Load a user's own file by a schema: a table (CSV, Parquet, NumPy), or images as ``.npz``.

    An image file holds two arrays: ``images`` (unsigned bytes) and ``labels``.
    """
    if isinstance(schema, TableSchema):
        return encode_table(read_table(path), schema)
    return _load_images(path, schema)


def _load_images(path: Path, schema: ImageSchema) -> Dataset:
    try:
        with np.load(path, allow_pickle=False) as archive:
            images, labels = archive["images"], archive["labels"]
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(f"'{path}' is not a NumPy archive with 'images' and 'labels': {error}.") from None
    if images.dtype != np.uint8 or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidInput(f"'{path}' must hold images as unsigned bytes and labels as integers.")
    if images.ndim == 3 and schema.shape[-1] == 1:
        images = images[..., None]
    return Dataset(images, labels.astype(np.int32), schema)
