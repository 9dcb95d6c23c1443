"""Steps, provers and verifiers as the Python package offers them."""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import pytest

from anofel.board.statements import registration_statement, submission_statement
from anofel.errors import InvalidInput, InvalidProof, InvalidSignature, UnsatisfiedStatement
from anofel.messages import Posting
from anofel.phase1_setup.step1b_certification import (
    Credential,
    fresh_nonce,
    issue_certificate,
    request_certificate,
)
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.phase2_training.step5_submission import Membership, prove_membership
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    MasterSecret,
    MessageSecret,
    Salt,
    Scope,
    TypeBlinding,
)
from anofel.proofs.keys import KeyDirectory
from anofel.proofs.statements import (
    RegistrationProof,
    RegistrationStatement,
    SubmissionProof,
    SubmissionStatement,
    SubmissionWitness,
)

GENESIS = b"g" * 32


@dataclass(frozen=True)
class Registered:
    """A client among others: what it proves its membership with."""

    certifier: CertifierSecret
    certifiers: CertifierTree
    clients: ClientTree
    credential: Credential
    salt: Salt


@pytest.fixture
def world() -> Registered:
    certifier, msk, salt = CertifierSecret.generate(), MasterSecret.generate(), Salt.generate()
    d, dt = DatasetDigest.of_chunks([b"twelve rows"]), DatasetType(7)
    certifiers, clients = CertifierTree(), ClientTree()
    certifiers.append([CertifierSecret.generate().public_key(), certifier.public_key()])
    credential = Credential(msk, d, dt, certifier.public_key(), certifier.certify(d, msk.public_key(), dt))
    strangers = [Commitment(d, MasterSecret.generate(), dt, Salt.generate()) for _ in range(10)]
    clients.append([*strangers[:5], Commitment(d, msk, dt, salt), *strangers[5:]])
    return Registered(certifier, certifiers, clients, credential, salt)


@pytest.fixture(scope="module")
def submit(keys: KeyDirectory) -> Callable[..., Membership]:
    prover = keys.submission_prover(threads=1)

    def make(world: Registered, iteration: int = 1) -> Membership:
        return prove_membership(
            world.credential,
            salt=world.salt,
            rho=TypeBlinding.generate(),
            clients=world.clients,
            genesis=GENESIS,
            bundle=0,
            iteration=iteration,
            prover=prover,
        )

    return make


@pytest.fixture(scope="module")
def enrol(keys: KeyDirectory) -> Callable[..., Posting]:
    prover = keys.registration_prover(threads=1)

    def make(world: Registered, **changes: object) -> Posting:
        arguments = {
            "credential": world.credential,
            "salt": world.salt,
            "message_secret": MessageSecret.generate(),
            "certifiers": world.certifiers,
            "genesis": GENESIS,
            "epoch": 0,
            "prover": prover,
        }
        return make_registration(**(arguments | changes))  # type: ignore[arg-type]

    return make


def test_a_client_is_certified_registers_and_submits(
    keys: KeyDirectory, world: Registered, enrol, submit
) -> None:
    msk, d, dt = MasterSecret.generate(), DatasetDigest.of_chunks([b"rows"]), DatasetType(3)
    nonce, key = fresh_nonce(), world.certifier.public_key()
    prover, verifier = keys.ownership_prover(threads=1), keys.ownership_verifier()
    request = request_certificate(msk, d, dt, certifier=key, nonce=nonce, prover=prover)
    certificate = issue_certificate(request, secret=world.certifier, nonce=nonce, verifier=verifier)
    credential = Credential(msk, d, dt, key, certificate)
    registered = enrol(world, credential=credential)
    keys.registration_verifier().verify(*proven_registration(registered))
    clients = ClientTree.from_leaf_bytes(world.clients.leaf_bytes())
    clients.append([Commitment.from_bytes(registered.body.commitment)])
    made = Registered(world.certifier, world.certifiers, clients, credential, world.salt)
    keys.submission_verifier().verify(*proven_membership(made, submit(made)))


def proven_registration(posting: Posting) -> tuple[RegistrationStatement, RegistrationProof]:
    """What a registration proves, and the proof, as a board puts them together."""
    shown = {name: value for name, value in asdict(posting.body).items() if name != "proof"}
    statement = registration_statement(genesis=GENESIS, message_key=posting.author.message_key, **shown)
    return statement, RegistrationProof.from_bytes(posting.body.proof)


