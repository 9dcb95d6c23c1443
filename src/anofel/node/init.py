"""A new board for an embedded node: its genesis and the node's own keys."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from anofel.board.chain import RULE_VERSION
from anofel.board.engines import Engine
from anofel.board.genesis import INSECURE_CA, INSECURE_KEYS, VERSION, check_genesis
from anofel.disk.files import read_small_file
from anofel.errors import AnofelError, InvalidInput
from anofel.messages import Class, Genesis, Limits, Validator
from anofel.node.files import NodeConfig, write_node
from anofel.pki.certificates import Purpose, RoleKey, parse_roots
from anofel.pki.testing_ca import ORGANISATION, TestAuthority
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory


@dataclass(frozen=True, slots=True)
class BoardNumbers:
    """The numbers of a board, in blocks where nothing else is said; they never change."""

    interval_ms: int
    bundle_size: int
    bundle_wait: int
    classes: tuple[Class, ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class BoardTrust:
    """Whom a board believes: certificate roots, its storage holder, and what is insecure about them."""

    roots: tuple[bytes, ...]
    storage: RoleKey | None
    """None where the validators bring their own."""
    insecure: bool


def roots_alone(roots: Sequence[Path]) -> BoardTrust:
    """Read roots from files; that of a TEST authority makes the board insecure. Raises ``InvalidInput``."""
    found = _read_roots(roots)
    if not found:
        raise InvalidInput("A board needs --root.")
    return BoardTrust(found, None, insecure=any(_is_test_root(root) for root in found))


def real_trust(roots: Sequence[Path], certificate: Path | None, key: Path | None) -> BoardTrust:
    """Read roots and the storage role from files. Raises ``InvalidInput``."""
    if not roots or certificate is None or key is None:
        raise InvalidInput(
            "A board needs --root, --storage-certificate and --storage-key; "
            "for a test, --insecure-test-ca makes what is missing."
        )
    found = _read_roots(roots)
    if any(_is_test_root(root) for root in found):
        raise InvalidInput(
            "A root is that of a TEST authority, which vouches for nobody; say --insecure-test-ca to use it."
        )
    return BoardTrust(found, RoleKey.from_files(certificate, key), insecure=False)


def insecure_trust(
    roots: Sequence[Path], certificate: Path | None, key: Path | None, authority: Path
) -> BoardTrust:
    """Use a test authority, made if it is not there, for whatever is missing. Raises ``InvalidInput``."""
    if not authority.exists():
        TestAuthority.create().save(authority)
    ca = TestAuthority.open(authority)
    found = tuple(dict.fromkeys((*_read_roots(roots), ca.root)))
    if (certificate is None) != (key is None):
        raise InvalidInput("--storage-certificate and --storage-key go together.")
    if certificate is not None and key is not None:
        storage = RoleKey.from_files(certificate, key)
    else:
        storage = ca.issue(Purpose.STORAGE, "Storage of the node")
    return BoardTrust(found, storage, insecure=True)


def make_node(
    directory: Path,
    *,
    name: str,
    trust: BoardTrust,
    keys: KeyDirectory,
    clock: BoardNumbers,
    config: NodeConfig,
    allow_insecure_keys: bool,
) -> Genesis:
    """Make a board and write its node's directory. Raises ``AnofelError``."""
    check_usable(keys, allow_insecure_keys=allow_insecure_keys)
    storage, validator = trust.storage, MessageSecret.generate()
    if storage is None:
        raise InvalidInput("A board of one node needs a storage certificate and its key.")
    genesis = genesis_of(
        name=name,
        trust=trust,
        keys=keys,
        clock=clock,
        nonce=secrets.token_bytes(32),
        engine=Engine.EMBEDDED,
        validators=(Validator(key=validator.public_key().to_bytes(), power=1),),
        holders=(storage.chain,),
        quorum=1,
    )
    write_node(directory, genesis, validator, storage, keys, config)
    return genesis


def check_usable(keys: KeyDirectory, *, allow_insecure_keys: bool) -> None:
    """Refuse proof keys that no board can begin with. Raises ``AnofelError``."""
    if keys.is_insecure and not allow_insecure_keys:
        raise InvalidInput(
            f"The keys in {keys.path} are insecure development keys; "
            "say --insecure-development-keys to use them."
        )
    keys.require_verified()
    keys.check_pairs()


def genesis_of(
    *,
    name: str,
    trust: BoardTrust,
    keys: KeyDirectory,
    clock: BoardNumbers,
    nonce: bytes,
    engine: Engine,
    validators: tuple[Validator, ...],
    holders: tuple[tuple[bytes, ...], ...],
    quorum: int,
) -> Genesis:
    """Put a genesis together and check it. Raises ``InvalidGenesis``."""
    flaws = [INSECURE_CA] * trust.insecure + [INSECURE_KEYS] * keys.is_insecure
    genesis = Genesis(
        version=VERSION,
        name=name,
        nonce=nonce,
        time=int(time.time()),
        rules=RULE_VERSION,
        interval_ms=clock.interval_ms,
        roots=trust.roots,
        engine=engine,
        **keys.pins(),
        validators=validators,
        holders=holders,
        quorum=quorum,
        bundle_size=clock.bundle_size,
        bundle_wait=clock.bundle_wait,
        classes=clock.classes,
        limits=clock.limits,
        insecure=", ".join(flaws),
    )
    check_genesis(genesis)
    return genesis


def receipts_until(genesis: Genesis) -> str:
    """Return the day on which the first storage certificate of genesis expires, and receipts with it."""
    chains = [[x509.load_der_x509_certificate(der) for der in chain] for chain in genesis.holders]
    return min(c.not_valid_after_utc for chain in chains for c in chain).date().isoformat()


def _read_roots(paths: Sequence[Path]) -> tuple[bytes, ...]:
    roots: list[bytes] = []
    for path in paths:
        try:
            found = x509.load_pem_x509_certificates(read_small_file(path))
        except ValueError as error:
            if isinstance(error, AnofelError):
                raise
            raise InvalidInput(f"{path} holds no certificates in PEM.") from None
        roots += [certificate.public_bytes(Encoding.DER) for certificate in found]
    if roots:
        parse_roots(roots)
    return tuple(roots)


def _is_test_root(root: bytes) -> bool:
    subject = x509.load_der_x509_certificate(root).subject
    return any(a.value == ORGANISATION for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
