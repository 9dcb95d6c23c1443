"""Honest parties for tests: whole runs of key generation, posts, counts and sums."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anofel.committee import count
from anofel.committee.context import (
    AgreedSet,
    CommitteeShape,
    IterationContext,
    PostContext,
    TaskLimits,
)
from anofel.committee.interface import (
    CommitteeKey,
    Contribution,
    EncryptedSum,
    GeneratedKey,
    Int64Vector,
    KeyGenerationRun,
    RoundMessage,
    RoundResult,
    Scheme,
    SecretKeyShare,
)
from anofel.committee.permit import DecryptedCount, SumPermit, counted
from anofel.committee.verified import VerifiedShare


def name(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def a_run(num_members: int, threshold: int, run_id: str = "run") -> KeyGenerationRun:
    return KeyGenerationRun(
        genesis=name("genesis"),
        run_id=name(run_id),
        shape=CommitteeShape(num_members=num_members, threshold=threshold),
        members=tuple(name(f"member {i}") for i in range(num_members)),
    )


def generate(generation: Any, run: KeyGenerationRun) -> tuple[list[Any], list[list[RoundMessage]]]:
    """All members through all rounds, each state saved and resumed; returns ends and messages."""
    results = [generation.begin(run, member) for member in run.shape.members]
    rounds = []
    while isinstance(results[0], RoundResult):
        messages = [result.message for result in results]
        rounds.append(messages)
        states = [generation.resume(result.state.to_bytes()) for result in results]
        assert [state.message for state in states] == messages
        results = [generation.advance(state, messages) for state in states]
    return results, rounds


@dataclass
class Committee:
    """A committee whose members are all here."""

    scheme: Scheme
    key: CommitteeKey
    shares: dict[int, SecretKeyShare]

    @classmethod
    def generate(cls, scheme: Scheme, num_members: int, threshold: int) -> "Committee":
        ends, _ = generate(scheme.key_generation(), a_run(num_members, threshold))
        return cls.of(scheme, ends)

    @classmethod
    def of(cls, scheme: Scheme, ends: Sequence[GeneratedKey]) -> "Committee":
        return cls(scheme, ends[0].key, {end.share.member: end.share for end in ends})


LIMITS = TaskLimits(length=50, bound=1000, max_posts=16, min_clients=2)
ITERATION = IterationContext(
    genesis=name("genesis"), task=name("task"), iteration=7, scope=name("scope"), position=1
)


def a_post(number: int, iteration: IterationContext = ITERATION) -> PostContext:
    return PostContext(
        iteration=iteration,
        nullifier=name(f"nullifier {number}"),
        tag=name(f"tag {number}"),
        pk_sig=name(f"key {number}"),
    )


def a_vector(number: int, limits: TaskLimits = LIMITS) -> Int64Vector:
    generator = np.random.default_rng(number)
    return generator.integers(-limits.bound, limits.bound, limits.length, endpoint=True, dtype=np.int64)


def contribute(committee: Committee, number: int, limits: TaskLimits = LIMITS) -> Contribution:
    prepared = committee.scheme.prepare(committee.key, a_post(number), limits)
    return prepared.encrypt(a_vector(number, limits))


def add_up(
    committee: Committee, contributions: dict[int, Contribution], limits: TaskLimits = LIMITS
) -> EncryptedSum:
    scheme, key = committee.scheme, committee.key
    accumulator = scheme.accumulator(key, ITERATION, limits)
    for number, contribution in contributions.items():
        post = a_post(number)
        scheme.verify_envelope(key, post, limits, contribution.envelope)
        accumulator.add(scheme.verify_payload(key, post, limits, contribution.envelope, contribution.payload))
    return accumulator.finish()


def agree(committee: Committee, total: EncryptedSum, **changes: Any) -> AgreedSet:
    agreed = AgreedSet(
        iteration=total.iteration,
        key_id=committee.key.key_id,
        close_hash=name("close"),
        set_digest=total.set_digest,
        sum_digest=total.digest,
        num_posts=total.num_posts,
        min_clients=LIMITS.min_clients,
    )
    return replace(agreed, **changes)


def assume_counted(committee: Committee, total: EncryptedSum) -> DecryptedCount:
    """A count without bits, for tests of what comes after it."""
    return counted(agree(committee, total), total.num_posts)


def open_count(committee: Committee, bits: dict[bytes, bytes], agreed: AgreedSet) -> DecryptedCount:
    encrypted = count.add(bits)
    key = committee.key
    shares = [
        count.verify_share(
            key, encrypted, agreed, member, count.partial_decrypt(key, share.count_share, encrypted, agreed)
        )
        for member, share in list(committee.shares.items())[: key.shape.threshold]
    ]
    return count.combine(key, encrypted, agreed, shares)


def verified_shares(
    committee: Committee, total: EncryptedSum, permit: SumPermit, members: Sequence[int]
) -> list[VerifiedShare]:
    """Shares of the sum, made and then checked."""
    scheme, key = committee.scheme, committee.key
    made = {m: scheme.partial_decrypt(key, committee.shares[m], total, permit) for m in members}
    return [scheme.verify_share(key, total, permit, m, share) for m, share in made.items()]


def open_sum(
    committee: Committee, total: EncryptedSum, permit: SumPermit, members: Sequence[int]
) -> Int64Vector:
    shares = verified_shares(committee, total, permit, members)
    return committee.scheme.combine(committee.key, total, permit, shares)