def proven_membership(
    world: Registered, membership: Membership, **changes: object
) -> tuple[SubmissionStatement, SubmissionProof]:
    """What a submission proves, and the proof, as a board puts them together."""
    arguments = {
        "client_root": world.clients.root().to_bytes(),
        "scope": Scope(GENESIS, membership.bundle, membership.iteration),
        "nullifier": membership.nullifier,
        "tag": membership.tag,
        "type_commitment": membership.type_commitment,
        "message_key": membership.message_key,
    }
    statement = submission_statement(**(arguments | changes))  # type: ignore[arg-type]
    assert changes or statement == membership.statement(world.clients.root().to_bytes(), GENESIS)
    return statement, SubmissionProof.from_bytes(membership.proof)


def test_an_ownership_proof_is_good_for_one_nonce_and_one_certifier(
    keys: KeyDirectory, world: Registered
) -> None:
    msk, d, dt = world.credential.msk, world.credential.d, world.credential.dt
    nonce, key = fresh_nonce(), world.certifier.public_key()
    prover, verifier = keys.ownership_prover(threads=1), keys.ownership_verifier()
    request = request_certificate(msk, d, dt, certifier=key, nonce=nonce, prover=prover)
    for secret, other in ((world.certifier, fresh_nonce()), (CertifierSecret.generate(), nonce)):
        with pytest.raises(InvalidProof, match="ownership proof is not valid"):
            issue_certificate(request, secret=secret, nonce=other, verifier=verifier)


def test_an_unsatisfied_witness_raises_the_clause_and_gives_no_proof(
    keys: KeyDirectory, world: Registered
) -> None:
    credential, scope = world.credential, Scope(GENESIS, 0, 1)
    a = MessageSecret.generate().public_key().hash()
    rho, other_rho = TypeBlinding.generate(), TypeBlinding.generate()
    from anofel.primitives import TypeCommitment

    statement = SubmissionStatement(
        client_root=world.clients.root(),
        nullifier=credential.msk.iteration_nullifier(credential.d, scope),
        tag=credential.msk.tag(a),
        a=a,
        scope=scope,
        type_commitment=TypeCommitment(credential.dt, rho),
    )
    witness = SubmissionWitness(
        d=credential.d,
        dt=credential.dt,
        salt=world.salt,
        msk=credential.msk,
        path=world.clients.path(5),
        rho=other_rho,
    )
    with pytest.raises(UnsatisfiedStatement) as caught:
        keys.submission_prover(threads=1).prove(statement, witness)
    assert caught.value.clause == "submission 4b: the dt commitment is dt·G + ρ·H"
    assert caught.value.code == "unsatisfied-statement"


def test_a_bad_certificate_is_refused_before_any_proof(world: Registered, enrol) -> None:
    stranger = CertifierSecret.generate()
    credential = world.credential
    forged = stranger.certify(credential.d, credential.msk.public_key(), credential.dt)
    bad = Credential(credential.msk, credential.d, credential.dt, credential.certifier, forged)
    with pytest.raises(InvalidSignature):
        enrol(world, credential=bad)
    unlisted = Credential(credential.msk, credential.d, credential.dt, stranger.public_key(), forged)
    with pytest.raises(InvalidInput, match="not in the tree"):
        enrol(world, credential=unlisted)


def test_the_same_dataset_registered_again_has_the_same_nullifier(world: Registered, enrol) -> None:
    first, second = enrol(world), enrol(world, salt=Salt.generate())
    assert first.body.nullifier == second.body.nullifier
    assert first.body.commitment != second.body.commitment
    assert enrol(world, epoch=1).body.nullifier != first.body.nullifier


def parts(world: Registered, shown: Membership | Posting) -> dict[str, bytes]:
    """Every value that the board gets to see, by its name."""
    if isinstance(shown, Posting):
        values = asdict(shown.body) | {"message_key": shown.author.message_key}
        return {name: value for name, value in values.items() if isinstance(value, bytes)}
    names = ("nullifier", "tag", "type_commitment", "proof", "message_key")
    values = {name: getattr(shown, name) for name in names}
    scope = Scope(GENESIS, shown.bundle, shown.iteration).to_bytes()
    return values | {"client_root": world.clients.root().to_bytes(), "scope": scope}


