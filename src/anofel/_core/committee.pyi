from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Accumulator",
    "Checked",
    "Codec",
    "Keys",
    "Post",
    "Prepared",
    "Refusal",
    "Secrets",
    "Shape",
    "Sum",
    "check_dealt_shares",
    "combine",
    "dkg_check_package",
    "dkg_keys",
    "dkg_part1",
    "dkg_part2",
    "dkg_part3",
    "partial_decrypt",
    "reshare_deal",
    "reshare_keys",
    "reshare_receive",
    "verify_envelope",
    "verify_share",
]

_Buffer = bytes | bytearray | memoryview

class Refusal(ValueError): ...

@final
class Shape:
    def __new__(cls, num_keys: int, num_members: int, threshold: int) -> Shape: ...

@final
class Keys:
    @staticmethod
    def read(shape: Shape, data: bytes) -> Keys: ...
    def to_bytes(self) -> bytes: ...
    def public(self) -> bytes: ...
    def verification_share(self, member: int, key: int) -> bytes: ...

@final
class Secrets:
    @staticmethod
    def read(keys: Keys, member: int, data: bytes) -> Secrets: ...
    def check(self, keys: Keys) -> None: ...
    def to_secret_bytes(self) -> bytes: ...
    @property
    def member(self) -> int: ...

def dkg_part1(shape: Shape, member: int) -> tuple[bytes, bytes]: ...
def dkg_part2(
    shape: Shape, member: int, state: bytes, packages: Mapping[int, bytes]
) -> tuple[bytes, dict[int, bytes]]: ...
def dkg_part3(
    shape: Shape,
    member: int,
    state: bytes,
    packages: Mapping[int, bytes],
    shares: Mapping[int, bytes],
) -> tuple[Keys, Secrets]: ...
def dkg_check_package(shape: Shape, member: int, package: bytes) -> None: ...
def dkg_keys(shape: Shape, packages: Mapping[int, bytes]) -> Keys: ...
def check_dealt_shares(shape: Shape, package: bytes, member: int, shares: bytes) -> None: ...
def reshare_deal(
    old: Keys, secrets: Secrets, dealers: Sequence[int], num_members: int, threshold: int
) -> tuple[bytes, list[bytes]]: ...
def reshare_keys(old: Keys, num_members: int, threshold: int, dealings: Mapping[int, bytes]) -> Keys: ...
def reshare_receive(
    keys: Keys, member: int, dealings: Mapping[int, bytes], shares: Mapping[int, bytes]
) -> Secrets: ...

@final
class Codec:
    def __new__(cls, length: int, bound: int, max_posts: int) -> Codec: ...
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
class Prepared:
    def __new__(cls, codec: Codec, post: Post, keys: Keys) -> Prepared: ...
    @property
    def envelope(self) -> bytes: ...
    def seal(self, values: NDArray[np.int64]) -> bytes | None: ...

def verify_envelope(post: Post, envelope: bytes) -> None: ...

@final
class Checked:
    def __new__(cls, codec: Codec, envelope: bytes, payload: _Buffer) -> Checked: ...

@final
class Accumulator:
    def __new__(cls, codec: Codec) -> Accumulator: ...
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
def verify_share(keys: Keys, total: Sum, context: bytes, member: int, share: bytes) -> None: ...
def combine(keys: Keys, total: Sum, post: Post, context: bytes, shares: Mapping[int, bytes]) -> bytes: ...
