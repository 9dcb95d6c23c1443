"""Images as a client's data, and trainers of one's own, in the roles."""

import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from anofel.board.announcement import facts_of
from anofel.board.state import TaskState
from anofel.ids import Subject, TaskId
from anofel.learning.build import TrainerRefused
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.phase1_setup.step1d_announcement import announce
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certifier.policy import Policy, load_schema
from anofel.roles.client.doctor import Doctor, _find
from anofel.roles.client.files import ClientSettings, load_certified
from anofel.roles.directory import read_config
from anofel.studies.dataset import Dataset
from anofel.tasks.schema import ImageSchema
from tests.board.world import CLASS
from tests.patients import make_task
from tests.roles.people import make_client, open_client, toml

OWN = "tests.learning.own_trainers:logistic"
SCHEMA = ImageSchema(shape=(28, 28, 1), label_values=tuple("0123456789"))


def write_images(directory: Path, rows: int = 40) -> tuple[Path, Path]:
    """Images as a NumPy archive, and a task file that names their study."""
    rng = np.random.default_rng(rows)
    images, labels = rng.integers(0, 256, (rows, 28, 28), dtype=np.uint8), rng.integers(0, 10, rows)
    np.savez(directory / "digits.npz", images=images, labels=labels)
    (directory / "task.toml").write_text('[task]\nname = "digits"\nstudy = "mnist"\n')
    return directory / "digits.npz", directory / "task.toml"


def client_init(tmp_path: Path, keys: KeyDirectory, *options: str) -> subprocess.CompletedProcess[str]:
    data, schema = write_images(tmp_path)
    return subprocess.run(
        [
            sys.executable, "-m", "anofel", "client", "init", str(tmp_path / "ward"), "--board", "http://b",
            "--genesis", "00" * 32, "--data", str(data), "--schema", str(schema), "--keys", str(keys.path),
            "--max-epsilon", "1", "--key-file", str(tmp_path / "ward.key"), *options,
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip


def test_a_client_holds_images_and_trains_on_the_certified_ones_only(
    keys: KeyDirectory, tmp_path: Path
) -> None:
    made = client_init(tmp_path, keys)
    assert made.returncode == 0, made.stderr
    assert "code that runs here" not in made.stderr
    settings = ClientSettings.of(read_config(tmp_path / "ward", role="client"))
    digest = dataset_digest(load_images(tmp_path / "digits.npz"))
    found = load_certified(tmp_path / "ward", settings, digest)
    assert isinstance(found, CertifiedDataset)
    assert found.dataset.features.shape == (40, 28, 28, 1)
    with np.load(tmp_path / "digits.npz") as archive:
        images, labels = archive["images"].copy(), archive["labels"]
    images[0, 0, 0] ^= 1
    np.savez(tmp_path / "digits.npz", images=images, labels=labels)
    with pytest.raises(Exception, match="differs from what was certified"):
        load_certified(tmp_path / "ward", settings, digest)


def load_images(path: Path) -> Dataset:
    """The rows, put together without the package's reader."""
    with np.load(path) as archive:
        return Dataset(archive["images"][..., None], archive["labels"].astype(np.int32), SCHEMA)


def test_a_certifier_judges_images(tmp_path: Path) -> None:
    data, _ = write_images(tmp_path)
    values = {"type": 3, "schema": "task.toml", "min_rows": 10, "max_rows": 100, "max_duplicates": 0}
    policy = tmp_path / "policy.toml"
    policy.write_text("[[dataset]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in values.items()))
    rows = Policy.load(policy).of(3).inspect(data, "Ward 3")
    assert dataset_digest(rows) == dataset_digest(load_images(data))
    with np.load(data) as archive:
        images, labels = archive["images"].copy(), archive["labels"].copy()
    images[1], labels[1] = images[0], labels[0]
    np.savez(data, images=images, labels=labels)
    with pytest.raises(Exception, match="1 rows of the data equal an earlier one"):
        Policy.load(policy).of(3).inspect(data, "Ward 3")


def test_a_task_file_gives_the_schema_of_its_study(tmp_path: Path) -> None:
    assert load_schema(write_images(tmp_path)[1]) == SCHEMA
    (tmp_path / "none.toml").write_text('[task]\nname = "x"\n')
    with pytest.raises(ValueError, match=r"\[schema\] is needed"):
        load_schema(tmp_path / "none.toml")


def test_a_trainer_of_ones_own_is_kept_and_called_what_it_is(keys: KeyDirectory, tmp_path: Path) -> None:
    made = client_init(tmp_path, keys, "--trainer", OWN)
    assert made.returncode == 0, made.stderr
    assert "code that runs here with your rights and sees your data" in made.stderr.replace("\n", " ")
    config = tomllib.loads((tmp_path / "ward" / "role.toml").read_text())
    assert config["settings"]["trainer"] == OWN
    assert ClientSettings.of(read_config(tmp_path / "ward", role="client")).trainer == OWN


def test_a_trainer_that_cannot_be_imported_is_refused_at_once(keys: KeyDirectory, tmp_path: Path) -> None:
    made = client_init(tmp_path, keys, "--trainer", "no_such_module:make")
    assert made.returncode == 1
    assert made.stderr.strip().splitlines()[-1].startswith("anofel: The trainer 'no_such_module:make' cannot")
    assert not (tmp_path / "ward").exists()
    with pytest.raises(TrainerRefused):
        make_client(tmp_path / "x", keys, board="http://b", genesis=bytes(32), trainer="no_such_module:make")


def findings(tmp_path: Path, keys: KeyDirectory, trainer: str) -> tuple[str, bool, list[str]]:
    """What the doctor says of a client's trainer, and which files the client has afterwards."""
    made = make_client(
        tmp_path / "ward", keys, board="http://b", genesis=bytes(32), trainer=trainer, task="test"
    )
    task = make_task(model={"kind": "custom", "parameters": 6})
    announced = announce(task, key_id=bytes(32))
    posted = TaskState(
        task_id=TaskId(bytes(32)),
        owner=Subject(bytes(32)),
        announcement=announced,
        facts=facts_of(task, CLASS),
        size_class=0,
        announced_at=1,
    )
    state = SimpleNamespace(tasks={posted.task_id: posted})
    with open_client(*made) as directory:
        doctor = Doctor(directory, SimpleNamespace(state=state))  # type: ignore[arg-type]
        found = _find("trainer", doctor._trainer)
        files = sorted(path.name for path in directory.path.iterdir())
    return found.finding, found.ok, files


def test_a_doctor_finds_a_broken_trainer_before_anything_is_charged(
    keys: KeyDirectory, tmp_path: Path
) -> None:
    said, ok, files = findings(tmp_path, keys, "tests.learning.own_trainers:raises_in_training")
    assert not ok
    assert said.endswith("raises_in_training' failed: RuntimeError: mat1 and mat2 cannot be multiplied.")
    assert "ledger.sqlite" not in files


def test_a_doctor_finds_nothing_wrong_with_a_good_one(keys: KeyDirectory, tmp_path: Path) -> None:
    said, ok, _ = findings(tmp_path, keys, OWN)
    assert ok, said
    assert "code that runs here with your rights" in said
