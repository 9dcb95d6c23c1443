"""Addresses of boards and proxies, read and refused before anything is sent."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, urlsplit

from anofel.errors import InvalidInput

_PORTS = {"http": 80, "https": 443}

HTTP_PROXY_WARNING = (
    "An HTTP proxy sees who talks to which board and cannot separate your messages from each other; "
    "use socks5h:// with Tor to be anonymous."
)


@dataclass(frozen=True)
class BoardAddress:
    """Where a board answers: ``https://host:port/prefix``."""

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an address. Raises InvalidInput."""
        parts = _split(url, "board")
        if parts.scheme not in _PORTS:
            raise InvalidInput(f"The board's address {url!r} must begin with http:// or https://.")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidInput(f"The board's address {url!r} must not hold more than host, port and path.")
        port = parts.port or _PORTS[parts.scheme]
        return cls(parts.scheme, str(parts.hostname), port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


@dataclass(frozen=True)
class ProxyAddress:
    """A proxy: ``socks5h://host:port`` or ``http://host:port``."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an address. Raises InvalidInput."""
        parts = _split(url, "proxy")
        if parts.scheme in ("socks5", "socks4", "socks"):
            raise InvalidInput(
                f"Write socks5h:// instead of {parts.scheme}://; the proxy resolves every name."
            )
        if parts.scheme not in ("socks5h", "http"):
            raise InvalidInput(f"The proxy {url!r} must begin with socks5h:// or http://.")
        if parts.username or parts.password:
            raise InvalidInput(
                "A proxy's address must not hold a user name; every message brings a fresh one."
            )
        if parts.path.strip("/") or parts.query or parts.fragment or parts.port is None:
            raise InvalidInput(f"The proxy {url!r} must have a host and a port, and nothing after them.")
        return cls(parts.scheme, str(parts.hostname), parts.port)

    @property
    def is_socks(self) -> bool:
        """Whether every message can have its own circuit."""
        return self.scheme == "socks5h"

    @property
    def url(self) -> str:
        """The address as the library wants it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def _split(url: str, noun: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InvalidInput(f"The {noun}'s address {url!r} is malformed.") from error
    if not url.isascii() or not url.isprintable() or " " in url or not parts.hostname:
        raise InvalidInput(f"The {noun}'s address {url!r} is malformed.")
    return parts
