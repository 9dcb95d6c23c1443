"""Tickets for uploads: what a stranger cannot have, so that storage holders keep room for those who have it.

A blob is stored before the posting that names it, so a holder has to take bytes from somebody whom it knows
nothing of. A ticket shows beforehand what the posting will show:

1. A client's ticket is the membership proof of its submission with the nullifier of the open iteration, and
   the payloads by hash and length, signed by the key of that one posting. A nullifier has one set of
   payloads, so a client has one place in each iteration, at each holder, however often it asks.
2. A role-holder's ticket is its certificate and a signature over the one blob.

What a client's ticket shows, the posting shows a moment later, and the payloads' names link both anyway.
Tickets of two iterations have nothing in common: proof, nullifier, tag and key are those of one iteration.
"""

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from anofel.board.seat import Sitting
from anofel.board.state import State
from anofel.board.statements import submission_statement
from anofel.errors import AnofelError, InvalidInput, InvalidSignature, VerificationError
from anofel.framing import Malformed, Reader, Writer
from anofel.ids import BlobHash, GenesisHash, Nullifier
from anofel.messages.signing import on_board
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey, verify_chain
from anofel.primitives import MessageKey, Scope
from anofel.proofs.statements import SubmissionProof, SubmissionVerifier

MAX_TICKET: Final = 6144
"""Bytes; a certificate chain is most of a role-holder's."""
PURPOSES: Final = (Purpose.AGGREGATOR, Purpose.OWNER)
"""The roles that upload."""
_CLIENT, _ROLE = 1, 2
_TAKEN: Final = "The client's place in this iteration is taken by other payloads."
_SIGNATURE_BYTES: Final = 64
_PAYLOAD_SLACK: Final = 1 << 20
_BYTES_PER_VALUE: Final = 16
"""A payload of either scheme is shorter than this for each value of the longest vector, and the slack."""


class TicketRefused(VerificationError):
    """An upload's ticket is not good; the upload is taken as a stranger's, where there is room."""

    code = "ticket-refused"


@dataclass(frozen=True, kw_only=True)
class ClientTicket:
    """What a client shows before it uploads the payloads of a submission."""

    bundle: int
    iteration: int
    nullifier: Nullifier
    tag: bytes
    type_commitment: bytes
    proof: bytes
    message_key: bytes
    payloads: tuple[tuple[BlobHash, int], ...]
    """Hash and length of each."""
    signature: bytes = b""

    @property
    def _content(self) -> bytes:
        writer = Writer().number(_CLIENT, 1).number(self.bundle, 8).number(self.iteration, 8)
        for value in (self.nullifier, self.tag, self.message_key):
            writer.raw(value)
        writer.framed(self.type_commitment).framed(self.proof).number(len(self.payloads), 1)
        for sha256, length in self.payloads:
            writer.raw(sha256).number(length, 8)
        return writer.done()

    def signed_bytes(self, genesis: GenesisHash) -> bytes:
        """What the key of the posting signs, for one board."""
        return on_board(b"anofel/1/client-ticket", genesis, self._content)

    def to_bytes(self) -> bytes:
        """Return the ticket as it is sent."""
        return self._content + self.signature

    @classmethod
    def _read(cls, reader: Reader) -> Self:
        bundle, iteration = reader.number(8), reader.number(8)
        nullifier, tag, message_key = Nullifier(reader.raw(32)), reader.raw(32), reader.raw(32)
        type_commitment, proof, number = reader.framed(), reader.framed(), reader.number(1)
        payloads = tuple((BlobHash(reader.raw(32)), reader.number(8)) for _ in range(number))
        return cls(
            bundle=bundle,
            iteration=iteration,
            nullifier=nullifier,
            tag=tag,
            type_commitment=type_commitment,
            proof=proof,
            message_key=message_key,
            payloads=payloads,
            signature=reader.raw(_SIGNATURE_BYTES),
        )


def role_ticket(role: RoleKey, genesis: GenesisHash, sha256: BlobHash, length: int) -> bytes:
    """Make a role-holder's ticket for one blob."""
    writer = Writer().number(_ROLE, 1).number(len(role.chain), 1)
    for certificate in role.chain:
        writer.framed(certificate)
    return writer.framed(role.sign(_role_bytes(genesis, sha256, length))).done()


def _role_bytes(genesis: GenesisHash, sha256: BlobHash, length: int) -> bytes:
    return on_board(b"anofel/1/role-ticket", genesis, sha256 + length.to_bytes(8, "little"))


@dataclass(frozen=True)
class OpenIteration:
    """What a holder has to know of an open iteration."""

    client_root: bytes
    num_payloads: int
    longest: int


