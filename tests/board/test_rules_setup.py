"""Postings themselves, blobs, certifiers and registrations: one test per rule, in which only it fails."""

from dataclasses import replace

import pytest

from anofel.board.rules import HANDLERS
from anofel.messages import CertifierKeyOffer, ChainAuthor, EndTask, Posting, RevokeCertifier, make_posting
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.pki.certificates import Purpose
from anofel.primitives import CertifierSecret, CertifierTree, ClientTree, MessageSecret, Salt
from tests.board.prepared import (
    Stages,
    a_round,
    alone,
    fork,
    receipt,
    refused,
    signed,
    signed_by_key,
)
from tests.board.world import DAY, TIME, ClientOfTest, Member, World


class FullTree:
    """Stands in for a tree of the core that has no room left."""

    def __init__(self, tree: CertifierTree | ClientTree) -> None:
        self._tree = tree

    def __len__(self) -> int:
        return self._tree.CAPACITY

    def node_bytes(self) -> bytes:
        return self._tree.node_bytes()


def a_key(world: World, role: object, secret: CertifierSecret) -> CertifierKeyOffer:
    possession = secret.prove_possession(world.board.genesis_hash, role.subject)  # type: ignore[attr-defined]
    return CertifierKeyOffer(key=secret.public_key().to_bytes(), possession=possession.to_bytes())


# posting


def test_a_posting_is_not_too_long(stages: Stages) -> None:
    world = stages("fresh")
    good = world.registration(world.certify())
    with refused(world, "posting-too-long"):
        world.board.chain.offer(good.data + bytes(HANDLERS[type(good.body)].max_bytes))
    world.board.post(good)


@pytest.mark.parametrize(
    "spoil", [lambda d: b"\x02" + d[1:], lambda d: d + b"\0", lambda d: d[:-1], lambda _: b""]
)
def test_a_posting_is_canonical(stages: Stages, spoil) -> None:  # type: ignore[no-untyped-def]
    world = stages("fresh")
    good = world.registration(world.certify())
    with refused(world, "malformed-posting"):
        world.board.chain.offer(spoil(good.data))
    world.board.post(good)


def test_the_author_signed_for_this_board(stages: Stages) -> None:
    world = stages("waiting")
    owner, body = world.owners[0], EndTask(task=world.owners[0].task_id)
    bad = make_posting(body, ChainAuthor(owner.role.chain), bytes(32), owner.role.sign)
    rejected = alone(world, "bad-signature", bad, signed(world, owner.role, body))
    assert "Owner 0" in rejected.culprit


def test_a_client_signed_for_this_board(stages: Stages) -> None:
    world, secret = stages("fresh"), MessageSecret.generate()
    good = world.registration(world.certify(), message_secret=secret)
    bad = good.data[:-64] + secret.sign(b"something else")
    with refused(world, "bad-signature"):
        world.board.chain.offer(bad)
    world.board.post(good)


@pytest.mark.parametrize("fault", ["another purpose", "another root", "expired", "not yet valid", "no chain"])
def test_the_author_is_certified(stages: Stages, fault: str) -> None:
    world, secret = stages("fresh"), CertifierSecret.generate()
    authority = world.authority._ca
    times = {"expired": (TIME - 9 * DAY, TIME - 1), "not yet valid": (TIME + 1, TIME + DAY)}
    start, end = times.get(fault, (TIME - DAY, TIME + DAY))
    purpose = Purpose.OWNER if fault == "another purpose" else Purpose.CERTIFIER
    if fault == "another root":
        authority = type(world.authority)()._ca
    role = authority.issue(purpose, "Certifier", not_before=start, not_after=end)
    other = world.authority.issue(Purpose.CERTIFIER, "Certifier")
    chain = () if fault == "no chain" else role.chain
    bad = make_posting(a_key(world, role, secret), ChainAuthor(chain), world.board.genesis_hash, role.sign)
    alone(world, "author-not-certified", bad, signed(world, other, a_key(world, other, secret)))


