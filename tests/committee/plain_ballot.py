"""An independent verifier of ballots: plain integers on both curves, hashlib for the challenge."""

from dataclasses import dataclass

from tests.committee import plain_ristretto as group
from tests.committee import plain_transcript as transcript

# Baby Jubjub in the coordinates of ERC-2494.
FIELD = 21888242871839275222246405745257275088548364400416034343698204186575808495617
ORDER = 2736030358979909402780800718157159386076813972158567259200215660948447373041
A, D = 168700, 168696

Affine = tuple[int, int]


def jub_add(p: Affine, q: Affine) -> Affine:
    (x1, y1), (x2, y2) = p, q
    product = D * x1 * x2 * y1 * y2 % FIELD
    x = (x1 * y2 + y1 * x2) * pow(1 + product, -1, FIELD) % FIELD
    y = (y1 * y2 - A * x1 * x2) * pow(1 - product, -1, FIELD) % FIELD
    return x, y


def jub_multiply(scalar: int, point: Affine) -> Affine:
    result = (0, 1)
    for bit in bin(scalar % ORDER)[2:]:
        result = jub_add(result, result)
        if bit == "1":
            result = jub_add(result, point)
    return result


def jub_negate(point: Affine) -> Affine:
    return -point[0] % FIELD, point[1]


def jub_encode(point: Affine) -> bytes:
    return b"".join(coordinate.to_bytes(32, "little") for coordinate in point)


@dataclass
class Line:
    key_id: bytes
    key: bytes
    types: tuple[int, ...] | None


@dataclass
class Statement:
    genesis: bytes
    scope: bytes
    nullifier: bytes
    tag: bytes
    pk_sig: bytes
    type_commitment: Affine
    lines: list[Line]
    g: Affine
    h: Affine


def verify(statement: Statement, ballot: bytes) -> bool:
    """Recompute every first message and the challenge; every OR must add up to it."""
    size = len(statement.lines)
    bits = [(ballot[64 * j : 64 * j + 32], ballot[64 * j + 32 : 64 * j + 64]) for j in range(size)]
    fields = [
        ("genesis", statement.genesis),
        ("scope", statement.scope),
        ("nullifier", statement.nullifier),
        ("tag", statement.tag),
        ("pk_sig", statement.pk_sig),
        ("dataset type commitment", jub_encode(statement.type_commitment)),
    ]
    for line in statement.lines:
        types = b"".join(t.to_bytes(4, "little") for t in line.types or ())
        fields += [("committee key", line.key_id), ("count key", line.key), ("accepted types", types)]
    fields += [("encrypted bit", u + v) for u, v in bits]
    reader = Reader(ballot[64 * size :])
    sums = []
    for j, line in enumerate(statement.lines):
        claims: list[tuple[int, int | None]] = [(0, None)]
        claims += [(1, None)] if line.types is None else [(1, t) for t in line.types]
        sums.append(branches(statement, bits, [j], claims, reader, fields))
    sums.append(branches(statement, bits, list(range(size)), [(0, None), (1, None)], reader, fields))
    assert not reader.rest
    total = transcript.challenge_128("anofel/1/committee/count", fields)
    return all(value == total for value in sums)


class Reader:
    def __init__(self, rest: bytes) -> None:
        self.rest = rest

    def take(self, length: int) -> int:
        taken, self.rest = self.rest[:length], self.rest[length:]
        return int.from_bytes(taken, "little")


def branches(
    statement: Statement,
    bits: list[tuple[bytes, bytes]],
    positions: list[int],
    claims: list[tuple[int, int | None]],
    reader: Reader,
    fields: list[tuple[str, bytes]],
) -> int:
    total = 0
    for one, dataset_type in claims:
        challenge = reader.take(16)
        responses = [reader.take(32) for _ in positions]
        message = b""
        keys, values = group.NEUTRAL, group.NEUTRAL
        for j, z in zip(positions, responses, strict=True):
            u, v = (group.decode(part) for part in bits[j])
            first = group.add(group.multiply(z, group.BASE), group.multiply(-challenge, u))
            message += group.encode(first)
            keys = group.add(keys, group.multiply(z, group.decode(statement.lines[j].key)))
            values = group.add(values, v)
        if one:
            values = group.add(values, group.negate(group.BASE))
        message += group.encode(group.add(keys, group.multiply(-challenge, values)))
        if dataset_type is not None:
            zeta = reader.take(32)
            shift = jub_negate(jub_multiply(dataset_type, statement.g))
            shifted = jub_add(statement.type_commitment, shift)
            on_h = jub_multiply(zeta, statement.h)
            message += jub_encode(jub_add(on_h, jub_negate(jub_multiply(challenge, shifted))))
        fields.append(("first messages", message))
        total = (total + challenge) % 2**128
    return total
