"""What a certifier and a client hand each other, by file or by HTTP (step 1.b; ``docs/certifier.md``).

Every document is one canonical JSON object: sorted keys, no spaces, bytes as lower-case hexadecimal.
Bytes that are not exactly that are refused, so a document has one digest.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from anofel.disk.files import read_small_file
from anofel.disk.sections import InvalidDocument, canonical_json, json_values, read_table
from anofel.errors import InvalidInput
from anofel.ids import GenesisHash
from anofel.phase1_setup.step1b_certification import CertificateRequest
from anofel.primitives import (
    Certificate,
    CertifierKey,
    DatasetDigest,
    DatasetType,
    MasterPublicKey,
)
from anofel.proofs.statements import OwnershipProof

MAX_BYTES = 1 << 16
MAX_JOIN_BYTES = 1 << 20
"""A schema and certificate roots may be long."""
ENDINGS = (".csv", ".parquet", ".npz")
_T = TypeVar("_T")


class MalformedDocument(InvalidInput):
    """A file is not the document that is needed."""

    code = "malformed-document"


@dataclass(frozen=True, kw_only=True)
class Document:
    """What all documents share: ``kind`` says which one it is."""

    kind: ClassVar[str]

    def to_bytes(self) -> bytes:
        """Write the canonical JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {name: v.hex() if isinstance(v, bytes) else v for name, v in values.items()}
        return canonical_json({"anofel": self.kind, "version": 1, **shown})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read canonical JSON. Raises ``MalformedDocument`` for anything else."""
        name = f"The {cls.kind}"
        try:
            values = json_values(data, name)
            head = {"anofel": cls.kind, "version": 1}
            if not isinstance(values, dict) or {key: values.pop(key, None) for key in head} != head:
                raise MalformedDocument(f"This is not a document of the kind '{cls.kind}', version 1.")
            made = read_table(values, cls, name)
        except InvalidDocument as error:
            raise MalformedDocument(str(error)) from None
        if made.to_bytes() != data:
            raise MalformedDocument(f"The {cls.kind} is not in its canonical encoding.")
        return made

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file, which may end with one line break. Raises ``InvalidInput``."""
        return cls.from_bytes(read_small_file(path, MAX_BYTES).removesuffix(b"\n"))


@dataclass(frozen=True, kw_only=True)
class NonceDocument(Document):
    """A certifier's answer to somebody whom it knows: the nonce of one request."""

    kind: ClassVar[str] = "certificate-nonce"
    genesis: GenesisHash
    certifier: bytes
    ownership_key: bytes
    """SHA-256 of the verification key that the ownership proof is for."""
    dt: int
    nonce: bytes


@dataclass(frozen=True, kw_only=True)
class InvitationDocument(Document):
    """What a certifier gives to somebody whom it knows, to ask by HTTP. The token is a secret."""

    kind: ClassVar[str] = "certificate-invitation"
    genesis: GenesisHash
    certifier: bytes
    dt: int
    token: bytes

    def __repr__(self) -> str:
        return "InvitationDocument(<redacted>)"


