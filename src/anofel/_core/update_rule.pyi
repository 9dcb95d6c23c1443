from typing import final

@final
class NextModel:
    @property
    def values(self) -> bytes: ...
    @property
    def velocity(self) -> bytes: ...

@final
class NextAdaptive:
    @property
    def values(self) -> bytes: ...
    @property
    def first(self) -> bytes: ...
    @property
    def second(self) -> bytes: ...

def integer_adaptive(
    model: bytes,
    first: bytes,
    second: bytes,
    total: bytes,
    *,
    yogi: bool,
    momentum: int,
    second_momentum: int,
    floor: int,
    scale_bits: int,
    lr_num: int,
    lr_den: int,
    count: int,
    max_mean: int | None = None,
) -> NextAdaptive: ...
def integer_mean(
    model: bytes,
    velocity: bytes,
    total: bytes,
    *,
    momentum: int,
    lr_num: int,
    lr_den: int,
    count: int,
    max_mean: int | None = None,
) -> NextModel: ...
def fine_mean(total: bytes, *, numerator: int, divisor: int) -> bytes: ...
def mean_is_too_long(total: bytes, *, count: int, max_mean: int) -> bool: ...
