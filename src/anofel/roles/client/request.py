"""Step 1.b, first half, at the client: asks its certifier for a certificate, by files or by HTTP."""

from pathlib import Path

from anofel.errors import InvalidInput
from anofel.learning.certified import dataset_digest
from anofel.network.transport import Transport
from anofel.phase1_setup.step1b_certification import request_certificate
from anofel.primitives import CertifierKey
from anofel.roles.certificate_files import (
    CertificateDocument,
    InvitationDocument,
    NonceDocument,
    PermitDocument,
    RequestDocument,
    ShowingDocument,
)
from anofel.roles.client.files import ClientSettings, accept_certificate, load_data, master_secret, own_keys
from anofel.roles.directory import RoleDirectory


def make_request(directory: RoleDirectory, nonce: NonceDocument) -> RequestDocument:
    """Answer a certifier's nonce with a request for this client's data. Raises ``InvalidInput``."""
    settings = ClientSettings.of(directory.config)
    keys = own_keys(directory.path, settings)
    if nonce.genesis != directory.config.genesis_hash:
        raise InvalidInput("The nonce was drawn for another board.")
    if nonce.dt != settings.dataset_type.number:
        raise InvalidInput(f"The nonce was drawn for dataset type {nonce.dt}, not for this client's.")
    if keys.verification["ownership"].key_id != nonce.ownership_key:
        raise InvalidInput(f"The ownership key in {keys.path} is not the certifier's.")
    request = request_certificate(
        master_secret(directory.secrets),
        dataset_digest(load_data(directory.path, settings)),
        settings.dataset_type,
        certifier=CertifierKey.from_bytes(nonce.certifier),
        nonce=nonce.nonce,
        prover=keys.ownership_prover(threads=1),
    )
    return RequestDocument.of(request, nonce.nonce)


def request_by_http(
    directory: RoleDirectory, certifier: Transport, invitation: InvitationDocument
) -> CertificateDocument:
    """Ask a certifier that invited this client, show it the data, and keep the certificate.

    This connection is not anonymous: the certifier knows its clients. Raises ``Refused``, ``InvalidInput``.
    """
    settings = ClientSettings.of(directory.config)
    nonce = NonceDocument.from_bytes(certifier.post("/v1/nonces", invitation.to_bytes()))
    if nonce.certifier != invitation.certifier:
        raise InvalidInput("The certifier that answers is not the one that invited.")
    document = make_request(directory, nonce)
    showing = ShowingDocument.of(invitation, document, settings.data)
    permit = PermitDocument.from_bytes(certifier.post("/v1/requests", showing.to_bytes()))
    certificate = certifier.ask(
        "PUT",
        f"/v1/data/{permit.ticket.hex()}",
        CertificateDocument.from_bytes,
        body=settings.data,
        codes=None,
    )
    if certificate.certifier != invitation.certifier:
        raise InvalidInput("The certificate is by another certifier than the one that invited.")
    accept_certificate(directory, settings, certificate)
    return certificate


def accept_file(directory: RoleDirectory, path: Path) -> CertificateDocument:
    """Keep the certificate in a file, once it is checked."""
    document = CertificateDocument.read(path)
    accept_certificate(directory, ClientSettings.of(directory.config), document)
    return document
