"""What the tests of the board share: worlds at named points."""

import pytest

from anofel.proofs.keys import KeyDirectory
from tests.board.prepared import Stages


@pytest.fixture(scope="session")
def stages(keys: KeyDirectory) -> Stages:
    return Stages(keys)
