"""A recorded board with every kind of posting, as the page shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from anofel.look.serve import make_app
from anofel.look.sources import BoardOnDisk


@pytest.fixture(scope="session")
def board(history: Path) -> Iterator[BoardOnDisk]:
    source = BoardOnDisk(history, lambda _done, _all: None)
    yield source
    source.close()


@pytest.fixture
def client(board: BoardOnDisk) -> TestClient:
    return TestClient(make_app(board), follow_redirects=False)
