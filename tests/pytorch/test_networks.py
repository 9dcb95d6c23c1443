"""The paper's networks: their sizes, shapes and first models."""

import numpy as np
import pytest
import torch

from anofel.errors import InvalidInput
from anofel.learning.build import trainer_of
from anofel.learning.pytorch.module import TrainableModule
from anofel.learning.pytorch.networks import make_network
from anofel.tasks.network_sizes import NETWORKS, network_size
from anofel.tasks.schema import ImageSchema
from tests.patients import make_task
from tests.pytorch.digits import image_task

PINNED = [
    ("lenet5", (28, 28, 1), 10, 61_706),
    ("resnet20-gn", (32, 32, 3), 10, 273_258),
    ("squeezenet-gn", (64, 64, 3), 200, 832_456),
    ("squeezenet-gn", (32, 32, 3), 10, 734_986),
]


@pytest.mark.parametrize(("kind", "shape", "classes", "size"), PINNED)
def test_the_networks_have_the_sizes_of_the_paper(
    kind: str, shape: tuple[int, ...], classes: int, size: int
) -> None:
    assert network_size(kind, shape, classes) == size
    assert TrainableModule(make_network(kind, shape, classes)).size == size


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize(("shape", "classes"), [((16, 16, 1), 2), ((20, 33, 3), 7), ((17, 16, 2), 3)])
def test_the_formula_counts_what_the_network_has(kind: str, shape: tuple[int, ...], classes: int) -> None:
    network = make_network(kind, shape, classes)
    assert network_size(kind, shape, classes) == sum(value.numel() for value in network.parameters())
    height, width, channels = shape
    assert network(torch.zeros(2, channels, height, width)).shape == (2, classes)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_task_knows_the_size_of_its_network(kind: str) -> None:
    shape = (64, 64, 3) if kind == "squeezenet-gn" else (32, 32, 3)
    schema = ImageSchema(shape=shape, label_values=tuple(str(label) for label in range(10)))
    task = image_task(schema, model={"kind": kind})
    assert task.model.parameters == network_size(kind, shape, 10)
    assert type(task).from_bytes(task.to_bytes()) == task


@pytest.mark.parametrize("kind", NETWORKS)
def test_rows_that_are_no_images_or_too_small_are_refused(kind: str) -> None:
    with pytest.raises(InvalidInput, match="needs images of at least"):
        make_task(model={"kind": kind})
    small = ImageSchema(shape=(28, 7, 1), label_values=("a", "b"))
    with pytest.raises(InvalidInput, match="needs images of at least"):
        image_task(small, model={"kind": kind})


def test_the_first_model_follows_from_the_seed_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = trainer_of(image_task()).initial()
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    again, other = trainer_of(image_task()).initial(), trainer_of(image_task(model={"seed": 5})).initial()
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
        assert not np.array_equal(array, other[name])


@pytest.mark.parametrize("kind", ["resnet20-gn", "squeezenet-gn"])
@pytest.mark.parametrize("seed", range(3))
def test_the_first_model_tells_images_apart(kind: str, seed: int) -> None:
    """Where all images got nearly the same answer, the share would be below 0.007."""
    torch.manual_seed(seed)
    coarse = torch.rand((64, 3, 4, 4), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        answers = make_network(kind, (32, 32, 3), 10)(
            torch.nn.functional.interpolate(coarse, size=32, mode="bilinear")
        )
    assert float(answers.var(0).sum() / (answers**2).mean(0).sum()) > 0.02
