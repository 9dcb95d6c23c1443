"""Chains of certificates: what is accepted, and one test in which only one rule fails."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from anofel.errors import InvalidInput, VerificationError
from anofel.pki import certificates
from anofel.pki.certificates import CertificateRefused, Identity, Purpose, verify_chain
from tests.certificates.chains import DAY, LEAF, MIDDLE, NOW, ROOT, authority, chain, roots

CLIENT_AUTH = ExtendedKeyUsageOID.CLIENT_AUTH
ANY_USAGE = ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE


def refused(presented, trusted=None, purpose=Purpose.OWNER, time=NOW) -> str:
    with pytest.raises(CertificateRefused) as caught:
        verify_chain(presented, trusted or roots(), purpose, time)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("purpose", list(Purpose))
def test_a_chain_for_each_purpose_is_accepted(purpose):
    presented = chain(LEAF.but(purposes=[purpose]))
    identity = verify_chain(presented, roots(), purpose, NOW)
    assert identity.certificate_id == hashlib.sha256(presented[0]).digest()
    key = LEAF.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert identity.subject == hashlib.sha256(key).digest()
    assert identity.name == "CN=Hospital A"
    assert identity.purpose is purpose
    assert identity.public_key == LEAF.key.public_key()


def test_a_leaf_directly_under_a_root_is_accepted():
    verify_chain([LEAF.signed_by(ROOT)], roots(), Purpose.OWNER, NOW)


def test_three_intermediates_are_accepted():
    a, b, c = (authority(f"Level {i}") for i in range(3))
    presented = [LEAF.signed_by(a), a.signed_by(b), b.signed_by(c), c.signed_by(ROOT)]
    verify_chain(presented, roots(), Purpose.OWNER, NOW)


def test_any_of_several_roots_will_do():
    other = authority("Another root")
    verify_chain(chain(), [*roots(other), *roots()], Purpose.OWNER, NOW)


def test_authorities_with_rsa_keys_are_accepted():
    root = ROOT.but(key=rsa.generate_private_key(65537, 2048))
    verify_chain(chain(root=root), roots(root), Purpose.OWNER, NOW)


def test_other_usages_beside_the_purpose_are_accepted():
    verify_chain(chain(LEAF.but(purposes=[CLIENT_AUTH, Purpose.OWNER])), roots(), Purpose.OWNER, NOW)


@pytest.mark.parametrize("time", [NOW - DAY, NOW + DAY])
def test_the_first_and_last_second_are_valid(time):
    verify_chain(chain(), roots(), Purpose.OWNER, time)


def test_the_subject_outlives_a_renewal_and_the_certificate_id_does_not():
    old = verify_chain(chain(), roots(), Purpose.OWNER, NOW)
    new = verify_chain(chain(LEAF.but(not_after=NOW + 2 * DAY)), roots(), Purpose.OWNER, NOW)
    assert old.subject == new.subject
    assert old.certificate_id != new.certificate_id
    assert old != new


def test_the_same_name_on_another_key_is_another_subject():
    impostor = LEAF.but(key=ec.generate_private_key(ec.SECP256R1()))
    ours = verify_chain(chain(), roots(), Purpose.OWNER, NOW)
    theirs = verify_chain(chain(impostor), roots(), Purpose.OWNER, NOW)
    assert ours.name == theirs.name
    assert ours.subject != theirs.subject


def test_only_verify_chain_yields_an_identity():
    with pytest.raises(TypeError, match="verify_chain"):
        Identity()
    assert not hasattr(certificates, "identity_of_leaf")


def test_a_name_cannot_move_the_cursor():
    presented = chain(LEAF.but(name="Hospital\x1b[2J"))
    assert "\x1b" not in verify_chain(presented, roots(), Purpose.OWNER, NOW).name


# Rule 1


def test_rule_1_no_certificate_is_refused():
    assert "1 to 4" in refused([])


def test_rule_1_a_chain_that_is_too_long_is_refused():
    levels = [authority(f"Level {i}") for i in range(4)]
    presented = [LEAF.signed_by(levels[0])]
    presented += [lower.signed_by(upper) for lower, upper in zip(levels, [*levels[1:], ROOT], strict=True)]
    assert "1 to 4 certificates, not 5" in refused(presented)


# Rule 2


def test_rule_2_bytes_that_are_no_certificate_are_refused():
    assert "leaf is malformed" in refused([b"certificate", chain()[1]])
    assert "Certificate 1 of the chain is malformed" in refused([chain()[0], b""])


def test_rule_2_bytes_after_a_certificate_are_refused():
    leaf, middle = chain()
    assert "malformed, or bytes follow" in refused([leaf + b"\0", middle])
    assert "malformed, or bytes follow" in refused([leaf, middle + middle])


def test_rule_2_a_large_certificate_is_refused():
    padding = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), bytes(4096))
    assert "4096 are allowed" in refused(chain(LEAF.but(extra=[(padding, False)])))


def test_rule_2_a_longer_form_of_a_length_is_refused():
    leaf, middle = chain()
    assert leaf[:2] == b"\x30\x82"
    assert "malformed" in refused([b"\x30\x83\x00" + leaf[2:], middle])


def test_rule_2_a_certificate_that_reads_and_writes_differently_is_refused(monkeypatch):
    # The parser at hand reads nothing but DER, so the rule behind it is tried with one that is lenient.
    load = x509.load_der_x509_certificate
    monkeypatch.setattr(certificates.x509, "load_der_x509_certificate", lambda der: load(der.rstrip(b"\0")))
    leaf, middle = chain()
    assert "leaf is not in canonical DER" in refused([leaf + b"\0", middle])


def test_rule_2_a_signature_with_unused_bits_is_refused():
    leaf, middle = chain()
    while leaf[-1] & 1:
        leaf, middle = chain()
    place = len(leaf) - len(x509.load_der_x509_certificate(leaf).signature) - 1
    assert leaf[place] == 0
    assert "canonical DER" in refused([leaf[:place] + b"\x01" + leaf[place + 1 :], middle])


@settings(max_examples=300)
@given(st.integers(0, 1), st.integers(0, 4095), st.integers(1, 255))
def test_a_chain_with_a_changed_byte_is_refused_by_name(place, position, change):
    presented = chain()
    der = bytearray(presented[place])
    der[position % len(der)] ^= change
    presented[place] = bytes(der)
    refused(presented)


def test_a_name_of_any_asn1_type_is_refused_by_name():
    leaf, middle = chain()
    place = leaf.index(b"\x0c\x0aHospital A")
    for kind in set(range(256)) - {0x0C}:
        refused([leaf[:place] + bytes([kind]) + leaf[place + 1 :], middle])


# Rule 3


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP256K1()),
        rsa.generate_private_key(65537, 2048),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["P-384", "secp256k1", "RSA", "Ed25519"],
)
def test_rule_3_a_leaf_with_another_kind_of_key_is_refused(key):
    assert "not a P-256 key" in refused(chain(LEAF.but(key=key)))


# Rule 4


def test_rule_4_an_expired_certificate_is_refused():
    assert "The leaf expired" in refused(chain(LEAF.but(not_after=NOW - 1)))
    assert "Certificate 1 of the chain expired" in refused(chain(middle=MIDDLE.but(not_after=NOW - 1)))
    assert "The root of the chain expired" in refused(chain(), roots(ROOT.but(not_after=NOW - 1)))


def test_rule_4_a_certificate_from_the_future_is_refused():
    assert "The leaf is not valid before" in refused(chain(LEAF.but(not_before=NOW + 1)))
    late = MIDDLE.but(not_before=NOW + 1)
    assert "Certificate 1 of the chain is not valid before" in refused(chain(middle=late))


# Rule 5


def test_rule_5_the_certificate_of_an_authority_is_refused_as_a_leaf():
    assert "of an authority" in refused(chain(LEAF.but(ca=True)))


# Rule 6


@pytest.mark.parametrize(
    ("purposes", "given_role"),
    [
        ([Purpose.STORAGE], "storage"),
        ([Purpose.OWNER, Purpose.STORAGE], "owner and storage"),
        ([Purpose.OWNER, Purpose.OWNER], "owner and owner"),
        ([CLIENT_AUTH], "no role"),
        ([ANY_USAGE], "no role"),
        (None, "no role"),
    ],
)
def test_rule_6_a_leaf_that_does_not_name_the_purpose_alone_is_refused(purposes, given_role):
    sentence = refused(chain(LEAF.but(purposes=purposes)))
    assert sentence == f"The leaf is for {given_role}, not for owner alone."


def test_rule_6_an_authority_restricted_to_other_usages_is_refused():
    assert "authority of the chain" in refused(chain(middle=MIDDLE.but(purposes=[Purpose.STORAGE])))
    for allowed in (Purpose.OWNER, ANY_USAGE):
        verify_chain(chain(middle=MIDDLE.but(purposes=[allowed])), roots(), Purpose.OWNER, NOW)


# Rule 7


def test_rule_7_an_unknown_root_is_refused():
    assert "no root of this board" in refused(chain(), roots(authority("Another root")))


def test_rule_7_a_root_of_the_same_name_and_another_key_is_refused():
    refused(chain(), roots(authority("Root")))


def test_rule_7_a_leaf_that_signed_itself_is_refused():
    assert "no root of this board" in refused([LEAF.signed_by(LEAF)])


# Rule 8


def test_rule_8_a_wrong_signature_is_refused():
    stranger = ec.generate_private_key(ec.SECP256R1())
    assert "signature" in refused([LEAF.signed_by(MIDDLE, key=stranger), MIDDLE.signed_by(ROOT)])


def test_rule_8_a_leaf_that_may_not_sign_is_refused():
    assert "may not sign" in refused(chain(LEAF.but(usages=("key_agreement",))))


def test_rule_8_an_issuer_that_is_no_authority_is_refused():
    refused(chain(middle=MIDDLE.but(ca=False)))


def test_rule_8_an_issuer_that_may_not_sign_certificates_is_refused():
    refused(chain(middle=MIDDLE.but(usages=("digital_signature",))))


def test_rule_8_a_path_longer_than_an_authority_allows_is_refused():
    upper = authority("Upper", path_length=0)
    presented = [LEAF.signed_by(MIDDLE), MIDDLE.signed_by(upper), upper.signed_by(ROOT)]
    refused(presented)


def test_rule_8_an_unknown_critical_extension_is_refused():
    unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")
    refused(chain(LEAF.but(extra=[(unknown, True)])))
    verify_chain(chain(LEAF.but(extra=[(unknown, False)])), roots(), Purpose.OWNER, NOW)


def test_rule_8_a_name_outside_an_authoritys_constraints_is_refused():
    constraints = x509.NameConstraints(permitted_subtrees=[x509.DNSName("a.test")], excluded_subtrees=None)
    middle = MIDDLE.but(extra=[(constraints, True)])
    inside = x509.SubjectAlternativeName([x509.DNSName("board.a.test")])
    outside = x509.SubjectAlternativeName([x509.DNSName("board.b.test")])
    verify_chain(chain(LEAF.but(extra=[(inside, False)]), middle), roots(), Purpose.OWNER, NOW)
    refused(chain(LEAF.but(extra=[(outside, False)]), middle))


# Rule 9


def test_rule_9_a_chain_that_is_not_the_path_is_refused():
    a, b = authority("A"), authority("B")
    leaf, first, second = LEAF.signed_by(a), a.signed_by(b), b.signed_by(ROOT)
    verify_chain([leaf, first, second], roots(), Purpose.OWNER, NOW)
    for presented in (
        [leaf, second, first],
        [leaf, first, second, *roots()],
        [leaf, first, second, first],
        [LEAF.signed_by(ROOT), first],
    ):
        assert "leaf first, each issued by the next" in refused(presented)


def test_unusable_roots_and_times_are_the_callers_mistake():
    with pytest.raises(InvalidInput, match="no certificate roots"):
        verify_chain(chain(), [], Purpose.OWNER, NOW)
    with pytest.raises(InvalidInput, match="root cannot be used"):
        verify_chain(chain(), [b"root"], Purpose.OWNER, NOW)
    with pytest.raises(InvalidInput, match="no time"):
        verify_chain(chain(), roots(), Purpose.OWNER, 1 << 63)


def test_the_error_is_a_failed_verification_with_a_code():
    assert issubclass(CertificateRefused, VerificationError)
    assert CertificateRefused.code == "certificate-refused"


def test_the_purposes_are_pinned():
    arc = "2.25.16289441028240324705437619937842458725"
    assert {p.value: p.oid.dotted_string for p in Purpose} == {
        "operator": f"{arc}.1",
        "certifier": f"{arc}.2",
        "aggregator": f"{arc}.3",
        "owner": f"{arc}.4",
        "storage": f"{arc}.5",
        "validator": f"{arc}.6",
    }


@pytest.mark.skipif(shutil.which("openssl") is None, reason="OpenSSL's command is not installed")
def test_openssl_reads_the_same_key_purpose_and_path(tmp_path: Path):
    leaf, middle = chain()
    for name, der in (("leaf", leaf), ("middle", middle), ("root", roots()[0])):
        pem = x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)
        (tmp_path / f"{name}.pem").write_bytes(pem)

    def openssl(*arguments: str, data: bytes = b"") -> bytes:
        run = subprocess.run(
            ["openssl", *arguments], cwd=tmp_path, input=data, capture_output=True, check=True
        )
        return run.stdout

    openssl("verify", "-attime", str(NOW), "-CAfile", "root.pem", "-untrusted", "middle.pem", "leaf.pem")
    assert Purpose.OWNER.oid.dotted_string.encode() in openssl("x509", "-in", "leaf.pem", "-noout", "-text")
    key = openssl("x509", "-in", "leaf.pem", "-noout", "-pubkey")
    spki = openssl("pkey", "-pubin", "-outform", "DER", data=key)
    identity = verify_chain([leaf, middle], roots(), Purpose.OWNER, NOW)
    assert identity.subject == hashlib.sha256(spki).digest()
