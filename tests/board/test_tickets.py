"""Tickets for uploads: one rule broken at a time, at a board whose first iteration is open."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from anofel.board.tickets import (
    MAX_TICKET,
    ClientTicket,
    TicketFacts,
    TicketRefused,
    UploadTickets,
    role_ticket,
)
from anofel.ids import BlobHash
from anofel.phase2_training.step5_submission import SealedSubmission, upload_ticket
from anofel.pki.certificates import Purpose
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory
from tests.board.world import World, a_vector

Change = Callable[[ClientTicket], ClientTicket]
OTHER = BlobHash(bytes(32))


@pytest.fixture(scope="module")
def world(keys: KeyDirectory) -> World:
    made = World(keys, bundle_size=1)
    made.set_up(num_clients=2, committees=((2, 2, 0),))
    return made


@pytest.fixture(scope="module")
def sealed(world: World) -> SealedSubmission:
    return world.sealed(world.clients[0], 0, a_vector(world.owners[0].task, 1))


@pytest.fixture
def tickets(world: World, keys: KeyDirectory) -> UploadTickets:
    return UploadTickets(world.genesis.hash, world.genesis.roots, lambda: keys.submission_verifier(threads=1))


def ticket_of(sealed: SealedSubmission, world: World, change: Change = lambda ticket: ticket) -> ClientTicket:
    """The client's own ticket with something changed, and signed anew by the key of the posting."""
    shown = sealed.membership
    made = change(
        ClientTicket(
            bundle=shown.bundle,
            iteration=shown.iteration,
            nullifier=shown.nullifier,
            tag=shown.tag,
            type_commitment=shown.type_commitment,
            proof=shown.proof,
            message_key=shown.message_key,
            payloads=payloads(sealed),
        )
    )
    return replace(made, signature=shown.message_secret.sign(made.signed_bytes(world.genesis.hash)))


def payloads(sealed: SealedSubmission) -> tuple[tuple[BlobHash, int], ...]:
    import hashlib

    return tuple((BlobHash(hashlib.sha256(data).digest()), len(data)) for data in sealed.payloads)


def facts(world: World) -> TicketFacts:
    return TicketFacts.of(world.board.state)


def test_the_ticket_of_a_submission_is_good_as_often_as_it_is_shown(
    world: World, sealed: SealedSubmission, tickets: UploadTickets
) -> None:
    data = upload_ticket(sealed, world.genesis.hash)
    assert data == ticket_of(sealed, world).to_bytes()
    for _ in range(3):
        for sha256, length in payloads(sealed):
            tickets.check(data, facts(world), sha256, length)


FORGED: dict[str, tuple[Change, str]] = {
    "another nullifier": (lambda t: replace(t, nullifier=bytes(31) + b"\1"), "not good"),
    "another tag": (lambda t: replace(t, tag=bytes(31) + b"\1"), "not good"),
    "another iteration": (lambda t: replace(t, iteration=t.iteration + 1), "not the one that is open"),
    "another bundle": (lambda t: replace(t, bundle=t.bundle + 1), "not the one that is open"),
    "a changed proof": (lambda t: replace(t, proof=t.proof[:-1] + b"\0"), "not good"),
    "other payloads": (lambda t: replace(t, payloads=((OTHER, 5),)), "for other payloads"),
    "more payloads": (lambda t: replace(t, payloads=(*t.payloads, (OTHER, 5))), "more than a submission has"),
    "a long payload": (
        lambda t: replace(t, payloads=((t.payloads[0][0], 1 << 40),)),
        "more than a submission has",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_one_thing_wrong_in_a_clients_ticket_is_refused(
    name: str, world: World, sealed: SealedSubmission, tickets: UploadTickets
) -> None:
    change, reason = FORGED[name]
    data = ticket_of(sealed, world, change).to_bytes()
    (sha256, length) = payloads(sealed)[0]
    length = 1 << 40 if name == "a long payload" else length
    with pytest.raises(TicketRefused, match=reason):
        tickets.check(data, facts(world), sha256, length)


def test_who_has_no_key_of_the_posting_signs_in_vain(
    world: World, sealed: SealedSubmission, tickets: UploadTickets
) -> None:
    """The proof of a posting is public once it is posted; it is bound to the key."""
    own, (sha256, length) = ticket_of(sealed, world), payloads(sealed)[0]
    stranger = MessageSecret.generate()
    signed = replace(own, signature=stranger.sign(own.signed_bytes(world.genesis.hash)))
    with pytest.raises(TicketRefused):
        tickets.check(signed.to_bytes(), facts(world), sha256, length)
    keyed = replace(own, message_key=stranger.public_key().to_bytes())
    keyed = replace(keyed, signature=stranger.sign(keyed.signed_bytes(world.genesis.hash)))
    with pytest.raises(TicketRefused):
        tickets.check(keyed.to_bytes(), facts(world), sha256, length)


def test_a_client_has_one_place_in_an_iteration(
    world: World, sealed: SealedSubmission, tickets: UploadTickets
) -> None:
    again = world.sealed(world.clients[0], 0, a_vector(world.owners[0].task, 2))
    assert again.membership.nullifier == sealed.membership.nullifier
    tickets.check(upload_ticket(sealed, world.genesis.hash), facts(world), *payloads(sealed)[0])
    with pytest.raises(TicketRefused, match="place in this iteration is taken"):
        tickets.check(upload_ticket(again, world.genesis.hash), facts(world), *payloads(again)[0])
    over = TicketFacts(facts(world).time, {})
    with pytest.raises(TicketRefused, match="not the one that is open"):
        tickets.check(upload_ticket(sealed, world.genesis.hash), over, *payloads(sealed)[0])


@pytest.mark.parametrize(
    "data", [b"", b"\3", bytes(MAX_TICKET + 1), b"\1" + bytes(40), b"\2\1\xff\xff\xff\xff"]
)
def test_bytes_that_are_no_ticket_are_refused(data: bytes, world: World, tickets: UploadTickets) -> None:
    with pytest.raises(TicketRefused):
        tickets.check(data, facts(world), OTHER, 5)


def test_bytes_left_over_are_refused(world: World, sealed: SealedSubmission, tickets: UploadTickets) -> None:
    data = upload_ticket(sealed, world.genesis.hash) + b"\0"
    with pytest.raises(TicketRefused, match="left over"):
        tickets.check(data, facts(world), *payloads(sealed)[0])


def test_role_holders_that_upload_have_tickets_and_others_have_none(
    world: World, tickets: UploadTickets
) -> None:
    genesis, now = world.genesis.hash, facts(world)
    for purpose in (Purpose.OWNER, Purpose.AGGREGATOR):
        role = world.authority.issue(purpose, "Somebody")
        data = role_ticket(role, genesis, OTHER, 5)
        tickets.check(data, now, OTHER, 5)
        with pytest.raises(TicketRefused):
            tickets.check(data, now, OTHER, 6)
        with pytest.raises(TicketRefused):
            tickets.check(data, now, BlobHash(b"\1" * 32), 5)
    clinic = world.authority.issue(Purpose.CERTIFIER, "Clinic")
    with pytest.raises(TicketRefused):
        tickets.check(role_ticket(clinic, genesis, OTHER, 5), now, OTHER, 5)
    foreign = type(world.authority)().issue(Purpose.OWNER, "Of another authority")
    with pytest.raises(TicketRefused):
        tickets.check(role_ticket(foreign, genesis, OTHER, 5), now, OTHER, 5)
