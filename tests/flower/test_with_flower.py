"""Unmodified apps on Flower itself, of two versions, each in an environment that is made here."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anofel.learning.flower import isolation
from anofel.learning.flower.process import FlowerFailed
from anofel.learning.flower.settings import FlowerApp, FlowerRefused
from anofel.learning.flower.trainer import FlowerTrainer
from anofel.phase2_training.step4_training_process import TrainingProcess
from anofel.privacy.protect import ProtectedUpdate
from tests.patients import make_dataset, make_task

pytestmark = pytest.mark.slow
APPS = Path(__file__).parent / "apps"
OWN_LOOP = Path(__file__).parent / "own_loop.py"
CLIENTS = 4
ROUNDS = 3
TASK = make_task(
    model={"kind": "custom", "parameters": 4},
    training={"algorithm": "custom"},
    privacy={"clipping_norm": 10},
)
VERSIONS = ("flwr==1.21.0", "flwr")
SAME = [
    ("numpy_app", "FedAvg"),
    ("numpy_app", "FedProx"),
    ("numpy_app", "FedAdam"),
    ("numpy_app", "FedYogi"),
    ("numpy_app", "FedAvgM"),
    ("legacy_app", "FedAvg"),
    ("legacy_app", "FedProx"),
    ("legacy_app", "FedAvgM"),
    ("sklearn_app", "FedAvg"),
    ("torch_app", "FedAvg"),
]

ABSENT = ("FedProx", "FedAvgM", "Krum", "FedMedian")
CACHE = Path(__file__).parents[2] / ".cache" / "flower"


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    """An environment with Flower, kept from run to run; scikit-learn and PyTorch are those of this one."""
    place = CACHE / f"{request.param}-python{sys.version_info.major}.{sys.version_info.minor}"
    there, made = place / "bin" / "python", place / "made"
    if not made.exists():
        venv.create(place, with_pip=True, clear=True)
    subprocess.run([there, "-m", "pip", "install", "--quiet", "--upgrade", request.param], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    made.touch()
    return there


def confine(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only this kind of isolation work; skip where it does not."""
    commands = {"bubblewrap": (*isolation._SEALED, "--ro-bind", "/", "/"), "unshare": isolation._UNSHARED}
    if kind in commands and not isolation._works(*commands[kind]):
        pytest.skip(f"{kind} may not make namespaces here")
    if kind == "unshare":
        works = isolation._works
        monkeypatch.setattr(isolation, "_works", lambda *words: words[0] != "bwrap" and works(*words))


def app(python: Path, name: str = "numpy_app", **settings: Any) -> FlowerApp:
    directory = APPS / name if isinstance(name, str) else name
    return FlowerApp(directory=str(directory), python=str(python), **{"seconds": 120, **settings})


def simulate(python: Path, *options: str, failing: bool = False) -> Any:
    command = [sys.executable, "-m", "anofel", "simulate", "--json", "--flower-python", str(python)]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == int(failing), done.stderr
    return done.stderr if failing else json.loads(done.stdout)


def own_loop(python: Path, name: str, config: dict[str, Any], out: Path) -> dict[str, Any]:
    """The model after Flower's own loop."""
    subprocess.run(
        [python, OWN_LOOP, APPS / name, str(CLIENTS), out, json.dumps(config)],
        check=True,
        capture_output=True,
    )
    with np.load(out) as arrays:
        return dict(arrays)


