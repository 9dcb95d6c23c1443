"""A drop of institutions: who gets a place, whose contribution is taken; copies of it; drops that lie."""

import http.server
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from anofel.errors import InvalidCeremony, InvalidInput, InvalidSignature
from anofel.network.transport import Transport
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey, chain_to_pem
from anofel.pki.testing_ca import TestAuthority, write_role
from anofel.proofs.ceremony.receipts import ContributionReceipt
from anofel.proofs.ceremony.transcript import AGREEMENT, CeremonyTranscript
from anofel.roles.ceremony.drop import RECEIPT, Drop
from anofel.roles.ceremony.institutions import PlaceRequest
from anofel.roles.ceremony.mirror import Mirror
from anofel.roles.ceremony.visit import Visit
from tests.ceremony.conftest import BEACON
from tests.ceremony.test_cli_ceremony import anofel
from tests.ceremony.test_drop import KEY, refusal

AUTHORITY = TestAuthority.create()
CLINIC_A, CLINIC_B = (AUTHORITY.issue(Purpose.CERTIFIER, name) for name in ("Clinic A", "Clinic B"))


@pytest.fixture
def drop(states: list[CeremonyTranscript], tmp_path: Path) -> Drop:
    return Drop(tmp_path / "drop", states[0], roots=[AUTHORITY.root])


def challenge(drop: Drop) -> str:
    return str(json.loads(drop.describe())["challenge"])


def join(drop: Drop, role: RoleKey) -> str:
    return drop.join(PlaceRequest.make(challenge(drop), role).to_bytes())


def contribution(state: CeremonyTranscript, role: RoleKey | None) -> tuple[bytes, bytes]:
    after, _locked = state.contribute("a clinic")
    receipt = ContributionReceipt.make(
        name="a clinic",
        number=len(after.hashes),
        powers=after.powers_digest,
        beacon_source="dice",
        hashes=after.hashes[-1],
        role=role,
    )
    return after.files[KEY], receipt.to_bytes()


def hand_in(drop: Drop, ticket: str, role: RoleKey | None) -> None:
    key, receipt = contribution(drop.state, role)
    drop.hand_in(ticket, KEY, key)
    drop.hand_in(ticket, RECEIPT, receipt)


def test_rule_6_only_certified_institutions_get_a_place(drop: Drop) -> None:
    good = PlaceRequest.make(challenge(drop), CLINIC_A)
    with pytest.raises(InvalidInput, match="not a signed request for a place"):
        drop.join()
    with pytest.raises(InvalidInput, match="names no certificate"):
        drop.join(replace(good, chain=()).to_bytes())
    with pytest.raises(InvalidSignature):
        drop.join(replace(good, chain=PlaceRequest.make(challenge(drop), CLINIC_B).chain).to_bytes())
    stranger = TestAuthority.create().issue(Purpose.CERTIFIER, "Clinic A")
    with pytest.raises(CertificateRefused):
        drop.join(PlaceRequest.make(challenge(drop), stranger).to_bytes())
    drop.join(good.to_bytes())
    with refusal("challenge-changed"):
        drop.join(good.to_bytes())  # somebody saw it and asks again


def test_rule_6_an_institution_has_one_place(drop: Drop) -> None:
    lost = join(drop, CLINIC_A)
    waiting = join(drop, CLINIC_B)
    again = join(drop, CLINIC_A)  # its machine was switched off
    with refusal("ticket-unknown"):
        drop.place(lost)
    assert [drop.place(ticket)[0] for ticket in (waiting, again)] == [0, 1]


@pytest.mark.parametrize("who", [None, CLINIC_B])
def test_rule_7_a_state_is_taken_with_the_receipt_of_who_has_the_turn(
    drop: Drop, who: RoleKey | None
) -> None:
    ticket = join(drop, CLINIC_A)
    key, _receipt = contribution(drop.state, None)
    drop.hand_in(ticket, KEY, key)
    with refusal("receipt-missing"):
        drop.take(ticket)
    hand_in(drop, ticket, who)
    with refusal("receipt-missing"):
        drop.take(ticket)
    assert not drop.path.exists()
    hand_in(drop, ticket, CLINIC_A)
    assert drop.take(ticket) == 1


def test_rule_7_an_institution_contributes_once(
    drop: Drop, states: list[CeremonyTranscript], digest8: bytes, tmp_path: Path
) -> None:
    ticket = join(drop, CLINIC_A)
    hand_in(drop, ticket, CLINIC_A)
    drop.take(ticket)
    states[0].write(tmp_path / "start")
    restarted = Drop.open(
        drop.path, tmp_path / "start", other_powers=digest8, roots=[AUTHORITY.root], turn_seconds=100
    )
    for found in (drop, restarted):
        with refusal("has-contributed"):
            join(found, CLINIC_A)
        assert found.place(join(found, CLINIC_B))[0] == 0


