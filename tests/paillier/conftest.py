import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from anofel.committee import count_key
from anofel.committee.context import (
    AgreedSet,
    CommitteeShape,
    IterationContext,
    PostContext,
    TaskLimits,
)
from anofel.committee.interface import GeneratedKey, Int64Vector, KeyGenerationRun, RoundMessage
from anofel.committee.paillier.addition import CiphertextSum
from anofel.committee.paillier.dealer import insecure_deal
from anofel.committee.paillier.key import PaillierKey, SecretPaillierShare
from anofel.committee.paillier.scheme import InsecureToyPaillierScheme
from anofel.committee.permit import SumPermit, counted
from anofel.committee.ristretto.key_generation import RistrettoKeyGeneration, RistrettoKeys

TOY_BITS = 512
SCHEME = InsecureToyPaillierScheme(TOY_BITS)
ITERATION = IterationContext(genesis=b"g" * 32, task=b"t" * 32, iteration=7, scope=b"s" * 32, position=1)


def shape_of(n: int, t: int) -> CommitteeShape:
    return CommitteeShape(num_members=n, threshold=t)


def new_run(n: int, t: int) -> KeyGenerationRun:
    members = tuple(bytes([i]) * 32 for i in range(1, n + 1))
    return KeyGenerationRun(
        genesis=b"g" * 32, run_id=secrets.token_bytes(32), shape=shape_of(n, t), members=members
    )


def post(number: int, iteration: IterationContext = ITERATION) -> PostContext:
    return PostContext(
        iteration=iteration,
        nullifier=number.to_bytes(32, "big"),
        tag=b"a" * 32,
        pk_sig=bytes([number % 251]) * 32,
    )


def count_keys(n: int, t: int) -> Sequence[RistrettoKeys]:
    generation, run = RistrettoKeyGeneration(1, "test"), new_run(n, t)
    results = [generation.begin(run, member) for member in run.shape.members]
    for _ in range(generation.num_rounds - 1):
        messages = [result.message for result in results]
        results = [generation.advance(result.state, messages) for result in results]
    messages = [result.message for result in results]
    return [generation.advance(result.state, messages) for result in results]


@dataclass
class Committee:
    key: PaillierKey
    shares: Mapping[int, SecretPaillierShare]
    limits: TaskLimits = field(
        default_factory=lambda: TaskLimits(length=40, bound=1000, max_posts=64, min_clients=2)
    )

    def contribute(self, number: int, values: Int64Vector) -> tuple:
        prepared = SCHEME.prepare(self.key, post(number), self.limits)
        return post(number), SCHEME.encrypt(prepared, values)

    def add(self, vectors: Sequence[Int64Vector]) -> CiphertextSum:
        total = SCHEME.accumulator(self.key, ITERATION, self.limits)
        for number, values in enumerate(vectors):
            context, made = self.contribute(number, values)
            SCHEME.verify_envelope(self.key, context, self.limits, made.envelope)
            total.add(SCHEME.verify_payload(self.key, context, self.limits, made.envelope, made.payload))
        return total.finish()

    def permit(self, total: CiphertextSum) -> SumPermit:
        agreed = AgreedSet(
            iteration=total.iteration,
            key_id=self.key.key_id,
            close_hash=b"c" * 32,
            set_digest=total.set_digest,
            sum_digest=total.digest,
            num_posts=total.num_posts,
            min_clients=2,
        )
        return counted(agreed, max(2, total.num_posts)).permit_sum()

    def decrypt(self, total: CiphertextSum, members: Sequence[int]) -> Int64Vector:
        permit = self.permit(total)
        shares = {m: SCHEME.partial_decrypt(self.key, self.shares[m], total, permit) for m in members}
        return SCHEME.combine(self.key, total, permit, shares)

    def vector(self, seed: int = 0) -> Int64Vector:
        bound = self.limits.bound
        return np.random.default_rng(seed).integers(-bound, bound + 1, self.limits.length, dtype=np.int64)


def deal_committee(n: int, t: int, bits: int = TOY_BITS) -> Committee:
    made = count_keys(n, t)
    public = count_key.from_keys(shape_of(n, t), made[0].keys, 0)
    _, key, shares = insecure_deal(bits, public, [count_key.from_secrets(m.secrets, 0) for m in made])
    return Committee(key, {share.member: share for share in shares})


@pytest.fixture(scope="session")
def committee() -> Committee:
    return deal_committee(3, 2)


def run_generation(generation, run: KeyGenerationRun, tamper=None, save=False):
    """Run all members; return everybody's result and all rounds' messages. ``tamper`` may change a round."""
    results = {member: generation.begin(run, member) for member in run.shape.members}
    rounds: list[list[RoundMessage]] = []
    while True:
        messages = [result.message for result in results.values()]
        if tamper is not None:
            messages = tamper(len(rounds), messages, {m: r.state for m, r in results.items()})
        rounds.append(messages)
        following, failure = {}, {}
        for member, result in results.items():
            state = generation.resume(result.state.to_bytes()) if save else result.state
            try:
                following[member] = generation.advance(state, messages)
            except Exception as error:
                failure[member] = error
        if failure:
            return failure, rounds
        results = following
        if all(isinstance(result, GeneratedKey) for result in results.values()):
            return results, rounds
