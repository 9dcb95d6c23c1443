from typing import final

@final
class NextModel:
    @property
    def values(self) -> bytes: ...
    @property
    def velocity(self) -> bytes: ...

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
def mean_is_too_long(total: bytes, *, count: int, max_mean: int) -> bool: ...
