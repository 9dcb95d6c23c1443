"""Step 1.b, first half — a client obtains a certificate over its dataset (AnoFel §4.3.1).

1. The client shows its data and the digest d of it, and sends its master public key.
2. It shows that the key is its own by a proof that is good for this certifier, this nonce and this dataset
   only (D-04).
3. The certifier checks both and signs (d, mpk, dt).

The certifier knows the client and sees its data; it learns the master public key and nothing it
could recognise on the board.
"""

import secrets
from dataclasses import dataclass

from anofel.primitives import (
    Certificate,
    CertifierKey,
    CertifierSecret,
    DatasetDigest,
    DatasetType,
    MasterPublicKey,
    MasterSecret,
)
from anofel.proofs.statements import (
    OwnershipProof,
    OwnershipProver,
    OwnershipStatement,
    OwnershipVerifier,
    OwnershipWitness,
)

NONCE_BYTES = 32


@dataclass(frozen=True)
class CertificateRequest:
    """What a client sends to a certifier, beside the data that it shows."""

    mpk: MasterPublicKey
    d: DatasetDigest
    dt: DatasetType
    ownership: OwnershipProof


def fresh_nonce() -> bytes:
    """Draw the nonce that a certifier gives to one client for one request."""
    return secrets.token_bytes(NONCE_BYTES)


def request_certificate(
    msk: MasterSecret,
    d: DatasetDigest,
    dt: DatasetType,
    *,
    certifier: CertifierKey,
    nonce: bytes,
    prover: OwnershipProver,
) -> CertificateRequest:
    """Ask a certifier to sign (d, mpk, dt), and show that mpk is ours."""
    mpk = msk.public_key()  # (1)
    # (2)
    statement = OwnershipStatement(mpk=mpk, certifier=certifier, nonce=nonce, d=d)
    proof = prover.prove(statement, OwnershipWitness(msk=msk))
    return CertificateRequest(mpk=mpk, d=d, dt=dt, ownership=proof)


def verify_ownership(
    request: CertificateRequest, *, certifier: CertifierKey, nonce: bytes, verifier: OwnershipVerifier
) -> None:
    """Check that mpk is the client's own, for this certifier, nonce and dataset. Raises ``InvalidProof``."""
    statement = OwnershipStatement(mpk=request.mpk, certifier=certifier, nonce=nonce, d=request.d)
    verifier.verify(statement, request.ownership)


def issue_certificate(
    request: CertificateRequest, *, secret: CertifierSecret, nonce: bytes, verifier: OwnershipVerifier
) -> Certificate:
    """Check the ownership proof and sign (d, mpk, dt). Raises ``InvalidProof``.

    The caller MUST have compared d and dt with the data that the client shows, and MUST refuse a
    second mpk for the same d (D-02).
    """
    # (3)
    verify_ownership(request, certifier=secret.public_key(), nonce=nonce, verifier=verifier)
    return secret.certify(request.d, request.mpk, request.dt)


@dataclass(frozen=True, repr=False)
class Credential:
    """What a client keeps once it is certified: everything that its proofs are about."""

    msk: MasterSecret
    d: DatasetDigest
    dt: DatasetType
    certifier: CertifierKey
    certificate: Certificate

    def verify(self) -> None:
        """Check the certificate; raises ``InvalidSignature``."""
        self.certifier.verify(self.d, self.msk.public_key(), self.dt, self.certificate)

    def __repr__(self) -> str:
        return "Credential(<redacted>)"