@pytest.mark.parametrize("spoil", ["a long country", "a name of bits"])
def test_odd_names_in_a_certificate_are_refused_quietly(stages: Stages, spoil: str) -> None:
    world, secret = stages("fresh"), CertifierSecret.generate()
    role = world.authority.issue(Purpose.CERTIFIER, "Certifier")
    (leaf,) = role.chain
    if spoil == "a long country":
        organisation, country = b"\x06\x03\x55\x04\x0a", b"\x06\x03\x55\x04\x06"
        chain = (leaf.replace(organisation, country),)
    else:
        chain = (leaf.replace(b"\x0c\x09Certifier", b"\x03\x09\x00ertifier"),)
    assert chain[0] != leaf
    bad = make_posting(a_key(world, role, secret), ChainAuthor(chain), world.board.genesis_hash, role.sign)
    alone(world, "author-not-certified", bad, signed(world, role, a_key(world, role, secret)))


@pytest.mark.parametrize("what", ["num_postings", "num_bytes"])
def test_the_block_has_room(stages: Stages, what: str) -> None:
    world = stages("fresh")
    good = world.registration(world.certify())
    limits = world.genesis.limits
    full = {"num_postings": limits.max_postings, "num_bytes": limits.max_block_bytes - len(good.data) + 1}
    setattr(world.board.state, what, full[what])
    with refused(world, "block-full"):
        world.board.post(good)
    setattr(world.board.state, what, full[what] - 1)
    world.board.post(good)


# blob


def a_run_world(stages: Stages) -> tuple[World, list[Member], object]:
    world = stages("fresh")
    members = world.make_members(3)
    return world, members, world.make_run(members, 2)


@pytest.mark.parametrize("fault", ["none", "twice the same", "unknown holder"])
def test_a_blob_has_enough_receipts(stages: Stages, fault: str) -> None:
    world, members, run = a_run_world(stages)
    good = a_round(world, run, 0, 1)
    (one,) = good.body.receipts
    receipts = {"none": (), "twice the same": (one, one), "unknown holder": (replace(one, holder=1),)}[fault]
    bad = replace(good, body=replace(good.body, receipts=receipts))
    role = members[0].role
    alone(world, "too-few-receipts", signed(world, role, bad), signed(world, role, good))


def test_no_receipt_has_expired(stages: Stages) -> None:
    world, members, run = a_run_world(stages)
    good, height = a_round(world, run, 0, 1), world.board.state.height
    made = [
        replace(
            good, body=replace(good.body, receipts=(receipt(world, good.body.sha256, good.body.length, end),))
        )
        for end in (height - 1, height)
    ]
    role = members[0].role
    alone(world, "receipt-expired", signed(world, role, made[0]), signed(world, role, made[1]))


@pytest.mark.parametrize("fault", ["another signer", "another length", "another blob"])
def test_receipts_are_signed(stages: Stages, fault: str) -> None:
    world, members, run = a_run_world(stages)
    good, end = a_round(world, run, 0, 1), world.board.state.height
    blob, role = good.body, members[0].role
    if fault == "another signer":
        stranger = world.authority.issue(Purpose.STORAGE, "Stranger")
        blob = replace(blob, receipts=(receipt(world, blob.sha256, blob.length, end, stranger),))
    elif fault == "another length":
        blob = replace(blob, length=blob.length + 1)
    else:
        blob = replace(blob, sha256=bytes(32))
    bad = signed(world, role, replace(good, body=blob))
    alone(world, "bad-receipt", bad, signed(world, role, good))


def test_a_receipt_is_checked_for_the_time_of_each_block(stages: Stages) -> None:
    """What was verified in one block is not trusted in a block after the holder's certificate ended."""
    world, members, run = a_run_world(stages)
    posting = signed(world, members[0].role, a_round(world, run, 0, 1))
    fork(world).board.post(posting)
    world.board.next_block(TIME + 900 * DAY + 1)
    authority = world.authority._ca
    late = authority.issue(Purpose.AGGREGATOR, "Late", not_before=TIME, not_after=TIME + 950 * DAY)
    member = replace(members[0], role=late, subject=late.subject)
    run = world.make_run([member, *members[1:]], 2)
    with refused(world, "bad-receipt"):
        world.board.post_as(late, a_round(world, run, 0, 1))


