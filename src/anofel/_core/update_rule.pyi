def integer_mean(
    model: bytes,
    velocity: bytes,
    total: bytes,
    *,
    momentum: int,
    lr_num: int,
    lr_den: int,
    count: int,
) -> tuple[bytes, bytes]: ...
