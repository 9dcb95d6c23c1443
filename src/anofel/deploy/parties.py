"""``parties.toml``: who takes part in a deployment, on which machine."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from anofel.board.size_classes import default_classes, size_class
from anofel.disk.sections import read_toml
from anofel.errors import InvalidInput
from anofel.messages import Class
from anofel.network.address import BoardAddress

MACHINE: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
NAME: Final = re.compile(r"[^\W_][\w .'()&-]{0,62}")
"""Names stand in certificates and scripts: letters, digits and a few marks."""
AUTHORITY: Final = "authority"
CLIENT: Final = "client"
"""The directory of a plan that is for no machine: what any client may take."""


@dataclass(frozen=True, kw_only=True)
class BoardParty:
    """The machine of the node."""

    machine: str = "board"
    name: str
    holder: str
    """Who runs it, as its storage certificate says."""
    address: str
    insecure_development_keys: bool = False
    numbers: tuple[str, ...] = ()
    """More options of ``anofel node init``, for example ``--interval 5``."""

    def classes(self) -> tuple[Class, ...]:
        """Return the size classes that the board will have. Raises ``InvalidInput``."""
        words = [word for text in self.numbers for word in text.replace("=", " ").split()]
        sizes = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--size-class"]
        return tuple(map(size_class, sizes)) or default_classes()


@dataclass(frozen=True, kw_only=True)
class CertifierParty:
    """A certifier."""

    machine: str
    name: str
    address: str
    tasks: tuple[str, ...]
    """The task files whose data it certifies."""
    policy: str = ""
    """Its own policy; without it one is drafted."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """An aggregator of a committee."""

    machine: str
    name: str


@dataclass(frozen=True, kw_only=True)
class CommitteeParty:
    """A committee."""

    name: str
    threshold: Annotated[int, Meta(ge=1, le=16)]
    members: tuple[Member, ...]
    scheme: str = "lattice"


@dataclass(frozen=True, kw_only=True)
class OwnerParty:
    """The owner of a task."""

    machine: str
    name: str
    task: str
    committee: str
    validation: str = ""
    """A file of rows on its machine, to measure every model on."""
    options: tuple[str, ...] = ()
    """More options of ``anofel owner announce``, for example ``--early-end``."""
    run_options: tuple[str, ...] = ()
    """More options of ``anofel owner run``."""


@dataclass(frozen=True, kw_only=True)
class Parties:
    """Everybody but the clients, who stay unknown."""

    authority: str
    """The name of the certificate authority."""
    tls_root: str = ""
    """The root of the TLS certificates, if no public authority issued them."""
    board: BoardParty
    certifier: tuple[CertifierParty, ...]
    committee: tuple[CommitteeParty, ...]
    owner: tuple[OwnerParty, ...]

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what does not fit together."""
        held = self._held()
        machines = [machine for _, machine, _ in held]
        for section, machine, name in held:
            if not MACHINE.fullmatch(machine) or machine in (AUTHORITY, CLIENT):
                taken = f"not '{AUTHORITY}' or '{CLIENT}'"
                yield section, f"'{machine}' must be of small letters, digits and '-', {taken}"
            if machines.count(machine) > 1:
                yield section, f"'{machine}' holds one role; give every role a machine of its own"
            if not NAME.fullmatch(name):
                yield section, f"'{name}' must be of letters, digits, spaces and . ' ( ) & -"
        for section, name in (("authority", self.authority), ("board", self.board.name)):
            if not NAME.fullmatch(name):
                yield section, f"'{name}' must be of letters, digits, spaces and . ' ( ) & -"
        known = [committee.name for committee in self.committee]
        for owner in self.owner:
            if owner.committee not in known:
                there = ", ".join(known)
                yield "owner", f"'{owner.name}' names the committee '{owner.committee}'; there is {there}"
        served = [owner.committee for owner in self.owner]
        for name in sorted({name for name in served if served.count(name) > 1}):
            yield "owner", f"two owners name the committee '{name}', which serves one task at a time"
        for committee in self.committee:
            people = {member.name for member in committee.members}
            if len(people) < len(committee.members) or len(people) < 2:
                yield "committee", f"'{committee.name}' needs two or more members of different organisations"
            if not NAME.fullmatch(committee.name):
                yield "committee", f"'{committee.name}' must be of letters, digits, spaces and . ' ( ) & -"
            if not len(people) // 2 < committee.threshold <= len(people):
                yield "committee", f"'{committee.name}' needs a threshold above half of {len(people)} members"
        if not self.certifier or not self.owner:
            yield "certifier", "and owner: there is at least one of each"

    def aggregators(self) -> dict[str, str]:
        """Return the name of every aggregator by its machine."""
        return {m.machine: m.name for committee in self.committee for m in committee.members}

    def _held(self) -> list[tuple[str, str, str]]:
        """Return section, machine and name of every role-holder."""
        found = [("board", self.board.machine, self.board.holder)]
        found += [("certifier", party.machine, party.name) for party in self.certifier]
        found += [("committee", machine, name) for machine, name in self.aggregators().items()]
        return found + [("owner", party.machine, party.name) for party in self.owner]


def read_parties(path: Path) -> Parties:
    """Read the file. Raises ``InvalidInput``, all problems at once."""
    found = read_toml(path, Parties)
    for address in (found.board.address, *(party.address for party in found.certifier)):
        if BoardAddress.parse(address).scheme != "https":
            raise InvalidInput(f"The address {address} must begin with https://.")
    return found