@pytest.mark.parametrize(("name", "strategy"), SAME)
def test_an_app_trains_as_in_flowers_own_loop(
    python: Path, name: str, strategy: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name == "numpy_app" and strategy in ABSENT and "1.21" in request.node.callspec.params["python"]:
        pytest.skip(f"Flower 1.21 has no {strategy} for messages")
    if name == "torch_app":
        pytest.importorskip("torch")
    config = {"strategy": strategy, "num-server-rounds": ROUNDS}
    expected = own_loop(python, name, config, tmp_path / "own.npz")
    pairs = [f"--flower-run-config={key}={json.dumps(value)}" for key, value in config.items()]
    options = ["--clipping-norm", "16", "--noise-multiplier", "0.000001", "--insecure-plain"]
    out = tmp_path / "run"
    found = simulate(
        python,
        *(f"--flower-app={APPS / name}", f"--clients={CLIENTS}", *pairs, *options, "--out", str(out)),
    )
    assert [entry["outcome"] for entry in found["iterations"]] == ["summed"] * ROUNDS
    from anofel.models.integer_model import IntegerModel

    (last,) = out.glob(f"models/*-{ROUNDS}.model")
    made = IntegerModel.load(last).parameters()
    assert sorted(made) == sorted(expected)
    moved = max(float(np.abs(array).max()) for array in expected.values())
    assert moved > 0.01
    for array_name, array in expected.items():
        np.testing.assert_allclose(made[array_name], array, atol=1e-4)


def test_an_app_goes_through_the_real_protocol_and_the_audit(python: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = [f"--flower-app={APPS / 'numpy_app'}", "--clients=3", "--iterations=1", f"--out={out}"]
    found = simulate(python, *options, "--noise-multiplier", "0.01")
    assert found["iterations"][0]["count"] == 3
    audited = subprocess.run([sys.executable, "-m", "anofel", "audit", found["board"]], capture_output=True)
    assert audited.returncode == 0, audited.stderr


def test_clients_whose_app_fails_post_and_are_counted_with_zero(python: Path, tmp_path: Path) -> None:
    """Whether they post must not depend on what the app makes of their rows."""
    options = [f"--flower-app={APPS / 'numpy_app'}", "--clients=6", "--iterations=1"]
    hows = 'misbehave-1="raise" misbehave-2="hang" misbehave-3="die" misbehave-4="nonsense"'
    options += [f"--flower-node-config={hows}", "--flower-seconds=20", f"--out={tmp_path / 'run'}"]
    (last,) = simulate(python, *options)["iterations"]
    assert (last["outcome"], last["count"], last["posts"]) == ("summed", 6, 6)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("raise", "ValueError: row 3 is odd"),
        ("hang", "took longer than 3 seconds"),
        ("die", "ended with the code 7"),
        ("memory", "MemoryError"),
        ("nonsense", "answered nonsense"),
    ],
)
def test_what_an_app_does_wrong_is_a_failure_and_the_next_training_works(
    python: Path, how: str, says: str
) -> None:
    wrong = app(python, node=(("misbehave", how),), seconds=3 if how == "hang" else 300, gigabytes=2)
    trainer = FlowerTrainer(wrong, lambda rows: ("0", {"partition-id": 0}))
    with pytest.raises(FlowerFailed, match=says):
        trainer.train(trainer.initial(), make_dataset(10))
    object.__setattr__(trainer, "app", app(python))  # the same trainer, whose app behaves now
    trainer._node_of = lambda rows: ("1", {"partition-id": 1, "misbehave": ""})
    assert trainer.train(trainer.initial(), make_dataset(10)).examples == 20
    trainer.close()


def wait_for(training: TrainingProcess, seconds: float) -> ProtectedUpdate:
    """Take what a client would post when its post is due."""
    end = time.monotonic() + seconds
    while training._answers.empty() and time.monotonic() < end:
        time.sleep(0.05)
    return training.take()


@pytest.mark.parametrize("how", ["", "raise", "hang", "die", "nonsense"])
def test_a_client_has_something_to_post_whatever_its_app_does(python: Path, how: str) -> None:
    node = (("partition-id", 0), ("misbehave", how))
    training = TrainingProcess(TASK, app(python, node=node), make_dataset(10))
    layout = training.get_ready()
    assert layout.size == 4
    from anofel.models.rules import first_model

    model = first_model(
        TASK, {name: np.zeros(shape) for name, shape in zip(layout.names, layout.shapes, strict=True)}
    )
    training.begin(model.to_bytes())
    update = wait_for(training, 20 if how == "hang" else 240)
    assert bool(update.values.any()) == (how == "")
    if how:
        assert "row 3" not in update.failure  # a log must not quote rows
    training.close()


