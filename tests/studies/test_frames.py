"""Rows that are in memory: data frames, Arrow tables, Hugging Face datasets, arrays."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import anofel
from anofel.errors import InvalidInput
from anofel.studies.encoding import ColumnsDoNotFit
from anofel.studies.table import RowDoesNotFit
from anofel.tasks.schema import ImageSchema
from tests.patients import make_dataset, make_table, make_task

SCHEMA = make_task().schema
DIGITS = ImageSchema(shape=(2, 3, 1), label_values=("zero", "one"))
PIXELS = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


def columns() -> dict[str, list[str]]:
    return {name: list(cells) for name, cells in make_table(30).columns.items()}


def same(loaded: anofel.Dataset, expected: anofel.Dataset) -> None:
    np.testing.assert_array_equal(loaded.features, expected.features)
    np.testing.assert_array_equal(loaded.labels, expected.labels)


def of_pandas(cells: dict[str, list[str]]) -> Any:
    frame = pytest.importorskip("pandas").DataFrame(cells)
    frame["age"] = frame["age"].astype(float)
    frame["pressure"] = frame["pressure"].replace("", None).astype("Float64")
    return frame.iloc[:, ::-1]


def of_arrow(cells: dict[str, list[str]]) -> Any:
    return pytest.importorskip("pyarrow").table(cells)


def of_hugging_face(cells: dict[str, list[str]]) -> Any:
    library = pytest.importorskip("datasets")
    made = library.Dataset.from_dict({**cells, "ill": [int(cell == "yes") for cell in cells["ill"]]})
    return made.cast_column("ill", library.ClassLabel(names=["no", "yes"]))


@pytest.mark.parametrize("made", [of_pandas, of_arrow, of_hugging_face])
def test_columns_are_read_by_their_names_as_those_of_a_file(made: Callable[[Any], Any]) -> None:
    same(anofel.load_rows(made(columns()), SCHEMA), make_dataset(30))


@pytest.mark.parametrize("made", [of_pandas, of_arrow, of_hugging_face])
def test_what_breaks_the_schema_is_named_as_in_a_file(made: Callable[[Any], Any]) -> None:
    with pytest.raises(RowDoesNotFit, match="Line 3, column 'age': 200"):
        anofel.load_rows(made({**columns(), "age": ["30", "40", "200", *["50"] * 27]}), SCHEMA)
    with pytest.raises(ColumnsDoNotFit, match="does not know column 'weight'"):
        anofel.load_rows(made({**columns(), "weight": ["70"] * 30}), SCHEMA)


def test_several_datasets_are_not_one() -> None:
    class Splits(dict[str, Any]):
        column_names: ClassVar = {"train": ["age"], "test": ["age"]}

    with pytest.raises(InvalidInput, match="several datasets: train, test; give one of them"):
        anofel.load_rows(Splits(), SCHEMA)


class Features(dict[str, Any]):
    """What Hugging Face says of columns."""


class Image:
    """The kind of a column of images, by its name."""


class ClassLabel:
    """The kind of a column of classes, by its name."""

    names = ("zero", "one")


class Images:
    """A dataset as Hugging Face has it, without the library."""

    def __init__(self, pixels: Any = PIXELS, labels: Any = (0, 1, 1, 0), **others: Any) -> None:
        self.values = {"picture": list(pixels), "digit": list(labels), **others}
        self.features = Features(picture=Image(), digit=ClassLabel())
        self.column_names = list(self.values)

    def __len__(self) -> int:
        return len(self.values["digit"])

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def test_images_come_from_their_column_and_classes_by_their_names() -> None:
    loaded = anofel.load_rows(Images(), DIGITS)
    np.testing.assert_array_equal(loaded.features[..., 0], PIXELS)
    assert loaded.labels.tolist() == [0, 1, 1, 0]
    turned = ImageSchema(shape=(2, 3, 1), label_values=("one", "zero"))
    assert anofel.load_rows(Images(), turned).labels.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (Images(pixels=[*PIXELS[:3], np.zeros((5, 5), np.uint8)]), r"Image 4 has the shape \(5, 5\)"),
        (Images(pixels=PIXELS.astype(float)), "unsigned bytes"),
        (Images(labels=(0, 1, 1, -1)), "no label ''"),
        (Images(image=list(PIXELS)), "of picture, digit, image it is not clear which"),
        (PIXELS, "has no labels"),
    ],
)
def test_images_that_do_not_fit_are_refused(rows: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        anofel.load_rows(rows, DIGITS)


def test_hugging_face_reads_what_it_saved_and_gives_the_same_images(tmp_path: Path) -> None:
    library = pytest.importorskip("datasets")
    pytest.importorskip("PIL")
    features = library.Features(image=library.Image(), label=library.ClassLabel(names=["zero", "one"]))
    made = library.Dataset.from_dict({"image": list(PIXELS), "label": [0, 1, 1, 0]}, features=features)
    same(anofel.load_rows(made, DIGITS), anofel.load_rows(Images(), DIGITS))
    of_hugging_face(columns()).save_to_disk(str(tmp_path / "saved"))
    same(anofel.load_file(tmp_path / "saved", SCHEMA), make_dataset(30))
    library.DatasetDict(train=made).save_to_disk(str(tmp_path / "splits"))
    with pytest.raises(InvalidInput, match="several datasets: train"):
        anofel.load_file(tmp_path / "splits", SCHEMA)


def test_without_the_library_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "dataset_info.json").write_text("{}")
    script = (
        "import sys; sys.modules['datasets'] = None\n"
        "from pathlib import Path\nimport anofel\nfrom tests.patients import make_task\n"
        f"try:\n    anofel.load_file(Path({str(tmp_path)!r}), make_task().schema)\n"
        "except anofel.AnofelError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd())
    assert "is a dataset of Hugging Face; to read it: pip install datasets." in done.stdout, done.stderr
