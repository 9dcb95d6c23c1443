import pytest

from anofel.committee import schemes
from tests.committee.world import Committee
from tests.paillier.dealer import InsecureToyPaillierScheme


@pytest.fixture(scope="session")
def lattice() -> Committee:
    """Three members, two of whom decrypt; keys made by the real key generation."""
    return Committee.generate(schemes.by_name("lattice"), 3, 2)


@pytest.fixture(scope="session")
def paillier() -> Committee:
    """Another scheme and size; its toy key is made without a dealer."""
    return Committee.generate(InsecureToyPaillierScheme(512), 4, 3)


@pytest.fixture(params=["lattice", "paillier"])
def committee(request: pytest.FixtureRequest) -> Committee:
    """Each scheme in turn, for what both promise."""
    found: Committee = request.getfixturevalue(request.param)
    return found
