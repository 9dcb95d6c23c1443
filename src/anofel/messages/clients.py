"""Postings of clients (steps 1.b and 5). Their author is the key of the one posting."""

from dataclasses import dataclass

from anofel.ids import Nullifier
from anofel.messages.blobs import Blob
from anofel.messages.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(View):
    """A client registers a commitment to its certified dataset (step 1.b)."""

    certifier_root: bytes
    commitment: bytes
    nullifier: bytes
    epoch: int
    tag: bytes
    proof: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedPart(View):
    """What a client sends to one committee of its bundle."""

    envelope: bytes
    payload: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(View):
    """A client submits to every committee of its bundle (step 5)."""

    bundle: int
    iteration: int
    nullifier: Nullifier
    tag: bytes
    type_commitment: bytes
    proof: bytes
    ballot: bytes
    contributions: tuple[SubmittedPart, ...]
