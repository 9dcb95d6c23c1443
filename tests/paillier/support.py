import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np

from anofel.committee import count_key
from anofel.committee.context import (
    AgreedSet,
    CommitteeShape,
    IterationContext,
    PostContext,
    TaskLimits,
)
from anofel.committee.interface import GeneratedKey, Int64Vector, KeyGenerationRun, RoundMessage
from anofel.committee.paillier.key import PaillierKey, SecretPaillierShare
from anofel.committee.paillier.total import CiphertextSum
from anofel.committee.permit import SumPermit, counted
from anofel.committee.ristretto.key_generation import NUM_ROUNDS as COUNT_ROUNDS
from anofel.committee.ristretto.key_generation import RistrettoKeyGeneration, RistrettoKeys
from anofel.errors import AnofelError
from tests.paillier.dealer import InsecureToyPaillierScheme, insecure_deal

TOY_BITS = 512
RUN_IDS = {3: bytes([5]) * 32, 4: bytes([2]) * 32}
"""Runs whose fixed seeds find a modulus in the first batch."""
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
    for _ in range(COUNT_ROUNDS - 1):
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
        return post(number), prepared.encrypt(values)

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
        verified = [SCHEME.verify_share(self.key, total, permit, m, share) for m, share in shares.items()]
        return SCHEME.combine(self.key, total, permit, verified)

    def vector(self, seed: int = 0) -> Int64Vector:
        bound = self.limits.bound
        return np.random.default_rng(seed).integers(-bound, bound + 1, self.limits.length, dtype=np.int64)


def deal_committee(n: int, t: int, bits: int = TOY_BITS) -> Committee:
    made = count_keys(n, t)
    public = count_key.from_keys(shape_of(n, t), made[0].keys, 0)
    key, shares = insecure_deal(bits, public, [count_key.from_secrets(m.secrets, 0) for m in made])
    return Committee(key, {share.member: share for share in shares})


def run_generation(generation, run: KeyGenerationRun):
    """Run all members; return everybody's result and all rounds' messages."""
    states = {member: generation.begin(run, member).state for member in run.shape.members}
    rounds: list[list[RoundMessage]] = []
    while True:
        rounds.append([state.message for state in states.values()])
        results = {member: generation.advance(state, rounds[-1]) for member, state in states.items()}
        if all(isinstance(result, GeneratedKey) for result in results.values()):
            return results, rounds
        states = {member: result.state for member, result in results.items()}


@dataclass
class Recording:
    """An honest toy run with everybody's state before every round, to tamper with from any of them."""

    run: KeyGenerationRun
    generation: object
    states: list[dict[int, object]]
    rounds: list[list[RoundMessage]]
    results: Mapping[int, GeneratedKey]

    def round_of(self, phase: str, *, opening: bool = False) -> int:
        found = [
            number
            for number, states in enumerate(self.states)
            if states[1].public.phase == phase and states[1].public.opening == opening
        ]
        return found[-1]

    def tampered(self, number: int, change) -> tuple[list[Exception], list[list[RoundMessage]]]:
        """Replace the messages of one round by ``change(messages)`` and go on to the failure."""
        states, rounds = self.states[number], list(self.rounds[:number])
        messages = change(list(self.rounds[number]))
        for _ in range(6):
            rounds.append(messages)
            failures, following = [], {}
            for member, state in states.items():
                try:
                    following[member] = self.generation.advance(state, messages).state
                except AnofelError as error:
                    failures.append(error)
            if failures:
                return failures, rounds
            states = following
            messages = [state.message for state in states.values()]
        raise AssertionError("the run did not fail")


def record(n: int, t: int) -> Recording:
    """Record a run that finds its modulus in the first batch, from fixed seeds."""
    generation, run = SCHEME.key_generation(), new_run(n, t)
    run = replace(run, run_id=RUN_IDS[n])
    with patch("anofel.committee.paillier.key_generation.secrets.token_bytes", _seeds(n)):
        states = {member: generation.begin(run, member).state for member in run.shape.members}
    recorded = Recording(run, generation, [], [], {})
    while True:
        recorded.states.append(dict(states))
        messages = [state.message for state in states.values()]
        recorded.rounds.append(messages)
        results = {member: generation.advance(state, messages) for member, state in states.items()}
        if all(isinstance(result, GeneratedKey) for result in results.values()):
            recorded.results = results
            return recorded
        states = {member: result.state for member, result in results.items()}


def _seeds(n: int):
    numbers = iter(range(1, n + 1))
    return lambda length: hashlib.shake_256(RUN_IDS[n] + bytes([next(numbers)])).digest(length)