def test_a_blob_is_not_too_long(stages: Stages) -> None:
    world, members, run = a_run_world(stages)
    good, limit = a_round(world, run, 0, 1), world.genesis.limits.max_key_bytes
    made = []
    for length in (limit + 1, limit):
        entry = receipt(world, good.body.sha256, length, world.board.state.height)
        made.append(replace(good, body=replace(good.body, length=length, receipts=(entry,))))
    role = members[0].role
    alone(world, "blob-too-long", signed(world, role, made[0]), signed(world, role, made[1]))


# certifier


def test_a_certifier_has_one_key(stages: Stages) -> None:
    world, secret = stages("fresh"), CertifierSecret.generate()
    other = world.authority.issue(Purpose.CERTIFIER, "Other")
    bad = signed(world, world.certifier, a_key(world, world.certifier, secret))
    alone(world, "certifier-has-key", bad, signed(world, other, a_key(world, other, secret)))


def test_a_certifier_key_is_posted_once(stages: Stages) -> None:
    world = stages("fresh")
    other = world.authority.issue(Purpose.CERTIFIER, "Other")
    bad = signed(world, other, a_key(world, other, world.certifier_secret))
    good = signed(world, other, a_key(world, other, CertifierSecret.generate()))
    alone(world, "certifier-key-known", bad, good)


def test_a_revoked_key_does_not_come_back(stages: Stages) -> None:
    world = stages("fresh")
    world.board.post_as(
        world.certifier, RevokeCertifier(key=world.certifier_secret.public_key().to_bytes(), new_epoch=False)
    )
    with refused(world, "certifier-key-known"):
        world.offer_certifier_key()


def test_the_tree_of_certifiers_has_room(stages: Stages) -> None:
    world = stages("fresh")
    other, tree = world.authority.issue(Purpose.CERTIFIER, "Other"), world.board.state.certifier_tree
    posting = signed(world, other, a_key(world, other, CertifierSecret.generate()))
    world.board.state.certifier_tree = FullTree(tree)  # type: ignore[assignment]
    with refused(world, "certifiers-full"):
        world.board.post(posting)
    world.board.state.certifier_tree = tree
    world.board.post(posting)


@pytest.mark.parametrize("fault", ["another holder", "another board", "another key"])
def test_a_certifier_shows_possession(stages: Stages, fault: str) -> None:
    world, secret = stages("fresh"), CertifierSecret.generate()
    other = world.authority.issue(Purpose.CERTIFIER, "Other")
    good = a_key(world, other, secret)
    possession = {
        "another holder": secret.prove_possession(world.board.genesis_hash, world.certifier.subject),
        "another board": secret.prove_possession(bytes(32), other.subject),
        "another key": CertifierSecret.generate().prove_possession(world.board.genesis_hash, other.subject),
    }[fault]
    bad = replace(good, possession=possession.to_bytes())
    alone(world, "bad-possession", signed(world, other, bad), signed(world, other, good))


# revocation


def test_only_a_key_in_force_is_revoked(stages: Stages) -> None:
    world, key = stages("fresh"), CertifierSecret.generate().public_key().to_bytes()
    own = world.certifier_secret.public_key().to_bytes()
    made = [signed(world, world.operator, RevokeCertifier(key=k, new_epoch=False)) for k in (key, own)]
    alone(world, "certifier-unknown", *made)
    with refused(world, "certifier-unknown"):
        world.board.post(made[1])


def test_only_its_holder_or_an_operator_revokes_a_key(stages: Stages) -> None:
    world = stages("fresh")
    body = RevokeCertifier(key=world.certifier_secret.public_key().to_bytes(), new_epoch=False)
    other = world.authority.issue(Purpose.CERTIFIER, "Other")
    alone(world, "not-the-holder", signed(world, other, body), signed(world, world.certifier, body))


