"""Who makes the blocks of a board, and when: the validators of genesis, until they change themselves.

A validator has a *place*, a number that seals and receipts name it by. A change empties a place, fills the
next free one or puts another key into one, from a stated height on. What holds between two changes is an
*era*. The storage role that a validator runs has the number of its place and comes and goes with it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from anofel.comet.commits import validators_hash
from anofel.ids import ChangeId
from anofel.messages import ChangeValidators, Genesis, Validator

NOTICE: Final = 2
"""The engine hears of a change so many blocks before the first block that the changed validators make."""
MAX_PRESENT: Final = 16
"""A blob names the receipts of so many holders at most."""
MAX_PLACES: Final = 256
"""A seal and a receipt name a place in one byte."""
LEAVING_BLOCKS: Final = 1000
"""For so many blocks receipts of a holder count that a change took away: payloads are on their way."""
SAFE: Final = 4
"""With fewer validators none may be faulty."""


def tolerated(number: int) -> int:
    """Return f: how many of so many validators of equal power may be faulty."""
    return (number - 1) // 3


def quorum_of(number: int) -> int:
    """Return of how many storage holders a blob needs receipts, where so many validators run one each."""
    return number - tolerated(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a validator that came later is reached; network.toml says it of those of genesis."""

    name: str
    peer: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """The validators between two changes."""

    since: int
    """The first block that they make."""
    validators: dict[int, Validator]
    """By place, ascending."""
    holders: dict[int, tuple[bytes, ...]]
    """The certificates of storage roles, by place."""
    quorum: int
    addresses: dict[int, Address]

    @property
    def hash(self) -> bytes:
        """The engine's hash of the validators."""
        return validators_hash(list(self.validators.values()))

    @property
    def power(self) -> int:
        """Of all together."""
        return sum(validator.power for validator in self.validators.values())

    @property
    def faulty(self) -> int:
        """f: how many may be faulty, if all have the same power."""
        return tolerated(len(self.validators))

    def changed(self, change: ChangeValidators) -> "Era":
        """Return the era that a change begins."""
        validators, holders, addresses = self.validators.copy(), self.holders.copy(), self.addresses.copy()
        for table in (validators, holders, addresses):
            table.pop(change.place, None)
        if change.entry is not None:
            entry = change.entry
            validators[change.place], holders[change.place] = entry.validator, entry.holder
            addresses[change.place] = Address(name=entry.name, peer=entry.peer, url=entry.url)
        return Era(
            since=change.since,
            validators=dict(sorted(validators.items())),
            holders=dict(sorted(holders.items())),
            quorum=quorum_of(len(validators)),
            addresses=addresses,
        )


@dataclass(frozen=True, slots=True)
class Eras:
    """All eras of a board that are known, the first first."""

    eras: tuple[Era, ...]

    @classmethod
    def of(cls, genesis: Genesis) -> Self:
        """Return the one that genesis begins."""
        first = Era(
            since=0,
            validators=dict(enumerate(genesis.validators)),
            holders=dict(enumerate(genesis.holders)),
            quorum=genesis.quorum,
            addresses={},
        )
        return cls((first,))

    def __iter__(self) -> Iterator[Era]:
        return iter(self.eras)

    @property
    def last(self) -> Era:
        """The last one, which may not have begun."""
        return self.eras[-1]

    def at(self, height: int) -> Era:
        """Return the era of a block. A change is known two blocks before it, and none for later blocks."""
        return next(era for era in reversed(self.eras) if era.since <= height)

    def for_receipts(self, height: int) -> list[Era]:
        """Return the eras whose storage holders count at a block: its own, and for a while the one before.

        One change takes one holder away, so of a quorum of n − f one at least is honest and stays.
        """
        begun = [era for era in self.eras if era.since <= height]
        is_new = height < begun[-1].since + LEAVING_BLOCKS
        return [begun[-1], *begun[-2:-1]] if is_new else begun[-1:]

    def and_then(self, change: ChangeValidators) -> "Eras":
        """Return the eras with one more."""
        return Eras((*self.eras, self.last.changed(change)))

    @property
    def next_place(self) -> int:
        """The first place that nobody had."""
        return 1 + max(place for era in self.eras for place in era.validators)

    def is_used(self, key: bytes) -> bool:
        """Whether a key votes or voted on this board, or will."""
        return any(one.key == key for era in self.eras for one in era.validators.values())


@dataclass(frozen=True, slots=True)
class OpenChange:
    """A change that is proposed."""

    change: ChangeValidators
    proposer: int
    """The place of who proposed it."""
    signed: tuple[int, ...]
    """The places of those who signed it, in the order of the board; the proposer is the first."""


@dataclass(slots=True)
class ValidatorState:
    """The eras of a board, and the changes that are proposed."""

    eras: Eras
    open: dict[ChangeId, OpenChange] = field(default_factory=dict)

    def fork(self) -> "ValidatorState":
        """Return one that changes by itself."""
        return ValidatorState(self.eras, self.open.copy())

    def scheduled(self, height: int) -> Era | None:
        """Return the era that is decided and has not begun with this block."""
        return self.eras.last if self.eras.last.since > height else None

    def holders_at(self, height: int, place: int) -> list[tuple[bytes, ...]]:
        """Return the certificates of who may sign receipts for a place; none if nobody may."""
        found = [era.holders[place] for era in self.eras.for_receipts(height) if place in era.holders]
        return list(dict.fromkeys(found))

    def quorum_at(self, height: int) -> int:
        """Return how many receipts a blob needs."""
        return min(era.quorum for era in self.eras.for_receipts(height))

    def propose(self, name: ChangeId, change: ChangeValidators, proposer: int) -> None:
        """Note a proposal; it takes the place of the proposer's last one."""
        self.open = {known: one for known, one in self.open.items() if one.proposer != proposer}
        self.open[name] = OpenChange(change, proposer, ())
        self.sign(name, proposer)

    def sign(self, name: ChangeId, place: int) -> None:
        """Note a signature. With more than two thirds of the power a change is decided, the others lapse."""
        one = self.open[name]
        self.open[name] = replace(one, signed=(*one.signed, place))
        present = self.eras.last
        power = sum(present.validators[signer].power for signer in self.open[name].signed)
        if 3 * power > 2 * present.power:
            self.eras, self.open = self.eras.and_then(one.change), {}

    def lapse(self, height: int) -> None:
        """Drop, after a block, the changes that cannot be decided in time any more."""
        self.open = {name: one for name, one in self.open.items() if one.change.since > height + NOTICE}

    def announced(self, height: int) -> tuple[Mapping[int, Validator], Mapping[int, Validator]] | None:
        """Return the validators before and after a change that the engine hears of with this block."""
        if self.eras.last.since != height + NOTICE:
            return None
        return self.eras.eras[-2].validators, self.eras.last.validators
