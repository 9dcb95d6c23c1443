"""``anofel ca`` as a user sees it."""

import json
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from typer.testing import CliRunner

from anofel.cli import app
from anofel.disk.files import DiskFailed, FileExists, write_new_directory, write_new_file
from anofel.errors import InvalidInput
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey, organisation_of, verify_chain
from anofel.pki.testing_ca import ORGANISATION, SigningRequest, TestAuthority, make_request

DAY = 86_400
NOW = 1_800_000_000


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if code == 0 and result.exception:
        raise result.exception
    assert result.exit_code == code
    return result.stdout


def now() -> int:
    import time

    return int(time.time()) + 1


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    run("ca", "init", tmp_path / "ca")
    return tmp_path / "ca"


def root_of(directory: Path) -> bytes:
    return TestAuthority.open(directory).root


@pytest.mark.parametrize("purpose", list(Purpose))
def test_an_issued_certificate_is_accepted_for_its_purpose(authority, tmp_path, purpose):
    out = tmp_path / "role"
    run("ca", "issue", authority, "--purpose", purpose.value, "--name", "Hospital A", "--out", out)
    role = RoleKey.from_files(out / "certificate.pem", out / "key.pem")
    identity = verify_chain(role.chain, [root_of(authority)], purpose, now())
    assert identity.name == f"CN=Hospital A,OU={ORGANISATION},O=Hospital A"
    assert identity.organisation == "hospital a"
    identity.verify(b"x", role.sign(b"x"))


def test_a_request_is_signed_and_the_key_stays_with_its_owner(authority, tmp_path):
    out = tmp_path / "role"
    run("ca", "request", "--purpose", "aggregator", "--name", "University B", "--out", out)
    key = (out / "key.pem").read_bytes()
    run("ca", "sign", authority, "--request", out / "request.pem")
    assert (out / "key.pem").read_bytes() == key
    role = RoleKey.from_files(out / "certificate.pem", out / "key.pem")
    verify_chain(role.chain, [root_of(authority)], Purpose.AGGREGATOR, now())


def test_an_organisation_may_have_another_name(authority, tmp_path):
    words = ("--purpose", "aggregator", "--name", "Server 2", "--organisation", "University  B")
    run("ca", "issue", authority, *words, "--out", tmp_path / "issued")
    run("ca", "request", *words, "--out", tmp_path / "asked")
    run("ca", "sign", authority, "--request", tmp_path / "asked" / "request.pem")
    for place in ("issued", "asked"):
        role = RoleKey.from_files(tmp_path / place / "certificate.pem", tmp_path / place / "key.pem")
        identity = verify_chain(role.chain, [root_of(authority)], Purpose.AGGREGATOR, now())
        assert identity.organisation == "university b"
        assert "CN=Server 2" in identity.name


@pytest.mark.parametrize(
    ("organisations", "expected"),
    [
        ([], ""),
        (["A", "B"], ""),
        (["  Université \u00a0 DE\tGenève "], "université de genève"),
        (["ÉCOLE"], "École"),
        ([" "], ""),
    ],
)
def test_an_organisation_is_compared_by_its_letters(organisations, expected):
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, text) for text in organisations]
    assert organisation_of(x509.Name(attributes)) == expected


def test_days_limit_a_certificate(authority, tmp_path):
    out = tmp_path / "role"
    run("ca", "issue", authority, "--purpose", "owner", "--name", "A", "--out", out, "--days", 2)
    role = RoleKey.from_files(out / "certificate.pem", out / "key.pem")
    with pytest.raises(CertificateRefused, match="expired"):
        verify_chain(role.chain, [root_of(authority)], Purpose.OWNER, now() + 2 * DAY)


def test_json_is_one_document_that_says_test(authority, tmp_path):
    out = tmp_path / "role"
    shown = json.loads(
        run("ca", "issue", authority, "--purpose", "owner", "--name", "A", "--out", out, "--json")
    )
    assert shown["test_authority"] is True
    assert shown["purpose"] == "owner"
    assert ORGANISATION in shown["name"]
    assert json.loads(run("ca", "init", tmp_path / "second", "--json"))["test_authority"] is True
    requested = json.loads(
        run("ca", "request", "--purpose", "owner", "--name", "A", "--out", tmp_path / "r", "--json")
    )
    assert requested["purpose"] == "owner"
    signed = json.loads(run("ca", "sign", authority, "--request", tmp_path / "r" / "request.pem", "--json"))
    assert signed["purpose"] == "owner"


def test_the_output_says_test(tmp_path):
    result = CliRunner().invoke(app, ["ca", "init", str(tmp_path / "ca")])
    assert "TEST" in result.stdout
    assert "TEST" in result.stderr


