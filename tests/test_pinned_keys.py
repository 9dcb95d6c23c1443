"""The ids of all proof keys stand in genesis, and whoever proves uses the board's keys alone."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from anofel.errors import InvalidInput
from anofel.proofs.keys import STATEMENTS, KeyDirectory
from anofel.roles.client.files import read_keys
from tests.board.world import World

FIELDS = [f"{name}{role}_key" for name in STATEMENTS for role in ("", "_proving")]


def test_genesis_pins_every_key(keys: KeyDirectory) -> None:
    genesis = World(keys).genesis
    assert sorted(keys.ids()) == sorted(FIELDS)
    assert {name: getattr(genesis, name) for name in FIELDS} == keys.ids()
    assert genesis.transcript == keys.transcript == bytes(32)


@pytest.mark.parametrize("field", FIELDS)
def test_a_client_proves_with_the_keys_of_the_board_alone(keys: KeyDirectory, field: str) -> None:
    """Proving with a key that somebody else made up can tell its maker the witness."""
    genesis, settings = World(keys).genesis, SimpleNamespace(keys=keys.path)
    board = SimpleNamespace(genesis=genesis)
    assert read_keys(settings, board).pins() == keys.pins()  # type: ignore[arg-type]
    other = SimpleNamespace(genesis=replace(genesis, **{field: bytes(32)}))
    words = f"The {field.replace('_', ' ')} in .* is not the one that the board pins"
    with pytest.raises(InvalidInput, match=words):
        read_keys(settings, other)  # type: ignore[arg-type]
