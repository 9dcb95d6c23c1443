"""Groups (D-26): posts are dealt out when an iteration closes, and each group is counted and opened alone.

The deal follows from what everybody sees and nobody knew before the iteration closed. Rules, in the same
words in ``docs/groups.md``:

1. The posts that are added, without the excluded ones, are sorted by SHA-256 over the hash of the block
   that closed the iteration and their nullifier.
2. The order is cut into as many groups as the task says, or into fewer so that each has ``min_clients``
   posts; sizes differ by one at most.
3. The count of every group is opened.
4. The sum of a group is opened if its count reaches ``min_clients``; what the others added is never opened.
"""

import hashlib
from collections.abc import Iterable
from itertools import pairwise

from anofel.ids import BlockHash, Nullifier

MAX_GROUPS = 32
"""How many groups a posting can name."""


def deal(
    nullifiers: Iterable[Nullifier], close_hash: BlockHash, *, groups: int, min_clients: int
) -> tuple[tuple[Nullifier, ...], ...]:
    """Return the groups of the posts with these nullifiers (1, 2); one group if there are too few for two."""
    names = set(nullifiers)
    if groups == 1:
        return (tuple(sorted(names)),)
    order = sorted(names, key=lambda name: _place(close_hash, name))
    number = max(1, min(groups, len(order) // min_clients))
    cuts = (place * len(order) // number for place in range(number + 1))
    return tuple(tuple(order[start:end]) for start, end in pairwise(cuts))


def _place(close_hash: BlockHash, nullifier: Nullifier) -> bytes:
    return hashlib.sha256(b"anofel/1/board/group" + close_hash + nullifier).digest()
