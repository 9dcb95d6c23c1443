"""What takes long to verify, a share, a sum or a key, is verified in a thread of its own.

1. The authors take turns, one posting each, so that whoever posts many false shares delays himself.
2. Of each author a few postings wait; one more is verified when it is offered again.
3. A proposer holds what it verified back for as long again as that took, so that others have verified it too.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_all
from typing import Final

from anofel.board.author import RoleHolder
from anofel.board.cache import BoundedCache
from anofel.board.state import State
from anofel.board.verification import Candidate
from anofel.ids import PostingId

MOST_WAITING: Final = 8
"""Postings of one author that wait to be verified."""
_REMEMBERED: Final = 1 << 12


class SlowChecks:
    """A queue of postings and the thread that verifies them."""

    def __init__(self, verify: Callable[[State, Candidate], None]) -> None:
        """``verify`` makes a verdict that is kept, and raises nothing."""
        self._verify = verify
        self._changed = threading.Condition()
        self._waiting: OrderedDict[bytes, deque[tuple[State, Candidate, Future[None]]]] = OrderedDict()
        self._under_way: dict[PostingId, Future[None]] = {}
        self._ripe: BoundedCache[PostingId, float] = BoundedCache(_REMEMBERED)
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="anofel-verify", daemon=True)
        self._thread.start()

    def begin(self, state: State, candidate: Candidate) -> "Future[None] | None":
        """See that a posting is verified; None if too many of its author wait (rule 2)."""
        name = candidate.posting.id
        with self._changed:
            running = self._under_way.get(name)
            if running is not None:
                return running
            own = self._waiting.setdefault(_author(candidate), deque())
            if len(own) >= MOST_WAITING or self._closed:
                return None
            running = self._under_way[name] = Future()
            own.append((state, candidate, running))
            self._changed.notify()
        return running

    def under_way(self, posting: PostingId) -> "Future[None] | None":
        """Return the verification of a posting, if one waits or runs."""
        with self._changed:
            return self._under_way.get(posting)

    def is_ripe(self, posting: PostingId) -> bool:
        """Whether others had time to verify it too (rule 3)."""
        try:
            return time.monotonic() >= self._ripe[posting]
        except KeyError:
            return True

    def close(self) -> None:
        """Verify nothing more; wait for what is being verified."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        for running in list(self._under_way.values()):
            running.cancel()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            state, candidate, running = job
            begun = time.monotonic()
            try:
                self._verify(state, candidate)
            finally:
                now = time.monotonic()
                self._ripe[candidate.posting.id] = now + (now - begun)
                with self._changed:
                    self._under_way.pop(candidate.posting.id, None)
                running.set_result(None)

    def _next(self) -> "tuple[State, Candidate, Future[None]] | None":
        """Wait for a posting of the author whose turn it is (rule 1); None at the end."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return None
                author, own = self._waiting.popitem(last=False)
                if own:
                    job = own.popleft()
                    if own:
                        self._waiting[author] = own
                    return job


def wait(running: "Iterable[Future[None]]", seconds: float) -> bool:
    """Wait for verifications, so long at most; say whether all are done."""
    return not wait_for_all(list(running), seconds).not_done


def _author(candidate: Candidate) -> bytes:
    author = candidate.author
    return author.subject if isinstance(author, RoleHolder) else candidate.posting.id
