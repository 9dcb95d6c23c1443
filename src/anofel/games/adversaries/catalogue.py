"""Every adversary by its name."""

from typing import Final

from anofel.errors import InvalidInput
from anofel.games.adversaries import across, committees, datasets, learned, node, posts
from anofel.games.adversary import Adversary

CATALOGUE: Final[tuple[Adversary, ...]] = (
    posts.PostTime(),
    posts.PostPlace(),
    posts.BlockDelay(),
    posts.RegistrationOrder(),
    posts.EarlyEnd(),
    across.TimeElsewhere(),
    posts.Lengths(),
    posts.ReceiptAge(),
    posts.KeyReuse(),
    posts.NullifierReuse(),
    across.NullifierElsewhere(),
    across.NullifierOfOtherEpoch(),
    across.NullifierOfOtherBoard(),
    posts.AdditiveTag(),
    posts.AggregatorSet(),
    posts.ClientRoot(),
    posts.AnyBytes(),
    learned.Boosted(),
    node.Addresses(),
    node.UploadDelay(),
    node.RequestsBefore(),
    node.ModelRequests(),
    node.Crash(),
    node.Retries(),
    node.CutLine(),
    node.CutLineWithCover(),
    node.Refusals(),
    committees.TaskCounts(),
    committees.FewCounts(),
    committees.CommitteeMinority(),
    committees.CoBundledCommittee(),
    datasets.TimeOfTraining(),
    datasets.FailedTraining(),
    datasets.MissingPost(),
    datasets.Refunds(),
    datasets.SumLikelihood(),
    datasets.FirstModel(),
    datasets.Sybils(),
    datasets.FinalModel(),
)


def adversary_named(name: str, game: str) -> Adversary:
    """Return an adversary of a game. Raises ``InvalidInput``."""
    for found in CATALOGUE:
        if (found.name, found.game) == (name, game):
            return found
    names = ", ".join(found.name for found in CATALOGUE if found.game == game)
    raise InvalidInput(f"No adversary of this game is called '{name}'; there are {names}.")