def test_two_postings_of_one_client_share_nothing_but_the_client_root(world: Registered, submit) -> None:
    one, two = parts(world, submit(world, 1)), parts(world, submit(world, 2))
    assert {name for name in one if one[name] == two[name]} == {"client_root"}
    # Also no part of any value: 16 bytes in common would be no accident.
    pieces = {
        data[i : i + 16] for name, data in one.items() if name != "client_root" for i in range(len(data) - 15)
    }
    for name, data in two.items():
        if name != "client_root":
            assert not pieces & {data[i : i + 16] for i in range(len(data) - 15)}, name


def test_a_double_submission_shows_the_same_nullifier(world: Registered, submit) -> None:
    one, two = submit(world), submit(world)
    assert one.nullifier == two.nullifier
    assert one.tag != two.tag
    assert one.proof != two.proof


def test_registration_and_submission_of_one_client_share_nothing(world: Registered, enrol, submit) -> None:
    registered, submitted = parts(world, enrol(world)), parts(world, submit(world))
    assert not set(registered.values()) & set(submitted.values())


@pytest.mark.parametrize(
    "field", ["client_root", "nullifier", "tag", "message_key", "scope", "type_commitment"]
)
def test_a_proof_fits_no_other_public_input(
    keys: KeyDirectory, world: Registered, submit, field: str
) -> None:
    content, other = submit(world), submit(world, 2)
    replacement = {"client_root": ClientTree().root().to_bytes(), "scope": Scope(GENESIS, 0, 2)}
    changed = {field: replacement.get(field) or getattr(other, field)}
    verifier = keys.submission_verifier()
    verifier.verify(*proven_membership(world, content))
    with pytest.raises(InvalidProof, match="not valid for these public inputs"):
        verifier.verify(*proven_membership(world, content, **changed))


def test_a_batch_names_the_bad_ones(keys: KeyDirectory, world: Registered, submit) -> None:
    verifier = keys.submission_verifier(threads=2)
    contents = [submit(world, iteration) for iteration in range(4)]
    batch = [proven_membership(world, content) for content in contents]
    verifier.verify_batch(batch)
    verifier.verify_batch([])
    verifier.verify_batch([batch[0], batch[0]])
    batch[1], batch[3] = (batch[1][0], batch[3][1]), (batch[3][0], batch[1][1])
    with pytest.raises(InvalidProof, match="2 of 4 submission proofs") as caught:
        verifier.verify_batch(batch)
    assert caught.value.indices == [1, 3]


def test_proof_bytes_are_canonical(world: Registered, submit) -> None:
    data = submit(world).proof
    assert len(data) == 128
    assert SubmissionProof.from_bytes(data).to_bytes() == data
    for bad in (b"", data[:-1], data + b"\0", bytes(128), b"\xff" * 128):
        with pytest.raises(InvalidProof, match="malformed"):
            SubmissionProof.from_bytes(bad)


def test_a_proof_of_another_statement_is_refused_by_type_and_by_key(
    keys: KeyDirectory, world: Registered, submit
) -> None:
    content = submit(world)
    as_registration = RegistrationProof.from_bytes(content.proof)
    statement, _ = proven_membership(world, content)
    with pytest.raises(TypeError):
        keys.submission_verifier().verify(statement, as_registration)  # type: ignore[arg-type]


def test_a_proof_under_other_keys_is_refused(keys: KeyDirectory, world: Registered, submit) -> None:
    from anofel._core.keys import insecure_development_key
    from anofel.proofs.statements import SubmissionVerifier

    other = SubmissionVerifier.from_bytes(insecure_development_key("submission").verification)
    with pytest.raises(InvalidProof, match="not valid"):
        other.verify(*proven_membership(world, submit(world)))


def test_proving_releases_the_interpreter(world: Registered, submit) -> None:
    """Another thread makes progress while a proof is computed in this one."""
    done, ticks = threading.Event(), 0

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    submit(world)
    during = ticks - before
    done.set()
    thread.join()
    assert during >= 5


def test_threads_are_configurable(keys: KeyDirectory) -> None:
    keys.ownership_prover(threads=1)
    keys.ownership_prover(threads=4)
    with pytest.raises(InvalidInput, match="at least one thread"):
        keys.ownership_prover(threads=0)


def test_secrets_of_the_steps_are_not_shown(world: Registered) -> None:
    assert repr(world.credential) == "Credential(<redacted>)"
    tree = CertifierTree()
    tree.append([world.certifier.public_key()])
    assert "redacted" in repr(tree.path(0))
