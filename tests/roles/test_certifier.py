"""The certifier: what it signs, what it refuses, each rule alone."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from anofel.disk.keystore import KeyFile
from anofel.errors import InvalidInput, InvalidKeyFile, InvalidProof
from anofel.ids import GenesisHash, TaskId
from anofel.network.transport import Refused, Transport
from anofel.phase1_setup.step1b_certification import CertificateRequest, request_certificate
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import CertifierKey, DatasetDigest, DatasetType, MasterSecret
from anofel.privacy.ledger import Floors, Occasion
from anofel.privacy.plan import Plan
from anofel.proofs.keys import KeyDirectory
from anofel.roles.certificate_files import (
    CertificateDocument,
    InvitationDocument,
    MalformedDocument,
    NonceDocument,
    RequestDocument,
)
from anofel.roles.certifier.log import EXPIRY_SECONDS, CertificationRefused
from anofel.roles.certifier.role import Certifier, CertifierOffice
from anofel.roles.certifier.service import make_app
from anofel.roles.client import request as client_request
from anofel.roles.client.files import ClientSettings, NotCertified, credential, open_ledger
from anofel.roles.directory import RoleBusy, RoleDirectory
from anofel.serving.listening import listen
from anofel.studies.table import RowDoesNotFit
from tests.board.world import World
from tests.node.certificate import write_tls_files
from tests.node.support import SECONDS, make_board, running
from tests.patients import make_task
from tests.roles.people import (
    TYPE,
    make_certifier,
    make_client,
    open_certifier,
    open_client,
    write_policy,
    write_table,
)

GENESIS = bytes(range(32))
BOARD = "http://board.example"


@pytest.fixture(scope="module")
def role_key() -> RoleKey:
    return TestAuthority.create().issue(Purpose.CERTIFIER, "Clinic")


@pytest.fixture
def certifier(tmp_path: Path, keys: KeyDirectory, role_key: RoleKey) -> Iterator[Certifier]:
    path, unlock = make_certifier(tmp_path / "certifier", keys, role_key, board=BOARD, genesis=GENESIS)
    opened = open_certifier(path, unlock)
    yield opened
    opened.directory.close()


@pytest.fixture
def client(tmp_path: Path, keys: KeyDirectory) -> Iterator[RoleDirectory]:
    opened = open_client(*make_client(tmp_path / "client", keys, board=BOARD, genesis=GENESIS))
    yield opened
    opened.close()


def data_of(directory: RoleDirectory) -> Path:
    return Path(str(directory.config.settings["data"]))


def ask(certifier: Certifier, client: RoleDirectory, subject: str = "Ward 3") -> RequestDocument:
    return client_request.make_request(client, certifier.office.draw_nonce(subject, TYPE))


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(CertificationRefused) as caught:
        yield
    assert caught.value.code == code


def test_a_certificate_by_files(certifier: Certifier, client: RoleDirectory, tmp_path: Path) -> None:
    (tmp_path / "nonce").write_bytes(certifier.office.draw_nonce("Ward 3", TYPE).to_bytes() + b"\n")
    request = client_request.make_request(client, NonceDocument.read(tmp_path / "nonce"))
    (tmp_path / "request").write_bytes(request.to_bytes())
    made = certifier.certify(RequestDocument.read(tmp_path / "request"), data_of(client))
    (tmp_path / "certificate").write_bytes(made.to_bytes())
    with pytest.raises(NotCertified):
        credential(client.secrets)
    client_request.accept_file(client, tmp_path / "certificate")
    credential(client.secrets).verify()


def test_the_same_request_gives_the_same_certificate(certifier: Certifier, client: RoleDirectory) -> None:
    request = ask(certifier, client)
    first = certifier.certify(request, data_of(client))
    assert certifier.certify(request, data_of(client)).to_bytes() == first.to_bytes()
    again = certifier.certify(ask(certifier, client), data_of(client))
    assert again.to_bytes() == first.to_bytes()
    assert certifier.office.log.counts() == {"certificates": 1, "subjects": 1, "open_nonces": 0}


def test_rule_1_a_request_is_canonical(certifier: Certifier, client: RoleDirectory) -> None:
    data = ask(certifier, client).to_bytes()
    for wrong in (
        data + b" ",
        data.replace(b'":', b'": ', 1),
        b"{}",
        b"[",
        data.replace(b'"dt":7', b'"dt":"7"'),
    ):
        with pytest.raises(MalformedDocument):
            RequestDocument.from_bytes(wrong)


def test_rule_2_the_type_is_the_one_of_the_nonce(certifier: Certifier, client: RoleDirectory) -> None:
    with refused("dataset-type"):
        certifier.certify(replace(ask(certifier, client), dt=8), data_of(client))
    with refused("dataset-type"):
        certifier.office.draw_nonce("Ward 3", 8)


def test_rule_3_the_ownership_proof_is_for_this_request(
    certifier: Certifier, client: RoleDirectory, keys: KeyDirectory
) -> None:
    stranger = replace(ask(certifier, client), mpk=MasterSecret.generate().public_key().to_bytes())
    with pytest.raises(InvalidProof):
        certifier.certify(stranger, data_of(client))
    other_nonce = certifier.office.draw_nonce("Ward 3", TYPE).nonce
    with pytest.raises(InvalidProof):
        certifier.certify(replace(ask(certifier, client), nonce=other_nonce), data_of(client))
    assert certifier.office.log.counts()["certificates"] == 0


def test_rule_4_a_nonce_is_good_for_one_request(certifier: Certifier, client: RoleDirectory) -> None:
    with refused("nonce-unknown"):
        certifier.certify(replace(ask(certifier, client), nonce=bytes(32)), data_of(client))
    nonce = certifier.office.draw_nonce("Ward 3", TYPE)
    certifier.certify(client_request.make_request(client, nonce), data_of(client))
    with refused("nonce-used"):  # proofs are randomised, so this is another request
        certifier.certify(client_request.make_request(client, nonce), data_of(client))


def test_rule_4_a_nonce_that_waited_too_long_is_refused(
    certifier: Certifier, client: RoleDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, now = certifier.office.log, int(time.time())
    used, late = ask(certifier, client), ask(certifier, client)
    first = certifier.certify(used, data_of(client))
    token = certifier.office.invite("Ward 3", TYPE)
    monkeypatch.setattr(time, "time", lambda: now + EXPIRY_SECONDS + 60)
    with refused("nonce-expired"):
        certifier.certify(late, data_of(client))
    assert certifier.certify(used, data_of(client)) == first, "who was answered in time may ask again"
    with refused("invitation-expired"):
        certifier.office.answer_invitation(token)
    monkeypatch.setattr(time, "time", lambda: now + 2 * EXPIRY_SECONDS + 60)
    certifier.office.draw_nonce("Ward 3", TYPE)
    assert log.counts()["open_nonces"] == 1, "nonces that nobody used are forgotten in the end"


def test_rule_5_a_dataset_has_one_key(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path, keys: KeyDirectory
) -> None:
    certifier.certify(ask(certifier, client), data_of(client))
    made = make_client(tmp_path / "other", keys, board=BOARD, genesis=GENESIS)
    with open_client(*made) as other, refused("dataset-certified"):
        certifier.certify(ask(certifier, other, "Ward 4"), data_of(other))
    with refused("dataset-certified"):
        certifier.certify(ask(certifier, client, "Ward 4"), data_of(client))


def test_rule_6_a_subject_has_one_key(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path, keys: KeyDirectory
) -> None:
    certifier.certify(ask(certifier, client), data_of(client))
    made = make_client(tmp_path / "other", keys, board=BOARD, genesis=GENESIS, seed=5)
    with open_client(*made) as other, refused("subject-has-key"):
        certifier.certify(ask(certifier, other), data_of(other))


def test_the_log_is_kept_by_the_next_process(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path, keys: KeyDirectory
) -> None:
    request = ask(certifier, client)
    certifier.certify(request, data_of(client))
    certifier.directory.close()
    again = open_certifier(tmp_path / "certifier" / "role", KeyFile(tmp_path / "certifier" / "key"))
    assert (again.directory.path / "certifier.sqlite").stat().st_mode & 0o777 == 0o600
    made = make_client(tmp_path / "other", keys, board=BOARD, genesis=GENESIS)
    with open_client(*made) as other, refused("dataset-certified"):
        again.certify(ask(again, other, "Ward 4"), data_of(other))
    again.directory.close()


@pytest.mark.parametrize(
    ("code", "policy"),
    [
        ("row-count", {"min_rows": 31}),
        ("row-count", {"max_rows": 29}),
        ("identifying-column", {"identifying": ["age"]}),
        ("own-check", {"check": "tests.roles.checks:refuse"}),
        ("own-check", {"check": "tests.roles.checks:stumble"}),
    ],
)
def test_rules_7_to_10_the_policy(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path, code: str, policy: dict[str, object]
) -> None:
    write_policy(tmp_path / "certifier", **policy)
    with refused(code):
        certifier.certify(ask(certifier, client), data_of(client))


def test_rule_7_every_row_fits_the_schema(certifier: Certifier, client: RoleDirectory) -> None:
    request, data = ask(certifier, client), data_of(client)
    data.write_text(data.read_text() + "Patient X,999,100,I,,no\n")
    with pytest.raises(RowDoesNotFit, match="Line 32, column 'age'"):
        certifier.certify(request, data)


def test_rule_9_duplicates_are_counted(certifier: Certifier, client: RoleDirectory) -> None:
    data = data_of(client)
    rows = data.read_text() + 4 * "Patient X,50,100,I,,no\n"
    data.write_text(rows + "Patient Y,50,100,I,,no\n")
    with refused("duplicate-rows"):
        certifier.certify(ask(certifier, client), data)
    data.write_text(rows)  # three of the four equal an earlier one
    certifier.certify(ask(certifier, client), data)


def test_rule_10_a_check_of_its_own_that_accepts(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path
) -> None:
    write_policy(tmp_path / "certifier", check="tests.roles.checks:accept")
    certifier.certify(ask(certifier, client), data_of(client))
    write_policy(tmp_path / "certifier", check="tests.roles.checks:nothing")
    with pytest.raises(InvalidInput, match="cannot be imported"):
        certifier.certify(ask(certifier, client), data_of(client))


def test_rule_11_the_data_is_the_one_that_is_shown(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path
) -> None:
    with refused("not-the-data"):
        certifier.certify(ask(certifier, client), write_table(tmp_path / "other.csv", seed=9))


# What a client refuses


def test_rule_13_parts_of_a_table_get_no_certificate_of_their_own(
    certifier: Certifier, client: RoleDirectory
) -> None:
    """One invitation, one key, and a row fewer each time: every part would post as a client of its own."""
    data, invitation = data_of(client), certifier.office.invite("Ward 3", TYPE)

    def show() -> CertificateDocument:
        nonce = certifier.office.answer_invitation(invitation)
        return certifier.certify(client_request.make_request(client, nonce), data)

    made = show()
    assert show() == made, "the same rows get the same certificate"
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join(lines[:-1]))
    with refused("subject-certified"):
        show()
    policy = Path(str(certifier.office.config.settings["policy"]))
    policy.write_text(policy.read_text().replace("type = ", "max_certificates = 2\ntype = ", 1))
    grown = show()
    assert grown.d != made.d, "the certifier may allow two, for data that grew"
    data.write_text("".join(lines[:-2]))
    with refused("subject-certified"):
        show()


def test_a_table_that_grew_keeps_its_ledger(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path
) -> None:
    data, path = data_of(client), tmp_path / "certificate"
    policy = Path(str(certifier.office.config.settings["policy"]))
    policy.write_text(policy.read_text().replace("type = ", "max_certificates = 2\ntype = ", 1))
    whole = data.read_text()
    data.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    spent = []
    for rows in (data.read_text(), whole):
        data.write_text(rows)
        path.write_bytes(certifier.certify(ask(certifier, client), data).to_bytes())
        client_request.accept_file(client, path)
        ledger = open_ledger(client.path, ClientSettings.of(client.config), is_new=not spent)
        if not spent:
            plan = Plan.of(make_task())
            occasion = Occasion(board=GenesisHash(GENESIS), task=TaskId(bytes(32)), bundle=0, iteration=1)
            floors = Floors(max_epsilon=100.0, max_colluders=0)
            ledger.charge("turn", occasion, plan=plan, floors=floors, anonymity_set=100)
        spent.append(ledger.spent(delta=1e-5))
    assert spent[0] == spent[1] > 0


def test_a_client_refuses_what_is_not_its_own(
    certifier: Certifier, client: RoleDirectory, tmp_path: Path, keys: KeyDirectory
) -> None:
    nonce = certifier.office.draw_nonce("Ward 3", TYPE)
    for change in ({"genesis": bytes(32)}, {"dt": 8}, {"ownership_key": bytes(32)}):
        with pytest.raises(InvalidInput):
            client_request.make_request(client, replace(nonce, **change))  # type: ignore[arg-type]
    made = certifier.certify(ask(certifier, client), data_of(client))
    other = MasterSecret.generate().public_key().to_bytes()
    for change in ({"genesis": bytes(32)}, {"mpk": other}, {"dt": 8}, {"d": bytes(32)}):
        path = tmp_path / "certificate"
        path.write_bytes(replace(made, **change).to_bytes())  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            client_request.accept_file(client, path)
    assert "certificate" not in client.secrets


# By HTTP


@pytest.fixture
def url(certifier: Certifier) -> Iterator[str]:
    import uvicorn

    taken = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(certifier), log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=lambda: server.run([taken]), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_certificate_by_http(certifier: Certifier, client: RoleDirectory, url: str) -> None:
    invitation = CertifierOffice.open(certifier.directory.path).invite("Ward 3", TYPE)
    made = client_request.request_by_http(client, Transport(url, attempts=1), invitation)
    assert made.certifier == certifier.key.to_bytes()
    credential(client.secrets).verify()
    again = client_request.request_by_http(client, Transport(url, attempts=1), invitation)
    assert again.to_bytes() == made.to_bytes()


def test_refusals_by_http_have_their_codes(
    certifier: Certifier, client: RoleDirectory, url: str, tmp_path: Path
) -> None:
    transport = Transport(url, attempts=1)
    stranger = InvitationDocument(
        genesis=GENESIS, certifier=certifier.key.to_bytes(), dt=TYPE, token=bytes(32)
    )
    with pytest.raises(Refused) as caught:
        client_request.request_by_http(client, transport, stranger)
    assert (caught.value.code, caught.value.status) == ("not-invited", 403)
    write_policy(tmp_path / "certifier", min_rows=31)
    with pytest.raises(Refused, match="30 rows") as caught:
        client_request.request_by_http(client, transport, certifier.office.invite("Ward 3", TYPE))
    assert caught.value.code == "row-count"
    for body in (b"", b"\xff\xff\xff\xff", b"{}"):
        with pytest.raises(Refused) as caught:
            transport.post("/v1/requests", body)
        assert (caught.value.status, caught.value.code) == (422, "malformed-document")


# On a board


def test_a_certifier_enrolls_once_and_revokes_once(keys: KeyDirectory, tmp_path: Path) -> None:
    board = make_board(tmp_path / "node", keys)
    with running(board.directory) as node:
        path, unlock = make_certifier(
            tmp_path / "certifier", keys, board.certifier(), board=node.url, genesis=board.genesis.hash
        )
        for _ in range(2):
            certifier = open_certifier(path, unlock)
            light = certifier.directory.connect()
            certifier.enroll(light, seconds=SECONDS)
            assert list(light.state.certifiers) == [certifier.key.to_bytes()]
            light.close()
            certifier.directory.close()
        certifier = open_certifier(path, unlock)
        assert len(list(certifier.directory.outbox)) == 1
        light = certifier.directory.connect()
        for _ in range(2):
            certifier.revoke(light, seconds=SECONDS)
            assert not light.state.certifiers[certifier.key.to_bytes()].in_force
        with refused("key-revoked"):
            certifier.enroll(light, seconds=SECONDS)
        light.close()
        certifier.directory.close()


def test_a_certifier_with_another_ownership_key_is_not_enrolled(
    keys: KeyDirectory, certifier: Certifier
) -> None:
    genesis = replace(World(keys).genesis, ownership_key=bytes(32))
    with pytest.raises(InvalidKeyFile, match="is not the ownership key that the board pins"):
        certifier.enroll(SimpleNamespace(genesis=genesis), seconds=1)  # type: ignore[arg-type]


def test_a_document_hides_what_is_secret() -> None:
    made = CertificateDocument(
        genesis=GENESIS, certifier=b"k", d=b"d", mpk=b"m", dt=7, certificate=b"secret certificate"
    )
    assert "73656372" not in repr(made)
    assert "secret" not in repr(made)


def test_requests_are_made_by_the_step(keys: KeyDirectory, certifier: Certifier) -> None:
    """A request of the step reads back as itself."""
    msk, d = MasterSecret.generate(), DatasetDigest.of_chunks([b"rows"])
    key = CertifierKey.from_bytes(certifier.key.to_bytes())
    made: CertificateRequest = request_certificate(
        msk, d, DatasetType(7), certifier=key, nonce=bytes(32), prover=keys.ownership_prover(threads=1)
    )
    document = RequestDocument.from_bytes(RequestDocument.of(made, bytes(32)).to_bytes())
    assert document.request().mpk == msk.public_key()
    assert document.request().d == d


# As a process


def test_the_service_as_a_process_with_tls(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey, client: RoleDirectory
) -> None:
    path, unlock = make_certifier(tmp_path / "certifier", keys, role_key, board=BOARD, genesis=GENESIS)
    certificate, key = write_tls_files(tmp_path)
    command = [sys.executable, "-m", "anofel", "certifier"]
    options = ["--tls-certificate", certificate, "--tls-key", key, "--key-file", unlock.path, "--port", "0"]
    process = subprocess.Popen(
        [*command, "run", path, *options, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        text = b""
        while not text.rstrip().endswith(b"}"):
            line = process.stdout.readline()
            assert line, process.communicate()[1].decode()
            text += line
        url = json.loads(text)["url"]
        invitation = tmp_path / "invitation.json"
        words = ["--subject", "Ward 3", "--type", str(TYPE), "--token-only", "--out", invitation]
        subprocess.run([*command, "invite", path, *words], check=True, capture_output=True)
        assert invitation.stat().st_mode & 0o777 == 0o600
        transport = Transport(url, ca_file=certificate)
        client_request.request_by_http(client, transport, InvitationDocument.read(invitation))
        credential(client.secrets).verify()
        with pytest.raises(RoleBusy):  # the keys are with the process that serves
            RoleDirectory.open(path, unlock, role="certifier")
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors.decode()


def test_other_machines_are_not_served_in_the_clear(
    tmp_path: Path, keys: KeyDirectory, role_key: RoleKey
) -> None:
    path, unlock = make_certifier(tmp_path / "certifier", keys, role_key, board=BOARD, genesis=GENESIS)
    command = [sys.executable, "-m", "anofel", "certifier", "run", path, "--host", "0.0.0.0"]
    ended = subprocess.run([*command, "--key-file", unlock.path], capture_output=True, check=False)
    assert ended.returncode == 2
    assert b"TLS" in ended.stderr
