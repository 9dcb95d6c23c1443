"""Values at the border between Python and the core: bytes, canonicity, secrecy, trees."""

import hashlib
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anofel import primitives
from anofel.errors import InvalidInput, InvalidSignature
from anofel.primitives import (
    Certificate,
    CertifierKey,
    CertifierSecret,
    CertifierTree,
    ClientFrontier,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    Epoch,
    MasterSecret,
    MessageKey,
    MessageSecret,
    NameSet,
    Possession,
    Salt,
    Scope,
    TypeBlinding,
    TypeCommitment,
)

R = 21888242871839275222246405745257275088548364400416034343698204186575808495617
ORDER = 2736030358979909402780800718157159386076813972158567259200215660948447373041
FIELD_VALUES = [
    primitives.MasterPublicKey,
    primitives.DatasetDigest,
    primitives.Commitment,
    primitives.MessageKeyHash,
    primitives.Tag,
    primitives.Epoch,
    primitives.Scope,
    primitives.RegistrationNullifier,
    primitives.IterationNullifier,
    primitives.Root,
    primitives.MasterSecret,
    primitives.Salt,
]
SECRETS = [MasterSecret, Salt, TypeBlinding, MessageSecret, CertifierSecret]


def field_bytes(number: int) -> bytes:
    return number.to_bytes(32, "little")


@pytest.mark.parametrize("kind", FIELD_VALUES)
def test_a_field_value_reads_canonical_bytes_only(kind: type) -> None:
    largest = field_bytes(R - 1)
    value = kind.from_bytes(largest)
    restored = value.to_bytes() if hasattr(value, "to_bytes") else value.to_secret_bytes()
    assert restored == largest
    for bad in (field_bytes(R), field_bytes(R + 1), b"\xff" * 32):
        with pytest.raises(InvalidInput, match="not canonical"):
            kind.from_bytes(bad)
    for bad in (b"", bytes(31), bytes(33)):
        with pytest.raises(InvalidInput, match="bytes instead of 32"):
            kind.from_bytes(bad)


@pytest.mark.parametrize("kind", FIELD_VALUES)
@pytest.mark.parametrize("bad", [5, -1, "5", None, 1.0, [1, 2]])
def test_a_field_value_is_made_from_bytes_alone(kind: type, bad: object) -> None:
    with pytest.raises(TypeError):
        kind.from_bytes(bad)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_not_shown_and_not_pickled(kind: type) -> None:
    secret = kind.generate()
    data = secret.to_secret_bytes()
    assert repr(secret) == str(secret) == f"{kind.__name__}(<redacted>)"
    assert data.hex() not in repr(secret)
    assert kind.from_bytes(data).to_secret_bytes() == data
    assert kind.generate().to_secret_bytes() != data
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_public_values_compare_by_value_and_hash() -> None:
    msk = MasterSecret.generate()
    assert msk.public_key() == msk.public_key()
    assert len({msk.public_key(), msk.public_key(), MasterSecret.generate().public_key()}) == 2
    assert msk.public_key() != b"something else"


@pytest.mark.parametrize("number", [-1, 2**32, "7", 1.5, None])
def test_a_dataset_type_is_a_number_below_2_to_the_32(number: object) -> None:
    assert DatasetType(2**32 - 1).number == 2**32 - 1
    with pytest.raises(InvalidInput, match="from 0 to 4294967295"):
        DatasetType(number)  # type: ignore[arg-type]


def hash_to_field(prefix: str, *parts: bytes) -> bytes:
    """What docs/primitives.md says, in another language."""
    data = bytes([len(prefix)]) + prefix.encode() + b"".join(parts)
    return field_bytes(int.from_bytes(hashlib.sha512(data).digest(), "little") % R)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_a_dataset_digest_is_the_documented_hash_in_any_chunks(data: bytes, cut: int) -> None:
    expected = hash_to_field("anofel/1/dataset", data)
    assert DatasetDigest.of_chunks([data]).to_bytes() == expected
    assert DatasetDigest.of_chunks([data[:cut], data[cut:]]).to_bytes() == expected


