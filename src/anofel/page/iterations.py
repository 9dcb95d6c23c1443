"""The postings that decided how an iteration ended, looked up in the blocks around it.

The state forgets them when the iteration is over; its outcome says in which blocks they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from anofel.messages import Aggregate, CountShare, EndIteration, Model, Posting, RejectModel, SumShare
from anofel.page.facts import OutcomeFacts, StudyFacts
from anofel.page.postings import author_of
from anofel.page.source import PageSource, summary_at

MAX_AWAY: Final = 64
"""Blocks that are looked through on each side of where an iteration opened, closed and was over."""
_KINDS: Final = (Model, EndIteration, Aggregate, CountShare, SumShare, RejectModel)
_NAMES: Final = frozenset(kind.__name__ for kind in _KINDS)


@dataclass(frozen=True, kw_only=True)
class DecidingPosting:
    """A posting of an owner or of a committee's member, for one task and one iteration."""

    id: str
    height: int
    kind: str
    author: str


@dataclass(frozen=True, kw_only=True)
class IterationPostings:
    """What decided how an iteration ended for a task, in board order."""

    postings: tuple[DecidingPosting, ...]
    complete: bool
    """Whether every block was looked through in which there can be one."""


def iteration_postings(source: PageSource, study: StudyFacts, outcome: OutcomeFacts) -> IterationPostings:
    """Find the postings of owner and committee that decided an iteration."""
    first = max(
        (one.over_at for one in study.outcomes if one.iteration < outcome.iteration),
        default=study.announced_at,
    )
    last = min(
        (one.opened_at for one in study.outcomes if one.iteration > outcome.iteration),
        default=source.height,
    )
    ends = (outcome.opened_at, outcome.closed_at, outcome.over_at)
    near = {at for end in ends for at in range(max(first, end - MAX_AWAY), min(last, end + MAX_AWAY) + 1)}
    return IterationPostings(
        postings=tuple(
            one for height in sorted(near) for one in _in_block(source, height, study.task, outcome.iteration)
        ),
        complete=len(near) == last - first + 1,
    )


def _in_block(source: PageSource, height: int, task: str, iteration: int) -> Iterator[DecidingPosting]:
    listed = summary_at(source, height)
    if listed is None or not (
        listed.num_postings > len(listed.postings) or any(one.kind in _NAMES for one in listed.postings)
    ):
        return
    block = source.block(height)
    for posting in () if block is None else map(Posting.from_bytes, block.postings):
        body = posting.body
        if isinstance(body, _KINDS) and (body.task.hex(), body.iteration) == (task, iteration):
            yield DecidingPosting(
                id=posting.id.hex(), height=height, kind=type(body).__name__, author=author_of(posting)
            )
