"""What the tests of the board share: recorded committees, and worlds at named points."""

import os

import pytest
from filelock import FileLock

from anofel.keys import KeyDirectory
from tests.board.prepared import Recording, Stages, decode_recording, encode_recording


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """One key generation for the whole run, also when it has several processes."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    path = shared / "committees"
    with FileLock(shared / "committees.lock"):
        if not path.exists():
            path.write_bytes(encode_recording(Recording.make()))
    return decode_recording(path.read_bytes())


@pytest.fixture(scope="session")
def stages(keys: KeyDirectory, recording: Recording) -> Stages:
    return Stages(keys, recording)
