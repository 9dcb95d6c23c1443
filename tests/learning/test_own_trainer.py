"""A custom task is trained by a trainer of one's own, named as module:function."""

import pytest

from anofel.learning.build import TrainerRefused, trainer_of
from anofel.learning.evaluate import evaluate_on
from anofel.learning.federated import FedSGD
from anofel.learning.integer_model import IntegerModel
from anofel.learning.parameters import Layout
from anofel.roles.owner import initial_model
from tests.patients import make_dataset, make_task

OWN = "tests.learning.own_trainers:logistic"
TASK = make_task(model={"kind": "custom", "parameters": 6})


def test_rule_1_a_custom_task_takes_the_trainer_that_is_named() -> None:
    assert isinstance(trainer_of(TASK, OWN), FedSGD)
    assert isinstance(trainer_of(make_task(training={"algorithm": "custom"}), OWN), FedSGD)
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
    class Mute:
        def initial(self) -> object:
            return {}

        def train(self, parameters: object, dataset: object) -> object:
            return None

    with pytest.raises(ValueError, match="no 'probabilities'"):
        evaluate_on(TASK, make_dataset(4), Mute())  # type: ignore[arg-type]
