"""Rows dealt out as files: each row once, read back as they were."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anofel.disk.files import FileExists
from anofel.errors import InvalidInput
from anofel.learning.deal import Deal
from anofel.studies.catalogue import study_named
from anofel.studies.dataset import Dataset
from anofel.studies.load import file_of, load_file
from tests.patients import make_table, make_task


def write_csv(path: Path, count: int) -> Path:
    path.write_bytes(make_table(count).to_csv())
    return path


def test_every_row_of_a_table_gets_one_place_with_all_its_cells(tmp_path: Path) -> None:
    own = write_csv(tmp_path / "own.csv", 53)
    sizes = Deal(task=make_task(), clients=4, file=own).write(tmp_path / "rows")
    assert sorted(sizes) == ["client-1.csv", "client-2.csv", "client-3.csv", "client-4.csv", "test.csv"]
    assert sizes["test.csv"] == 10
    lines = [line for name in sizes for line in (tmp_path / "rows" / name).read_text().splitlines()[1:]]
    assert sorted(lines) == sorted(own.read_text().splitlines()[1:])
    for name, count in sizes.items():
        assert len(load_file(tmp_path / "rows" / name, make_task().schema)) == count
        assert (tmp_path / "rows" / name).stat().st_mode & 0o777 == 0o600


def test_images_come_back_as_they_were(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (40, 28, 28, 1), dtype=np.uint8)
    rows = Dataset(images, np.arange(40, dtype=np.int32) % 10, study_named("mnist").schema())
    ending, content = file_of(rows)
    own = tmp_path / f"own{ending}"
    own.write_bytes(content)
    task = replace(make_task(), schema=rows.schema)
    sizes = Deal(task=task, clients=8, file=own, split="by-label").write(tmp_path / "rows")
    parts = [load_file(tmp_path / "rows" / name, task.schema) for name in sizes]
    dealt = sorted(image.tobytes() for part in parts for image in part.features)
    assert dealt == sorted(image.tobytes() for image in images)
    assert all(len(set(part.labels.tolist())) <= 3 for part in parts[:-1])


def test_no_more_rows_than_wanted(tmp_path: Path) -> None:
    own = write_csv(tmp_path / "own.csv", 100)
    sizes = Deal(task=make_task(), clients=3, file=own, most=20).write(tmp_path / "rows")
    assert sizes == {"client-1.csv": 7, "client-2.csv": 7, "client-3.csv": 6, "test.csv": 5}


def test_the_seed_decides(tmp_path: Path) -> None:
    own = write_csv(tmp_path / "own.csv", 60)

    def first(name: str, seed: int) -> bytes:
        Deal(task=make_task(), clients=3, file=own, seed=seed).write(tmp_path / name)
        return (tmp_path / name / "client-1.csv").read_bytes()

    assert first("a", 1) == first("b", 1) != first("c", 2)


def test_what_cannot_be_dealt_out_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    own, out = write_csv(tmp_path / "own.csv", 20), tmp_path / "rows"
    with pytest.raises(InvalidInput, match="cannot be split over 17 clients"):
        Deal(task=make_task(), clients=17, file=own).write(out)
    with pytest.raises(InvalidInput, match="There is no split 'odd'"):
        Deal(task=make_task(), clients=2, file=own, split="odd").write(out)
    with pytest.raises(InvalidInput, match="names no study"):
        Deal(task=make_task(), clients=2).write(out)
    assert not out.exists()
    out.mkdir()
    with pytest.raises(FileExists):
        Deal(task=make_task(), clients=2, file=own).write(out)
