"""What anofel itself does about Flower apps; nothing here needs Flower (``test_with_flower.py`` does)."""

import io
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning.build import TrainerMissing, TrainerRefused, trainer_of
from anofel.learning.flower import isolation
from anofel.learning.flower.process import _Ended, _read, _write, isolation_here
from anofel.learning.flower.settings import FlowerApp, FlowerRefused, app_digest, read_pairs
from anofel.learning.flower.strategies import lost_of, rule_of_strategy
from anofel.learning.flower.worker import read_frame, write_frame
from anofel.roles.client.files import ClientSettings
from anofel.roles.directory import RoleConfig
from anofel.roles.owner import Own, check_start
from anofel.tasks.schema import schema_digest
from tests.patients import make_dataset, make_task

APPS = Path(__file__).parent / "apps"
CUSTOM: dict[str, Any] = {"kind": "custom", "parameters": 4}
FEDOPT = {"eta": 0.1, "beta_1": 0.9, "beta_2": 0.99, "tau": 0.001}


def app(**settings: Any) -> FlowerApp:
    return FlowerApp(**{"directory": str(APPS / "numpy_app"), "python": sys.executable, **settings})


# Strategies


def test_rule_1_fedavg_and_fedprox_are_means() -> None:
    for name in ("FedAvg", "FedProx"):
        rule = rule_of_strategy(name, {"proximal_mu": 0.5}, 3)
        assert (rule.kind, rule.lr_num, rule.lr_den, rule.momentum) == ("integer-mean", 1, 1, 0)


def test_rule_2_fedavgm_is_momentum() -> None:
    rule = rule_of_strategy("FedAvgM", {"server_learning_rate": 0.5, "server_momentum": 0.9}, 3)
    assert (rule.kind, rule.lr_num / rule.lr_den, rule.momentum) == ("integer-mean", 0.5, 58982)


def test_rule_3_adaptive_strategies_have_integer_rules() -> None:
    adam, yogi = (rule_of_strategy(name, FEDOPT, 3) for name in ("FedAdam", "FedYogi"))
    assert (adam.kind, yogi.kind) == ("integer-adam", "integer-yogi")
    assert yogi.schedule == ()
    assert yogi.lr_num / yogi.lr_den == pytest.approx(0.1)
    rates = [adam.lr_num / adam.lr_den, *(change.lr_num / change.lr_den for change in adam.schedule)]
    wanted = [0.1 * (1 - 0.99**power) ** 0.5 / (1 - 0.9**power) for power in (2, 3, 4)]
    np.testing.assert_allclose(rates, wanted, rtol=1e-5)
    assert [change.iteration for change in adam.schedule] == [2, 3]


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("Krum", "chooses single updates"),
        ("FedMedian", r"\[groups\] has medians"),
        ("FedAdagrad", "no integer rule"),
        ("QFedAvg", "its loss, which nobody learns"),
        ("FedXgbBagging", "trees have no mean"),
        ("DifferentialPrivacyClientSideFixedClipping", r"\[privacy\] says how much"),
        ("FedSomethingNew", "would be lost, and nobody ever sees one"),
    ],
)
def test_rule_4_the_others_are_refused_by_name(name: str, lost: str) -> None:
    with pytest.raises(FlowerRefused, match=f"The strategy {name} is not taken: .*{lost}"):
        rule_of_strategy(name, {}, 3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("FedAvgM", {"server_learning_rate": 0.0, "server_momentum": 0.5}),
        ("FedAvgM", {"server_learning_rate": 1.0, "server_momentum": 1.5}),
        ("FedAdam", {**FEDOPT, "tau": 0.0}),
        ("FedYogi", {**FEDOPT, "eta": 1e-9}),
    ],
)
def test_numbers_that_no_rule_holds_are_refused(name: str, settings: dict[str, float]) -> None:
    with pytest.raises(FlowerRefused, match=f"The strategy {name} has "):
        rule_of_strategy(name, settings, 3)


def test_what_is_not_kept_is_said() -> None:
    said = " ".join(lost_of({"settings": {"fraction_train": 0.5}, "evaluates": True}))
    for word in ("fraction_train = 0.5", "evaluate_fn", "number of examples", "metrics of clients"):
        assert word in said


# The app and its digest


