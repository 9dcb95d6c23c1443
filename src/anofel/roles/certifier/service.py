"""A certifier over HTTP, for clients that it invited (``docs/certifier.md``).

``POST /v1/nonces``: an invitation; the answer is a nonce document.
``POST /v1/requests``: token, request and what is about to be shown; the answer is a permit with a ticket.
``PUT /v1/data/{ticket}``: the file; the answer is a certificate document.

Rules, numbered as in ``docs/certifier.md``:

a. No byte of a file is read before token, request and length have been judged.
b. A file that is shown is in memory only, and gone when it was judged: no crash leaves it on a disk.
c. A ticket is good for the file that was announced and for one upload at a time, and ends after an hour.
d. The files that are being received or judged have together at most 1 GiB, counted as they arrive.

Subjects never travel: the token says who asks.
"""

import asyncio
import contextlib
import ctypes
import hashlib
import resource
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from anofel.node.api_problems import BadRequest
from anofel.node.api_requests import body_chunks, declared_length
from anofel.roles.certificate_files import (
    MAX_BYTES,
    CertificateDocument,
    InvitationDocument,
    PermitDocument,
    RequestDocument,
    ShowingDocument,
)
from anofel.roles.certifier.log import CertificationRefused
from anofel.roles.certifier.role import Certifier
from anofel.roles.private_service import document, private_app, serve_app, whole_body
from anofel.serving.listening import Tls
from anofel.studies.table import MemoryFile

MAX_CONNECTIONS: Final = 128
MAX_SHOWN_BYTES: Final = 1 << 30
MAX_TICKETS: Final = 1024
TICKET_BYTES: Final = 32
TICKET_SECONDS: Final = 3600.0
_PR_SET_DUMPABLE: Final = 4


@dataclass(slots=True)
class _Ticket:
    """Leave to show one file."""

    token_hash: bytes
    request: RequestDocument
    ending: str
    length: int
    ends: float
    in_use: bool = False
    arrived: int = 0


class Tickets:
    """Who may show what, in memory only: a certifier that starts again has forgotten them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._tickets: OrderedDict[bytes, _Ticket] = OrderedDict()
        self._shown = 0
        self._clock = clock

    def add(self, showing: ShowingDocument, request: RequestDocument) -> PermitDocument:
        """Give a ticket for a judged request; it takes the place of the last one of the same invitation."""
        token_hash, now = hashlib.sha256(showing.token).digest(), self._clock()
        for name, other in list(self._tickets.items()):
            if not other.in_use and (other.token_hash == token_hash or other.ends < now):
                del self._tickets[name]
        if len(self._tickets) >= MAX_TICKETS:
            self._tickets.popitem(last=False)
        ticket = secrets.token_bytes(TICKET_BYTES)
        self._tickets[_hash(ticket)] = _Ticket(
            token_hash, request, showing.ending, showing.length, now + TICKET_SECONDS
        )
        return PermitDocument(ticket=ticket)

    @contextlib.contextmanager
    def using(self, ticket: str) -> Iterator[_Ticket]:
        """Find a ticket and hold it while its file is received and judged (c)."""
        found = self._tickets.get(_hash(bytes.fromhex(ticket))) if _is_ticket(ticket) else None
        if found is None or found.ends < self._clock():
            raise CertificationRefused(
                "ticket-unknown", "The ticket is not one of this certifier, or too old; ask again."
            )
        if found.in_use:
            raise BadRequest(409, "ticket-in-use", "The file of this ticket is being received already.")
        found.in_use, found.arrived = True, 0
        try:
            yield found
        finally:
            found.in_use, self._shown = False, self._shown - found.arrived

    def take(self, ticket: _Ticket, length: int) -> None:
        """Count bytes that arrived for a ticket in use (d); what is only announced takes no room."""
        if self._shown + length > MAX_SHOWN_BYTES:
            raise BadRequest(503, "certifier-busy", "Too much data is being judged; try again.")
        self._shown, ticket.arrived = self._shown + length, ticket.arrived + length


def make_app(certifier: Certifier) -> Starlette:
    """Return the application of a certifier."""
    app = private_app(
        [
            Route("/v1/nonces", _nonce, methods=["POST"]),
            Route("/v1/requests", _request, methods=["POST"]),
            Route("/v1/data/{ticket}", _data, methods=["PUT"]),
        ],
        CertificationRefused,
    )
    app.state.certifier = certifier
    app.state.tickets = Tickets()
    return app


async def _nonce(request: Request) -> Response:
    invitation = InvitationDocument.from_bytes(await whole_body(request, MAX_BYTES))
    certifier: Certifier = request.app.state.certifier
    nonce = await asyncio.to_thread(certifier.office.answer_invitation, invitation)
    return document(nonce.to_bytes())


async def _request(request: Request) -> Response:
    showing = ShowingDocument.from_bytes(await whole_body(request, MAX_BYTES))
    certifier: Certifier = request.app.state.certifier
    tickets: Tickets = request.app.state.tickets
    asked = await asyncio.to_thread(certifier.examine_showing, showing)
    return document(tickets.add(showing, asked).to_bytes())


async def _data(request: Request) -> Response:
    tickets: Tickets = request.app.state.tickets
    with tickets.using(request.path_params["ticket"]) as ticket:  # (a)
        if declared_length(request, ticket.length) != ticket.length:
            raise BadRequest(400, "wrong-length", f"The file was announced with {ticket.length} bytes.")
        chunks = []
        async for chunk in body_chunks(request, ticket.length):
            tickets.take(ticket, len(chunk))
            chunks.append(chunk)
        file = MemoryFile(f"data{ticket.ending}", b"".join(chunks))  # (b)
        return document((await _judged(request, ticket.request, file)).to_bytes())


async def _judged(request: Request, asked: RequestDocument, file: MemoryFile) -> CertificateDocument:
    certifier: Certifier = request.app.state.certifier
    one_at_a_time: asyncio.Lock = request.app.state.one_at_a_time
    async with one_at_a_time:
        return await asyncio.to_thread(certifier.certify, asked, file)


def _hash(ticket: bytes) -> bytes:
    """What a ticket is looked up by, so that the time of a look-up says nothing about it."""
    return hashlib.sha256(ticket).digest()


def _is_ticket(text: str) -> bool:
    return len(text) == 2 * TICKET_BYTES and all(digit in "0123456789abcdef" for digit in text)


def never_dump() -> None:
    """Let no crash of this process write its memory to a disk (b)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(AttributeError, OSError):  # the limit does not hold for dumps through a pipe
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def serve(
    certifier: Certifier, taken: socket.socket, tls: Tls | None = None, *, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT."""
    never_dump()
    serve_app(make_app(certifier), taken, tls, max_connections=MAX_CONNECTIONS, on_ready=on_ready)
