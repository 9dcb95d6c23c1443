"""What a client's directory holds beside its keys: its settings, its data by reference, its credential."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, Self

from anofel.errors import AnofelError, InvalidInput
from anofel.files import read_small_file
from anofel.keys import KeyDirectory
from anofel.keystore import Keystore, Unlock
from anofel.learning.build import import_trainer
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.messages import Genesis
from anofel.phase1_setup.certification import Credential
from anofel.primitives import Certificate, CertifierKey, DatasetDigest, DatasetType, MasterSecret, Salt
from anofel.privacy.ledger import Floors
from anofel.roles.certificate_files import CertificateDocument, dataset_type
from anofel.roles.certifier_policy import load_schema
from anofel.roles.directory import RoleConfig, RoleDirectory, Setting
from anofel.studies.dataset import Dataset
from anofel.studies.load import load_file
from anofel.task import RELATIONS

ROLE: Final = "client"
SCHEMA: Final = "schema.toml"
CERTIFICATE: Final = "certificate"
MASTER: Final = "master-secret"
MAX_FIRST_WAIT: Final = 1000


class NotCertified(AnofelError):
    """The client has no certificate yet."""

    code = "not-certified"


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """The settings of ``role.toml``."""

    data: Path
    dataset_type: DatasetType
    keys: Path
    floors: Floors
    first_wait: int
    """The most boundaries that a newcomer waits before its first post (D-07)."""
    task: str
    """The task to train: its name or the beginning of its id; empty for the only one that fits."""
    trainer: str
    """The client's own trainer as ``module:function``, code that it trusts with its data; or empty."""

    @classmethod
    def of(cls, config: RoleConfig) -> Self:
        """Read the settings. Raises ``InvalidInput``."""
        values = config.settings
        floors = Floors(
            max_epsilon=_number(values, "max_epsilon"),
            delta=_number(values, "delta", "0.00001"),
            unit=_choice(values, "unit", ("client", "record")),
            relation=_choice(values, "relation", RELATIONS),
            min_clients=_integer(values, "min_clients", 2, 1 << 20, 2),
            min_anonymity_set=_integer(values, "min_anonymity_set", 2, 1 << 20, 2),
        )
        return cls(
            data=Path(_text(values, "data")),
            dataset_type=dataset_type(_integer(values, "dataset_type", 0, 2**32 - 1, 0)),
            keys=Path(_text(values, "keys")),
            floors=floors,
            first_wait=_integer(values, "first_wait", 0, MAX_FIRST_WAIT, 3),
            task=_text(values, "task", ""),
            trainer=_text(values, "trainer", ""),
        )


def init_client(
    path: Path,
    unlock: Unlock,
    *,
    board: str,
    genesis_hash: bytes,
    data: Path,
    schema: Path,
    keys: Path,
    settings: Mapping[str, Setting],
    proxy: str = "",
    ca_file: Path | None = None,
) -> None:
    """Make a client's directory with a new master secret; the data stays where it is."""
    KeyDirectory.open(keys)
    dataset = load_file(data, load_schema(schema))
    if not len(dataset):
        raise InvalidInput(f"'{data}' has no rows.")
    own = {"data": str(data.absolute()), "keys": str(keys.absolute()), **settings}
    config = RoleConfig(role=ROLE, board=board, genesis=genesis_hash.hex(), settings=own)
    if trainer := ClientSettings.of(config).trainer:
        import_trainer(trainer)
    RoleDirectory.create(
        path,
        unlock,
        role=ROLE,
        board=board,
        genesis_hash=genesis_hash,
        proxy=proxy,
        ca_file=ca_file,
        settings=own,
        secrets={MASTER: MasterSecret.generate().to_secret_bytes()},
        files={SCHEMA: read_small_file(schema)},
    )


def load_data(path: Path, settings: ClientSettings) -> Dataset:
    """Load the client's rows by its schema."""
    return load_file(settings.data, load_schema(path / SCHEMA))


