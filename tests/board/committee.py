"""A board whose blocks several validators make, without their engines: what those sign is signed here."""

import copy
from dataclasses import dataclass, replace
from typing import Self

from anofel.board.chain import Chain
from anofel.board.engines import Engine, name_of
from anofel.board.roots import era_digest
from anofel.board.state import State
from anofel.board.verification import Verifier
from anofel.comet.commits import EngineHeader, data_hash
from anofel.ids import ChangeId
from anofel.messages import (
    Block,
    Body,
    ChainAuthor,
    ChangeValidators,
    EngineBlock,
    EngineVote,
    Genesis,
    NewValidator,
    Posting,
    Seal,
    SignChange,
    Validator,
    binding_bytes,
    make_posting,
)
from anofel.pki.certificates import Purpose, RoleKey
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory
from tests.board.world import TIME, Authority, make_genesis

ZERO = bytes(32)


class NoBlobs:
    """There are none."""

    def read(self, sha256: bytes) -> bytes:
        raise AssertionError("no blob is needed here")


@dataclass(frozen=True)
class Institution:
    """Who runs a validator."""

    role: RoleKey
    storage: RoleKey
    secret: MessageSecret

    @classmethod
    def new(cls, authority: Authority, name: str) -> Self:
        return cls(
            authority.issue(Purpose.VALIDATOR, name),
            authority.issue(Purpose.STORAGE, f"Storage of {name}"),
            MessageSecret.generate(),
        )

    def with_new_key(self) -> "Institution":
        return replace(self, secret=MessageSecret.generate())

    def validator(self, nonce: bytes, power: int = 1) -> Validator:
        key = self.secret.public_key().to_bytes()
        binding = self.role.sign(binding_bytes(nonce, key))
        return Validator(key=key, power=power, chain=self.role.chain, binding=binding)

    def entry(self, nonce: bytes, **changes: object) -> NewValidator:
        entry = NewValidator(
            validator=self.validator(nonce),
            holder=self.storage.chain,
            name="New",
            peer=f"{'ab' * 20}@new.example:26656",
            url="https://new.example",
        )
        return replace(entry, **changes)  # type: ignore[arg-type]


