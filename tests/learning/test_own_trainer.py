"""A custom task is trained by a trainer of one's own, named as module:function."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning.build import TrainerRefused, trainer_of
from anofel.learning.evaluate import evaluate_on
from anofel.learning.own_trainer import TrainerFailed
from anofel.learning.trainer import LocalUpdate, Predictor, RecordTrainer, Trainer
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout, Parameters
from anofel.models.rules import first_model
from anofel.phase2_training.step4_local_training import rehearse
from anofel.roles.owner import initial_model
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task
from tests.learning.own_trainers import Mute
from tests.patients import make_dataset, make_task

EXAMPLES = Path(__file__).parents[2] / "src" / "anofel" / "tasks" / "examples"
MODULE = "tests.learning.own_trainers"
OWN = f"{MODULE}:logistic"
TASK = make_task(model={"kind": "custom", "parameters": 6})


def test_rule_1_a_custom_task_takes_the_trainer_that_is_named() -> None:
    rows, usual = make_dataset(20), trainer_of(make_task())
    for task in (TASK, make_task(training={"algorithm": "custom"})):
        own = trainer_of(task, OWN)
        update = own.train(own.initial(), rows).update
        np.testing.assert_array_equal(
            update["layer0.weight"], usual.train(usual.initial(), rows).update["layer0.weight"]
        )
    assert initial_model(TASK, OWN).layout == Layout.of(trainer_of(TASK, OWN).initial())


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("", "is custom; name its own trainer"),
        ("tests.no_such_module:make", "cannot be imported"),
        ("tests.learning.own_trainers:missing", "cannot be imported"),
        ("not a name", "cannot be imported"),
        ("tests.learning.own_trainers", "named as module:function"),
        ("tests.learning.own_trainers:NOT_A_FUNCTION", "named as module:function"),
        ("tests.learning.own_trainers:nothing", "takes a task and returns a trainer"),
    ],
)
def test_rule_1_what_is_no_trainer_is_refused(own: str, message: str) -> None:
    with pytest.raises(TrainerRefused, match=message):
        trainer_of(TASK, own)


def test_rule_2_other_tasks_train_without_one() -> None:
    with pytest.raises(TrainerRefused, match="is not custom"):
        trainer_of(make_task(), OWN)


def test_rule_3_the_first_model_has_the_size_of_the_task() -> None:
    with pytest.raises(TrainerRefused, match="has 6 parameters, task 'test' 7"):
        trainer_of(make_task(model={"kind": "custom", "parameters": 7}), OWN)


def test_models_of_ones_own_trainer_are_measured() -> None:
    model = IntegerModel.from_parameters(trainer_of(TASK, OWN).initial(), 16)
    assert evaluate_on(TASK, make_dataset(40), trainer_of(TASK, OWN))(model)["auc"] == 0.5


def test_a_trainer_that_cannot_predict_is_said_to_be_one() -> None:
    with pytest.raises(ValueError, match="no 'probabilities'"):
        evaluate_on(TASK, make_dataset(4), trainer_of(TASK, f"{MODULE}:mute"))


def test_a_wrapped_trainer_has_the_methods_of_its_own_and_no_others() -> None:
    least, most = trainer_of(TASK, f"{MODULE}:mute"), trainer_of(TASK, OWN)
    assert isinstance(least, Trainer)
    assert not isinstance(least, RecordTrainer)
    assert not isinstance(least, Predictor)
    assert isinstance(most, RecordTrainer)
    assert isinstance(most, Predictor)


def use(own: str, task: Task) -> None:
    """Whatever a deployment does with a trainer."""
    trainer = trainer_of(task, f"{MODULE}:{own}")
    rehearse(task, trainer, make_dataset(20))
    evaluate_on(task, make_dataset(20), trainer)(first_model(task, trainer.initial()))


@pytest.mark.parametrize("unit", ["client", "record"])
@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("raises_when_made", "failed: KeyError: 'weights'."),
        ("starts_with_a_list", "failed: AttributeError: 'list' object has no attribute 'items'."),
        ("raises_in_training", "failed: RuntimeError: mat1 and mat2 cannot be multiplied."),
        ("returns_a_dict", "returned no LocalUpdate."),
        ("returns_words", "failed: ValueError: could not convert string to float: 'zero'."),
        (
            "gives_too_few_probabilities",
            r"gave probabilities of the shape (1, 1) for 20 rows, where 2 columns are wanted.",
        ),
    ],
)
def test_rule_4_what_goes_wrong_is_one_sentence_that_names_the_trainer(
    own: str, message: str, unit: str
) -> None:
    task = make_task(
        model={"kind": "custom", "parameters": 6}, privacy={"unit": unit, "records_per_client": 20}
    )
    with pytest.raises(TrainerFailed) as failed:
        use(own, task)
    assert str(failed.value) == f"The trainer '{MODULE}:{own}' {message}"
    assert failed.value.code == "trainer-failed"


def test_rule_4_an_error_on_purpose_stays_what_it_is() -> None:
    with pytest.raises(InvalidInput, match="nothing to train on"):
        use("refuses", TASK)


def test_a_rehearsal_takes_a_row_of_each_class_and_samples_all_of_them() -> None:
    seen: list[Dataset] = []

    class Watching(Mute):
        def train_records(self, parameters: Parameters, dataset: Dataset, *_: float) -> LocalUpdate:
            seen.append(dataset)
            assert _[1] == 1.0  # the sampling rate
            return LocalUpdate(parameters, len(dataset))

    privacy = {"unit": "record", "records_per_client": 20, "sampling_rate": "0.001", "noise_multiplier": "1"}
    rehearse(
        make_task(model={"kind": "custom", "parameters": 6}, privacy=privacy), Watching(), make_dataset(20)
    )
    assert sorted(seen[0].labels.tolist()) == [0, 1]


@pytest.mark.parametrize("text", ["def trainer(task:\n", "import no_such_module\n", "1 / 0\n"])
def test_a_module_that_cannot_be_imported_is_one_sentence(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"own_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TrainerRefused, match=rf"The trainer '{name}:trainer' cannot be imported: \w+Error: "):
        trainer_of(TASK, f"{name}:trainer")


def test_a_simulation_ends_with_one_sentence(tmp_path: Path) -> None:
    task = tmp_path / "task.toml"
    custom = (EXAMPLES / "custom.toml").read_text()
    task.write_text(custom.replace("parameters = 8", "parameters = 5"))
    options = ["--made-up-rows", "200", "--insecure-plain", "--trainer", f"{MODULE}:raises_in_training"]
    done = subprocess.run(
        [sys.executable, "-m", "anofel", "simulate", str(task), *options], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"anofel: The trainer '{MODULE}:raises_in_training' failed: RuntimeError: mat1" in done.stderr
