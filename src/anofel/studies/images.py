"""Read the image studies: IDX files, CIFAR-10 as sheets of PNG, TinyImageNet from the user's own copy."""

import json
import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anofel.disk.state_files import decode_state
from anofel.errors import InvalidInput
from anofel.studies.catalogue import Study
from anofel.studies.dataset import Dataset
from anofel.studies.fetch import OnBytes, StudyNotFetched, sha256_of, study_directory, verified_file

Pixels = NDArray[np.uint8]

_IDX_HEADERS = {3: 2051, 1: 2049}


def read_idx(path: Path, dimensions: int) -> Pixels:
    """Read an IDX file of unsigned bytes with the given number of dimensions."""
    data = path.read_bytes()
    header = struct.unpack_from(f">{1 + dimensions}I", data) if len(data) >= 4 * (1 + dimensions) else (0,)
    shape = header[1:]
    if header[0] != _IDX_HEADERS[dimensions] or len(data) != 4 * len(header) + math.prod(shape):
        raise InvalidInput(f"'{path.name}' is not an IDX file of bytes with {dimensions} dimensions.")
    return np.frombuffer(data, np.uint8, offset=4 * len(header)).reshape(shape)


def load_idx(study: Study) -> tuple[Dataset, Dataset]:
    """Load MNIST or Fashion-MNIST: training rows and test rows."""

    def part(prefix: str) -> Dataset:
        images = read_idx(verified_file(study, f"{prefix}-images-idx3-ubyte"), 3)
        labels = read_idx(verified_file(study, f"{prefix}-labels-idx1-ubyte"), 1)
        return Dataset(images[..., None], labels.astype(np.int32), study.schema())

    return part("train"), part("t10k")


def load_cifar(study: Study) -> tuple[Dataset, Dataset]:
    """Load CIFAR-10: each PNG holds one image per row of 1,024 RGB pixels."""

    def part(sheets: list[str], labels: str) -> Dataset:
        images = np.concatenate([_read_png(verified_file(study, sheet)) for sheet in sheets])
        values = decode_state(verified_file(study, labels).read_bytes(), list[int], labels)
        return Dataset(images.reshape(-1, 32, 32, 3), np.array(values, dtype=np.int32), study.schema())

    train = [f"data_batch_{number}.png" for number in range(1, 6)]
    return part(train, "train_lables.json"), part(["test_batch.png"], "test_lables.json")


def _read_png(path: Path) -> Pixels:
    try:
        from PIL import Image
    except ImportError:
        raise InvalidInput("This study needs the extra for images: pip install 'anofel[images]'.") from None
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"), dtype=np.uint8)
    except OSError as error:
        raise InvalidInput(f"'{path.name}' is not an image: {error}.") from None


def take_tiny_imagenet(study: Study, copy: Path, progress: OnBytes) -> Path:
    """Convert the user's own copy (``train/``, ``val/``, ``wnids.txt``) into arrays in the cache."""
    wnids = copy / "wnids.txt"
    if not wnids.is_file():
        raise InvalidInput(f"'{copy}' has no wnids.txt; give the unpacked tiny-imagenet-200 directory.")
    label_of = {wnid: label for label, wnid in enumerate(wnids.read_text().split())}
    if len(label_of) > study.schema().classes:
        raise InvalidInput(f"wnids.txt names {len(label_of)} classes; at most {study.schema().classes} fit.")
    parts = _list_images(copy, label_of)
    total, done = sum(len(files) for files in parts.values()), 0
    directory = study_directory(study)
    directory.mkdir(parents=True, exist_ok=True)
    hashes: dict[str, str] = {}
    for part, files in parts.items():
        shape = (len(files), *study.schema().row_shape)
        images = np.lib.format.open_memmap(directory / f"{part}-images.npy", "w+", np.uint8, shape)
        for index, (path, _) in enumerate(files):
            image = _read_png(path)
            if image.shape != shape[1:]:
                raise InvalidInput(f"'{path.name}' is not an image of 64 × 64 pixels.")
            images[index] = image
            done += 1
            progress(done, total)
        images.flush()
        np.save(directory / f"{part}-labels.npy", np.array([label for _, label in files], dtype=np.int32))
        hashes |= {name: sha256_of(directory / name) for name in (f"{part}-images.npy", f"{part}-labels.npy")}
    (directory / "own-copy.json").write_text(json.dumps(hashes, indent=1, sort_keys=True))
    return directory


def _list_images(copy: Path, label_of: dict[str, int]) -> dict[str, list[tuple[Path, int]]]:
    annotations = copy / "val" / "val_annotations.txt"
    train = [
        (path, label)
        for wnid, label in label_of.items()
        for path in sorted((copy / "train" / wnid / "images").glob("*.JPEG"))
    ]
    validation = [
        (copy / "val" / "images" / fields[0], label_of[fields[1]])
        for line in (annotations.read_text().splitlines() if annotations.is_file() else ())
        if len(fields := line.split("\t")) > 1 and fields[1] in label_of
    ]
    if not train or not validation:
        raise InvalidInput(f"'{copy}' holds no images in train/<class>/images and val/images.")
    return {"train": train, "val": validation}


def load_tiny_imagenet(study: Study) -> tuple[Dataset, Dataset]:
    """Load the converted copy; its files must still be the ones that were converted."""
    directory = study_directory(study)
    record = directory / "own-copy.json"
    if not record.is_file():
        raise StudyNotFetched(
            "TinyImageNet is not here yet; run: anofel study fetch tiny-imagenet --from DIRECTORY"
        )
    for name, sha256 in decode_state(record.read_bytes(), dict[str, str], str(record)).items():
        if sha256_of(directory / name) != sha256:
            raise InvalidInput(f"'{directory / name}' changed since it was converted; fetch the study again.")

    def part(prefix: str) -> Dataset:
        images = np.load(directory / f"{prefix}-images.npy", mmap_mode="r")
        return Dataset(images, np.load(directory / f"{prefix}-labels.npy"), study.schema())

    return part("train"), part("val")