def test_the_digest_covers_every_file_and_setting_and_nothing_else(tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(APPS / "numpy_app", copied)
    first = app_digest(copied, {})
    (copied / "numpy_app" / "__pycache__").mkdir(exist_ok=True)
    (copied / "numpy_app" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (copied / ".git").mkdir()
    (copied / ".git" / "x").write_bytes(b"x")
    assert app_digest(copied, {}) == first == app_digest(APPS / "numpy_app", {})
    assert app_digest(copied, {"learning-rate": 0.2}) != first
    assert app_digest(copied, {"learning-rate": "0.2"}) != app_digest(copied, {"learning-rate": 0.2})
    client = copied / "numpy_app" / "client.py"
    client.write_text(client.read_text() + "#")
    assert app_digest(copied, {}) != first
    client.rename(copied / "numpy_app" / "other.py")
    with pytest.raises(FlowerRefused, match="is not the one that was chosen"):
        app(directory=str(copied), digest=first).check_digest()


def test_data_inside_an_app_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.bin").write_bytes(bytes((1 << 26) - 1))
    (tmp_path / "more.bin").write_bytes(b"xx")
    with pytest.raises(FlowerRefused, match="move the data out of the app"):
        app_digest(tmp_path, {})


def test_pairs_are_those_of_flowers_commands() -> None:
    pairs = read_pairs(['partition-id=0 name="a b"', "rate=0.5", "fast=true"], "--flower-node-config")
    assert dict(pairs) == {"partition-id": 0, "name": "a b", "rate": 0.5, "fast": True}
    for wrong in ("partition-id", "=3", "name=word", "list=[1]"):
        with pytest.raises(InvalidInput, match="is no key=value"):
            read_pairs([wrong], "--flower-node-config")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "is not TOML"),
        ("[project]\n", "has no .tool.flwr.app.components."),
        ("[tool.flwr.app.components]\nclientapp = 'a:b'\n", "has no .tool.flwr.app.components."),
    ],
)
def test_a_directory_that_is_no_app_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(FlowerRefused, match=message):
        app(directory=str(tmp_path)).manifest()


def test_a_setting_that_the_app_does_not_have_is_refused() -> None:
    with pytest.raises(FlowerRefused, match="no setting rate; it has num-server-rounds"):
        app(config=(("rate", 1),)).manifest()


# Tasks, certificates and roles


def test_rule_5_rows_certified_for_an_app_are_trained_by_it_alone() -> None:
    chosen = app()
    digest = chosen.check_digest()
    task = make_task(model=CUSTOM, training={"algorithm": "custom"}, schema={"app": digest})
    with pytest.raises(TrainerRefused, match="bring it with --flower-app"):
        trainer_of(task, "tests.learning.own_trainers:logistic")
    with pytest.raises(TrainerRefused, match="and this one is"):
        trainer_of(task, app(config=(("learning-rate", 0.2),)))
    with pytest.raises(TrainerRefused, match="is not custom"):
        trainer_of(make_task(), chosen)


def test_the_digest_of_an_app_is_part_of_what_is_certified() -> None:
    plain, named = make_dataset(3).schema, make_task(schema={"app": "0" * 64}).schema
    assert schema_digest(plain) != schema_digest(named)
    assert "app" not in plain.document()
    with pytest.raises(InvalidInput, match="must be a digest of 64"):
        make_task(schema={"app": "X"})


def test_a_clients_file_names_its_app_and_its_digest() -> None:
    named = {"data": "rows.csv", "max_epsilon": "1", "flower_app": "/app", "flower_python": "/python"}
    lists = {"flower_data": ["/a", "/b"], "flower_node_config": ["partition-id=3"], "flower_seconds": 9}
    config = RoleConfig(
        role="client",
        board="http://127.0.0.1:1",
        genesis="00" * 32,
        settings={**named, **lists, "flower_digest": "11" * 32},  # type: ignore[dict-item]
    )
    trainer = ClientSettings.of(config).trainer
    assert isinstance(trainer, FlowerApp)
    assert (trainer.data, trainer.node, trainer.seconds) == (("/a", "/b"), (("partition-id", 3),), 9)
    assert trainer.digest == "11" * 32
    with pytest.raises(InvalidInput, match="needs flower_python and flower_digest"):
        ClientSettings.of(replace(config, settings=named))  # type: ignore[arg-type]


def test_an_owner_starts_a_custom_task_at_the_model_of_an_app() -> None:
    from anofel.models.rules import first_model

    task = make_task(model=CUSTOM, training={"algorithm": "custom"})
    check_start(task, Own(first=first_model(task, {"0": np.zeros((3, 1)), "1": np.zeros(1)})))
    with pytest.raises(InvalidInput, match="other tensors"):
        check_start(task, Own(first=first_model(task, {"0": np.zeros(5)})))
    with pytest.raises(TrainerMissing):
        check_start(task, Own())


# Isolation and frames


def test_without_namespaces_an_app_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_works", lambda *_command: False)
    with pytest.raises(FlowerRefused, match="Install bubblewrap, or allow it with --insecure-flower-network"):
        isolation_here(app())
    open_one = isolation_here(app(insecure_network=True))
    assert "INSECURE" in " ".join(open_one.sentences)


CONTROLLED = """
import os, sys
try:
    os.tcgetpgrp(0)  # of the terminal that controls the process, no other's
except OSError:
    sys.exit(7)
"""


