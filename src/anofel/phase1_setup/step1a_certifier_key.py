"""Step 1.a — a certifier offers its key (AnoFel §4.3.1).

The posting is signed with the certifier's X.509 key and shows that the certifier knows the secret
of the key it offers, so that nobody offers a key that others could sign with. The proof is for one board
and one certified key: on another board, or by another certifier, it shows nothing.
"""

from anofel.ids import GenesisHash
from anofel.messages import CertifierKeyOffer, RevokeCertifier
from anofel.pki.certificates import Identity
from anofel.primitives import CertifierKey, CertifierSecret


def offer_key(secret: CertifierSecret, *, holder: Identity, genesis: GenesisHash) -> CertifierKeyOffer:
    """Offer a certifier's key to a board."""
    possession = secret.prove_possession(genesis, holder.subject)
    return CertifierKeyOffer(key=secret.public_key().to_bytes(), possession=possession.to_bytes())


def revoke_key(key: CertifierKey, *, new_epoch: bool = False) -> RevokeCertifier:
    """Revoke a certifier's key; an operator may make everybody register again (a new epoch)."""
    return RevokeCertifier(key=key.to_bytes(), new_epoch=new_epoch)
