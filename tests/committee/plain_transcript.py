"""Challenges with hashlib alone: labelled, length-framed fields under SHA-512."""

import hashlib

Fields = list[tuple[str, bytes]]


def digest(domain: str, fields: Fields) -> bytes:
    state = hashlib.sha512()
    for label, data in [("domain", domain.encode()), *fields]:
        state.update(bytes([len(label)]) + label.encode() + len(data).to_bytes(8, "little") + data)
    return state.digest()


def scalar(domain: str, fields: Fields) -> int:
    return int.from_bytes(digest(domain, fields), "little") % (
        2**252 + 27742317777372353535851937790883648493
    )


def challenge_128(domain: str, fields: Fields) -> int:
    return int.from_bytes(digest(domain, fields)[:16], "little")


def weight(domain: str, fields: Fields, index: int) -> int:
    seed = digest(domain, fields)
    return challenge_128(
        "anofel/1/committee/weight", [("seed", seed), ("index", index.to_bytes(8, "little"))]
    )
