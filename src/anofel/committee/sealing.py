"""Private parts of public messages: sealed to a one-time key that its owner can open publicly.

In the first round of a run every receiver posts a fresh X25519 key, signed (by the transport)
with its certified key. Private parts are HPKE ciphertexts to it (RFC 9180: X25519, HKDF-SHA256,
ChaCha20-Poly1305), bound to the run, the dealer and the receiver. A receiver who got a bad part
posts the one-time *private* key: everybody then opens the same ciphertext and sees who is wrong.
That ends the run without a key.

What an opened key reveals must be worthless. In key generation it is: all secrets of a failed run
are thrown away, and a receiver has one key for all dealers. In a handover the secret outlives
a failed run, so a receiver has one key *for each dealer* and opens only the part of the accused.
"""

from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from anofel.committee.kept import Kept

KEY_LENGTH = 32
OVERHEAD = 32 + 16
"""Encapsulated key and authentication tag."""

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class CannotOpen(Exception):
    """A sealed part does not open with the receiver's key."""


class SealingKey(Kept):
    """A receiver's one-time private key (kept, or opened to complain)."""

    def __init__(self, key: X25519PrivateKey) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "SealingKey(<redacted>)"

    @classmethod
    def generate(cls) -> "SealingKey":
        """Draw a fresh key."""
        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, data: bytes) -> "SealingKey":
        """Read the 32 secret bytes."""
        return cls(X25519PrivateKey.from_private_bytes(data))

    def to_bytes(self) -> bytes:
        """Return the 32 secret bytes."""
        return self._key.private_bytes_raw()

    def public(self) -> bytes:
        """Return the public key."""
        return self._key.public_key().public_bytes_raw()

    def open(self, sealed: bytes, binding: bytes) -> bytes:
        """Open a sealed part. Raises ``CannotOpen``."""
        try:
            return _SUITE.decrypt(sealed, self._key, info=binding)
        except (InvalidTag, ValueError):
            raise CannotOpen from None


def seal(public: bytes, plaintext: bytes, binding: bytes) -> bytes:
    """Seal a private part to a receiver's one-time key."""
    return _SUITE.encrypt(plaintext, X25519PublicKey.from_public_bytes(public), info=binding)


def binding(run_digest: bytes, dealer: int, receiver: int) -> bytes:
    """Name the run, the dealer and the receiver of a sealed part."""
    parties = dealer.to_bytes(2, "little") + receiver.to_bytes(2, "little")
    return b"anofel/1/committee/sealed" + run_digest + parties


def check_public(public: bytes) -> None:
    """Refuse a key to which nothing can be sealed (wrong length, low order). Raises ``CannotOpen``."""
    try:
        seal(public, b"", b"")
    except ValueError:
        raise CannotOpen from None


class DealerKeys(Kept):
    """A receiver's one-time private keys in a handover, one per dealer (kept)."""

    def __init__(self, dealers: Sequence[int], keys: Sequence[SealingKey]) -> None:
        self._keys = dict(zip(dealers, keys, strict=True))

    def __repr__(self) -> str:
        return "DealerKeys(<redacted>)"

    @classmethod
    def generate(cls, dealers: Sequence[int]) -> "DealerKeys":
        """Draw fresh keys."""
        return cls(dealers, [SealingKey.generate() for _ in dealers])

    @classmethod
    def from_bytes(cls, dealers: Sequence[int], data: bytes) -> "DealerKeys":
        """Read the secret bytes."""
        parts = (data[at : at + KEY_LENGTH] for at in range(0, len(data), KEY_LENGTH))
        return cls(dealers, [SealingKey.from_bytes(part) for part in parts])

    def to_bytes(self) -> bytes:
        """Return the secret bytes."""
        return b"".join(key.to_bytes() for key in self._keys.values())

    def public(self) -> bytes:
        """Return what is posted: the public keys in the dealers' order."""
        return b"".join(key.public() for key in self._keys.values())

    def for_dealer(self, dealer: int) -> SealingKey:
        """Return the key for one dealer's part; a complaint opens this one alone."""
        return self._keys[dealer]


def dealer_key(posted: bytes, dealers: Sequence[int], dealer: int) -> bytes:
    """Return a receiver's public key for one dealer, from what the receiver posted."""
    at = dealers.index(dealer) * KEY_LENGTH
    return posted[at : at + KEY_LENGTH]


def check_dealer_keys(posted: bytes, dealers: Sequence[int]) -> None:
    """Refuse what is not one usable key per dealer. Raises ``CannotOpen``."""
    if len(posted) != KEY_LENGTH * len(dealers):
        raise CannotOpen
    for dealer in dealers:
        check_public(dealer_key(posted, dealers, dealer))
