"""Two verifiers that share no code agree, on a good ceremony and on spoiled ones."""

import hashlib
import struct
from collections.abc import Callable

import pytest

from anofel._core import ceremony
from anofel._core import keys as core
from anofel.errors import AnofelError
from anofel.proofs.ceremony.transcript import POWERS, CeremonyTranscript
from tests.ceremony import plain_curve as c
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
    (POWERS, swap(2, 64, 10), "^A$"),
    (POWERS, swap(3, 128, 10), "^B in G2$"),
    (POWERS, swap(4, 64, 0), "^alpha$"),
    (POWERS, swap(5, 64, 10), "^IC or L$"),
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


# The chain of contributions

LOG, HEADER, L = 10, 2, 8
DELTA_2 = 532
SPX = 192


def written(*values: int) -> bytes:
    """Coordinates as the format writes them."""
    return b"".join((value * pow(2, 256, c.P) % c.P).to_bytes(32, "little") for value in values)


def edited(data: bytes, section: int, change: Callable[[bytes], bytes]) -> bytes:
    """Change the contents of a section, and its length with it."""
    at = place_of(data, section)
    length = int.from_bytes(data[at - 8 : at], "little")
    inside = change(data[at : at + length])
    return data[: at - 8] + len(inside).to_bytes(8, "little") + inside + data[at + length :]


def overwritten(section: int, at: int, new: bytes) -> Callable[[bytes], bytes]:
    """Put other bytes at a place of a section; one before its end counts from there."""

    def change(inside: bytes) -> bytes:
        place = at % len(inside)
        return inside[:place] + new + inside[place + len(new) :]

    return lambda data: edited(data, section, change)


def entries(log: bytes) -> list[bytes]:
    found, at = [], 68
    while at < len(log):
        size = 392 + int.from_bytes(log[at + 388 : at + 392], "little")
        found.append(log[at : at + size])
        at += size
    return found


def reordered(*order: int) -> Callable[[bytes], bytes]:
    """Keep these contributions, in this order."""

    def change(log: bytes) -> bytes:
        kept = [entries(log)[place] for place in order]
        return log[:64] + struct.pack("<I", len(kept)) + b"".join(kept)

    return lambda data: edited(data, LOG, change)


def with_trivial(sign: int) -> Callable[[bytes], bytes]:
    """Add a third contribution, with x = 1 or x = -1 and a valid proof that its author knows it."""

    def signed(point):  # type: ignore[no-untyped-def]
        return point if sign == 1 else (point[0], c.sub2((0, 0), point[1]))

    def change(log: bytes) -> bytes:
        circuit, before = plain_verifier.log_of(log)
        s, delta = c.ONE, before[-1]["delta"]
        sx = s if sign == 1 else c.negative(s)
        after = delta if sign == 1 else c.negative(delta)
        hashed = circuit + b"".join(map(plain_verifier.entry_bytes, before))
        hashed += plain_verifier.hashed1(s) + plain_verifier.hashed1(sx)
        challenge = hashlib.blake2b(hashed).digest()
        spx = signed(plain_verifier.Stream(challenge[:32]).g2())
        points = written(*after, *s, *sx, *spx[0], *spx[1])
        entry = points + challenge + struct.pack("<II", 0, 0)
        return log[:64] + struct.pack("<I", len(before) + 1) + log[68:] + entry

    return lambda data: edited(data, LOG, change)


def outside_the_subgroup() -> bytes:
    """Return a point of the twist that is none of G2."""
    x = (1, 0)
    while True:
        y = c.root2(c.add2(c.mul2(x, c.mul2(x, x)), c.B2))
        if y is not None and not c.on_g2((x, y)):
            return written(*x, *y)
        x = (x[0] + 1, 0)


def with_another_beacon(states: list[CeremonyTranscript]) -> bytes:
    return states[-2].end(b"a value that somebody preferred").files["ownership.zkey"]


CHAIN: list[tuple[str, int, Callable[[bytes], bytes], str]] = [
    ("order", -1, reordered(1, 0, 2, 3), "challenge 1"),
    ("first dropped", -1, reordered(1, 2, 3), "challenge 1"),
    ("last person dropped", -1, reordered(0, 1, 3), "challenge 3"),
    ("twice", -1, reordered(0, 1, 1, 2, 3), "challenge 3"),
    ("beacon dropped", -1, reordered(0, 1, 2), "beacon"),
    ("beacon's value", -1, overwritten(LOG, -1, b"\0"), "beacon's value"),
    ("beacon's exponent", -1, overwritten(LOG, -35, bytes([11])), "beacon's value"),
    ("x = 1", 2, with_trivial(1), "x 3"),
    ("x = -1", 2, with_trivial(-1), "x 3"),
    ("spx", -1, overwritten(LOG, 68 + SPX, outside_the_subgroup()), "subgroup"),
    ("delta in G2", -1, overwritten(HEADER, DELTA_2, outside_the_subgroup()), "subgroup"),
    ("off its curve", -1, overwritten(L, 0, written(1, 1)), "curve"),
    ("not below the modulus", -1, overwritten(L, 0, bytes([255]) * 32), "canonical"),
    ("circuit hash", -1, overwritten(LOG, 0, bytes(64)), "circuit hash"),
]


@pytest.mark.parametrize(
    ("place", "change", "what"), [row[1:] for row in CHAIN], ids=[row[0] for row in CHAIN]
)
def test_both_refuse_the_chain(
    states: list[CeremonyTranscript], digest8: bytes, place: int, change: Callable[[bytes], bytes], what: str
) -> None:
    state = states[place]
    bad = change(state.files["ownership.zkey"])
    first, last = (
        plain_verifier.sections(data, b"zkey") for data in (state.files["ownership.first.zkey"], bad)
    )
    with pytest.raises(plain_verifier.Wrong, match=f"^{what}$"):
        plain_verifier.check_chain(first, last, BEACON)
    with pytest.raises(AnofelError):
        ours(state, digest8, **{"ownership.zkey": bad})


def log_of(state: CeremonyTranscript) -> list[dict]:  # type: ignore[type-arg]
    found = plain_verifier.sections(state.files["ownership.zkey"], b"zkey")
    return plain_verifier.log_of(found[LOG])[1]


def test_both_refuse_keys_that_are_tied_to_each_other(states: list[CeremonyTranscript]) -> None:
    """A second ceremony of the same statement stands in for another statement."""
    other = states[0].contribute("Clinic A")[0]
    plain_verifier.check_together([log_of(states[1]), log_of(other)])
    ceremony.verify_together([states[1].keys[0], other.keys[0]])
    for second, what in ((states[1], "same x 1"), (states[2], "counts")):
        with pytest.raises(plain_verifier.Wrong, match=f"^{what}$"):
            plain_verifier.check_together([log_of(states[1]), log_of(second)])
        with pytest.raises(AnofelError):
            ceremony.verify_together([states[1].keys[0], second.keys[0]])


def test_both_refuse_another_beacon(states: list[CeremonyTranscript], digest8: bytes) -> None:
    bad = with_another_beacon(states)
    with pytest.raises(plain_verifier.Wrong, match="^beacon's value$"):
        plain(states[-1], **{"ownership.zkey": bad})
    with pytest.raises(AnofelError):
        ours(states[-1], digest8, **{"ownership.zkey": bad})
