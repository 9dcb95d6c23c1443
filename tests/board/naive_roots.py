"""TEST ONLY: the sub-roots of a state by definition: everything is hashed again, nothing is remembered."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from anofel.board import roots
from anofel.board.state import State, digest


def tree_hash(entries: list[bytes]) -> bytes:
    """The Merkle tree hash in the words of RFC 6962 §2.1."""
    if not entries:
        return hashlib.sha256(b"").digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\0" + entries[0]).digest()
    k = 1
    while 2 * k < len(entries):
        k *= 2
    return hashlib.sha256(b"\1" + tree_hash(entries[:k]) + tree_hash(entries[k:])).digest()


def naive_roots(state: State) -> dict[str, bytes]:
    def all_of(domain: str, records: Any, parts: Callable[[Any], Iterator[roots.Hashed]]) -> bytes:
        return tree_hash([digest(domain, parts(record)) for record in records.values()])

    window = digest("window", state.certifier_roots)
    keys = all_of("certifier", state.certifiers, roots._certifier)
    made = [
        all_of("run", state.runs, roots._run),
        all_of("committee", state.committees, roots._committee),
        roots.validators(state),
    ]
    return {
        "certifiers": digest("certifiers", [state.certifier_tree.root().to_bytes(), window, keys]),
        "committees": digest("committees", made),
        "tasks": all_of("task", state.tasks, roots._task),
        "bundles": all_of("bundle", state.bundles, roots._bundle),
    }