def test_only_an_operator_starts_an_epoch(stages: Stages) -> None:
    world = stages("fresh")
    body = RevokeCertifier(key=world.certifier_secret.public_key().to_bytes(), new_epoch=True)
    bad, good = signed(world, world.certifier, body), signed(world, world.operator, body)
    alone(world, "epoch-needs-operator", bad, good)
    assert world.board.state.epoch == 1


# registration


def a_registration(world: World, client: ClientOfTest, **changes: object) -> Posting:
    arguments: dict[str, object] = {
        "salt": client.salt,
        "certifiers": world.board.state.certifier_tree,
        "genesis": world.board.genesis_hash,
        "epoch": 0,
        "message_secret": MessageSecret.generate(),
        "prover": world.registration_prover,
    }
    return make_registration(client.credential, **(arguments | changes))  # type: ignore[arg-type]


def test_the_epoch_is_the_current_one(stages: Stages) -> None:
    world, client = stages("fresh"), stages("fresh").certify()
    alone(world, "wrong-epoch", a_registration(world, client, epoch=1), world.registration(client))


def test_the_certifier_root_is_recent(stages: Stages) -> None:
    world = stages("fresh")
    client, tree = world.certify(), CertifierTree()
    tree.append([CertifierSecret.generate().public_key(), world.certifier_secret.public_key()])
    bad = a_registration(world, client, certifiers=tree)
    alone(world, "unknown-certifier-root", bad, world.registration(client))


def test_a_root_leaves_the_window(stages: Stages) -> None:
    world = stages("fresh")
    client, other = world.certify(), world.certify(seed=1)
    old = [world.registration(client), world.registration(other)]
    role, secret = world.authority.issue(Purpose.CERTIFIER, "Other"), CertifierSecret.generate()
    world.board.post_as(role, a_key(world, role, secret))
    for _ in range(world.genesis.limits.root_window - 1):
        world.board.next_block()
    world.board.post(old[0])
    world.board.next_block()
    alone(world, "unknown-certifier-root", old[1], world.registration(other))


def test_a_revocation_empties_the_window_at_once(stages: Stages) -> None:
    world = stages("fresh")
    role, secret = world.authority.issue(Purpose.CERTIFIER, "Other"), CertifierSecret.generate()
    world.board.post_as(role, a_key(world, role, secret))
    world.board.next_block()
    posting = world.registration(world.certify())
    fork(world).board.post(posting)
    world.board.post_as(role, RevokeCertifier(key=secret.public_key().to_bytes(), new_epoch=False))
    with refused(world, "unknown-certifier-root"):
        world.board.post(posting)
    world.board.next_block()
    with refused(world, "unknown-certifier-root"):
        world.board.post(posting)
    world.board.post(world.registration(world.certify(seed=1)))


def test_a_dataset_registers_once(stages: Stages) -> None:
    world = stages("fresh")
    client, other = world.certify(), world.certify(seed=1)
    world.board.post(world.registration(client))
    again = world.registration(replace(client, salt=Salt.generate()))
    alone(world, "registration-spent", again, world.registration(other))


def test_the_tree_of_clients_has_room(stages: Stages) -> None:
    world = stages("fresh")
    posting, trees = world.registration(world.certify()), world.board.state.client_trees
    tree = trees[0]
    trees[0] = FullTree(tree)  # type: ignore[assignment]
    with refused(world, "clients-full"):
        world.board.post(posting)
    trees[0] = tree
    world.board.post(posting)


@pytest.mark.parametrize("field", ["commitment", "nullifier", "tag", "proof"])
def test_the_registration_proof_is_valid(stages: Stages, field: str) -> None:
    world, secret = stages("fresh"), MessageSecret.generate()
    good = world.registration(world.certify(), message_secret=secret)
    other = world.registration(world.certify(seed=1))
    bad = signed_by_key(world, secret, replace(good.body, **{field: getattr(other.body, field)}))
    alone(world, "bad-registration-proof", bad, good)
    stolen = signed_by_key(world, MessageSecret.generate(), other.body)
    alone(world, "bad-registration-proof", stolen, other)
