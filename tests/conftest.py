"""What all tests share: one set of keys, and one recorded board."""

import os
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys

settings.register_profile("default", deadline=None, max_examples=50)
settings.load_profile("default")


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyDirectory:
    """One set of development keys for the whole run, also when it has several processes."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    path: Path = shared / "keys"
    with FileLock(shared / "keys.lock"):
        return KeyDirectory.open(path) if path.exists() else make_insecure_development_keys(path)


@pytest.fixture(scope="session")
def history(keys: KeyDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a board with every kind of posting, recorded once for the whole run."""
    from tests.board import recorded

    path = keys.path.parent / "history"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            partial = path.with_name("history-partial")
            recorded.write(recorded.play(keys), partial)
            partial.rename(path)
    return path
