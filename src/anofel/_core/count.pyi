from collections.abc import Sequence
from typing import final

@final
class Bundle:
    def __new__(
        cls,
        *,
        genesis: bytes,
        scope: bytes,
        nullifier: bytes,
        tag: bytes,
        pk_sig: bytes,
        type_commitment: bytes,
        committees: Sequence[tuple[bytes, bytes, Sequence[int] | None]],
    ) -> Bundle: ...
    @property
    def ballot_bytes(self) -> int: ...
    def vote(self, target: int | None, dataset_type: int, blinding: bytes) -> tuple[bytes, list[CastBit]]: ...
    def verify(self, ballot: bytes) -> None: ...

@final
class CastBit:
    @property
    def ciphertext(self) -> bytes: ...

def refused_ballots(ballots: Sequence[tuple[Bundle, bytes]]) -> list[tuple[int, str]]: ...
def add_bits(ciphertexts: bytes) -> bytes: ...
def count_share(tally: bytes, member: int, secret: bytes, context: bytes) -> bytes: ...

@final
class VerifiedCountShare: ...

def verify_count_share(
    tally: bytes, member: int, verification_share: bytes, context: bytes, share: bytes
) -> VerifiedCountShare: ...
def combine_count(tally: bytes, shares: Sequence[VerifiedCountShare], largest: int) -> int: ...