def test_secret_files_are_for_their_owner_alone(authority, tmp_path):
    run("ca", "issue", authority, "--purpose", "owner", "--name", "A", "--out", tmp_path / "role")
    run("ca", "request", "--purpose", "owner", "--name", "A", "--out", tmp_path / "asked")
    for secret in (authority / "root.key", tmp_path / "role" / "key.pem", tmp_path / "asked" / "key.pem"):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_nothing_is_overwritten(authority, tmp_path):
    before = (authority / "root.pem").read_bytes()
    with pytest.raises(FileExists, match="exists already"):
        run("ca", "init", authority)
    with pytest.raises(FileExists, match="exists already"):
        run("ca", "issue", authority, "--purpose", "owner", "--name", "A", "--out", authority)
    with pytest.raises(FileExists, match="exists already"):
        run("ca", "request", "--purpose", "owner", "--name", "A", "--out", authority)
    assert (authority / "root.pem").read_bytes() == before
    run("ca", "request", "--purpose", "owner", "--name", "A", "--out", tmp_path / "role")
    run("ca", "sign", authority, "--request", tmp_path / "role" / "request.pem")
    with pytest.raises(FileExists, match="exists already"):
        run("ca", "sign", authority, "--request", tmp_path / "role" / "request.pem")


def test_a_failure_leaves_nothing_half_written(tmp_path, monkeypatch):
    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("anofel.disk.files.os.fsync", fail)
    with pytest.raises(DiskFailed, match="No space left"):
        write_new_directory(tmp_path / "new", {"a": b"1"})
    with pytest.raises(DiskFailed, match="No space left"):
        write_new_file(tmp_path / "file", b"1")
    assert list(tmp_path.iterdir()) == []


def test_wrong_usage_exits_with_2(authority, tmp_path):
    run("ca", "issue", authority, "--purpose", "king", "--name", "A", "--out", tmp_path / "r", code=2)
    run("ca", "issue", authority, "--purpose", "owner", "--out", tmp_path / "r", code=2)
    run("ca", "request", "--purpose", "king", "--name", "A", "--out", tmp_path / "r", code=2)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb"])
def test_a_name_that_cannot_stand_in_a_certificate_is_refused(name):
    with pytest.raises(InvalidInput, match="printable characters"):
        TestAuthority.create().issue(Purpose.OWNER, name)


def test_times_of_issue_are_kept():
    authority = TestAuthority.create(not_before=NOW - DAY, not_after=NOW + DAY)
    role = authority.issue(Purpose.OWNER, "A", NOW, NOW + 10)
    verify_chain(role.chain, [authority.root], Purpose.OWNER, NOW + 10)
    with pytest.raises(CertificateRefused, match="expired"):
        verify_chain(role.chain, [authority.root], Purpose.OWNER, NOW + 11)
    with pytest.raises(InvalidInput, match="before it begins"):
        authority.issue(Purpose.OWNER, "A", NOW, NOW - 1)
    with pytest.raises(InvalidInput, match="calendar"):
        authority.issue(Purpose.OWNER, "A", NOW, 10**18)


def request_for(key, purposes, names=("A",), signer=None) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage([p.oid for p in purposes]), critical=False)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256()
    return builder.sign(key, algorithm).public_bytes(Encoding.PEM)


P256 = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"no request", "not a certificate request"),
        (request_for(P256, []), "exactly one role"),
        (request_for(P256, [Purpose.OWNER, Purpose.STORAGE]), "exactly one role"),
        (request_for(P256, [Purpose.OWNER], names=()), "one common name"),
        (request_for(P256, [Purpose.OWNER]), "one organisation"),
        (request_for(ed25519.Ed25519PrivateKey.generate(), [Purpose.OWNER]), "not a P-256 key"),
    ],
    ids=["no request", "no role", "two roles", "no name", "no organisation", "Ed25519"],
)
def test_requests_that_cannot_be_signed_are_refused(data, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        SigningRequest.from_pem(data)


def test_a_request_that_its_key_did_not_sign_is_refused():
    pem = make_request(Purpose.OWNER, "A").request
    der = bytearray(x509.load_pem_x509_csr(pem).public_bytes(Encoding.DER))
    der[-1] ^= 1
    forged = x509.load_der_x509_csr(bytes(der)).public_bytes(Encoding.PEM)
    with pytest.raises(InvalidInput, match="not signed by the key"):
        SigningRequest.from_pem(forged)


def test_a_role_is_no_authority(authority, tmp_path):
    run("ca", "issue", authority, "--purpose", "owner", "--name", "A", "--out", tmp_path / "role")
    role = RoleKey.from_files(tmp_path / "role" / "certificate.pem", tmp_path / "role" / "key.pem")
    with pytest.raises(InvalidInput, match="not the key of a test authority"):
        TestAuthority(role)
