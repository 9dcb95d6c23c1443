"""Training in a process of its own: whatever happens there, the client has something to post in time."""

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

from anofel.learning.build import trainer_of
from anofel.models.parameters import Layout
from anofel.models.rules import rule_of
from anofel.phase2_training.step4_local_training import contribute
from anofel.phase2_training.step4_training_process import (
    NOT_READY,
    TrainingProcess,
    TrainingUnavailable,
    _Made,
)
from anofel.privacy.plan import Plan
from anofel.privacy.protect import ProtectedUpdate
from tests.node.support import SECONDS
from tests.patients import make_dataset, make_task

OWN = "tests.learning.own_trainers:depends_on_data"
CUSTOM = make_task(model={"kind": "custom", "parameters": 6})
BOUND = Plan.of(CUSTOM).contribution_bound


def first_model(task=CUSTOM, own=OWN):  # type: ignore[no-untyped-def]
    trainer = trainer_of(task, own if task is CUSTOM else "")
    return rule_of(task).initial(trainer.initial(), task.model.scale_bits)


def wait_for(training: TrainingProcess, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while training._answers.empty():
        assert time.monotonic() < end, "The child neither answered nor died."
        time.sleep(0.02)


def trained(rows: int) -> ProtectedUpdate:
    training = TrainingProcess(CUSTOM, OWN, make_dataset(rows))
    try:
        training.get_ready()
        training.begin(first_model().to_bytes())
        wait_for(training)
        return training.take()
    finally:
        training.close()


@pytest.mark.parametrize("unit", ["client", "record"])
def test_the_child_trains_as_the_client_would(unit: str) -> None:
    """With one row, or rows that are all taken, nothing is drawn but the rounding."""
    task = make_task(privacy={"unit": unit, "records_per_client": 50})
    model, rows, plan = first_model(task), make_dataset(40), Plan.of(task)
    training = TrainingProcess(task, "", rows)
    assert training.get_ready() == Layout.of(trainer_of(task).initial())
    training.begin(model.to_bytes())
    wait_for(training)
    made = training.take()
    assert not made.failure
    expected = contribute(trainer_of(task), model, rows, plan)
    assert np.abs(made.values - expected.values).max() <= 1
    training.begin(model.to_bytes())  # the same child once more
    wait_for(training)
    assert not training.take().failure
    training.close()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (11, "KeyError"),
        (13, "was killed"),
        (14, "was killed"),
        (15, "not a number"),
        (16, "MemoryError"),
    ],
)
def test_what_fails_in_the_child_is_the_zero_update(rows: int, words: str) -> None:
    made = trained(rows)
    assert words in made.failure
    assert made.values.shape == (Plan.of(CUSTOM).dimension,)
    assert not made.values.any()


def test_a_trainer_that_writes_where_it_should_not_ends_in_zero_or_in_its_update() -> None:
    made = trained(17)
    assert made.values.shape == (Plan.of(CUSTOM).dimension,)


def test_a_training_that_is_not_done_in_time_is_zero_and_the_next_one_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    training = TrainingProcess(CUSTOM, OWN, make_dataset(12))
    training.get_ready()
    # From here on waiting for a child would show in the client's requests how the one before it ended.
    monkeypatch.setattr("anofel.phase2_training.step4_training_process._wait_for_layout", lambda *_: 1 / 0)
    for _ in range(2):
        training.begin(first_model().to_bytes())
        made = training.take()
        assert made.failure == NOT_READY
        assert not made.values.any()
        assert training._child is None, "it does not go on into the next iteration"
    training.close()


def test_a_child_that_cannot_train_says_so_before_it_sees_a_row() -> None:
    for own, words in (("", "custom"), ("tests.learning.own_trainers:raises_when_made", "KeyError")):
        training = TrainingProcess(CUSTOM, own, make_dataset(5))
        with pytest.raises(TrainingUnavailable, match=words):
            training.get_ready()


@pytest.mark.parametrize(
    "values",
    [np.full(6, BOUND + 1), np.full(6, BOUND), np.full(6, -(2**63)), np.zeros(5)],
    ids=["entry", "norm", "least", "length"],
)
def test_an_update_beyond_the_bound_is_zero(values: np.ndarray) -> None:
    """The child runs code of the user's own; the client checks what comes out of it."""
    training = TrainingProcess(CUSTOM, OWN, make_dataset(5))
    training._answers.put(_Made(values.astype("<i8").tobytes(), ""))
    made = training.take()
    assert "exceeds the task's bound" in made.failure
    assert not made.values.any()


def test_records_beyond_the_bound_of_their_norm_are_zero() -> None:
    """No entry is too large, but the vector could not be encrypted, and the client would not post."""
    task = make_task(privacy={"unit": "record", "records_per_client": 20})
    plan = Plan.of(task)
    training = TrainingProcess(task, "", make_dataset(5))
    values = np.full(plan.dimension, plan.contribution_bound)
    training._answers.put(_Made(values.astype("<i8").tobytes(), ""))
    made = training.take()
    assert "exceeds the task's bound" in made.failure
    assert not made.values.any()


def test_a_process_that_a_trainer_left_behind_holds_nothing_up() -> None:
    """It has the rows and the pipe: it is killed with the child, and the next child finds room."""
    training = TrainingProcess(CUSTOM, OWN, make_dataset(18))
    training.get_ready()
    training.begin(first_model().to_bytes())
    until(lambda: any("sleep 7717" in line for line in commands()), "the process that the trainer starts")
    assert training.take().failure
    until(lambda: not any("sleep 7717" in line for line in commands()), "its end")
    training.close()


def test_a_child_that_cannot_be_started_again_is_the_zero_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether another one is needed may depend on data, so that it cannot be had must not show."""
    training = TrainingProcess(CUSTOM, OWN, make_dataset(5))
    training.get_ready()
    training.close()

    def no_room(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("anofel.children.subprocess.Popen", no_room)
    assert training.get_ready() == training.layout
    training.begin(first_model().to_bytes())
    assert "can be started" in training.take().failure


def until(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"Waited for {what} in vain."
        time.sleep(0.02)


def commands() -> Iterator[str]:
    for entry in os.listdir("/proc"):
        with suppress(OSError), open(f"/proc/{entry}/cmdline") as file:
            yield file.read().replace("\0", " ")


def processes() -> Iterator[str]:
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                _, _, rest = file.read().rpartition(")")
                if rest.split()[1] == str(os.getpid()):
                    yield entry
        except OSError:
            continue


def test_no_child_is_left_when_nobody_needs_it() -> None:
    training = TrainingProcess(CUSTOM, OWN, make_dataset(5))
    training.get_ready()
    assert training._child is not None
    child = str(training._child._child.pid)
    assert child in set(processes())
    del training
    gc.collect()
    until(lambda: child not in set(processes()), "the end of the child")