@pytest.mark.parametrize("kind", ["bubblewrap", "unshare", "neither"])
def test_an_app_has_no_terminal_to_type_commands_in(kind: str, tmp_path: Path) -> None:
    prefixes = {"bubblewrap": (*isolation._SEALED, "--ro-bind", "/", "/"), "unshare": isolation._UNSHARED}
    prefix = prefixes.get(kind, ())
    if prefix and not isolation._works(*prefix):
        pytest.skip(f"{kind} may not make namespaces here")
    pid, terminal = pty.fork()
    if pid == 0:  # a session with a terminal, as a user's
        os.execvp("env", ["env", f"TMPDIR={tmp_path}", *prefix, sys.executable, "-c", CONTROLLED])
    with open(terminal, "rb", closefd=True):
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (0 if kind == "neither" else 7)


@pytest.mark.parametrize("kind", ["bubblewrap", "unshare"])
def test_what_keeps_an_app_ends_with_the_group_of_its_parent(kind: str, tmp_path: Path) -> None:
    """A simulation that ends a worker ends what the worker started (``workers.process``)."""
    prefixes = {"bubblewrap": (*isolation._SEALED, "--ro-bind", "/", "/"), "unshare": isolation._UNSHARED}
    prefix = prefixes[kind]
    if not isolation._works(*prefix):
        pytest.skip(f"{kind} may not make namespaces here")
    script = "import sys, time; print(flush=True); time.sleep(3600)"
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    with process.stdout as said:
        assert said.read(1)
        os.killpg(process.pid, signal.SIGKILL)
        assert said.read() == b"", "the pipe ends when nobody is left who holds it"
    process.wait()


def test_what_is_no_python_is_said() -> None:
    with pytest.raises(FlowerRefused, match="is not a Python that starts"):
        isolation._python_paths("/bin/true")


def test_a_frame_of_one_side_is_read_by_the_other() -> None:
    arrays = {"a/b": np.arange(6.0).reshape(2, 3), "c": np.zeros((), "<f4")}
    stream = io.BytesIO()
    _write(stream, {"who": "0"}, arrays)
    head, read = read_frame(io.BytesIO(stream.getvalue()))
    back = io.BytesIO()
    write_frame(back, head, read)
    head, again = _read(io.BytesIO(back.getvalue()), arrays)
    assert head == {"who": "0"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype


def frame(head: object, body: bytes = b"") -> io.BytesIO:
    text = json.dumps(head).encode()
    return io.BytesIO(struct.pack(">I", len(text)) + text + body)


@pytest.mark.parametrize(
    "stream",
    [
        io.BytesIO(b""),
        io.BytesIO(b"nonsense" * 9),
        frame([]),
        frame({}),
        frame({"arrays": [["a", "<f8", [3]]]}, b"short"),
        frame({"arrays": [["a", "|O", [3]]]}, bytes(24)),
        frame({"arrays": [["a", "<i8", [3]]]}, bytes(24)),
        frame({"arrays": [["a", "<f8", [4]]]}, bytes(32)),
        frame({"arrays": [["b", "<f8", [3]]]}, bytes(24)),
        frame({"arrays": [["a", "<f8", [-3]]]}, bytes(24)),
        frame({"arrays": [["a", "<f8", 3]]}, bytes(24)),
        frame({"arrays": [["a", "<f8", [3.0]]]}, bytes(24)),
        frame({"arrays": [["a"]]}),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_nonsense_of_an_app_is_an_error_that_is_caught(stream: io.BytesIO, first: bool) -> None:
    stream.seek(0)
    fits_a_first_model = stream.getvalue().find(b"[4]") > 0 or stream.getvalue().find(b'"b"') > 0
    if first and fits_a_first_model:
        return
    with pytest.raises((_Ended, ValueError, TypeError, KeyError)):
        _read(stream, None if first else {"a": np.zeros(3)})


def test_no_answer_is_larger_than_a_model_may_be() -> None:
    with pytest.raises(ValueError, match="arrays"):
        _read(frame({"arrays": [["a", "<f8", [1 << 40]]]}), None)


@pytest.mark.parametrize(
    ("options", "says", "code"),
    [
        (["--flower-app", str(APPS / "numpy_app")], "--flower-app needs --flower-python", 2),
        (["--flower-python", sys.executable], "need --flower-app, its directory", 2),
        (
            ["--flower-app", str(APPS / "numpy_app"), "--flower-python", sys.executable, "--study", "nwtco"],
            "goes with one task file or none",
            2,
        ),
        (
            ["--flower-app", str(APPS), "--flower-python", "/bin/true"],
            "pyproject.toml cannot be read",
            1,
        ),
        (
            ["--flower-app", str(APPS / "numpy_app"), "--flower-python", sys.executable],
            "ModuleNotFoundError: No module named 'flwr'",
            1,
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(options: list[str], says: str, code: int) -> None:
    if "--flower-app" in options:
        options = [*options, "--insecure-flower-network"]
    done = subprocess.run(
        [sys.executable, "-m", "anofel", "simulate", *options], capture_output=True, text=True
    )
    assert done.returncode == code
    assert says in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
