"""``parties.toml``: who takes part in a deployment, on which machine."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import Meta

from anofel.board.size_classes import default_classes, size_class
from anofel.board.validators import MAX_PRESENT, SAFE
from anofel.disk.sections import read_toml
from anofel.errors import InvalidInput
from anofel.messages import Class
from anofel.network.address import BoardAddress

MACHINE: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
PEER: Final = re.compile(r"(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")
NAME: Final = re.compile(r"[^\W_][\w .'()&-]{0,62}")
"""Names stand in certificates and scripts: letters, digits and a few marks."""
AUTHORITY: Final = "authority"
CLIENT: Final = "client"
"""The directory of a plan that is for no machine: what any client may take."""


ENGINE_PORT: Final = 26656


@dataclass(frozen=True, kw_only=True)
class BoardParty:
    """The board; the machine of its node, if there is one."""

    machine: str = "board"
    name: str
    holder: str = ""
    """Who runs it, as its storage certificate says."""
    address: str = ""
    insecure_development_keys: bool = False
    numbers: tuple[str, ...] = ()
    """More options of ``anofel node init``, for example ``--interval 5``."""

    def classes(self) -> tuple[Class, ...]:
        """Return the size classes that the board will have. Raises ``InvalidInput``."""
        words = [word for text in self.numbers for word in text.replace("=", " ").split()]
        sizes = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--size-class"]
        return tuple(map(size_class, sizes)) or default_classes()


@dataclass(frozen=True, kw_only=True)
class ValidatorParty:
    """One of several that make the blocks together. The first one puts the genesis together."""

    machine: str
    name: str
    address: str
    peer: str = ""
    """How the other engines reach its engine, HOST:PORT; by default the host of its address."""

    @property
    def engine(self) -> str:
        """Where the other engines reach its engine."""
        return self.peer or f"{urlsplit(self.address).hostname}:{ENGINE_PORT}"

    @property
    def port(self) -> int:
        """Where its engine listens."""
        return int(self.engine.rpartition(":")[2])


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
    validator: tuple[ValidatorParty, ...] = ()
    """Who makes the blocks together; nobody, if it is one node."""
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
        yield from self._faults_of_board()
        yield from self._faults_of_addresses()
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

    def _faults_of_addresses(self) -> Iterator[tuple[str, str]]:
        places = [("certifier", party.address) for party in self.certifier]
        places += [("validator", party.address) for party in self.validator]
        places += [("board", self.board.address)] if self.board.address else []
        for section, address in places:
            try:
                scheme = BoardAddress.parse(address).scheme
            except InvalidInput as error:
                yield section, str(error).rstrip(".")
            else:
                if scheme != "https":
                    yield section, f"the address {address} must begin with https://"

    def _faults_of_board(self) -> Iterator[tuple[str, str]]:
        one = self.board.holder or self.board.address
        if self.validator and one:
            yield "board", "and validator: a board of several validators has no holder or address of its own"
        if not self.validator and not (self.board.holder and self.board.address):
            yield "board", "needs holder and address, or several [[validator]]"
        if self.validator and not SAFE <= len(self.validator) <= MAX_PRESENT:
            yield (
                "validator",
                f"there are {len(self.validator)}; a board of validators has {SAFE} to {MAX_PRESENT}, since "
                "with fewer none may fail",
            )
        names = {party.name for party in self.validator}
        if len(names) < len(self.validator):
            yield "validator", "each is another organisation"
        for party in self.validator:
            if not PEER.fullmatch(party.engine):
                yield "validator", f"'{party.engine}' is no HOST:PORT"

    def addresses(self) -> list[str]:
        """Return where the nodes of the board answer."""
        return [party.address for party in self.validator] or [self.board.address]

    def aggregators(self) -> dict[str, str]:
        """Return the name of every aggregator by its machine."""
        return {m.machine: m.name for committee in self.committee for m in committee.members}

    def _held(self) -> list[tuple[str, str, str]]:
        """Return section, machine and name of every role-holder."""
        found = [("validator", party.machine, party.name) for party in self.validator]
        found += [("validator", storage_of(party.machine), party.name) for party in self.validator]
        if not self.validator:
            found = [("board", self.board.machine, self.board.holder)]
        found += [("certifier", party.machine, party.name) for party in self.certifier]
        found += [("committee", machine, name) for machine, name in self.aggregators().items()]
        return found + [("owner", party.machine, party.name) for party in self.owner]


def storage_of(machine: str) -> str:
    """Name the request for the storage role of a validator's machine."""
    return f"{machine}-storage"


def read_parties(path: Path) -> Parties:
    """Read the file. Raises ``InvalidInput``, all problems at once."""
    return read_toml(path, Parties)