class CommitteeBoard:
    """A board of validators; it stands in for a ``World`` where a rule is tried."""

    def __init__(
        self, keys: KeyDirectory, number: int = 4, like: "CommitteeBoard | None" = None, **changes: object
    ) -> None:
        """``like``: another board of the same institutions, who have the same keys on both."""
        self.authority = Authority() if like is None else like.authority
        made = (Institution.new(self.authority, f"Clinic {place}") for place in range(number))
        self.seats = dict(enumerate(made)) if like is None else dict(like.seats)
        faulty = (number - 1) // 3
        nonce = bytes(range(32))
        values: dict[str, object] = {
            "engine": int(Engine.COMETBFT),
            "nonce": nonce,
            "validators": tuple(seat.validator(nonce) for seat in self.seats.values()),
            "holders": tuple(seat.storage.chain for seat in self.seats.values()),
            "quorum": number - faulty,
        }
        seat = self.seats[0]
        self.genesis: Genesis = make_genesis(
            self.authority, keys, seat.storage, seat.secret, **(values | changes)
        )
        self._verifiers = keys.registration_verifier(threads=1), keys.submission_verifier(threads=1)
        self.chain = self.follower()
        self.board = self
        self.blocks: list[Block] = []
        self._postings: list[bytes] = []
        self.chain.begin(TIME + 1)

    def follower(self) -> Chain:
        """Somebody who knows genesis alone."""
        verifier = Verifier(self.genesis.hash, *self._verifiers, NoBlobs())
        return Chain(State.at_genesis(self.genesis), verifier)

    @property
    def state(self) -> State:
        return self.chain.state

    @property
    def genesis_hash(self) -> bytes:
        return self.genesis.hash

    @property
    def base(self) -> bytes:
        return era_digest(self.state.validators.eras.last)

    def fork(self) -> "CommitteeBoard":
        """Copy the board; the copies share what was verified."""
        made = copy.copy(self)
        made.board, made.chain = made, self.chain.fork()
        made.blocks, made._postings = list(self.blocks), list(self._postings)
        return made

    # Postings

    def change(
        self, place: int, entry: NewValidator | None, since: int = 5, **changes: object
    ) -> ChangeValidators:
        body = ChangeValidators(base=self.base, place=place, entry=entry, since=since)
        return replace(body, **changes)  # type: ignore[arg-type]

    def signed(self, role: RoleKey, body: Body) -> Posting:
        return make_posting(body, ChainAuthor(role.chain), self.genesis.hash, role.sign)

    def proposal(self, author: int, body: ChangeValidators) -> Posting:
        return self.signed(self.seats[author].role, body)

    def signature(self, author: int, change: ChangeValidators) -> Posting:
        return self.signed(
            self.seats[author].role, SignChange(change=ChangeId(change.change_id(self.genesis.hash)))
        )

    def post(self, posting: Posting) -> None:
        self.chain.offer(posting.data)
        self._postings.append(posting.data)

    def decide(self, change: ChangeValidators, *authors: int) -> None:
        """Propose a change and let others sign it."""
        first, *others = authors
        self.post(self.proposal(first, change))
        for author in others:
            self.post(self.signature(author, change))

    # Blocks

    def _before(self, height: int) -> EngineBlock | None:
        """How the engine names the block before one, if it was made here."""
        if not 2 <= height <= len(self.blocks) + 1:
            return None
        name = name_of(self.genesis, self.state.validators.eras, self.blocks[height - 2])
        return EngineBlock(hash=name, parts=1, parts_hash=ZERO)

    def block(self) -> Block:
        """End the block, let everybody who may sign it, and begin the next one."""
        height, time = self.state.height, self.state.time
        header = self.chain.seal()
        block = Block(header=header, commit=(), postings=tuple(self._postings))
        block = self.sealed(block, {place: self.secret_at(place, height) for place in self.present(height)})
        self.blocks.append(block)
        self._postings = []
        self.chain.begin(time + 1)
        return block

    def until(self, height: int) -> None:
        """Make empty blocks until this one is being filled."""
        while self.state.height < height:
            self.block()

    def present(self, height: int) -> dict[int, Validator]:
        return self.state.validators.eras.at(height).validators

    def secret_at(self, place: int, height: int) -> MessageSecret:
        key = self.present(height)[place].key
        return next(one.secret for one in self.everybody if one.secret.public_key().to_bytes() == key)

    everybody_else: tuple[Institution, ...] = ()

    @property
    def everybody(self) -> list[Institution]:
        return [*self.seats.values(), *self.everybody_else]

    def sealed(
        self, block: Block, secrets: dict[int, MessageSecret], now: dict[int, Validator] | None = None
    ) -> Block:
        """Put a seal on a block: what CometBFT's header holds, and the precommits of some."""
        eras, height = self.state.validators.eras, block.header.height
        seal = Seal(
            block_version=11,
            app_version=1,
            nanos=0,
            last=self._before(height),
            last_commit=ZERO,
            data=data_hash(block.postings),
            next_validators=eras.at(height + 1).hash,
            consensus=ZERO,
            results=ZERO,
            evidence=ZERO,
            proposer=min(now or self.present(height)),
            round=0,
            parts=1,
            parts_hash=ZERO,
            votes=(),
        )
        engine = EngineHeader.of(self.genesis, now or self.present(height), block.header, seal)
        named, votes = engine.hash(), []
        for place, secret in secrets.items():
            vote = EngineVote(validator=place, time=block.header.time, nanos=0, signature=bytes(64))
            votes.append(replace(vote, signature=secret.sign(engine.vote_bytes(named, vote))))
        return replace(block, seal=replace(seal, votes=tuple(votes)))
