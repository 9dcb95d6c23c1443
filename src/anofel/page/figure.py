"""The figure of the board with its roles around it: an arrow lights up for what the last blocks hold."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from anofel.page.source import BlockSummary
from anofel.page.words import STEPS


@dataclass(frozen=True)
class Arrow:
    """One arrow of the paper's figure, between a role and the board."""

    step: str
    role: str
    words: str
    path: str
    x: int
    y: int
    kinds: tuple[str, ...]
    """The kinds of postings that light it up; none for what happens out of sight."""
    lit: int = 0
    """How many postings it stands for now."""
    last: int = 0
    """The newest block that lights it."""

    @property
    def label_x(self) -> int:
        """Where its words begin."""
        return self.x + 18


_KINDS: Final = {
    "1.a": ("CertifierKeyOffer", "RevokeCertifier"),
    "1.b": ("Registration",),
    "1.c": ("DkgRound", "CommitteeKeyVote"),
    "1.d": ("TaskAnnouncement", "Model"),
    "5": ("Submission",),
    "6": ("Aggregate",),
    "8": ("CountShare", "SumShare"),
    "8′": ("RejectModel", "PrivacyLedger", "EndIteration", "EndTask"),
}
_ARROWS: Final = (
    Arrow("1.a", "certifier", "offers its key", "M110 92 V166", 110, 126, _KINDS["1.a"]),
    Arrow("1.c", "aggregators", "make a key", "M340 92 V166", 340, 126, _KINDS["1.c"]),
    Arrow("6", "aggregators", "add", "M470 92 V166", 470, 126, _KINDS["6"]),
    Arrow("8", "aggregators", "open", "M570 92 V166", 570, 126, _KINDS["8"]),
    Arrow("1.b", "client", "registers", "M200 344 V270", 200, 312, _KINDS["1.b"]),
    Arrow("5", "client", "submits, encrypted", "M400 344 V270", 400, 312, _KINDS["5"]),
    Arrow("1.d", "owner", "posts models", "M792 200 H718", 755, 200, _KINDS["1.d"]),
    Arrow("8′", "owner", "states ε, ends", "M792 240 H718", 755, 240, _KINDS["8′"]),
)


def figure(blocks: Iterable[BlockSummary]) -> list[Arrow]:
    """Return the arrows, lit by the postings of these blocks."""
    counted: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for block in blocks:
        for posting in block.postings:
            counted[posting.kind] += 1
            newest[posting.kind] = max(newest.get(posting.kind, 0), block.height)
    return [
        replace(
            arrow,
            lit=sum(counted[kind] for kind in arrow.kinds),
            last=max((newest.get(kind, 0) for kind in arrow.kinds), default=0),
        )
        for arrow in _ARROWS
    ]


_OWN: Final = {"ChangeValidators", "SignChange"}
"""What the board posts about itself; no party of the figure does."""
if {kind for kinds in _KINDS.values() for kind in kinds} | _OWN != STEPS.keys():
    raise AssertionError("The figure does not show every kind of posting.")
