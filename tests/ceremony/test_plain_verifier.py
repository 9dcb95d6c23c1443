"""Two verifiers that share no code agree, on a good ceremony and on spoiled ones."""

from collections.abc import Callable

import pytest

from anofel._core import keys as core
from anofel.errors import AnofelError
from anofel.proofs.ceremony.transcript import POWERS, CeremonyTranscript
from tests.ceremony import plain_verifier
from tests.ceremony.conftest import BEACON

pytestmark = pytest.mark.slow


def place_of(data: bytes, section: int) -> int:
    """Where a section's contents begin."""
    at = 12
    while int.from_bytes(data[at : at + 4], "little") != section:
        at += 12 + int.from_bytes(data[at + 4 : at + 12], "little")
    return at + 12


def swap(section: int, size: int, left: int) -> Callable[[bytes], bytes]:
    """Let two neighbours change places: good points in wrong places."""

    def change(data: bytes) -> bytes:
        at = place_of(data, section) + size * left
        return data[:at] + data[at + size : at + 2 * size] + data[at : at + size] + data[at + 2 * size :]

    return change


def plain(state: CeremonyTranscript, **replaced: bytes) -> bytes:
    files = state.files | replaced
    shape = core.shape("ownership").digest
    first, last = files["ownership.first.zkey"], files["ownership.zkey"]
    return plain_verifier.verify(files[POWERS], core.r1cs("ownership"), shape, first, last, BEACON)


def ours(state: CeremonyTranscript, digest8: bytes, **replaced: bytes) -> bytes:
    made = CeremonyTranscript.of_files(state.files | replaced, other_powers=digest8)
    made.check_end()
    return made.digest


def test_both_accept_and_derive_the_same_digest(states: list[CeremonyTranscript], digest8: bytes) -> None:
    assert plain(states[-1]) == ours(states[-1], digest8) == states[-1].digest


BAD: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("ownership.zkey", swap(8, 64, 10), "^L$"),
    ("ownership.zkey", swap(9, 64, 0), "^H$"),
    ("ownership.zkey", swap(9, 64, 254), "^H$"),
    ("ownership.zkey", swap(5, 64, 3), "^section 5$"),
    ("ownership.zkey", lambda data: data + b"\0", "^trailing bytes$"),
    ("ownership.first.zkey", swap(9, 64, 254), "^H$"),
    ("ownership.first.zkey", swap(8, 64, 10), "^IC or L$"),
]


@pytest.mark.parametrize(("name", "change", "what"), BAD)
def test_both_refuse(
    states: list[CeremonyTranscript], digest8: bytes, name: str, change: Callable[[bytes], bytes], what: str
) -> None:
    replaced = {name: change(states[-1].files[name])}
    with pytest.raises(plain_verifier.Wrong, match=what):
        plain(states[-1], **replaced)
    with pytest.raises(AnofelError):
        ours(states[-1], digest8, **replaced)


def test_both_refuse_a_ceremony_that_has_not_ended(states: list[CeremonyTranscript]) -> None:
    for state, what in ((states[1], "people"), (states[3], "beacon")):
        with pytest.raises(plain_verifier.Wrong, match=f"^{what}$"):
            plain(state)
        with pytest.raises(AnofelError):
            state.check_end()
