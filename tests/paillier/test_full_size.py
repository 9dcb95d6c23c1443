"""The real size: 3072 bits, three members, nobody deals."""

import os

import numpy as np
import pytest

from anofel.committee.context import TaskLimits
from anofel.committee.interface import GeneratedKey
from anofel.committee.paillier.scheme import PaillierScheme
from tests.paillier.support import ITERATION, Committee, new_run, post, run_generation


@pytest.mark.slow
def test_dealerless_key_generation_at_3072_bits() -> None:
    events = []
    scheme = PaillierScheme()
    generation, run = scheme.key_generation(events.append), new_run(3, 2)
    start = sum(os.times()[:4])
    results, rounds = run_generation(generation, run)
    seconds = sum(os.times()[:4]) - start  # child processes included
    assert all(isinstance(result, GeneratedKey) for result in results.values()), results
    traffic = sum(len(message.body) for messages in rounds for message in messages) / 1e6
    print(
        f"\n3 members in one process: {seconds:.0f} CPU-s ({seconds / 3:.0f} per member,"
        f" estimated {events[0].seconds:.0f}), {len(rounds)} rounds, {traffic:.0f} MB posted"
    )
    key = scheme.read_key(results[1].key.to_bytes())
    assert key.modulus_bits == 3072
    assert generation.observe(run, rounds).key == key
    committee = Committee(key, {member: result.share for member, result in results.items()})
    committee.limits = TaskLimits(length=200, bound=1 << 15, max_posts=1024, min_clients=2)
    total = scheme.accumulator(key, ITERATION, committee.limits)
    vectors = [committee.vector(seed) for seed in range(2)]
    for number, values in enumerate(vectors):
        made = scheme.prepare(key, post(number), committee.limits).encrypt(values)
        total.add(scheme.verify_payload(key, post(number), committee.limits, made.envelope, made.payload))
    assert np.array_equal(committee.decrypt(total.finish(), [1, 3]), sum(vectors))
