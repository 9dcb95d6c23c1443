"""Write vectors/messages/: one message of each kind, and malformed ones.

The layouts are read from the tables of docs/messages.md and encoded here in plain Python, so the
bytes depend on the page alone and not on the package. Points come from eddsa.json, which
circomlibjs made; Ed25519 keys and signatures come from `cryptography`.

Run: python vectors/messages.py
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROOT = Path(__file__).parent.parent
FIELD = 21888242871839275222246405745257275088548364400416034343698204186575808495617
ORDER = 2736030358979909402780800718157159386076813972158567259200215660948447373041
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
MESSAGE_KEY = SIGNER.public_key().public_bytes_raw()

Layouts = dict[str, list[tuple[str, str]]]


def sha256(*parts: bytes) -> bytes:
    """Hash the parts one after the other."""
    return hashlib.sha256(b"".join(parts)).digest()


def read_page() -> tuple[Layouts, list[tuple[int, str, str]]]:
    """The layouts and the kinds, from the tables of the page."""
    page = (ROOT / "docs" / "messages.md").read_text()
    layouts = {}
    for section in page.split("\n### ")[1:]:
        rows = re.findall(r"^\| (\w+) \| (\S[^|]*?) \| ", section, re.M)
        layouts[section.split("\n")[0]] = [row for row in rows if row != ("field", "type")]
    kinds = re.findall(r"^\| (\d+) \| (\w+) \| (chain|key) \|$", page, re.M)
    return layouts, [(int(number), name, author) for number, name, author in kinds]


LAYOUTS, KINDS = read_page()


def inner(kind: str) -> tuple[str, list[str]]:
    """`list(u32, 64)` as `list` and its arguments."""
    name, _, rest = kind.partition("(")
    arguments = rest.removesuffix(")")
    return (name, arguments.rsplit(", ", 1)) if name == "list" else (name, [arguments])


def encode(kind: str, value: Any) -> bytes:
    """The bytes of a value, by the section `Types` of the page."""
    name, arguments = inner(kind)
    if name in SIZES:
        return value.to_bytes(SIZES[name], "little")
    if name == "flag":
        return bytes([value])
    if name in ("bytes", "text"):
        data = value.encode() if name == "text" else value
        return len(data).to_bytes(4, "little") + data
    if name == "list":
        return len(value).to_bytes(2, "little") + b"".join(encode(arguments[0], item) for item in value)
    if name == "option":
        return b"\0" if value is None else b"\1" + encode(arguments[0], value)
    if name in LAYOUTS:
        return b"".join(encode(t, v) for (_, t), v in zip(LAYOUTS[name], value, strict=True))
    return value


def point(xy: list[str]) -> bytes:
    """Two coordinates as 64 bytes."""
    return b"".join(int(c).to_bytes(32, "little") for c in xy)


SIGNATURES = json.loads((ROOT / "vectors" / "eddsa.json").read_text())


def draw(kind: str, place: str) -> Any:
    """A value of a type; the place makes it differ from others."""
    name, arguments = inner(kind)
    seed = sha256(place.encode())
    example = SIGNATURES[seed[0] % len(SIGNATURES)]
    if name in SIZES:
        return int.from_bytes(seed[: SIZES[name]], "little")
    if name == "list":
        count = min(int(arguments[1]), 1 + seed[0] % 3)
        return [draw(arguments[0], f"{place}[{index}]") for index in range(count)]
    if name == "option":
        return draw(arguments[0], place)
    if name in LAYOUTS:
        return [draw(t, f"{place}.{field}") for field, t in LAYOUTS[name]]
    return {
        "flag": bool(seed[0] % 2),
        "digest": seed,
        "field": (int.from_bytes(seed, "little") % FIELD).to_bytes(32, "little"),
        "certifier_key": point(example["A"]),
        "type_commitment": point(example["R8"]),
        "message_key": MESSAGE_KEY,
        "possession": point(example["R8"]) + int(example["S"]).to_bytes(32, "little"),
        "signature": seed * 2,
        "proof": seed * 4,
        "bytes": seed[: seed[1] % 32],
        "text": f"εxample {seed[0]}",
    }[name]


def plain(value: Any) -> Any:
    """A value as JSON: bytes in hexadecimal."""
    if isinstance(value, bytes):
        return value.hex()
    return [plain(item) for item in value] if isinstance(value, list) else value


GENESIS = draw("Genesis", "Genesis")
GENESIS_HASH = sha256(b"anofel/1/genesis", encode("Genesis", GENESIS))


def posting(number: int, name: str, author_kind: str) -> dict[str, Any]:
    """One good posting; those of clients are really signed."""
    body = draw(name, name)
    author = MESSAGE_KEY if author_kind == "key" else draw("list(bytes(4096), 4)", f"{name}.author")
    author_type = "message_key" if author_kind == "key" else "list(bytes(4096), 4)"
    content = bytes([1, number]) + encode(author_type, author) + encode(name, body)
    signed = b"anofel/1/posting" + GENESIS_HASH + content
    signature = SIGNER.sign(signed) if author_kind == "key" else draw("signature", name)
    vector = {
        "kind": number,
        "layout": name,
        "genesis": GENESIS_HASH.hex(),
        "author": plain(author),
        "body": plain(body),
        "signature": signature.hex(),
        "bytes": (content + signature).hex(),
        "signed_sha256": sha256(signed).hex(),
        "id": sha256(b"anofel/1/posting-id", content, signature).hex(),
    }
    if name == "ChangeValidators":
        vector["change_id"] = sha256(b"anofel/1/validator-change", GENESIS_HASH, encode(name, body)).hex()
    if name == "TaskAnnouncement":
        owner = bytes(range(32))
        vector["task_id_of_owner_0_to_31"] = sha256(
            b"anofel/1/task", GENESIS_HASH, owner, encode(name, body)
        ).hex()
    return vector


def record(name: str, values: Any = None) -> dict[str, Any]:
    """One good record that is not posted by itself."""
    values = draw(name, name) if values is None else values
    return {"layout": name, "body": plain(values), "bytes": encode(name, values).hex()}


def records() -> Iterator[dict[str, Any]]:
    """All records that are not bodies, with the hashes that belong to them."""
    bodies = {name for _, name, _ in KINDS}
    for name in LAYOUTS.keys() - bodies:
        vector = record(name, GENESIS if name == "Genesis" else None)
        data = bytes.fromhex(vector["bytes"])
        if name == "Genesis":
            vector["hash"] = GENESIS_HASH.hex()
        if name == "Header":
            header = sha256(b"anofel/1/header", GENESIS_HASH, data)
            vector |= {"genesis": GENESIS_HASH.hex(), "hash": header.hex()}
            vector["vote"] = (b"anofel/1/vote" + GENESIS_HASH + header).hex()
        if name == "Run":
            vector |= {
                "genesis": GENESIS_HASH.hex(),
                "run_id": sha256(b"anofel/1/run", GENESIS_HASH, data).hex(),
            }
        if name == "Blob":
            vector["genesis"] = GENESIS_HASH.hex()
            numbers = data[32:40] + (77).to_bytes(8, "little")
            vector["receipt_until_77"] = (b"anofel/1/receipt" + GENESIS_HASH + data[:32] + numbers).hex()
        yield vector


def changed(name: str, /, **fields: Any) -> bytes:
    """A record with some fields replaced by raw bytes."""
    values = zip(LAYOUTS[name], draw(name, name), strict=True)
    return b"".join(fields.get(field) or encode(t, v) for (field, t), v in values)


Malformed = Iterator[tuple[str, str | None, bytes, str]]
"""What is wrong, the layout (none for a posting), the bytes, and how the error begins."""


def wrong(layout: str, field: str, data: bytes, what: str, error: str) -> tuple[str, str, bytes, str]:
    """A record with one wrong field."""
    name, _, _ = field.partition("[")
    return what, layout, changed(layout, **{name: data}), f"{layout}.{field}: {error}"


def wrong_postings() -> Malformed:
    """Postings with a wrong frame."""
    end = bytes.fromhex(posting(13, "EndTask", "chain")["bytes"])
    after_author = end[-96:]
    certificate = (4097).to_bytes(4, "little") + bytes(4097)
    yield "a byte too many", None, end + b"\0", "EndTask: bytes left over: 1"
    yield "a byte too few", None, end[:-1], "EndTask.signature: too short"
    yield "no bytes", None, b"", "Posting.version: too short"
    yield "version 2", None, b"\2" + end[1:], "Posting.version: the version is 2"
    yield "kind 0", None, b"\1\0" + end[2:], "Posting.kind: there is no posting of kind 0"
    yield "kind 18", None, b"\1\x12" + end[2:], "Posting.kind: there is no posting of kind 18"
    chain = b"\1\x0d\5\0" + bytes(20) + after_author
    yield "five certificates", None, chain, "EndTask.author: too long: 5"
    chain = b"\1\x0d\1\0" + certificate + after_author
    yield "a certificate of 4097 bytes", None, chain, "EndTask.author[0]: too long: 4097"


def wrong_forms() -> Malformed:
    """Values that are not in their one form."""
    yield wrong("RevokeCertifier", "new_epoch", b"\2", "a flag of 2", "the flag is 2")
    yield wrong("DkgRound", "run", b"\2", "an option of 2", "the flag is 2")
    for name, number in {"r": FIELD, "r + 1": FIELD + 1, "2^256 - 1": 2**256 - 1}.items():
        data = number.to_bytes(32, "little")
        yield wrong("Registration", "tag", data, f"the field element {name}", "not canonical")
    r8, s = point(SIGNATURES[0]["R8"]), int(SIGNATURES[0]["S"]) + ORDER
    data = r8 + s.to_bytes(32, "little")
    yield wrong("CertifierKeyOffer", "possession", data, "a scalar S + l", "not canonical")
    for name, text in {"0xff": b"\xff", "a long form": b"\xc0\x80", "a surrogate": b"\xed\xa0\x80"}.items():
        data = encode("bytes", text)
        yield wrong("Genesis", "name", data, f"a text with {name}", "the text is not UTF-8")


def wrong_keys() -> Malformed:
    """Points and keys that are not in their one form."""
    x, y = (int(c) for c in SIGNATURES[0]["A"])
    points = {
        "x + r": ((x + FIELD, y), "not canonical: the {} is not canonical"),
        "y + r": ((x, y + FIELD), "not canonical: the {} is not canonical"),
        "off the curve": ((x + 1, y), "not canonical: the {} is not a point"),
        "of order 2": ((0, FIELD - 1), "not canonical: the {} is not in the prime-order subgroup"),
    }
    for name, (xy, error) in points.items():
        data = b"".join(c.to_bytes(32, "little") for c in xy)
        what, called = f"a certifier key: {name}", error.format("certifier key")
        yield wrong("RevokeCertifier", "key", data, what, called)
        what, called = f"a type commitment: {name}", error.format("dataset type commitment")
        yield wrong("Submission", "type_commitment", data, what, called)
    data = bytes(32) + (1).to_bytes(32, "little")
    error = "not canonical: the certifier key is the neutral element"
    yield wrong("RevokeCertifier", "key", data, "a certifier key: neutral", error)
    keys = {
        "of order 1": (1, "not canonical: the message key is not in the prime-order subgroup"),
        "y + p": (2**255 - 19 + 3, "not canonical: the message key is not canonical"),
        "no point": (2, "not canonical: the message key is not a point"),
    }
    for name, (number, error) in keys.items():
        data = number.to_bytes(32, "little")
        yield wrong("Validator", "key", data, f"a message key: {name}", error)


def wrong_lengths() -> Malformed:
    """Too many, too long, or more than there is."""
    yield "a record without bytes", "Vote", b"", "Vote.validator: too short: 1"
    data = encode("Vote", draw("Vote", "Vote"))
    yield "a record with a byte too many", "Vote", data + b"\0", "Vote: bytes left over: 1"
    receipts = encode("list(Receipt, 17)", [draw("Receipt", "Receipt")] * 17)
    yield wrong("Blob", "receipts", receipts, "17 receipts", "too long: 17")
    data = (16384).to_bytes(2, "little")
    yield wrong("Aggregate", "excluded", data, "a count without the items", "too short: 540672")
    first = (1).to_bytes(2, "little")
    data = first + encode("bytes", bytes(1025))
    yield wrong("CountShare", "shares[0]", data, "a share of 1025 bytes", "too long: 1025")
    data = first + (1024).to_bytes(4, "little")
    yield wrong("CountShare", "shares[0]", data, "a length without the bytes", "too short: 1024")
    data = encode("text", "n" * 65)
    yield wrong("Genesis", "name", data, "a name of 65 bytes", "too long: 65")


def write(folder: Path) -> None:
    """Write all files."""
    folder.mkdir(parents=True, exist_ok=True)
    for vector in [*(posting(*kind) for kind in KINDS), *records()]:
        text = json.dumps(vector, indent=1, ensure_ascii=False)
        (folder / f"{vector['layout']}.json").write_text(text + "\n")
    bad = [
        {"what": what, "layout": layout, "bytes": data.hex(), "error": error}
        for family in (wrong_postings, wrong_forms, wrong_keys, wrong_lengths)
        for what, layout, data, error in family()
    ]
    (folder / "malformed.json").write_text(json.dumps(bad, indent=1) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "vectors" / "messages")
