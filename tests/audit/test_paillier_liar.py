"""A client that puts an update where its ballot says zero, before a Paillier committee and an audit."""

from collections.abc import Iterator

import numpy as np
import pytest

from anofel.board.state import Phase, Progress
from anofel.committee import schemes
from anofel.committee.paillier.arithmetic import zero
from anofel.committee.paillier.arithmetic.zero import SecretZeroWitness
from anofel.committee.paillier.contribution import SecretPreparation
from anofel.models.rules import rule_of
from anofel.proofs.keys import KeyDirectory
from tests.audit.test_deep import audit
from tests.board.prepared import fork
from tests.board.world import World, a_task, a_vector
from tests.paillier.dealer import InsecureToyPaillierScheme


@pytest.fixture(scope="module")
def toy() -> Iterator[pytest.MonkeyPatch]:
    known = schemes.by_name
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            schemes,
            "by_name",
            lambda name: InsecureToyPaillierScheme(512) if name == "paillier" else known(name),
        )
        yield patched


@pytest.fixture(scope="module")
def established(keys: KeyDirectory, toy: pytest.MonkeyPatch) -> World:
    assert toy
    world = World(keys)
    world.offer_certifier_key()
    for scheme in ("paillier", "lattice"):
        world.establish(3, 2, schemes.NAMES.index(scheme), name=scheme)
    world.board.next_block()
    world.add_clients(4)
    world.board.next_block()
    return world


def closed(established: World, monkeypatch: pytest.MonkeyPatch, **head: object) -> tuple[World, bytes]:
    """Three clients train; a fourth says that it does not, and sends an update. Also its nullifier."""
    world = fork(established)
    for name, committee in zip(("study", "other"), world.committees, strict=True):
        world.announce(committee, a_task(name, task={"name": name} | head))
    world.board.next_block()
    for owner in world.owners:
        world.post_first_model(owner)
    world.board.next_block()
    owner = world.owners[0]
    for number, client in enumerate(world.clients[:3]):
        world.board.post(world.submission(client, 0, a_vector(owner.task, number)))
    encrypt, update = SecretPreparation.encrypt, a_vector(owner.task, 3)
    with monkeypatch.context() as lying:
        lying.setattr(SecretPreparation, "encrypt", lambda mask, _zeros: encrypt(mask, update))
        lying.setattr(SecretZeroWitness, "is_one", True)
        posting = world.submission(world.clients[3], None, None)
    world.board.post(posting)
    world.blocks_until(Phase.CLOSED)
    return world, posting.body.nullifier


def recovered(world: World, clients: range) -> bool:
    """Whether the model is the one that the sum of these clients' updates makes, for a count of three."""
    owner = world.owners[0]
    before, task = owner.model, owner.task
    assert before is not None
    total = sum((a_vector(task, number) for number in clients), np.zeros(task.length, dtype=np.int64))
    return world.recover(owner).to_bytes() == rule_of(task).apply(before, total, 3, 1).to_bytes()


def test_an_update_in_a_decoy_is_excluded_and_the_audit_agrees(
    established: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, liar = closed(established, monkeypatch)
    world.run_phase3()
    position = world.position(world.owners[0])
    assert (position.progress, position.count) == (Progress.SUMMED, 3)
    assert position.agreed is not None
    assert position.agreed.excluded == ((liar, 1),)
    assert recovered(world, range(3))
    report = audit(world)
    assert report.ok
    assert [record.contributions for record in report.tasks] == ["proven-zero", "proven"]
    assert "study: contributions are proven zero where they do not count; nothing bounds the others." in (
        report.notes
    )


def test_a_committee_that_adds_the_lie_is_found(established: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = closed(established, monkeypatch)
    with monkeypatch.context() as lazy:
        lazy.setattr(zero, "verify", lambda *_: None)
        world.run_phase3()
    agreed = world.position(world.owners[0]).agreed
    assert agreed is not None
    assert agreed.excluded == ()
    (finding,) = audit(world).findings
    assert finding.rule == "aggregate"


def test_a_task_without_proofs_adds_the_lie_and_audits_say_so(
    established: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = closed(established, monkeypatch, insecure_unproven_contributions=True)
    world.run_phase3()
    assert recovered(world, range(4)), "the count says three, and four updates are in the sum"
    report = audit(world)
    assert report.ok
    assert {record.contributions for record in report.tasks} == {"insecure-unproven"}
