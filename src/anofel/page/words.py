"""What states, outcomes and kinds of postings mean, in a sentence for somebody who is new here."""

from typing import Final

from anofel.board.state import Progress
from anofel.board.waits import duration

PROGRESS: Final = {
    Progress.COLLECTING: "clients post",
    Progress.CLOSED: "the members add",
    Progress.AGGREGATED: "the members open the count",
    Progress.COUNTED: "the members open the sum",
    Progress.SUMMED: "the sum is open",
    Progress.TOO_FEW: "too few updates, nothing was opened",
    Progress.UNDECODABLE: "the sum cannot be decoded",
    Progress.FAILED: "too few members answered in time",
    Progress.ABSENT: "the task had ended",
}
OUTCOMES: Final = {
    Progress.SUMMED: "The sum was opened and made the next model.",
    Progress.TOO_FEW: "There were fewer updates than the task promises: no sum was opened, the model stays.",
    Progress.UNDECODABLE: "A sum was opened that cannot be decoded; it counts as released, the model stays.",
    Progress.FAILED: "Too few members of the committee answered in time; the model stays.",
    Progress.ABSENT: "The task had ended before.",
}
UNITS: Final = {
    "client": "Protects whether one client took part at all, with everything that it holds.",
    "record": "Protects each single row of a client, not that the client took part.",
    "paper": "The paper's own noise. It proves nothing.",
}
STEPS: Final = {
    "CertifierKeyOffer": ("1.a", "A certifier offers its key.", "certifier"),
    "RevokeCertifier": ("1.a", "A certifier's key is taken back.", "certifier"),
    "Registration": ("1.b", "A client registers; nobody can tell who it is.", "client"),
    "DkgRound": ("1.c", "A member of a committee speaks in a round of key generation.", "aggregators"),
    "CommitteeKeyVote": ("1.c", "A member of a committee posts the committee's key.", "aggregators"),
    "TaskAnnouncement": ("1.d", "An owner announces a task.", "owner"),
    "Model": ("1.d", "An owner posts the model that opens an iteration.", "owner"),
    "Submission": ("5", "A client submits to every committee of its bundle, encrypted.", "client"),
    "Aggregate": (
        "6, 7",
        "A member says which posts it added, and what the encrypted sum is.",
        "aggregators",
    ),
    "CountShare": ("8", "A member helps to open how many updates there are.", "aggregators"),
    "SumShare": ("8", "A member helps to open the sum.", "aggregators"),
    "RejectModel": ("8′", "An owner rejects the model that a sum makes.", "owner"),
    "PrivacyLedger": ("8′", "An owner states how much privacy was spent.", "owner"),
    "EndIteration": ("8′", "An owner asks to end an iteration early.", "owner"),
    "EndTask": ("8′", "An owner ends its task.", "owner"),
    "ChangeValidators": ("0", "A validator proposes another set of validators.", "validators"),
    "SignChange": ("0", "A validator signs a proposed change of validators.", "validators"),
}
"""By the kind of a posting: the paper's step, what it says, and who posts it."""


def size(num_bytes: int) -> str:
    """Say how large something is."""
    if num_bytes < 1000:
        return f"{num_bytes} bytes"
    return f"{num_bytes / 1e3:,.1f} kB" if num_bytes < 1_000_000 else f"{num_bytes / 1e6:,.1f} MB"


def many(number: int, word: str) -> str:
    """Say how many of something there are."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def every(seconds: float) -> str:
    """Say how often something comes."""
    if seconds == 1:
        return "every second"
    return f"every {duration(seconds) if seconds > 1 else f'{seconds:g} seconds'}"
