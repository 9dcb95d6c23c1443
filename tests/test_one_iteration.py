"""One iteration through every part that exists: certified data, training, noise, proofs, sums.

The board is a list here; all cryptography is the real one.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from anofel.committee import count, schemes
from anofel.committee.context import AgreedSet, IterationContext, PostContext, TaskLimits
from anofel.committee.count import BallotStatement, BundleCommittee, TypeOpening
from anofel.committee.interface import Contribution, Int64Vector
from anofel.learning.build import trainer_of
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase2_training.step4_local_training import contribute
from anofel.phase2_training.step5_submission import Membership, prove_membership
from anofel.primitives import (
    CertifierSecret,
    ClientTree,
    Commitment,
    DatasetType,
    MasterSecret,
    Salt,
    Scope,
    TypeBlinding,
)
from anofel.privacy.ledger import Floors, Ledger, Occasion
from anofel.privacy.plan import Plan
from anofel.proofs.keys import KeyDirectory
from anofel.proofs.statements import SubmissionProof
from anofel.studies.dataset import Dataset
from anofel.tasks.task import Task
from tests.committee.world import Committee
from tests.patients import make_dataset, make_task

GENESIS = hashlib.sha256(b"genesis").digest()
REAL, DECOYS = 8, 2


@dataclass(frozen=True)
class Client:
    """A certified and registered client with its rows."""

    credential: Credential
    salt: Salt
    rows: Dataset


@dataclass(frozen=True)
class Posting:
    """What the board gets from one client."""

    membership: Membership
    context: PostContext
    contribution: Contribution
    ballot: bytes


def make_clients() -> tuple[list[Client], ClientTree]:
    certifier, dt, clients, tree = CertifierSecret.generate(), DatasetType(7), [], ClientTree()
    for number in range(REAL + DECOYS):
        rows = make_dataset(30, seed=number)
        d, msk, salt = dataset_digest(rows), MasterSecret.generate(), Salt.generate()
        certificate = certifier.certify(d, msk.public_key(), dt)
        clients.append(Client(Credential(msk, d, dt, certifier.public_key(), certificate), salt, rows))
        tree.append([Commitment(d, msk, dt, salt)])
    return clients, tree


def train(task: Task, client: Client, model: IntegerModel, ledger: Path) -> Int64Vector:
    plan, certified = Plan.of(task), CertifiedDataset(client.rows, client.credential.d)
    Ledger(ledger).charge(
        "turn",
        Occasion(board=GENESIS, task=task.digest(), bundle=0, iteration=1),
        plan=plan,
        floors=Floors(max_epsilon=100.0, max_colluders=0),
        anonymity_set=REAL + DECOYS,
    )
    return contribute(trainer_of(task), model, certified.dataset, plan).with_noise(plan)


@pytest.fixture(scope="module")
def committee() -> Committee:
    return Committee.generate(schemes.by_name("lattice"), 3, 2)


def test_an_iteration_gives_the_sum_of_the_integers_and_the_next_model(
    keys: KeyDirectory, committee: Committee, tmp_path: Path
) -> None:
    task, scheme, key = make_task(), committee.scheme, committee.key
    plan, rule = Plan.of(task), rule_of(task)
    model = rule.initial(trainer_of(task).initial(), task.model.scale_bits)
    limits = TaskLimits(
        length=plan.dimension, bound=plan.value_bound, max_posts=REAL + DECOYS, min_clients=REAL
    )
    scope = Scope(GENESIS, 0, 1)
    iteration = IterationContext(
        genesis=GENESIS, task=task.digest(), iteration=1, scope=scope.to_bytes(), position=0
    )
    bundle = [BundleCommittee(key_id=key.key_id, count_key=key.count_key, accepted_types=(7,))]
    clients, tree = make_clients()

    # Steps 3 to 5: every client posts; the decoys post zeros and a bit of 0.
    prover, board, updates = keys.submission_prover(threads=1), [], []
    for number, client in enumerate(clients):
        rho, real = TypeBlinding.generate(), number < REAL
        membership = prove_membership(
            client.credential,
            salt=client.salt,
            rho=rho,
            clients=tree,
            genesis=GENESIS,
            bundle=0,
            iteration=1,
            prover=prover,
        )
        context = PostContext(
            iteration=iteration,
            nullifier=membership.nullifier,
            tag=membership.tag,
            pk_sig=membership.message_key,
        )
        prepared = scheme.prepare(key, context, limits)
        values = np.zeros(plan.dimension, dtype=np.int64)
        if real:
            values = train(task, client, model, tmp_path / f"ledger-{number}")
            updates.append(values)
        statement = BallotStatement(context, membership.type_commitment, bundle)
        opening = TypeOpening(dataset_type=7, blinding=rho.to_secret_bytes())
        ballot = statement.cast(0 if real else None, opening).ballot
        board.append(Posting(membership, context, prepared.encrypt(values), ballot))

    # Admission, then steps 6 and 7.
    verifier = keys.submission_verifier()
    root = tree.root().to_bytes()
    verifier.verify_batch(
        [
            (p.membership.statement(root, GENESIS), SubmissionProof.from_bytes(p.membership.proof))
            for p in board
        ]
    )
    accumulator, bits = scheme.accumulator(key, iteration, limits), {}
    for posting in board:
        envelope, payload = posting.contribution.envelope, posting.contribution.payload
        statement = BallotStatement(posting.context, posting.membership.type_commitment, bundle)
        statement.verify(posting.ballot)
        scheme.verify_envelope(key, posting.context, limits, envelope)
        accumulator.add(scheme.verify_payload(key, posting.context, limits, envelope, payload))
        bits[posting.context.nullifier] = count.bit_of(posting.ballot, 0)
    total = accumulator.finish()

    # Step 8: the count first, then the sum, from two of three members.
    agreed = AgreedSet(
        iteration=iteration,
        key_id=key.key_id,
        close_hash=hashlib.sha256(b"close").digest(),
        set_digest=total.set_digest,
        sum_digest=total.digest,
        num_posts=total.num_posts,
        min_clients=REAL,
    )
    encrypted_count = count.add(bits)
    members = {member: committee.shares[member] for member in (1, 3)}
    checked_bits = []
    for member, share in members.items():
        made = count.partial_decrypt(key, share.count_share, encrypted_count, agreed)
        checked_bits.append(count.verify_share(key, encrypted_count, agreed, member, made))
    counted = count.combine(key, encrypted_count, agreed, checked_bits)
    assert counted.value == REAL
    permit = counted.permit_sum()
    checked = []
    for member, share in members.items():
        made = scheme.partial_decrypt(key, share, total, permit)
        checked.append(scheme.verify_share(key, total, permit, member, made))
    opened = scheme.combine(key, total, permit, checked)

    # Step 8': the sum is that of the plain integers, and so is the next model.
    assert np.array_equal(opened, sum(updates))
    following = rule.apply(model, opened, counted.value, 1)
    plain = rule.apply(model, np.asarray(sum(updates), dtype=np.int64), REAL, 1)
    assert following.to_bytes() == plain.to_bytes() != model.to_bytes()
