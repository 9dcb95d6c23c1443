from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from anofel._core.committee import Keys, Refusal, Secrets
from anofel._core.count import CastBit

_Buffer = bytes | bytearray | memoryview

@final
class Codec:
    def __new__(
        cls,
        length: int,
        bound: int,
        max_posts: int,
        proven: tuple[int, int, Sequence[tuple[int, int, int]]] | None,
    ) -> Codec: ...
    @property
    def wire_bits(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...

@final
class Post:
    def __new__(
        cls,
        *,
        genesis: bytes,
        task: bytes,
        iteration: int,
        key_id: bytes,
        position: int,
        scope: bytes,
        nullifier: bytes,
        tag: bytes,
        pk_sig: bytes,
    ) -> Post: ...

@final
class MaskContext:
    def __new__(cls, *, genesis: bytes, task: bytes, iteration: int, key_id: bytes) -> MaskContext: ...

@final
class PreparedMask:
    def __new__(cls, codec: Codec, post: Post, keys: Keys, bit: CastBit | None) -> PreparedMask: ...
    @property
    def envelope(self) -> bytes: ...
    def seal(self, values: NDArray[np.int64]) -> bytes: ...

def verify_envelope(post: Post, envelope: bytes) -> None: ...
def refused_envelopes(envelopes: Sequence[tuple[Post, bytes]]) -> dict[int, Refusal]: ...

@final
class Checked: ...

@final
class SubmittedContribution:
    def __new__(cls, *, post: Post, envelope: bytes, bit: bytes, payload: bytes) -> SubmittedContribution: ...

def check_payloads(
    codec: Codec, keys: Keys, submitted: Sequence[SubmittedContribution]
) -> list[Checked | Refusal]: ...

@final
class RunningSum:
    def __new__(cls, codec: Codec) -> RunningSum: ...
    def add(self, contribution: Checked) -> None: ...
    def finish(self) -> Sum: ...

@final
class Sum:
    @staticmethod
    def read(codec: Codec, data: _Buffer) -> Sum: ...
    @property
    def num_posts(self) -> int: ...
    def to_bytes(self) -> bytes: ...

def partial_decrypt(keys: Keys, secrets: Secrets, total: Sum, context: bytes) -> bytes: ...

@final
class CheckedSumShare: ...

def verify_share(keys: Keys, total: Sum, context: bytes, member: int, share: bytes) -> CheckedSumShare: ...
def combine(keys: Keys, total: Sum, iteration: MaskContext, shares: Sequence[CheckedSumShare]) -> bytes: ...