@dataclass(frozen=True)
class TicketFacts:
    """What tickets are checked against, as of one block."""

    time: int
    open: Mapping[tuple[int, int], OpenIteration]

    @classmethod
    def of(cls, state: State) -> Self:
        """Look at a state."""
        return cls(
            state.time,
            {
                sitting.turn: OpenIteration(
                    sitting.iteration.client_root,
                    len(sitting.bundle.tasks),
                    _BYTES_PER_VALUE * sitting.size.max_length + _PAYLOAD_SLACK,
                )
                for sitting in Sitting.live(state)
                if sitting.is_open
            },
        )


class UploadTickets:
    """Checks tickets at one storage holder, in any thread."""

    def __init__(
        self, genesis: GenesisHash, roots: Sequence[bytes], verifier: Callable[[], SubmissionVerifier]
    ) -> None:
        """``verifier`` makes what verifies membership proofs, when the first one comes."""
        self._genesis, self._roots, self._make = genesis, roots, verifier
        self._verifier: SubmissionVerifier | None = None
        self._places: dict[tuple[int, int], dict[Nullifier, bytes]] = {}
        """For each open iteration, the digest of the ticket that took the place of a nullifier."""
        self._lock = threading.Lock()

    def check(self, data: bytes, facts: TicketFacts, sha256: BlobHash, length: int) -> None:
        """Check that a ticket is good for a blob. Raises ``TicketRefused``."""
        try:
            self._check(data, facts, sha256, length)
        except TicketRefused:
            raise
        except (AnofelError, Malformed) as error:
            raise TicketRefused(f"The ticket is not good: {error}") from None

    def _check(self, data: bytes, facts: TicketFacts, sha256: BlobHash, length: int) -> None:
        if len(data) > MAX_TICKET:
            raise TicketRefused(f"A ticket has at most {MAX_TICKET} bytes.")
        reader = Reader(data)
        kind = reader.number(1)
        if kind == _CLIENT:
            ticket = ClientTicket._read(reader)
            reader.end()
            self._check_client(ticket, facts, sha256, length)
        elif kind == _ROLE:
            chain = [reader.framed() for _ in range(reader.number(1))]
            signature = reader.framed()
            reader.end()
            self._check_role(chain, signature, facts, sha256, length)
        else:
            raise TicketRefused("There is no such kind of ticket.")

    def _check_client(self, ticket: ClientTicket, facts: TicketFacts, sha256: BlobHash, length: int) -> None:
        """Check what costs little first: a stranger can sign, but not prove."""
        turn = ticket.bundle, ticket.iteration
        found = facts.open.get(turn)
        if found is None:
            raise TicketRefused("The iteration is not the one that is open.")
        if (sha256, length) not in ticket.payloads:
            raise TicketRefused("The ticket is for other payloads.")
        if len(ticket.payloads) != found.num_payloads or max(n for _, n in ticket.payloads) > found.longest:
            raise TicketRefused("The ticket is for more than a submission has.")
        MessageKey.from_bytes(ticket.message_key).verify(ticket.signed_bytes(self._genesis), ticket.signature)
        digest = hashlib.sha256(ticket._content).digest()
        taken = self._place(turn, ticket.nullifier, facts)
        if taken not in (None, digest):
            raise TicketRefused(_TAKEN)
        if taken is None:
            self._verify(ticket, found.client_root)
            with self._lock:
                if self._places.setdefault(turn, {}).setdefault(ticket.nullifier, digest) != digest:
                    raise TicketRefused(_TAKEN)

    def _place(self, turn: tuple[int, int], nullifier: Nullifier, facts: TicketFacts) -> bytes | None:
        """Say by which ticket a place is taken; places of iterations that are over are forgotten."""
        with self._lock:
            for gone in [other for other in self._places if other not in facts.open]:
                del self._places[gone]
            return self._places.setdefault(turn, {}).get(nullifier)

    def _verify(self, ticket: ClientTicket, client_root: bytes) -> None:
        statement = submission_statement(
            client_root=client_root,
            scope=Scope(self._genesis, ticket.bundle, ticket.iteration),
            nullifier=ticket.nullifier,
            tag=ticket.tag,
            type_commitment=ticket.type_commitment,
            message_key=ticket.message_key,
        )
        if self._verifier is None:
            self._verifier = self._make()
        self._verifier.verify(statement, SubmissionProof.from_bytes(ticket.proof))

    def _check_role(
        self, chain: Sequence[bytes], signature: bytes, facts: TicketFacts, sha256: BlobHash, length: int
    ) -> None:
        refusal = "It has no certificate."
        for purpose in PURPOSES:
            try:
                identity = verify_chain(chain, self._roots, purpose, facts.time)
                identity.verify(_role_bytes(self._genesis, sha256, length), signature)
                return
            except (CertificateRefused, InvalidInput, InvalidSignature) as error:
                refusal = str(error)
        raise TicketRefused(f"The role-holder's ticket is not good: {refusal}")
