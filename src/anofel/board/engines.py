"""Who makes the blocks of a board, and what vouches for one: by the engine that genesis names.

Under either engine validators with more than two thirds of the power sign.

========= ============================ ==============================================================
engine    in a block                   what the signatures cover
========= ============================ ==============================================================
embedded  votes                        the whole header
CometBFT  a seal                       height, time, the header before and the postings; the roots follow
                                       from them, and the next block's seal covers their hash
========= ============================ ==============================================================
"""

from collections.abc import Iterable
from enum import IntEnum

from anofel.board.validators import Era, Eras, tolerated
from anofel.comet.commits import EngineHeader, data_hash
from anofel.errors import InvalidSignature, VerificationError
from anofel.messages import Block, Genesis
from anofel.primitives import MessageKey


class Engine(IntEnum):
    """Who makes the blocks."""

    EMBEDDED = 0
    """One node."""
    COMETBFT = 1
    """A committee of validators, each with CometBFT."""


class InvalidCommit(VerificationError):
    """What should vouch for a block does not."""

    code = "invalid-commit"


def fault_tolerance(genesis: Genesis) -> int:
    """Return f: how many validators of equal power may be faulty. More than two thirds must be right."""
    return tolerated(len(genesis.validators))


def covers_roots(genesis: Genesis) -> bool:
    """Whether what vouches for a block covers the roots in its header."""
    return genesis.engine == Engine.EMBEDDED


def check_vouched(genesis: Genesis, validators: Eras, block: Block) -> None:
    """Check that validators with more than two thirds of the power vouch for a block's header.

    Those of the block's own height count; keys that were taken away before it, or come after it, do not.
    The postings may have been left out. Raises ``InvalidCommit``.
    """
    if genesis.engine == Engine.COMETBFT:
        _verify_seal(genesis, validators, block)
    else:
        _verify_votes(genesis, validators, block)


def name_of(genesis: Genesis, validators: Eras, block: Block) -> bytes:
    """Return what validators sign of a block that they vouch for: two names for one height are a fork.

    Under CometBFT it is the hash of the engine's header. That of our header would not do: whoever passes a
    block on can put other roots under the same signatures.
    """
    if block.seal is None:
        return block.header.hash(genesis.hash)
    now = validators.at(block.header.height)
    return EngineHeader.of(genesis, now.validators, block.header, block.seal).hash()


def name_before(block: Block) -> bytes:
    """Return the name that a block gives to the one before it."""
    if block.seal is None:
        return block.header.previous
    return b"" if block.seal.last is None else block.seal.last.hash


def check_postings(block: Block) -> None:
    """Check that what vouches for a block vouches for its postings. Raises ``InvalidCommit``.

    Votes cover the header, which names the postings; whoever follows the block compares that.
    """
    if block.seal is not None and data_hash(block.postings) != block.seal.data:
        raise InvalidCommit("the validators signed other postings.")


def _verify_votes(genesis: Genesis, validators: Eras, block: Block) -> None:
    if block.seal is not None:
        raise InvalidCommit("a board of one node has no seals.")
    signed = block.header.vote_bytes(genesis.hash)
    now = validators.at(block.header.height)
    _tally(now, ((vote.validator, signed, vote.signature) for vote in block.commit))


def _verify_seal(genesis: Genesis, validators: Eras, block: Block) -> None:
    seal = block.seal
    if seal is None or block.commit:
        raise InvalidCommit("a board of validators has a seal in each block, and no votes.")
    height = block.header.height
    now, following = validators.at(height), validators.at(height + 1)
    if seal.proposer not in now.validators:
        raise InvalidCommit(f"validator {seal.proposer} is not on the board.")
    if seal.next_validators != following.hash:
        raise InvalidCommit("it names other validators for the next block.")
    engine = EngineHeader.of(genesis, now.validators, block.header, seal)
    named = engine.hash()
    _tally(now, ((vote.validator, engine.vote_bytes(named, vote), vote.signature) for vote in seal.votes))


def _tally(now: Era, votes: Iterable[tuple[int, bytes, bytes]]) -> None:
    """Count signatures: who signed, what and how."""
    seen: set[int] = set()
    power = 0
    for number, signed, signature in votes:
        if number in seen or number not in now.validators:
            raise InvalidCommit(f"it has an unknown or repeated vote of validator {number}.")
        seen.add(number)
        validator = now.validators[number]
        try:
            MessageKey.from_bytes(validator.key).verify(signed, signature)
        except InvalidSignature:
            raise InvalidCommit(f"the signature of validator {number} is not valid.") from None
        power += validator.power
    if 3 * power <= 2 * now.power:
        raise InvalidCommit(f"validators with {power} of {now.power} votes signed it.")
