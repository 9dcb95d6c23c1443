import struct

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from anofel.errors import InvalidInput
from anofel.studies.dataset import Dataset, canonical_chunks
from anofel.studies.load import hold_out, load_file
from anofel.tasks.schema import ImageSchema, schema_digest
from tests.patients import make_table, make_task

SCHEMA = make_task().schema
IMAGES = ImageSchema(shape=(2, 2, 1), label_values=("a", "b", "c"))


def write_csv(table, path):
    names = list(table.columns)
    rows = zip(*table.columns.values(), strict=True)
    path.write_text("\n".join([",".join(names), *(",".join(row) for row in rows)]) + "\n")


def test_csv_parquet_and_numpy_give_the_same_dataset(tmp_path):
    table = make_table(50)
    write_csv(table, tmp_path / "t.csv")
    typed = {name: list(cells) for name, cells in table.columns.items()}
    typed["age"] = [float(cell) for cell in typed["age"]]
    typed["pressure"] = [None if cell == "" else int(cell) for cell in typed["pressure"]]
    parquet.write_table(pyarrow.table(typed), tmp_path / "t.parquet")
    arrays = {name: np.array(cells) for name, cells in table.columns.items()} | {
        "age": np.array(typed["age"])
    }
    np.savez(tmp_path / "t.npz", **arrays)
    datasets = [load_file(tmp_path / name, SCHEMA) for name in ("t.csv", "t.parquet", "t.npz")]
    canonical = {b"".join(canonical_chunks(data)) for data in datasets}
    assert len(canonical) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"", "must end in"),
        ("t.csv", b"\xff\xfe\xfa,\n", "not UTF-8"),
        ("t.parquet", b"nothing", "not a Parquet"),
        ("t.npz", b"nothing", "not a NumPy"),
        ("t.npz", b"", "not a NumPy"),
        ("t.npz", b"PK\x03\x04 the beginning of an archive", "not a NumPy"),
        ("t.xlsx", b"", "save the sheet as CSV"),
        ("t.csv", "name,age\nM\xfcller,50\n".encode("latin-1"), "not UTF-8 text .line 2.; save it as UTF-8"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        load_file(tmp_path / name, SCHEMA)
    with pytest.raises(InvalidInput, match="no file"):
        load_file(tmp_path / "absent.csv", SCHEMA)


def test_a_parquet_file_names_every_column_once(tmp_path):
    twice = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["age", "age"])
    parquet.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match="must name every column once"):
        load_file(tmp_path / "t.parquet", SCHEMA)


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", age=np.array([object()], dtype=object))
    with pytest.raises(InvalidInput, match="without pickles"):
        load_file(tmp_path / "t.npz", SCHEMA)


def test_numpy_columns_of_different_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", age=np.zeros(3), stage=np.zeros(4))
    with pytest.raises(InvalidInput, match="one length"):
        load_file(tmp_path / "t.npz", SCHEMA)


def test_own_images(tmp_path):
    images, labels = np.arange(12, dtype=np.uint8).reshape(3, 2, 2), np.array([0, 1, 2])
    np.savez(tmp_path / "i.npz", images=images, labels=labels)
    data = load_file(tmp_path / "i.npz", IMAGES)
    assert data.features.shape == (3, 2, 2, 1)
    assert data.inputs()[1].tolist() == [4 / 256, 5 / 256, 6 / 256, 7 / 256]
    np.savez(tmp_path / "f.npz", images=images.astype(float), labels=labels)
    with pytest.raises(InvalidInput, match="unsigned bytes"):
        load_file(tmp_path / "f.npz", IMAGES)
    np.savez(tmp_path / "l.npz", images=images, labels=np.array([0, 1, 1 << 32]))
    with pytest.raises(InvalidInput, match="labels from 0 to 2"):
        load_file(tmp_path / "l.npz", IMAGES)
    np.savez(tmp_path / "n.npz", images=images)
    with pytest.raises(InvalidInput, match="'images' and 'labels'"):
        load_file(tmp_path / "n.npz", IMAGES)


def test_canonical_bytes_are_exactly_as_documented():
    data = load_table()
    expected = (
        b"anofel.dataset.1"
        + schema_digest(SCHEMA)
        + struct.pack("<BBB", 4, 16, 1)
        + struct.pack("<I", 5)
        + struct.pack("<I", 2)
        + struct.pack("<Q", 3)
        + b"".join(struct.pack("<i", int(value)) for row in data.features for value in row)
        + b"".join(struct.pack("<I", int(label)) for label in data.labels)
    )
    assert b"".join(canonical_chunks(data)) == expected


def test_canonical_bytes_of_images():
    data = Dataset(np.arange(4, dtype=np.uint8).reshape(1, 2, 2, 1), np.array([2], dtype=np.int32), IMAGES)
    tail = bytes([1, 8, 3]) + struct.pack("<4IQ", 2, 2, 1, 3, 1) + bytes([0, 1, 2, 3]) + struct.pack("<I", 2)
    assert b"".join(canonical_chunks(data)).endswith(tail)


def load_table():
    from anofel.studies.encoding import encode_table

    return encode_table(make_table(3), SCHEMA)


def canonical(data):
    return b"".join(canonical_chunks(data))


def test_every_trained_bit_changes_the_bytes():
    data = load_table()
    base = canonical(data)
    features = data.features.copy()
    features[2, 4] += 1
    labels = data.labels.copy()
    labels[0] = 1 - labels[0]
    variants = [
        Dataset(features, data.labels, SCHEMA),
        Dataset(data.features, labels, SCHEMA),
        data.take(np.array([1, 0, 2])),
        data.take(np.array([0, 1])),
    ]
    assert len({base, *map(canonical, variants)}) == 5


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.zeros((2, 5), np.float64), np.zeros(2, np.int32), "integer features"),
        (np.zeros((2, 5), np.int32), np.zeros(2, np.int64), "32-bit labels"),
        (np.zeros((2, 4), np.int32), np.zeros(2, np.int32), "rows of shape"),
        (np.zeros((2, 5), np.int32), np.zeros(3, np.int32), "2 rows and 3 labels"),
        (np.zeros((2, 5), np.int32), np.array([0, 2], np.int32), "between 0 and 1"),
    ],
)
def test_dataset_that_breaks_its_schema_is_refused(features, labels, message):
    with pytest.raises(InvalidInput, match=message):
        Dataset(features, labels, SCHEMA)


def test_rows_are_not_shown():
    data = load_table()
    assert repr(data) == "Dataset(<3 rows, redacted>)"
    assert repr(make_table(3)) == "Table(<3 rows, redacted>)"


def test_hold_out_is_disjoint_and_seeded():
    from anofel.studies.encoding import encode_table

    data = encode_table(make_table(100), SCHEMA)
    train, test = hold_out(data, 1)
    assert (len(train), len(test)) == (80, 20)
    assert canonical(hold_out(data, 1)[1]) == canonical(test)
    assert canonical(hold_out(data, 2)[1]) != canonical(test)
