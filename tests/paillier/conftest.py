import pytest

from tests.paillier.support import Committee, Recording, deal_committee, record


@pytest.fixture(scope="session")
def committee() -> Committee:
    return deal_committee(3, 2)


@pytest.fixture(scope="session")
def recording() -> Recording:
    return record(3, 2)


@pytest.fixture(scope="session")
def even_recording() -> Recording:
    return record(4, 3)
