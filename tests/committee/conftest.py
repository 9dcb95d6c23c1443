import pytest

from anofel.committee import schemes
from tests.committee.world import Committee


@pytest.fixture(scope="session")
def lattice() -> Committee:
    """Three members, two of whom decrypt; keys made by the real key generation."""
    return Committee.generate(schemes.by_name("lattice"), 3, 2)
