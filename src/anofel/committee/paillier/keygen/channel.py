"""Private parts between two members, sealed so that either of them can open them to everybody.

Each member posts one fresh X25519 key per other member and run. The key of a sealed part comes
from both keys of the pair, the run, the round and the direction, so sealing is a function of the
seed and a run can be replayed. Who publishes its secret key of a pair opens what that pair sent in
this run, and nothing else.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from anofel.committee.paillier.randomness import SeededRandomness
from anofel.committee.paillier.wire import Malformed

KEY_BYTES = 32
NONCE = bytes(12)
"""Constant: every key seals one message."""


def channel_secret(seed: bytes, other: int) -> bytes:
    """Return a member's secret key for what it exchanges with ``other``."""
    return SeededRandomness(seed, f"channel/{other}").bits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "big")


def channel_public(secret: bytes) -> bytes:
    """Return the public key of a channel secret."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def seal(secret: bytes, peer: bytes, where: bytes, data: bytes) -> bytes:
    """Seal a private part; ``where`` names run, round and direction."""
    return ChaCha20Poly1305(_key(secret, peer, where)).encrypt(NONCE, data, None)


def unseal(secret: bytes, peer: bytes, where: bytes, data: bytes) -> bytes:
    """Open a sealed part. Raises ``Malformed``."""
    try:
        return ChaCha20Poly1305(_key(secret, peer, where)).decrypt(NONCE, data, None)
    except InvalidTag:
        raise Malformed("The sealed part does not open.") from None


def _key(secret: bytes, peer: bytes, where: bytes) -> bytes:
    try:
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:
        raise Malformed("The channel key is a point of small order.") from None
    return HKDF(SHA256(), 32, None, b"anofel/v1/paillier/channel" + where).derive(shared)
