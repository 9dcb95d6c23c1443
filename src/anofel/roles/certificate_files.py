"""What a certifier and a client hand each other, by file or by HTTP (step 1.b; ``docs/certifier.md``).

Every document is one canonical JSON object: sorted keys, no spaces, bytes as lower-case hexadecimal.
Bytes that are not exactly that are refused, so a document has one digest.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from anofel.errors import InvalidInput
from anofel.files import read_small_file
from anofel.phase1_setup.certification import CertificateRequest
from anofel.primitives import (
    Certificate,
    CertifierKey,
    DatasetDigest,
    DatasetType,
    MasterPublicKey,
)
from anofel.proofs import OwnershipProof
from anofel.sections import canonical_json

MAX_BYTES = 1 << 16
MAX_DATA_BYTES = 1 << 30
_ENDINGS = (".csv", ".parquet", ".npz")
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
        try:
            values = json.loads(data)
            if not isinstance(values, dict) or values.get("anofel") != cls.kind or values.get("version") != 1:
                raise MalformedDocument(f"This is not a document of the kind '{cls.kind}', version 1.")
            hints = get_type_hints(cls)
            made = cls(**{field.name: _value(values, field.name, hints[field.name]) for field in fields(cls)})
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise MalformedDocument("This is not a JSON document.") from None
        if made.to_bytes() != data:
            raise MalformedDocument(f"The {cls.kind} is not in its canonical encoding.")
        return made

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file, which may end with one line break. Raises ``InvalidInput``."""
        return cls.from_bytes(read_small_file(path, MAX_BYTES).removesuffix(b"\n"))


def _value(values: dict[str, Any], name: str, kind: type) -> object:
    value = values.get(name)
    try:
        if kind is bytes and isinstance(value, str):
            return bytes.fromhex(value)
    except ValueError:
        value = None
    if kind is bytes or isinstance(value, bool) or not isinstance(value, kind):
        raise MalformedDocument(f"'{name}' is missing or is not what it should be.")
    return value


@dataclass(frozen=True, kw_only=True)
class NonceDocument(Document):
    """A certifier's answer to somebody whom it knows: the nonce of one request."""

    kind: ClassVar[str] = "certificate-nonce"
    genesis: bytes
    certifier: bytes
    ownership_key: bytes
    """SHA-256 of the verification key that the ownership proof is for."""
    dt: int
    nonce: bytes


@dataclass(frozen=True, kw_only=True)
class InvitationDocument(Document):
    """What a certifier gives to somebody whom it knows, to ask by HTTP. The token is a secret."""

    kind: ClassVar[str] = "certificate-invitation"
    genesis: bytes
    certifier: bytes
    dt: int
    token: bytes

    def __repr__(self) -> str:
        return "InvitationDocument(<redacted>)"


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
class CertificateDocument(Document):
    """A certificate over (d, mpk, dt). Whoever has it knows whose data d is: it is for its client alone."""

    kind: ClassVar[str] = "certificate"
    genesis: bytes
    certifier: bytes
    d: bytes
    mpk: bytes
    dt: int
    certificate: bytes

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


# A request together with the data that it is about


def frame(document: RequestDocument, data: Path) -> bytes:
    """Put both into one body: u32 length (little-endian), request, u8 length, ending of the file, file.

    Raises ``InvalidInput``.
    """
    request, ending = document.to_bytes(), data.suffix.lower()
    if ending not in _ENDINGS:
        raise InvalidInput(f"'{data.name}' must end in {', '.join(_ENDINGS)}.")
    if data.stat().st_size > MAX_DATA_BYTES:
        raise InvalidInput(f"'{data.name}' is larger than {MAX_DATA_BYTES} bytes; use files instead.")
    head = len(request).to_bytes(4, "little") + request + bytes([len(ending)]) + ending.encode()
    return head + data.read_bytes()


def take_apart(body: Path) -> tuple[RequestDocument, Path]:
    """Read a body from a file, which the data replaces. Raises ``MalformedDocument``."""
    with body.open("rb") as file:
        size = int.from_bytes(file.read(4), "little")
        if size > MAX_BYTES:
            raise MalformedDocument("The request in the body is too long.")
        document = RequestDocument.from_bytes(file.read(size))
        ending = file.read(int.from_bytes(file.read(1), "little")).decode("ascii", "replace")
        if ending not in _ENDINGS:
            raise MalformedDocument(f"The data must end in {', '.join(_ENDINGS)}.")
        data = body.with_name(f"data{ending}")
        with data.open("wb") as copy:
            while chunk := file.read(1 << 20):
                copy.write(chunk)
    body.unlink()
    return document, data
