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
) -> NextModel: ...