def load_certified(path: Path, settings: ClientSettings, d: DatasetDigest) -> CertifiedDataset:
    """Load the client's rows; refuses what was not certified."""
    return CertifiedDataset(load_data(path, settings), d)


def read_keys(settings: ClientSettings, genesis: Genesis) -> KeyDirectory:
    """Open the proof keys and check that they are the board's. Raises ``InvalidInput``."""
    keys = KeyDirectory.open(settings.keys)
    pinned = {"registration": genesis.registration_key, "submission": genesis.submission_key}
    found = {name: key.key_id for name, key in keys.verification.items()}
    for name, key_id in pinned.items():
        if found.get(name) != key_id:  # type: ignore[call-overload]
            raise InvalidInput(f"The {name} key in {settings.keys} is not the one that the board pins.")
    return keys


# Secrets


def master_secret(secrets: Keystore) -> MasterSecret:
    """Return msk."""
    return MasterSecret.from_bytes(secrets[MASTER].reveal())


def keep_certificate(secrets: Keystore, document: CertificateDocument) -> None:
    """Keep a certificate that was checked; another one for the same data changes nothing."""
    secrets[CERTIFICATE] = document.to_bytes()
    secrets.save()


def credential(secrets: Keystore) -> Credential:
    """Return the credential. Raises ``NotCertified``."""
    if CERTIFICATE not in secrets:
        raise NotCertified("The client has no certificate yet; ask for one with anofel client request.")
    document = CertificateDocument.from_bytes(secrets[CERTIFICATE].reveal())
    return Credential(
        msk=master_secret(secrets),
        d=DatasetDigest.from_bytes(document.d),
        dt=dataset_type(document.dt),
        certifier=CertifierKey.from_bytes(document.certifier),
        certificate=Certificate.from_bytes(document.certificate),
    )


def salt_of(secrets: Keystore, epoch: int) -> Salt:
    """Return the salt of the registration in an epoch; the first time it is drawn and kept."""
    name = f"salt/{epoch}"
    if name not in secrets:
        secrets[name] = Salt.generate().to_secret_bytes()
        secrets.save()
    return Salt.from_bytes(secrets[name].reveal())


def accept_certificate(
    directory: RoleDirectory, settings: ClientSettings, document: CertificateDocument
) -> None:
    """Check a certificate and keep it. Raises ``InvalidInput``, ``InvalidSignature``."""
    if document.genesis != directory.config.genesis_hash:
        raise InvalidInput("The certificate was made for another board.")
    if document.mpk != master_secret(directory.secrets).public_key().to_bytes():
        raise InvalidInput("The certificate is for another master key.")
    if document.dt != settings.dataset_type.number:
        raise InvalidInput(f"The certificate is for dataset type {document.dt}.")
    if document.d != dataset_digest(load_data(directory.path, settings)).to_bytes():
        raise InvalidInput("The certificate is for other data than this client's.")
    document.verify()
    keep_certificate(directory.secrets, document)


# Settings


def _text(values: Mapping[str, Setting], name: str, default: str | None = None) -> str:
    value = values.get(name, default)
    if not isinstance(value, str):
        raise InvalidInput(f"[settings] {name}: must be a text in quotes.")
    return value


def _choice(values: Mapping[str, Setting], name: str, choices: tuple[str, ...]) -> str:
    value = _text(values, name, choices[0])
    if value not in choices:
        raise InvalidInput(f"[settings] {name}: must be one of {', '.join(choices)}.")
    return value


def _integer(values: Mapping[str, Setting], name: str, low: int, high: int, default: int) -> int:
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(f"[settings] {name}: must be an integer between {low} and {high}.")
    return value


def _number(values: Mapping[str, Setting], name: str, default: str | None = None) -> float:
    value = values.get(name, default)
    try:
        number = Decimal(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or number <= 0:
        raise InvalidInput(f"[settings] {name}: must be a positive number in quotes.")
    return float(number)