@pytest.mark.parametrize("kind", ["bubblewrap", "unshare", "none"])
def test_what_an_app_sees(python: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confine(kind, monkeypatch)
    monkeypatch.setenv("ANOFEL_SECRET", "x")
    (tmp_path / "secret").write_text("x")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = {}
        for what, how in {
            "network": f"call {port}",
            "data": f"look {tmp_path / 'data' / 'rows.csv'}",
            "others": f"look {tmp_path / 'secret'}",
            "variables": "environment",
        }.items():
            looking = app(
                python,
                node=(("misbehave", how),),
                data=(str(tmp_path / "data"),),
                insecure_network=kind == "none",
            )
            trainer = FlowerTrainer(looking)
            assert trainer.isolation.kind == kind
            with pytest.raises(FlowerFailed) as failed:
                trainer.train(trainer.initial(), make_dataset(4))
            said[what] = str(failed.value).rpartition("ValueError: ")[2]
            trainer.close()
    assert said["network"] == ("reached." if kind == "none" else "not reached.")
    assert said["data"] == "seen."
    assert said["others"] == ("not seen." if kind == "bubblewrap" else "seen.")
    assert "ANOFEL_SECRET" not in said["variables"]


@pytest.mark.parametrize("kind", ["unshare", "none"])
def test_rows_that_a_killed_app_wrote_down_are_gone(
    python: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confine(kind, monkeypatch)
    """Under ``unshare`` also if its parent is killed with it, as a client whose post is due does."""
    told = tmp_path / "told"
    node = (("partition-id", 0), ("misbehave", f"tell {told}"))
    trainer = FlowerTrainer(app(python, node=node, seconds=5, insecure_network=kind == "none"))
    scratch = trainer._process._scratch
    clean_up = scratch.cleanup
    if kind == "unshare":
        monkeypatch.setattr(scratch, "cleanup", lambda: None)
    with pytest.raises(FlowerFailed, match="took longer than 5 seconds"):
        trainer.train(trainer.initial(), make_dataset(10))
    rows = Path(told.read_text())
    assert rows.name == "0.npz", "they were there"
    assert not rows.parent.exists()
    clean_up()


def test_what_an_app_forked_does_not_hold_its_parent(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without namespaces it lives on, and must not keep the pipe open on which an answer is awaited."""
    told = tmp_path / "told"
    node = (("partition-id", 0), ("misbehave", f"fork {told}"))
    trainer = FlowerTrainer(app(python, node=node, seconds=5, insecure_network=True))
    with pytest.raises(FlowerFailed, match="took longer than 5 seconds"):
        trainer.train(trainer.initial(), make_dataset(10))
    os.kill(int(told.read_text()), signal.SIGKILL)  # it was still there


@pytest.mark.parametrize(
    ("strategy", "says"),
    [
        ("Krum", "The strategy Krum is not taken: it chooses single updates"),
        ("FedMedian", "a median needs every update"),
        ("subclass", "strategy 'Own' is a subclass of FedAvg"),
        ("replaced", "replaces 'aggregate_train' of its strategy"),
        ("own loop", "sends its messages itself"),
        ("integers", "The array '0' holds int64"),
    ],
)
def test_what_is_not_kept_is_refused_by_name(
    python: Path, strategy: str, says: str, request: pytest.FixtureRequest
) -> None:
    if strategy in ABSENT and "1.21" in request.node.callspec.params["python"]:
        pytest.skip(f"Flower 1.21 has no {strategy} for messages")
    options = [
        f"--flower-app={APPS / 'numpy_app'}",
        f'--flower-run-config=strategy="{strategy}"',
    ]
    said = simulate(python, *options, failing=True)
    assert re.search(says, said), said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (
            "numpy_app/numpy_app/client.py",
            "app = ClientApp()",
            "from flwr.client.mod import secaggplus_mod\napp = ClientApp(mods=[secaggplus_mod])",
            "uses 'secaggplus_mod'",
        ),
        (
            "numpy_app/numpy_app/client.py",
            "app = ClientApp()",
            "from flwr.client.mod import LocalDpMod\napp = ClientApp(mods=[LocalDpMod(1.0, 1.0, 1.0, 1e-5)])",
            "uses 'LocalDpMod', whose noise",
        ),
        (
            "legacy_app/legacy_app/server.py",
            '{"lr": config["learning-rate"],',
            '{"lr": config["learning-rate"] / number,',
            "change from round to round",
        ),
    ],
)
def test_a_changed_app_is_refused(
    python: Path, file: str, old: str, new: str, says: str, tmp_path: Path
) -> None:
    name = file.partition("/")[0]
    shutil.copytree(APPS / name, tmp_path / name)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    with pytest.raises(FlowerRefused, match=says):
        FlowerTrainer(FlowerApp(directory=str(tmp_path / name), python=str(python)))


def test_an_app_that_wants_them_gets_the_certified_rows(python: Path, tmp_path: Path) -> None:
    shutil.copytree(APPS / "numpy_app", tmp_path / "numpy_app")
    client = tmp_path / "numpy_app" / "numpy_app" / "client.py"
    text = client.read_text().replace(
        "    misbehave(",
        '    raise ValueError(np.load(context.node_config["anofel-rows"])["features"].shape)\n    misbehave(',
    )
    client.write_text(text)
    trainer = FlowerTrainer(FlowerApp(directory=str(tmp_path / "numpy_app"), python=str(python)))
    rows = make_dataset(17)
    with pytest.raises(FlowerFailed, match=r"\(17, 5\)"):
        trainer.train(trainer.initial(), rows)
    trainer.close()
