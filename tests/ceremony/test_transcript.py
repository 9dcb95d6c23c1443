"""A ceremony's directory: what holds, and one refusal for each thing that can be wrong with it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from anofel._core import ceremony as core
from anofel.errors import InvalidCeremony, InvalidInput, InvalidSignature
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.proofs.ceremony.finished import derive_keys
from anofel.proofs.ceremony.receipts import ContributionReceipt
from anofel.proofs.ceremony.transcript import AGREEMENT, POWERS, PUBLIC_POWERS, CeremonyTranscript
from tests.ceremony.conftest import BEACON, PEOPLE

Files = dict[str, bytes]


def test_three_people_and_a_beacon_hold(states: list[CeremonyTranscript], digest8: bytes) -> None:
    found = CeremonyTranscript.of_files(states[-1].files, other_powers=digest8)
    found.check_end()
    assert found.names == [*PEOPLE, "beacon"]
    assert (found.num_people, found.has_ended) == (3, True)
    assert ["CN=Clinic A" in receipt.signer for receipt in found.receipts] == [True, False, False]
    assert len({state.digest for state in states}) == len(states)
    assert found.digest == states[-1].digest


def test_a_contribution_draws_anew(states: list[CeremonyTranscript]) -> None:
    one, two = (states[0].contribute("x")[0] for _ in range(2))
    assert one.hashes != two.hashes


def test_the_public_file_is_pinned_whole() -> None:
    assert PUBLIC_POWERS.hex()[:8] == "58efc8bf"
    assert PUBLIC_POWERS.hex()[-8:] == "f6fdb4d9"
    assert len(PUBLIC_POWERS) == 64


def test_other_powers_need_to_be_named(states: list[CeremonyTranscript], digest8: bytes) -> None:
    with pytest.raises(InvalidInput, match=f"--other-powers-of-tau {digest8.hex()}"):
        CeremonyTranscript.of_files(states[-1].files)
    with pytest.raises(InvalidInput, match="not the public file"):
        CeremonyTranscript.of_files(states[-1].files, other_powers=bytes(64))


def edited(files: Files, **changes: object) -> Files:
    agreement = json.loads(files[AGREEMENT])
    return files | {AGREEMENT: json.dumps(agreement | changes).encode()}


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGE: list[tuple[Callable[[Files], Files], str]] = [
    (lambda f: edited(f, powers="00" * 64), "powers.ptau is not the file that ceremony.json names"),
    (lambda f: edited(f, statements=[]), "must name statements in the order"),
    (lambda f: edited(f, statements=["submission", "ownership"]), "must name statements in the order"),
    (lambda f: edited(f, more=1), "unknown key 'more'"),
    (lambda f: {n: d for n, d in f.items() if n != "ownership.zkey"}, "has no ownership.zkey"),
    (lambda f: f | {"ownership.zkey": b"hello"}, "ownership key is refused: this is not a .zkey file"),
    (
        lambda f: f | {"ownership.first.zkey": f["ownership.zkey"]},
        "first key has contributions|δ of the first",
    ),
    (lambda f: f | {"ownership.zkey": f["ownership.zkey"] + b"\0"}, "bytes follow the last section"),
    (lambda f: f | {"ownership.zkey": f["ownership.zkey"][:-9]}, "the file is truncated"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_a_damaged_ceremony_is_refused(
    states: list[CeremonyTranscript], digest8: bytes, damage: Callable[[Files], Files], words: str
) -> None:
    with pytest.raises((InvalidCeremony, InvalidInput), match=words):
        CeremonyTranscript.of_files(damage(states[-1].files), other_powers=digest8)


def test_the_end_needs_two_people_and_the_announced_beacon(states: list[CeremonyTranscript]) -> None:
    for state in states[:2]:
        with pytest.raises(InvalidCeremony, match="2 are needed before a ceremony ends"):
            state.end(BEACON)
        with pytest.raises(
            InvalidCeremony, match=f"{state.num_people} contributions of people; 2 are needed"
        ):
            state.check_end()
    with pytest.raises(InvalidCeremony, match="does not end with a beacon"):
        states[3].check_end()
    states[2].end(BEACON).check_end()
    other = replace(states[-1].agreement, beacon=b"another announced value".hex())
    with pytest.raises(InvalidCeremony, match="not derived from the announced one"):
        replace(states[-1], agreement=other).check_end()
    with pytest.raises(InvalidCeremony, match="has ended with its beacon"):
        states[-1].contribute("late")
    with pytest.raises(InvalidCeremony, match="has ended with its beacon"):
        states[-1].end(BEACON)
    with pytest.raises(InvalidCeremony, match="rehearsal: it makes no key for registration and submission"):
        derive_keys(states[-1])


def test_a_receipt_belongs_to_its_contribution(states: list[CeremonyTranscript], signer: RoleKey) -> None:
    mine, other = states[1].receipts[0], states[0].contribute("Clinic A")[0]
    mine.verify(states[-1].hashes)
    with pytest.raises(InvalidCeremony, match="contribution 1 that is not in here"):
        mine.verify(other.hashes)
    with pytest.raises(InvalidCeremony, match="contribution 1 that is not in here"):
        mine.verify([])
    with pytest.raises(InvalidCeremony, match="contribution 2 that is not in here"):
        replace(mine, number=2).verify(states[-1].hashes)
    with pytest.raises(InvalidSignature, match="does not fit the message"):
        replace(mine, name="Clinic B").verify(states[-1].hashes)
    with pytest.raises(InvalidSignature, match="does not fit the message"):
        replace(mine, beacon_source="other dice").verify(states[-1].hashes)
    with pytest.raises(InvalidCeremony, match="a signature and no certificate"):
        replace(mine, chain=()).verify(states[-1].hashes)
    assert ContributionReceipt.from_bytes(mine.to_bytes()) == mine
    with pytest.raises(InvalidInput, match="canonical"):
        ContributionReceipt.from_bytes(b" " + mine.to_bytes())


def test_a_receipt_names_its_signer(states: list[CeremonyTranscript], signer: RoleKey) -> None:
    mine, unsigned = states[-1].receipts[:2]
    mine.expect_signer(signer.chain[0])
    stranger = TestAuthority.create()
    with pytest.raises(InvalidCeremony, match="signed by another key than yours"):
        mine.expect_signer(stranger.issue(Purpose.CERTIFIER, "Clinic A").chain[0])
    with pytest.raises(InvalidCeremony, match="signed by another key than yours"):
        unsigned.expect_signer(signer.chain[0])
    with pytest.raises(CertificateRefused, match="signature does not match"):
        mine.verify_signer([stranger.root])
    with pytest.raises(InvalidCeremony, match="Nobody signed"):
        unsigned.verify_signer([stranger.root])


def test_one_secret_for_two_statements_is_refused(states: list[CeremonyTranscript]) -> None:
    key = states[1].keys[0]
    with pytest.raises(InvalidCeremony, match="has the same x, up to its sign"):
        core.verify_together([key, key])


def test_receipts_that_do_not_belong_spoil_the_directory(
    states: list[CeremonyTranscript], digest8: bytes
) -> None:
    other = states[0].contribute("Clinic A")[0]
    files = other.files | {"0001.receipt.json": states[1].files["0001.receipt.json"]}
    with pytest.raises(InvalidCeremony, match="contribution 1 that is not in here"):
        CeremonyTranscript.of_files(files, other_powers=digest8)


def test_what_was_made_elsewhere_goes_through_the_same_checks(
    states: list[CeremonyTranscript], digest8: bytes
) -> None:
    """Another tool hands back a file; only the file matters."""
    elsewhere = states[1].contribute("made elsewhere")[0]
    taken = states[1].take({"ownership.zkey": elsewhere.files["ownership.zkey"]})
    assert taken.names[-1] == "made elsewhere"
    for files, words in (
        ({"ownership.zkey": states[1].files["ownership.zkey"]}, "adds 0 contributions"),
        ({"ownership.zkey": states[3].files["ownership.zkey"]}, "adds 2 contributions"),
        ({"ownership.zkey": other_first(states)}, "does not go on from the ceremony so far"),
        ({}, "has no ownership.zkey"),
    ):
        with pytest.raises((InvalidCeremony, InvalidInput), match=words):
            states[1].take(files)


def other_first(states: list[CeremonyTranscript]) -> bytes:
    other = states[0].contribute("somebody else")[0].contribute("and one more")[0]
    return other.files["ownership.zkey"]


def test_powers_too_small_for_a_statement_are_refused(power8: Path) -> None:
    data = power8.read_bytes()
    powers = core.Powers.from_bytes(data)
    assert powers.power == 8
    with pytest.raises(InvalidCeremony, match="are for 2\\^8 rows; 2\\^13 are needed"):
        core.first_key("submission", powers, data)


def test_the_genuine_file_is_checked_like_any_other(power8: Path) -> None:
    data = power8.read_bytes()
    assert POWERS.endswith(".ptau")
    with pytest.raises(InvalidCeremony, match="section|not on its curve|canonical"):
        core.Powers.from_bytes(flip(data, 5000))
