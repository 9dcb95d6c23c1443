"""The scheme behind the interface: conformance, and objects of another scheme."""

from dataclasses import dataclass, field, replace

import pytest

from anofel.committee import schemes
from anofel.committee.context import TaskLimits
from anofel.committee.errors import (
    DoesNotFit,
    InvalidCommittee,
    KeyRefused,
    NotAgreed,
    ShareRefused,
)
from anofel.committee.interface import CommitteeKey, HandoverParty, HandoverRun, Scheme
from anofel.committee.paillier.arithmetic.parameters import DEFAULT_MODULUS_BITS
from anofel.committee.paillier.scheme import PaillierScheme
from tests.paillier.support import ITERATION, SCHEME, Committee, post


@dataclass(frozen=True)
class Foreign:
    """An object of another scheme with whatever attributes are looked at before its type."""

    scheme: str = "other"
    member: int = 2
    key_id: bytes = b""
    iteration: object = None
    set_digest: bytes = b""
    digest: bytes = b""
    num_posts: int = 0
    limits: TaskLimits = field(
        default_factory=lambda: TaskLimits(length=1, bound=1, max_posts=2, min_clients=2)
    )
    shape: object = None


def test_paillier_is_found_by_name_at_the_default_size(committee: Committee) -> None:
    scheme: Scheme = schemes.by_name("paillier")
    assert isinstance(scheme, PaillierScheme)
    assert scheme.name == "paillier"
    assert scheme.modulus_bits == DEFAULT_MODULUS_BITS == 3072
    assert isinstance(committee.key, CommitteeKey)


def test_required_bits_are_the_slot(committee: Committee) -> None:
    limits = TaskLimits(length=1, bound=1000, max_posts=64, min_clients=2)
    assert SCHEME.required_bits(limits) == SCHEME.required_bits(replace(limits, norm_bound=1 << 50)) == 17
    with pytest.raises(DoesNotFit):
        SCHEME.required_bits(replace(limits, bound=1 << 61))
    assert committee.limits.bound == 1000


def test_objects_of_another_scheme_are_refused(committee: Committee) -> None:
    key, limits = committee.key, committee.limits
    total = committee.add([committee.vector(1), committee.vector(2)])
    permit = committee.permit(total)
    with pytest.raises(KeyRefused, match="other"):
        SCHEME.prepare(Foreign(), post(1), limits)
    with pytest.raises(ShareRefused, match="another scheme"):
        SCHEME.partial_decrypt(key, Foreign(), total, permit)
    with pytest.raises(NotAgreed):
        SCHEME.partial_decrypt(key, committee.shares[1], Foreign(), permit)
    with pytest.raises(InvalidCommittee, match="state"):
        SCHEME.key_generation().advance(Foreign(), [])
    with pytest.raises(InvalidCommittee, match="state"):
        SCHEME.handover().advance(Foreign(), [])
    run = HandoverRun(
        genesis=b"g" * 32,
        run_id=b"r" * 32,
        old_key=Foreign(shape=key.shape),
        dealers=(1, 2),
        shape=key.shape,
        members=(b"a" * 32, b"b" * 32, b"c" * 32),
    )
    with pytest.raises(KeyRefused, match="scheme"):
        SCHEME.handover().begin(run, HandoverParty(member=1))


def test_an_empty_sum_opens_to_zeros(committee: Committee) -> None:
    """Nobody posted: the product is 1, which decrypts to zeros like any other sum."""
    total = SCHEME.accumulator(committee.key, ITERATION, committee.limits).finish()
    assert not committee.decrypt(total, [1, 2]).any()
