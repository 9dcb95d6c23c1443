"""Every adversary wins where its leak is put back: that is how we know that it can see."""

import pytest

from anofel.errors import InvalidInput
from anofel.games.adversaries.catalogue import CATALOGUE, adversary_named
from anofel.games.adversary import Adversary
from anofel.games.parties import LoadedKeys
from anofel.games.play import GameTable, play_games
from anofel.games.put_back import CATALOGUE as WEAKENINGS
from anofel.games.put_back import weakening_named

QUICK = {"post-time", "message-key", "client-root", "failed-training"}
"""Played by default; the others take minutes together."""
PAIRS = [
    pytest.param(
        adversary,
        weakened,
        id=f"{adversary.name}-{weakened}",
        marks=() if adversary.name in QUICK else pytest.mark.slow,
    )
    for adversary in CATALOGUE
    for weakened in adversary.weakened
]


@pytest.mark.parametrize(("adversary", "weakened"), PAIRS)
def test_it_wins_where_its_leak_is_put_back(
    adversary: Adversary, weakened: str, loaded: LoadedKeys, table: GameTable
) -> None:
    plays = 3 if adversary.name in QUICK else 10
    (score,) = play_games([adversary], plays, loaded, weakening_named(weakened), table=table)
    assert score.plays == plays
    assert score.void == 0, score.reasons
    assert score.wins >= (3 if adversary.name in QUICK else 7), score.document()


@pytest.mark.slow
def test_one_client_more_shows_for_which_task(loaded: LoadedKeys, table: GameTable) -> None:
    """The exact counts are public: between tasks the adversary that names all others wins (limitations)."""
    adversary = adversary_named("task-counts", "anon")
    (score,) = play_games([adversary], 10, loaded, table=table)
    assert score.wins == 10


def test_names_are_found_and_every_weakening_has_its_adversary() -> None:
    assert len({(found.game, found.name) for found in CATALOGUE}) == len(CATALOGUE)
    used = {name for found in CATALOGUE for name in found.weakened}
    assert used == {found.name for found in WEAKENINGS}
    for found in CATALOGUE:
        assert adversary_named(found.name, found.game) is found
        assert all(0.5 <= found.bound(name) < 1 for name in ("", *found.weakened))
    with pytest.raises(InvalidInput, match="No adversary of this game is called"):
        adversary_named("post-time", "dind")
    with pytest.raises(InvalidInput, match="There is no weakening"):
        weakening_named("nothing")
