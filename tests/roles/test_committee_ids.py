"""Which committee an owner means: a run of somebody else's never stands in the way of an id."""

from types import SimpleNamespace

import pytest

from anofel.roles.aggregator.key_ceremony import nonce_of
from anofel.roles.committee_names import NoCommittee, find_committee


def a_state(*names: str) -> SimpleNamespace:
    """Committees whose keys are 00…, 11…, each made by a run of a name."""
    committees, runs = {}, {}
    for number, name in enumerate(names):
        key, run_id = bytes([17 * number]) * 32, bytes([number]) * 32
        committees[key] = SimpleNamespace(key_id=key, current=SimpleNamespace(run_id=run_id))
        runs[run_id] = SimpleNamespace(
            run_id=run_id,
            run=SimpleNamespace(nonce=nonce_of(name)),
            done=True,
            votes={1: SimpleNamespace(key_id=key)},
        )
    return SimpleNamespace(committees=committees, runs=runs)


def test_a_run_called_like_a_committees_id_does_not_block_it() -> None:
    wanted = "00" * 32
    state = a_state("lung", wanted)
    assert find_committee(state, wanted).key_id == bytes(32)  # type: ignore[arg-type]
    with pytest.raises(NoCommittee, match="2 committees are called"):  # a part of an id: nothing is guessed
        find_committee(a_state("lung", "00" * 8), "00" * 8)  # type: ignore[arg-type]
