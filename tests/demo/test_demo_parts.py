"""The parts of the demo that can be looked at without running it."""

import importlib.util
import io
import signal
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from anofel.demo import data, summary
from anofel.demo.data import DemoStudy, load_studies, policy_text, task_text, write_files
from anofel.demo.misbehave import ACCEPTED, TRIED, read_tries
from anofel.demo.plan import TARGET_EPSILON, Options, StageLayout, default_directory, size_class
from anofel.demo.processes import PRELOAD, Processes, RoleDied
from anofel.demo.summary import BEARABLE_NOISE, client_level
from anofel.demo.view import LiveScreen, PlainScreen
from anofel.disk.files import FileExists
from anofel.errors import InvalidInput, PeerUnreachable
from anofel.privacy.plan import Plan
from anofel.roles.certifier.policy import Policy
from anofel.studies.bundled import BUNDLED, load_bundled
from anofel.studies.encoding import encode_table
from anofel.studies.fetch import ChecksumMismatch
from anofel.tasks.schema import TableSchema
from anofel.tasks.task import Task
from tests.node.support import SECONDS

BUNDLED_NAMES = tuple(study.name for study in BUNDLED)


def options(tmp_path: Path, **changes: object) -> Options:
    values = {"directory": tmp_path / "demo", "studies": BUNDLED_NAMES, "clients": 4, "iterations": 2}
    return Options(**values | changes)  # type: ignore[arg-type]


@pytest.fixture
def studies(tmp_path: Path) -> list[DemoStudy]:
    return load_studies(options(tmp_path), lambda _text: None)


# Data


@pytest.mark.parametrize("study", BUNDLED, ids=lambda study: study.name)
def test_a_bundled_study_fits_its_schema(study):  # type: ignore[no-untyped-def]
    schema = study.schema()
    assert isinstance(schema, TableSchema)
    rows = encode_table(load_bundled(study.name), schema)
    assert len(rows) == study.rows
    assert 0.3 < rows.labels.mean() < 0.6
    assert abs(rows.inputs()).max() < 8


def test_a_changed_file_of_a_bundled_study_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules["anofel.studies.bundled"]._PINNED, "breast_cancer.csv", "00")
    with pytest.raises(ChecksumMismatch, match=r"breast_cancer\.csv"):
        load_bundled("breast-cancer")


def test_without_its_package_a_bundled_study_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(InvalidInput, match=r"anofel\[demo\]"):
        load_bundled("diabetes")


def test_a_study_that_cannot_be_fetched_is_replaced_and_the_user_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PeerUnreachable("There is no network.")

    monkeypatch.setattr(data, "fetch", fail)
    said: list[str] = []
    found = load_studies(options(tmp_path, studies=("support2", "nwtco")), said.append)
    assert [study.name for study in found] == ["breast-cancer", "diabetes"]
    assert said[0] == "There is no network."
    assert "stands in for it" in said[1]


def test_every_row_has_one_place(studies: list[DemoStudy]) -> None:
    for study in studies:
        dealt = [part.table.columns["patient"] for part in (*study.parts, study.held_out)]
        assert sorted(int(patient) for part in dealt for patient in part) == list(
            range(1, study.study.rows + 1)
        )


def test_task_and_policy_are_usable_and_meet_the_target(tmp_path: Path, studies: list[DemoStudy]) -> None:
    layout = StageLayout(tmp_path)
    for study in studies:
        task = write_files(study, options(tmp_path), layout)
        assert Plan.of(task).epsilon(2, "zero-out") == pytest.approx(TARGET_EPSILON, rel=0.01)
    (layout.data / "policy.toml").write_text(policy_text(studies, layout))
    policy = Policy.load(layout.data / "policy.toml")
    for study in studies:
        client = policy.of(study.number).inspect(layout.rows(study.client(1)), "somebody")
        assert len(client) == len(study.parts[0].labels)


def test_client_level_privacy_needs_more_clients_than_the_demo_has(
    tmp_path: Path, studies: list[DemoStudy]
) -> None:
    path = tmp_path / "task.toml"
    path.write_text(task_text(studies[0], options(tmp_path), Decimal(1)))
    found = client_level(Task.load(path))
    assert found.noise_here > BEARABLE_NOISE
    assert found.clients_needed > 4


