"""Who made a posting: a certified role-holder, or a client that nobody can name."""

from dataclasses import dataclass

from anofel.ids import Subject
from anofel.pki.certificates import Identity


@dataclass(frozen=True, slots=True)
class RoleHolder:
    """A role-holder whose chain and signature were verified."""

    identity: Identity

    @property
    def subject(self) -> Subject:
        """What names the holder on the board; it survives a renewed certificate."""
        return self.identity.subject

    @property
    def name(self) -> str:
        """The name in the certificate."""
        return self.identity.name


@dataclass(frozen=True, slots=True)
class Anonymous:
    """A client behind a fresh message key whose signature was verified."""

    message_key: bytes


Author = RoleHolder | Anonymous
