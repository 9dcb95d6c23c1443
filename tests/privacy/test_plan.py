import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.board.announcement import limits_of
from anofel.committee import schemes
from anofel.errors import InvalidInput
from anofel.learning.build import network_of, trainer_of
from anofel.learning.splits import iid
from anofel.learning.trainer import LocalUpdate
from anofel.models.integer_model import IntegerModel
from anofel.models.parameters import Layout
from anofel.privacy.calibrate import TargetUnreachable, noise_multiplier, releases_within, with_noise
from anofel.privacy.clipping import NormCheckFailed
from anofel.privacy.plan import Plan
from anofel.privacy.protect import draw_noise, encode, protect, train_unit
from anofel.tasks.task import Task
from tests.patients import make_dataset, make_task
from tests.plain_path import iterate


def plan_of(**privacy):
    training = {"algorithm": "fedsgd"}
    return Plan.of(make_task(privacy=privacy, training=training))


def test_shares_of_the_guaranteed_honest_reach_the_required_variance():
    plan = plan_of()
    assert plan.spec.honest == 6
    assert plan.local_sigma() == math.ceil(4 * 0.5 * 65536 / math.sqrt(6))
    assert plan.required_variance <= plan.guaranteed_variance() <= plan.required_variance * 1.001
    assert plan.guaranteed_variance(3) == pytest.approx(plan.guaranteed_variance() / 2)


def test_replace_doubles_the_sensitivity():
    plan = plan_of()
    assert plan.sensitivity("replace").l2 == 2 * plan.sensitivity("zero-out").l2
    assert plan.epsilon(10, "replace") > 1.9 * plan.epsilon(10, "zero-out")
    with pytest.raises(InvalidInput, match="no relation"):
        plan.sensitivity("add-or-remove")


def test_fewer_honest_cost_more_and_more_cost_less():
    plan = plan_of()
    assert plan.epsilon(10, "zero-out", 3) > plan.epsilon(10, "zero-out") > plan.epsilon(10, "zero-out", 12)
    with pytest.raises(InvalidInput, match="honest"):
        plan.guaranteed_variance(0)


@pytest.mark.parametrize("posts", [8, 20, 1000])
def test_adaptive_noise_guarantees_the_variance_in_the_last_posts(posts):
    plan = plan_of(adaptive=True, max_posts=posts)
    sigmas = [plan.local_sigma(position) for position in range(1, posts + 1)]
    assert sigmas == sorted(sigmas, reverse=True)
    assert sigmas[0] > sigmas[-1]
    # Whichever six of the posts are the honest ones, their variance is at least that of the last six.
    smallest = sum(sorted(sigma**2 for sigma in sigmas)[:6])
    assert smallest == plan.guaranteed_variance()
    assert smallest >= plan.required_variance
    assert plan.epsilon(10, "zero-out") <= plan_of().epsilon(10, "zero-out") * 1.001
    with pytest.raises(InvalidInput, match="position"):
        plan.local_sigma(posts + 1)
    with pytest.raises(InvalidInput, match="position"):
        plan.local_sigma()


def test_noise_too_coarse_for_integers_is_refused():
    with pytest.raises(InvalidInput, match="raise scale_bits"):
        Plan.of(make_task(model={"scale_bits": 8}, privacy={"clipping_norm": "0.01"}))
    with pytest.raises(InvalidInput, match="lower scale_bits"):
        Plan.of(make_task(model={"scale_bits": 32}, privacy={"clipping_norm": "1000000"}))


def test_unknown_mechanism_is_refused():
    with pytest.raises(InvalidInput, match="no mechanism"):
        plan_of(mechanism="laplace")


def test_calibration_reaches_the_target_with_the_least_noise():
    plan = plan_of()
    for relation in ("zero-out", "replace"):
        multiplier = noise_multiplier(plan, 0.9, relation)
        assert with_noise(plan, multiplier).epsilon(10, relation) <= 0.9
        assert with_noise(plan, multiplier - Decimal("0.01")).epsilon(10, relation) > 0.9
    with pytest.raises(TargetUnreachable):
        noise_multiplier(plan_of(delta="0.000000000001"), 1e-9, "zero-out")
    with pytest.raises(InvalidInput, match="positive"):
        noise_multiplier(plan, 0, "zero-out")
    with pytest.raises(InvalidInput, match="proves no"):
        noise_multiplier(plan_of(unit="paper"), 1.0, "zero-out")