def test_rule_7_an_institution_whose_certificate_expired_since_has_contributed(
    drop: Drop,
    states: list[CeremonyTranscript],
    digest8: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A drop that starts again two years later knows it, whatever certificate it comes with now."""
    ticket = join(drop, CLINIC_A)
    hand_in(drop, ticket, CLINIC_A)
    drop.take(ticket)
    states[0].write(tmp_path / "start")
    later = int(time.time()) + 2 * 365 * 86_400
    renewed = AUTHORITY.issue(Purpose.CERTIFIER, "Clinic A", later - 10, later + 1000)
    newcomer = AUTHORITY.issue(Purpose.CERTIFIER, "Clinic B", later - 10, later + 1000)
    monkeypatch.setattr(time, "time", lambda: float(later))
    restarted = Drop.open(
        drop.path, tmp_path / "start", other_powers=digest8, roots=[AUTHORITY.root], turn_seconds=100
    )
    with pytest.raises(CertificateRefused, match="expired"):
        join(restarted, CLINIC_A)
    with refusal("has-contributed"):
        join(restarted, renewed)
    assert restarted.place(join(restarted, newcomer))[0] == 0


@contextmanager
def served(directory: Path, drop: Path, *options: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A real drop."""
    command = [sys.executable, "-m", "anofel", "setup", "ceremony", "serve", directory, "--drop", drop]
    command += ["--port", "0", "--json", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            printed = "".join(iter(server.stdout.readline, "}\n")) + "}"
            yield json.loads(printed)["url"], server
        finally:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
                server.wait(600)


def test_a_ceremony_of_institutions_survives_the_loss_of_its_drop(
    states: list[CeremonyTranscript], digest8: bytes, tmp_path: Path
) -> None:
    """Strangers are turned away, the drop is killed, and its disk is lost; a copy is served instead."""
    states[0].write(tmp_path / "c0")
    other = ("--other-powers-of-tau", digest8.hex())
    (tmp_path / "root.pem").write_bytes(chain_to_pem([AUTHORITY.root]))
    roots = ("--root", tmp_path / "root.pem")
    signed = {}
    for name, role in (("A", CLINIC_A), ("B", CLINIC_B)):
        write_role(tmp_path / name, role)
        files = (tmp_path / name / "certificate.pem", tmp_path / name / "key.pem")
        signed[name] = ("--certificate", files[0], "--key", files[1])

    with served(tmp_path / "c0", tmp_path / "drop", *roots, *other) as (url, server):
        stranger = anofel("contribute", url, tmp_path / "x", "--name", "x", *other, code=1)
        assert "takes institutions alone" in stranger.stderr
        anofel("contribute", url, tmp_path / "a", "--name", "Clinic A", *signed["A"], *other)
        shown = json.loads(anofel("mirror", url, tmp_path / "copies", *other, "--json").stdout)
        assert (shown["contributions"], shown["new_contributions"]) == (1, 1)
        again = anofel("contribute", url, tmp_path / "y", "--name", "again", *signed["A"], *other, code=1)
        assert "has contributed already" in again.stderr
        server.kill()
        server.wait(600)

    # Somebody begins again from the start and leaves Clinic A out: the copy tells.
    with served(tmp_path / "c0", tmp_path / "drop-2", *other) as (url, _server):
        refused = anofel("mirror", url, tmp_path / "copies", *other, code=1)
        assert "shows 0 contributions, and the copy here has 1" in refused.stderr.replace("\n", " ")
        anofel("contribute", url, tmp_path / "z", "--name", "instead", *other)
        refused = anofel("mirror", url, tmp_path / "copies", *other, code=1)
        assert "another contribution 1 than the copy here" in refused.stderr.replace("\n", " ")

    with served(tmp_path / "c0", tmp_path / "copies", *roots, *other) as (url, _server):
        anofel("contribute", url, tmp_path / "b", "--name", "Clinic B", *signed["B"], *other)
    newest = tmp_path / "copies" / "0002"
    anofel("finish", newest, "--beacon", BEACON.hex(), "--out", tmp_path / "end", *other)
    for name in ("a", "b"):
        mine = ("--mine", tmp_path / f"{name}.receipt.json", *roots)
        assert "is in." in anofel("verify", tmp_path / "end", *mine, *other).stdout


def test_a_copy_notices_what_a_drop_takes_back(
    states: list[CeremonyTranscript], digest8: bytes, tmp_path: Path
) -> None:
    class Fetched(Visit):
        state = states[2]

        def fetch(self, **_: object) -> CeremonyTranscript:  # type: ignore[override]
            return self.state

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anofel.roles.ceremony.mirror.Visit", Fetched)
        nowhere = Transport("http://127.0.0.1:1")
        copy = Mirror(tmp_path / "copies", other_powers=digest8)
        assert (copy.update(nowhere), copy.update(nowhere)) == (2, 0)
        unsigned = {n: d for n, d in states[3].files.items() if n != "0001.receipt.json"}
        agreement = replace(states[3].agreement, beacon_source="other dice")
        for bad, words in (
            (states[1], "shows 1 contributions, and the copy here has 2"),
            (states[0].contribute("x")[0].contribute("y")[0], "another contribution 1"),
            (CeremonyTranscript.of_files(unsigned, other_powers=digest8), "the receipt of contribution 1"),
            (replace(states[3], agreement=agreement), "another agreement"),
        ):
            Fetched.state = bad
            with pytest.raises(InvalidCeremony, match=words):
                Mirror(tmp_path / "copies", other_powers=digest8).update(nowhere)
        Fetched.state = states[-1]
        assert Mirror(tmp_path / "copies", other_powers=digest8).update(nowhere) == 2


@pytest.mark.parametrize("name", ["../../stolen", "/stolen", "x.receipt.json", "sub/0001.receipt.json"])
def test_a_drop_cannot_choose_where_its_files_are_written(
    name: str, states: list[CeremonyTranscript], digest8: bytes
) -> None:
    """A drop that lists a file of another name: it is not even asked for."""
    asked = []

    class Lying(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer = json.dumps({"files": {AGREEMENT: 1, name: 1}, "challenge": ""}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Lying) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        visit = Visit(Transport(f"http://127.0.0.1:{server.server_port}", attempts=1))
        with pytest.raises(InvalidInput, match="which no ceremony has"):
            visit.fetch(other_powers=None)
        server.shutdown()
    assert asked == ["/v1/ceremony"]
    with pytest.raises(InvalidInput, match="which no ceremony has"):
        CeremonyTranscript.of_files(states[0].files | {name: b""}, other_powers=digest8)
