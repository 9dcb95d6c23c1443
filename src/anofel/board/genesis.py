"""Whether a board can start: what genesis must say so that every rule has a meaning."""

from anofel.certificates import CertificateRefused, Purpose, parse_roots, verify_chain
from anofel.committee.context import MAX_POSTS
from anofel.errors import InvalidInput
from anofel.messages import Class, Genesis

MAX_BUNDLE = 16
"""A submission has room for so many contributions."""


def check_genesis(genesis: Genesis) -> None:
    """Refuse a genesis under which the board could not work. Raises ``InvalidInput``."""
    parse_roots(genesis.roots)
    holders, limits = len(genesis.holders), genesis.limits
    _require(1 <= genesis.quorum <= holders, f"quorum is from 1 to the number of holders ({holders})")
    _require(1 <= genesis.bundle_size <= MAX_BUNDLE, f"bundle_size is from 1 to {MAX_BUNDLE}")
    _require(sum(v.power for v in genesis.validators) > 0, "the validators have votes")
    _require(len({v.key for v in genesis.validators}) == len(genesis.validators), "validators differ")
    _require(len(genesis.classes) > 0, "there is a size class")
    _require(limits.root_window >= 1, "root_window is at least 1")
    _require(limits.max_postings >= 1 and limits.max_block_bytes >= 1, "a block has room for a posting")
    for number, size in enumerate(genesis.classes):
        _check_class(number, size)
    for number, chain in enumerate(genesis.holders):
        try:
            verify_chain(chain, genesis.roots, Purpose.STORAGE, genesis.time)
        except CertificateRefused as error:
            raise InvalidInput(f"The genesis cannot be used: storage holder {number}: {error}") from None


def _check_class(number: int, size: Class) -> None:
    _require(size.max_length >= 1, f"max_length of class {number} is at least 1")
    _require(1 <= size.max_posts <= MAX_POSTS, f"max_posts of class {number} is from 1 to {MAX_POSTS}")
    lengths = (size.train, size.aggregate, size.count, size.sum, size.model)
    _require(min(lengths) >= 1, f"every stage of class {number} lasts at least one block")
    _require(size.post_from < size.train, f"post_from of class {number} is before the end of its training")


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise InvalidInput(f"The genesis cannot be used: {sentence}.")
