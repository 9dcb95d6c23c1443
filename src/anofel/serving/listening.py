"""What a server takes before it serves: an address, TLS files, and room for open files."""

import errno
import resource
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anofel.errors import AnofelError, InvalidInput

BACKLOG: Final = 1024
"""Connections that the kernel keeps until we accept them."""
OTHER_FILES: Final = 128
"""Open files that are no connections: databases, keys, directories, threads' temporary files."""
FILES_PER_CONNECTION: Final = 2
"""The connection itself and the blob that it brings or fetches."""


class AddressUnavailable(AnofelError):
    """A server cannot listen where it should."""

    code = "address-unavailable"


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM: the certificate chain and its key."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Refuse files that cannot be used, before anything listens. Raises ``InvalidInput``."""
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            raise InvalidInput(
                f"{self.certificate} and {self.key} are not a certificate and its key: {error.reason}."
            ) from None
        except OSError as error:
            name = self.key if self.certificate.is_file() else self.certificate
            raise InvalidInput(f"{name} cannot be read: {error.strerror or error}.") from None


def listen(host: str, port: int) -> socket.socket:
    """Take the address. Raises ``AddressUnavailable``."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressUnavailable(f"{host} is no address to listen on: {error.strerror or error}.") from None
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressUnavailable(f"Another program listens on {host}, port {port}.") from None
        reason = error.strerror or error
        raise AddressUnavailable(f"The node cannot listen on {host}, port {port}: {reason}.") from None
    taken.setblocking(False)
    return taken


def room_for(connections: int) -> int:
    """Let this process open enough files for so many connections; return how many it has room for.

    The soft limit is raised as far as the hard one allows.
    """
    wanted = connections * FILES_PER_CONNECTION + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    return max(1, (soft - OTHER_FILES) // FILES_PER_CONNECTION)
