"""One board for all games of a module: key generation for two committees takes longer than a game."""

from collections.abc import Iterator

import pytest

from anofel.games.parties import LoadedKeys
from anofel.games.play import GameTable
from anofel.proofs.keys import KeyDirectory


@pytest.fixture(scope="session")
def loaded(keys: KeyDirectory) -> LoadedKeys:
    return LoadedKeys(keys)


@pytest.fixture(scope="session")
def table(loaded: LoadedKeys) -> Iterator[GameTable]:
    with GameTable(loaded) as made:
        yield made
