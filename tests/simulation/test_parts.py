"""What a simulation refuses, who takes part, and rows that are made up."""

import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning.splits import iid
from anofel.simulation import InsecurePlainSimulation, Participation, SimulatedTask, made_up_rows, split_rows
from anofel.simulation.parts import make_bundle
from anofel.studies.catalogue import study_named
from tests.patients import make_dataset, make_task

FEW = {"min_clients": 4, "max_colluders": 0}


def part(name: str = "one", clients: int = 4, **privacy: object) -> SimulatedTask:
    return SimulatedTask(
        make_task(task={"name": name}, privacy=FEW | privacy), iid(make_dataset(40), clients, 0)
    )


def test_too_few_posts_leave_the_model_and_cost_nothing():
    simulation = InsecurePlainSimulation([part()], participation=Participation(dropout=0.9, seed=1))
    before = simulation.models["one"].to_bytes()
    (result,) = simulation.run(1)
    assert result.outcome == "too-few"
    assert result.count is not None
    assert result.count < 4
    assert (result.epsilon, result.metrics, result.total) == (0.0, None, None)
    assert result.model.to_bytes() == before


def test_groups_are_dealt_and_opened_alone():
    numbers = {"min_clients": 2, "expected_clients": 6}
    task = make_task(task={"name": "one"}, privacy=FEW | numbers, groups={"number": 3})
    clients = iid(make_dataset(60), 6, 0)
    (result,) = InsecurePlainSimulation([SimulatedTask(task, clients)]).run(1)
    assert (result.outcome, result.count) == ("summed", 6)
    few = Participation(dropout=0.4, seed=2)
    (result,) = InsecurePlainSimulation([SimulatedTask(task, clients)], participation=few).run(1)
    assert result.posts < 6, "fewer groups, of two at least"
    assert (result.outcome, result.count) == ("summed", result.posts)


def test_two_tasks_with_groups_are_no_bundle():
    """A board would never put them into one (``docs/groups.md``)."""
    clients, few = iid(make_dataset(40), 4, 0), {"expected_clients": 8}
    tasks = [
        make_task(task={"name": name}, privacy=FEW | few, groups={"number": 2}) for name in ("one", "two")
    ]
    with pytest.raises(InvalidInput, match="One task of a bundle may have groups"):
        make_bundle([SimulatedTask(task, clients) for task in tasks])


def test_a_bundle_has_room_for_the_posts_of_all_its_tasks():
    sizes = [entry.task.privacy.max_posts for entry in make_bundle([part("one", 5), part("two", 6)])]
    assert sizes == [11, 11]


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        ([], "needs a task"),
        ([part(), part()], "different names"),
        ([part(clients=3)], "fewer than 4 clients, and there are 3"),
        ([part(unit="record", records_per_client=9)], "10 rows, and the task allows 9"),
        ([part(max_posts=1 << 15)], "at most 16384 posts"),
    ],
)
def test_what_could_never_train_is_refused_before_it_starts(tasks, reason):
    with pytest.raises(InvalidInput, match=reason):
        make_bundle(tasks)


def test_a_custom_model_needs_its_trainer():
    task = make_task(model={"kind": "custom", "parameters": 4}, training={"algorithm": "custom"}, privacy=FEW)
    with pytest.raises(InvalidInput, match="trainer"):
        InsecurePlainSimulation([SimulatedTask(task, iid(make_dataset(40), 4, 0))])


def test_a_trainer_of_another_size_is_refused():
    class Small:
        def initial(self):
            return {"w": np.zeros(3)}

        def train(self, parameters, dataset):
            raise NotImplementedError

    task = make_task(model={"kind": "custom", "parameters": 4}, training={"algorithm": "custom"}, privacy=FEW)
    wrong = SimulatedTask(task, iid(make_dataset(40), 4, 0), own_trainer=Small())
    with pytest.raises(InvalidInput, match="has 4 parameters, its trainer 3"):
        InsecurePlainSimulation([wrong])


def test_the_same_seed_gives_the_same_participants_and_another_iteration_others():
    participation = Participation(dropout=0.5, seed=3)
    assert participation.order(1, [20, 30]) == participation.order(1, [20, 30])
    assert participation.order(1, [20, 30]) != participation.order(2, [20, 30])
    everybody = Participation().order(1, [2, 3])
    assert sorted(everybody) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_a_dropout_that_is_no_probability_is_refused(dropout):
    with pytest.raises(InvalidInput, match="dropout"):
        Participation(dropout=dropout)


@pytest.mark.parametrize("study", ["nwtco", "mnist"])
def test_made_up_rows_fit_their_schema_and_can_be_learned(study):
    schema = study_named(study).schema()
    rows = made_up_rows(schema, 300, seed=1)
    assert len(rows) == 300
    assert len(np.unique(rows.labels)) == schema.classes
    assert np.array_equal(rows.features, made_up_rows(schema, 300, seed=1).features)


@pytest.mark.parametrize("split", ["iid", "by-label", "dirichlet:0.3", "sizes:0.3"])
def test_a_split_gives_every_row_to_one_client(split):
    rows = make_dataset(50)
    assert sum(len(entry) for entry in split_rows(rows, 5, split)) == 50


@pytest.mark.parametrize("split", ["", "even", "dirichlet", "dirichlet:x", "sizes:-1", "iid:3", "by-label:1"])
def test_a_split_that_is_none_is_refused(split):
    with pytest.raises(InvalidInput):
        split_rows(make_dataset(50), 5, split)