def test_calibration_of_sampled_records():
    plan = plan_of(unit="record", sampling_rate="0.4", records_per_client=100, max_releases=2)
    multiplier = noise_multiplier(plan, 0.4, "zero-out")
    assert with_noise(plan, multiplier).epsilon(2, "zero-out") <= 0.4
    assert multiplier < noise_multiplier(plan, 0.4, "replace")


def test_releases_within_a_target():
    plan = plan_of(noise_multiplier="20")
    count = releases_within(plan, 0.9, "zero-out")
    assert plan.epsilon(count, "zero-out") <= 0.9 < plan.epsilon(count + 1, "zero-out")
    assert releases_within(plan, 1e-4, "zero-out") == 0


@settings(max_examples=30)
@given(
    clients=st.integers(2, 40),
    bits=st.integers(8, 20),
    multiplier=st.integers(3, 40),
    seed=st.integers(0, 2**32),
)
def test_encoded_then_summed_then_decoded_equals_the_plain_integers(clients, bits, multiplier, seed):
    plan = Plan.of(
        make_task(
            model={"scale_bits": bits},
            privacy={
                "min_clients": clients,
                "max_colluders": 0,
                "noise_multiplier": str(multiplier),
                "clipping_norm": "2",
            },
        )
    )
    layout = Layout(("w",), ((plan.dimension,),))
    rng = np.random.default_rng(seed)
    vectors = [
        protect(LocalUpdate({"w": rng.normal(size=plan.dimension) * 10}, 1), layout, plan)
        for _ in range(clients)
    ]
    # A slot holds the value modulo 2^bits of the slot; sums are lifted to the centre.
    modulus = 1 << plan.slot_bits
    summed = [sum(int(vector[index]) % modulus for vector in vectors) for index in range(plan.dimension)]
    decoded = [(value + modulus // 2) % modulus - modulus // 2 for value in summed]
    assert decoded == sum(vectors).tolist()


def test_slots_hold_the_worst_sum():
    plan = plan_of(max_posts=100)
    assert plan.sum_bound < 1 << (plan.slot_bits - 1)
    assert plan.sum_bound >= 100 * plan.radius
    records = plan_of(unit="record", records_per_client=50, max_posts=100)
    assert records.sum_bound >= 100 * 50 * records.radius


def test_no_entry_of_a_clients_vector_exceeds_the_announced_bound():
    plan = plan_of(noise_multiplier="4")
    layout = Layout(("w",), ((plan.dimension,),))
    largest = np.eye(1, plan.dimension)[0] * 100
    for _ in range(200):
        vector = protect(LocalUpdate({"w": largest}, 1), layout, plan)
        assert np.abs(vector).max() <= plan.value_bound
    assert plan.value_bound >= plan.radius + 10 * plan.local_sigma()


@pytest.mark.parametrize(("name", "posts"), [("support2", 512), ("nwtco", 16)])
def test_the_vectors_of_an_example_fit_the_default_scheme(name, posts):
    task = Task.example(name)
    assert task.privacy.max_posts == posts
    assert schemes.by_name(schemes.DEFAULT).required_bits(limits_of(task, posts)) <= 40


def test_encode_refuses_what_is_not_the_tasks_shape():
    plan = plan_of()
    with pytest.raises(InvalidInput, match="parameters"):
        encode(LocalUpdate({"w": np.zeros(3)}, 1), Layout(("w",), ((3,),)), plan)


def test_noise_is_independent_of_the_update():
    plan = plan_of()
    assert draw_noise(plan).shape == (plan.dimension,)
    assert draw_noise(plan).dtype == np.int64


def test_record_unit_bounds_one_record_where_an_epoch_does_not():
    """Swap one record: clipped sums move by 2C at most, a local epoch by more than 2C/|D|."""
    record = plan_of(unit="record", records_per_client=60, relation="replace")
    data = make_dataset(60)
    flipped = data.labels.copy()
    flipped[0] = 1 - flipped[0]
    neighbour = type(data)(data.features, flipped, data.schema)
    task = make_task()
    trainer = trainer_of(task)
    layout = Layout.of(trainer.initial())

    def moved(trainer, plan):
        sums = [
            layout.flatten(train_unit(trainer, trainer.initial(), d, plan).update) for d in (data, neighbour)
        ]
        return float(np.linalg.norm(sums[0] - sums[1]))

    assert moved(trainer, record) <= 2 * record.clipping_norm + 1e-12
    assert moved(trainer, record) * record.scale <= record.sensitivity("replace").l2
    epoch = trainer_of(
        make_task(training={"algorithm": "fedavg", "learning_rate": "0.5", "batch_size": 4, "epochs": 1})
    )
    paper = plan_of(unit="paper", records_per_client=60)
    assert moved(epoch, paper) > 2 * paper.clipping_norm / 60


def test_record_unit_needs_a_record_trainer_and_bounded_datasets():
    plan = plan_of(unit="record", records_per_client=10)
    network = network_of(make_task())

    class Whole:
        def initial(self):
            return network.initial()

        def train(self, parameters, dataset):
            return LocalUpdate(parameters, len(dataset))

    with pytest.raises(InvalidInput, match="clips every record"):
        train_unit(Whole(), network.initial(), make_dataset(5), plan)
    trainer = trainer_of(make_task())
    many = train_unit(trainer, trainer.initial(), make_dataset(50), plan)
    assert many.examples == 10, "of too many some are drawn; a refusal would tell who has more"
    layout = Layout.of(trainer.initial())
    wrong = LocalUpdate(
        {name: np.ones(shape) for name, shape in zip(layout.names, layout.shapes, strict=True)}, 1
    )
    with pytest.raises(NormCheckFailed):
        encode(wrong, layout, plan)


@pytest.mark.parametrize(
    "privacy",
    [{}, {"adaptive": True}, {"mechanism": "skellam"}, {"unit": "record", "records_per_client": 40}],
)
def test_plain_path_trains_in_integers(privacy):
    task = make_task(
        privacy={"noise_multiplier": "0.05"} | privacy,
        rule={"lr_num": 1, "lr_den": 40} if "unit" in privacy else {},
    )
    clients = iid(make_dataset(320), 8, 0)
    models = list(iterate(task, clients, 3))
    assert len(models) == 3
    for model, total in models:
        assert isinstance(model, IntegerModel)
        assert total.dtype == np.int64
    with pytest.raises(InvalidInput, match="needs 8 clients"):
        next(iterate(task, clients[:7], 1))


def test_plain_path_without_noise_is_close_to_floating_point():
    task = make_task(privacy={"clipping_norm": "100", "noise_multiplier": "1"})
    clients = iid(make_dataset(320), 8, 0)
    trainer = trainer_of(task)
    parameters = trainer.initial()
    for model, _ in iterate(task, clients, 5, insecure_no_noise=True):
        updates = [trainer.train(parameters, client).update for client in clients]
        parameters = {
            name: parameters[name] + np.mean([u[name] for u in updates], axis=0) for name in parameters
        }
        for name, array in model.parameters().items():
            np.testing.assert_allclose(array, parameters[name], atol=1e-3)


def test_paper_unit_follows_its_formulas():
    plan = plan_of(
        unit="paper", records_per_client=3750, expected_clients=16, max_releases=25, clipping_norm="1"
    )
    # σ(T) = c·T·S_f/0.9 = 2.871e-3·T as measured in the study of the paper's calibration.
    assert plan.paper_sigma == pytest.approx(2.871e-3 * 25, rel=1e-3)
    assert plan.local_sigma() == math.ceil(65536 * plan.paper_sigma / 16)
    assert plan.epsilon(25, "zero-out") > 1000
