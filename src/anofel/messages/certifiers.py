"""Postings of certifiers (step 1.a)."""

from dataclasses import dataclass

from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifierKeyOffer(View):
    """A certifier offers its signing key and shows that it knows the secret."""

    key: bytes
    possession: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeCertifier(View):
    """A certifier's key is taken back."""

    key: bytes
    new_epoch: bool
    """Whether every client must register again."""
