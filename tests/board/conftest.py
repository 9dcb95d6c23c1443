"""What the tests of the board share: worlds at named points."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from anofel.light_client.client import LightClient
from anofel.proofs.keys import KeyDirectory
from anofel.storage.blocks import StoreError
from tests.board.prepared import Stages
from tests.board.two_histories import Histories, serving, transport


@pytest.fixture(scope="session")
def stages(keys: KeyDirectory) -> Stages:
    return Stages(keys)


@pytest.fixture
def lying(keys: KeyDirectory, tmp_path: Path) -> Iterator[tuple[Histories, LightClient]]:
    histories = Histories(keys)
    with serving(histories) as url:
        histories.blocks = histories.honest[:3]
        client = LightClient(tmp_path / "view", transport(url), genesis_hash=histories.genesis.hash)
        client.sync()
        assert client.state.height == 3
        yield histories, client
        with suppress(StoreError):  # a test may have closed it
            client.close()