@given(st.binary(min_size=32, max_size=32), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_epoch_scope_and_message_key_hash_are_the_documented_hashes(genesis: bytes, x: int, y: int) -> None:
    numbers = [n.to_bytes(8, "little") for n in (x, y)]
    assert Epoch(genesis, x).to_bytes() == hash_to_field("anofel/1/epoch", genesis, numbers[0])
    assert Scope(genesis, x, y).to_bytes() == hash_to_field("anofel/1/scope", genesis, *numbers)
    key = MessageSecret.from_bytes(genesis).public_key()
    assert key.hash().to_bytes() == hash_to_field("anofel/1/message-key", key.to_bytes())


def test_the_generators_of_the_type_commitment_come_from_the_documented_hash() -> None:
    """dt·G + ρ·H with one of both at zero shows H; the point is recomputed here from its name."""
    a, d = 168700, 168696
    point = None
    for counter in range(256):
        y = int.from_bytes(hash_to_field("anofel/1/generator", b"H", bytes([counter])), "little")
        x2 = (1 - y * y) * pow(a - d * y * y, -1, R) % R
        if pow(x2, (R - 1) // 2, R) == 1:
            x = square_root(x2)
            point = (x if x % 2 == 0 else R - x, y)
            break
    assert point is not None
    for _ in range(3):
        point = add(point, point)
    one = TypeBlinding.from_bytes(field_bytes(1))
    committed = TypeCommitment(DatasetType(0), one).to_bytes()
    assert committed == field_bytes(point[0]) + field_bytes(point[1])


def add(p: tuple[int, int], q: tuple[int, int]) -> tuple[int, int]:
    """Twisted Edwards addition on Baby Jubjub."""
    a, d = 168700, 168696
    t = d * p[0] * q[0] * p[1] * q[1]
    x = (p[0] * q[1] + p[1] * q[0]) * pow(1 + t, -1, R) % R
    y = (p[1] * q[1] - a * p[0] * q[0]) * pow(1 - t, -1, R) % R
    return x, y


def square_root(n: int) -> int:
    """Tonelli and Shanks; r − 1 is divisible by 2^28."""
    s, q = 28, (R - 1) >> 28
    z = next(z for z in range(2, 50) if pow(z, (R - 1) // 2, R) == R - 1)
    m, c, t, root = s, pow(z, q, R), pow(n, q, R), pow(n, (q + 1) // 2, R)
    while t != 1:
        i = next(i for i in range(1, m) if pow(t, 2**i, R) == 1)
        b = pow(c, 2 ** (m - i - 1), R)
        m, c, t, root = i, b * b % R, t * b * b % R, root * b % R
    return root


def test_signatures_of_circomlibjs_parse_and_s_plus_the_order_does_not() -> None:
    vectors = json.loads((Path(__file__).parent.parent / "vectors" / "eddsa.json").read_text())
    for vector in vectors:
        point = b"".join(field_bytes(int(c)) for c in vector["R8"])
        CertifierKey.from_bytes(b"".join(field_bytes(int(c)) for c in vector["A"]))
        Certificate.from_bytes(point + field_bytes(int(vector["S"])))
        with pytest.raises(InvalidInput, match="not canonical"):
            Certificate.from_bytes(point + field_bytes(int(vector["S"]) + ORDER))


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ((0, 1), "neutral element"),
        ((0, R - 1), "not in the prime-order subgroup"),
        ((1, 1), "not a point of the curve"),
    ],
)
def test_a_certifier_key_of_low_order_or_off_the_curve_is_refused(
    point: tuple[int, int], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        CertifierKey.from_bytes(field_bytes(point[0]) + field_bytes(point[1]))


def test_a_message_signature_covers_every_byte() -> None:
    secret = MessageSecret.generate()
    key, signature = secret.public_key(), secret.sign(b"posting")
    assert MessageKey.from_bytes(key.to_bytes()) == key
    key.verify(b"posting", signature)
    for message, bad in ((b"postinG", signature), (b"posting", bytes([signature[0] ^ 1]) + signature[1:])):
        with pytest.raises(InvalidSignature):
            key.verify(message, bad)
    with pytest.raises(InvalidInput, match="bytes instead of 64"):
        key.verify(b"posting", signature[:-1])


def test_a_tree_grows_persists_and_gives_paths() -> None:
    d, dt = DatasetDigest.of_chunks([b"x"]), DatasetType(0)
    leaves = [Commitment(d, MasterSecret.generate(), dt, Salt.generate()) for _ in range(20)]
    tree = ClientTree()
    empty = tree.root()
    tree.append(leaves[:9])
    boundary = tree.root()
    frontier = ClientFrontier.from_bytes(tree.frontier().to_bytes())
    tree.append(leaves[9:])
    frontier.append(leaves[9:])
    assert frontier.root() == tree.root() != boundary != empty
    assert frontier == tree.frontier()
    assert tree.at_size(9).root() == boundary
    assert tree.at_size(0).root() == empty
    assert ClientTree.from_leaf_bytes(tree.leaf_bytes()).root() == tree.root()
    assert tree.leaf_bytes(9) == tree.leaf_bytes()[9 * 32 :]
    assert ClientTree.from_node_bytes(tree.node_bytes()).node_bytes() == tree.node_bytes()
    assert tree.position(leaves[13]) == 13
    assert repr(tree.path(13)) == "ClientPath(<redacted>)"
    with pytest.raises(InvalidInput, match="not in the tree"):
        tree.position(Commitment(d, MasterSecret.generate(), dt, Salt.generate()))
    with pytest.raises(InvalidInput, match="no leaf 20"):
        tree.path(20)
    with pytest.raises(InvalidInput, match="bytes instead of 32"):
        ClientTree.from_leaf_bytes(tree.leaf_bytes()[:-1])


@given(names=st.lists(st.binary(min_size=32, max_size=32)))
def test_a_set_of_names_is_a_set(names: list[bytes]) -> None:
    made = NameSet()
    for name in names:
        made.add(name)
    assert len(made) == len(set(names))
    assert all(name in made for name in names)
    assert bytes(31) + b"\1" not in NameSet()
    assert made.to_bytes() == b"".join(sorted(set(names)))
    assert NameSet.from_bytes(made.to_bytes()) == made
    made.clear()
    assert len(made) == 0


def test_a_set_of_names_has_one_form() -> None:
    first, second = bytes(32), bytes(31) + b"\1"
    for data in (second + first, first + first, first + second[:-1]):
        with pytest.raises(InvalidInput):
            NameSet.from_bytes(data)
    with pytest.raises(InvalidInput, match="bytes instead of 32"):
        NameSet().add(b"short")


def test_zeroing_a_certifier_changes_the_root_and_frees_no_place() -> None:
    certifiers = [CertifierSecret.generate().public_key() for _ in range(3)]
    tree = CertifierTree()
    tree.append(certifiers)
    root = tree.root()
    tree.zero(1)
    assert tree.root() != root
    assert len(tree) == 3
    with pytest.raises(InvalidInput, match="not in the tree"):
        tree.position(certifiers[1])


def test_a_proof_of_possession_fits_one_board_identity_and_key() -> None:
    certifier, other = CertifierSecret.generate(), CertifierSecret.generate()
    key, genesis, identity = certifier.public_key(), b"g" * 32, b"i" * 32
    proof = Possession.from_bytes(certifier.prove_possession(genesis, identity).to_bytes())
    key.verify_possession(genesis, identity, proof)
    wrong = [
        (key, b"x" * 32, identity, proof),
        (key, genesis, b"x" * 32, proof),
        (other.public_key(), genesis, identity, proof),
        (key, genesis, identity, other.prove_possession(genesis, identity)),
    ]
    for holder, board, name, offered in wrong:
        with pytest.raises(InvalidSignature, match="the proof of possession"):
            holder.verify_possession(board, name, offered)