@dataclass(frozen=True, kw_only=True)
class JoinDocument(Document):
    """The one file from which a client joins: its invitation, and where everything is.

    It says nothing about whom the client trusts: no floor, no ε, no task, no aggregator, no proxy (D-22). It
    holds the token of the invitation, so it is a secret.
    """

    kind: ClassVar[str] = "client-invitation"
    board: str | list[str]
    """The board's address, or those of several of its nodes."""
    board_ca: str
    """Roots for the board's TLS certificate, in PEM; empty for those of the system."""
    address: str
    """The certifier's own address, to which the client shows its rows."""
    address_ca: str
    schema: str
    """The canonical schema of the rows."""
    invitation: bytes
    """The bytes of an invitation document."""

    def invited(self) -> InvitationDocument:
        """Read the invitation. Raises ``MalformedDocument``."""
        return InvitationDocument.from_bytes(self.invitation)

    @property
    def fingerprint(self) -> str:
        """What both sides can compare by telephone: it stands for every byte of the file."""
        digits = hashlib.sha256(b"anofel/1/client-invitation" + self.to_bytes()).hexdigest()[:24]
        return "-".join(digits[start : start + 4] for start in range(0, 24, 4))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file, which may end with one line break. Raises ``InvalidInput``."""
        return cls.from_bytes(read_small_file(path, MAX_JOIN_BYTES).removesuffix(b"\n"))

    def __repr__(self) -> str:
        return "JoinDocument(<redacted>)"


@dataclass(frozen=True, kw_only=True)
class RequestDocument(Document):
    """A client asks for a certificate and shows that mpk is its own."""

    kind: ClassVar[str] = "certificate-request"
    nonce: bytes
    mpk: bytes
    d: bytes
    dt: int
    proof: bytes

    @classmethod
    def of(cls, request: CertificateRequest, nonce: bytes) -> Self:
        """Write down a request."""
        return cls(
            nonce=nonce,
            mpk=request.mpk.to_bytes(),
            d=request.d.to_bytes(),
            dt=request.dt.number,
            proof=request.ownership.to_bytes(),
        )

    def request(self) -> CertificateRequest:
        """Read the request. Raises ``MalformedDocument``."""
        return CertificateRequest(
            mpk=_parse("mpk", MasterPublicKey.from_bytes, self.mpk),
            d=_parse("d", DatasetDigest.from_bytes, self.d),
            dt=dataset_type(self.dt),
            ownership=_parse("proof", OwnershipProof.from_bytes, self.proof),
        )


@dataclass(frozen=True, kw_only=True)
class ShowingDocument(Document):
    """A client that was invited says what it is about to show, before it sends a byte of it."""

    kind: ClassVar[str] = "certificate-showing"
    token: bytes
    """Of its invitation."""
    request: bytes
    """The bytes of a request document."""
    ending: str
    length: int
    """Of the file, in bytes."""

    @classmethod
    def of(cls, invitation: InvitationDocument, request: RequestDocument, data: Path) -> Self:
        """Announce a file. Raises ``InvalidInput``."""
        ending = data.suffix.lower()
        if ending not in ENDINGS:
            raise InvalidInput(f"'{data.name}' must end in {', '.join(ENDINGS)}.")
        try:
            length = data.stat().st_size
        except OSError as error:
            raise InvalidInput(f"{data} cannot be read: {error.strerror or error}.") from None
        return cls(token=invitation.token, request=request.to_bytes(), ending=ending, length=length)

    def __repr__(self) -> str:
        return "ShowingDocument(<redacted>)"


@dataclass(frozen=True, kw_only=True)
class PermitDocument(Document):
    """A certifier's leave to show the data of one request. The ticket is a secret, and soon worthless."""

    kind: ClassVar[str] = "certificate-permit"
    ticket: bytes

    def __repr__(self) -> str:
        return "PermitDocument(<redacted>)"


@dataclass(frozen=True, kw_only=True)
class CertificateDocument(Document):
    """A certificate over (d, mpk, dt). Whoever has it knows whose data d is: it is for its client alone."""

    kind: ClassVar[str] = "certificate"
    genesis: GenesisHash
    certifier: bytes
    d: bytes
    mpk: bytes
    dt: int
    certificate: bytes

    @classmethod
    def of(
        cls, genesis: GenesisHash, certifier: CertifierKey, request: CertificateRequest, signed: Certificate
    ) -> Self:
        """Write down what was signed for a request."""
        return cls(
            genesis=genesis,
            certifier=certifier.to_bytes(),
            d=request.d.to_bytes(),
            mpk=request.mpk.to_bytes(),
            dt=request.dt.number,
            certificate=signed.to_secret_bytes(),
        )

    def verify(self) -> tuple[CertifierKey, Certificate]:
        """Check the signature. Raises ``MalformedDocument``, ``InvalidSignature``."""
        key = _parse("certifier", CertifierKey.from_bytes, self.certifier)
        certificate = _parse("certificate", Certificate.from_bytes, self.certificate)
        mpk = _parse("mpk", MasterPublicKey.from_bytes, self.mpk)
        d = _parse("d", DatasetDigest.from_bytes, self.d)
        key.verify(d, mpk, dataset_type(self.dt), certificate)
        return key, certificate

    def __repr__(self) -> str:
        return "CertificateDocument(<redacted>)"


def dataset_type(number: int) -> DatasetType:
    """Make a dataset type. Raises ``MalformedDocument``."""
    if not 0 <= number < 2**32:
        raise MalformedDocument(f"A dataset type lies between 0 and {2**32 - 1}, not at {number}.")
    return DatasetType(number)


def _parse(name: str, read: Callable[[bytes], _T], data: bytes) -> _T:
    try:
        return read(data)
    except InvalidInput:
        raise
    except ValueError as error:
        raise MalformedDocument(f"'{name}' cannot be used: {error}.") from None
