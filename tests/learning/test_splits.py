import numpy as np
import pytest

from anofel.errors import InvalidInput
from anofel.learning import splits
from tests.patients import make_dataset

SPLITS = {
    "iid": lambda data, clients, seed: splits.iid(data, clients, seed),
    "label": lambda data, clients, seed: splits.label_skew(data, clients, 0.3, seed),
    "quantity": lambda data, clients, seed: splits.quantity_skew(data, clients, 0.3, seed),
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_every_row_goes_to_one_client_and_the_seed_decides(split):
    data = make_dataset(300)
    tagged = data.features.copy()
    tagged[:, 0] = np.arange(300)
    data = type(data)(tagged, data.labels, data.schema)
    parts = split(data, 20, 5)
    assert sorted(np.concatenate([part.features[:, 0] for part in parts]).tolist()) == list(range(300))
    assert all(len(part) for part in parts)
    again = split(data, 20, 5)
    assert all((a.features == b.features).all() for a, b in zip(parts, again, strict=True))
    assert any(
        len(a) != len(b) or (a.features != b.features).any()
        for a, b in zip(parts, split(data, 20, 6), strict=True)
    )


def test_skews_are_skewed():
    data = make_dataset(2000)
    sizes = [len(part) for part in splits.iid(data, 20, 1)]
    assert max(sizes) - min(sizes) <= 1
    shares = [part.labels.mean() for part in splits.label_skew(data, 20, 0.2, 1)]
    assert np.std(shares) > 0.2
    quantity = splits.quantity_skew(data, 20, 0.3, 1)
    assert max(map(len, quantity)) > 4 * np.median([len(part) for part in quantity])


def test_more_clients_than_rows_is_refused():
    with pytest.raises(InvalidInput, match="cannot be split"):
        splits.iid(make_dataset(3), 4, 0)
    with pytest.raises(InvalidInput, match="Dirichlet"):
        splits.label_skew(make_dataset(30), 4, 0, 0)


def test_sorted_labels_leave_a_client_one_or_two():
    data = make_dataset(600)
    parts = splits.by_label(data, 12)
    assert {len(part) for part in parts} == {50}
    mixed = [part for part in parts if len(set(part.labels.tolist())) > 1]
    assert len(mixed) <= 1
    counts = [int(np.bincount(part.labels, minlength=2)[1]) for part in parts]
    assert counts == sorted(counts)
    assert sum(counts) == int((data.labels == 1).sum())
    with pytest.raises(InvalidInput, match="cannot be split"):
        splits.by_label(data, 601)