# Options


def test_options_name_what_is_wrong(tmp_path: Path) -> None:
    options(tmp_path).check()
    for changes, words in (
        ({"clients": 3}, "at least 4"),
        ({"studies": ("diabetes", "diabetes")}, "once"),
        ({"threshold": 4}, "threshold"),
    ):
        with pytest.raises(InvalidInput, match=words):
            options(tmp_path, **changes).check()
    with pytest.raises(FileExists):
        options(tmp_path, directory=tmp_path).check()


def test_each_run_has_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda _format: "now")
    default_directory().mkdir()
    assert str(default_directory()) == "now-1"


def test_a_slower_machine_gets_more_time_to_train(tmp_path: Path) -> None:
    fast, slow = (size_class(options(tmp_path), seconds) for seconds in (0.1, 1.0))
    assert slow.post_from > fast.post_from
    assert fast.train - fast.post_from == slow.train - slow.post_from


# Cheaters


def test_what_cheaters_tried_is_read_line_by_line(tmp_path: Path) -> None:
    assert read_tries(tmp_path) == []
    whole = '{"what": "w", "code": "accepted", "detail": "d", "height": 3}\n'
    (tmp_path / TRIED).write_text(whole + '{"what": "half')
    (tried,) = read_tries(tmp_path)
    assert (tried.what, tried.code) == ("w", ACCEPTED)


# Processes


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.stop()


def ended(processes: Processes, name: str) -> None:
    assert processes.find(name).wait(time.monotonic() + SECONDS)


def test_a_role_that_dies_is_named_with_the_end_of_its_log(processes: Processes) -> None:
    processes.start("board", "node", "run", "nowhere", ends=False)
    ended(processes, "board")
    with pytest.raises(RoleDied, match=r"(?s)board ended with exit code 1.*nowhere"):
        processes.check()


def test_a_role_that_was_killed_is_no_surprise(processes: Processes) -> None:
    sleeper = processes.start_module("sleeper", "http.server", "0")
    assert sleeper.code is None
    assert processes.running == 1
    sleeper.kill()
    processes.check()
    assert sleeper.code == -signal.SIGKILL


def test_a_command_that_ends_well_is_no_surprise(processes: Processes) -> None:
    listed = processes.start("list", "study", "list", "--json", ends=True)
    ended(processes, "list")
    processes.check()
    assert listed.code == 0


def test_what_is_imported_once_exists() -> None:
    assert all(
        importlib.util.find_spec(name) for name in PRELOAD
    )  # the server of forks ignores what does not


def test_processes_compute_with_one_thread(processes: Processes) -> None:
    process = processes.start_module("same", "tests.demo.show_environment", ends=True)
    ended(processes, "same")
    environment = process.document()
    assert environment is not None
    assert environment["RAYON_NUM_THREADS"] == environment["OMP_NUM_THREADS"] == "1"


def test_what_an_earlier_process_of_the_name_printed_is_not_read(processes: Processes) -> None:
    processes.start_module("same", "tests.demo.show_environment", ends=True)
    ended(processes, "same")
    assert processes.find("same").document() is not None
    again = processes.start_module("same", "http.server", "0")
    assert again.document() is None


# Screens


def test_both_screens_show_steps_and_events() -> None:
    plain = io.StringIO()
    screen = PlainScreen(Console(file=plain, width=100))
    screen.step("Making keys")
    screen.event("a second submission: nullifier-spent", kind="refused")
    assert "Making keys" in plain.getvalue()
    assert "✗ a second submission: nullifier-spent" in plain.getvalue()

    drawn = io.StringIO()
    with LiveScreen(Console(file=drawn, width=100, force_terminal=True)) as live:
        live.event("client-2 is killed", kind="")
        live.step("Training")
    assert "Training" in drawn.getvalue()
    assert "client-2 is killed" in drawn.getvalue()


def test_the_picture_is_mentioned_only_if_there_is_one(tmp_path: Path) -> None:
    demo: Any = SimpleNamespace(layout=SimpleNamespace(root=tmp_path, nodes=[tmp_path]))
    assert not any(summary.PICTURE in sentence for sentence in summary._left(demo))
    (tmp_path / summary.PICTURE).touch()
    assert any(summary.PICTURE in sentence for sentence in summary._left(demo))
