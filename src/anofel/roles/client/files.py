"""What a client's directory holds beside its keys: its settings, its data by reference, its credential."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from msgspec import Meta

from anofel.disk.files import Secret, read_small_file
from anofel.disk.keystore import Keystore, Unlock
from anofel.disk.sections import Texts, between, read_table
from anofel.errors import AnofelError, InvalidInput
from anofel.ids import GenesisHash
from anofel.learning.build import OwnTrainerName, import_trainer
from anofel.learning.certified import CertifiedDataset, dataset_digest
from anofel.learning.flower.settings import (
    DEFAULT_GIGABYTES,
    DEFAULT_SECONDS,
    FlowerApp,
    app_refused,
    read_pairs,
)
from anofel.light_client.base import BoardClient
from anofel.light_client.following import Follow
from anofel.light_client.remote import remote_genesis, remote_key
from anofel.light_client.trust import require_trusted_keys
from anofel.messages import Genesis
from anofel.network.transport import Transport
from anofel.phase1_setup.step1b_certification import Credential
from anofel.primitives import Certificate, CertifierKey, DatasetDigest, DatasetType, MasterSecret, Salt
from anofel.privacy.ledger import Floors, Ledger
from anofel.proofs.ceremony.finished import open_verified
from anofel.proofs.keys import ROLES, STATEMENTS, KeyDirectory, Tell, key_file_name
from anofel.roles.certificate_files import CertificateDocument, dataset_type
from anofel.roles.certifier.policy import load_schema
from anofel.roles.client.journal import Journal
from anofel.roles.client.task import Wanted
from anofel.roles.client.trust import Aggregators, Trust
from anofel.roles.directory import BOARD, CONFIG, RoleConfig, RoleDirectory, Setting, board_setting
from anofel.storage.blocks import GENESIS, read_genesis
from anofel.studies.dataset import Dataset
from anofel.studies.load import load_file
from anofel.tasks.task import MAX_CLIENTS, ClientCount, DatasetTypeNumber, Delta, Relation

ROLE: Final = "client"
SCHEMA: Final = "schema.toml"
CERTIFICATE: Final = "certificate"
MASTER: Final = "master-secret"
LEDGER: Final = "ledger.sqlite"
JOURNAL: Final = "journal.sqlite"
MAX_FIRST_WAIT: Final = 1000


class NotCertified(AnofelError):
    """The client has no certificate yet."""

    code = "not-certified"


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """The settings of ``role.toml``."""

    data: Path
    dataset_type: DatasetType
    keys: Path | None
    """A directory of proof keys; None for those that were fetched from the board."""
    floors: Floors
    first_wait: int
    """The most boundaries that a newcomer waits before its first post (D-07)."""
    wanted: Wanted
    trust: Trust
    ledger: Path | None
    """A ledger that this client shares with others of the same subject and table; None for its own."""
    follow: Follow
    """Whether every posting is verified, or headers and a sample, or which of both the board's size says."""
    trainer: OwnTrainerName
    """The client's own trainer or its Flower app, code that it trusts with its data; or empty."""

    @classmethod
    def of(cls, config: RoleConfig) -> Self:
        """Read the settings. Raises ``InvalidInput``."""
        said = read_table({"settings": config.settings}, _File, CONFIG).settings
        return cls(
            data=Path(said.data),
            dataset_type=dataset_type(said.dataset_type),
            keys=Path(said.keys) if said.keys else None,
            floors=Floors(
                max_epsilon=float(said.max_epsilon),
                delta=float(said.delta),
                unit=said.unit,
                relation=said.relation,
                min_clients=said.min_clients,
                min_anonymity_set=said.min_anonymity_set,
                max_colluders=None if said.max_colluders == "all" else said.max_colluders,
            ),
            first_wait=said.first_wait,
            follow="all" if said.follow == "size" and said.names_aggregators else said.follow,
            wanted=Wanted(task=said.task, owner=said.owner),
            trust=Trust(
                min_bundle=said.min_bundle,
                min_clients=said.min_clients,
                max_colluders=said.max_colluders,
                allowed=_aggregators(said.allowed_aggregators),
                required=_aggregators(said.required_aggregators),
            ),
            ledger=Path(said.ledger) if said.ledger else None,
            trainer=said.flower() or said.trainer,
        )


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """``[settings]`` as people write it."""

    data: str
    keys: str = ""
    dataset_type: DatasetTypeNumber = 0
    task: str = ""
    owner: str = ""
    max_epsilon: Annotated[Decimal, between("0.000001", "1000000000")]
    delta: Delta = Decimal("0.00001")
    unit: Literal["client", "record"] = "client"
    relation: Relation = "zero-out"
    min_clients: ClientCount = 2
    min_anonymity_set: ClientCount = 2
    max_colluders: Annotated[int, Meta(ge=0, le=MAX_CLIENTS)] | Literal["all"] | None = None
    min_bundle: Annotated[int, Meta(ge=1, le=1 << 20)] = 2
    allowed_aggregators: str = ""
    required_aggregators: str = ""
    first_wait: Annotated[int, Meta(ge=0, le=MAX_FIRST_WAIT)] = 3
    follow: Follow = "size"
    ledger: str = ""
    trainer: str = ""
    flower_app: str = ""
    flower_digest: str = ""
    flower_python: str = ""
    flower_data: Texts = ()
    flower_node_config: Texts = ()
    flower_run_config: Texts = ()
    flower_seconds: Annotated[int, Meta(ge=1, le=1 << 20)] = DEFAULT_SECONDS
    flower_memory: Annotated[int, Meta(ge=1, le=1 << 20)] = DEFAULT_GIGABYTES
    insecure_flower_network: bool = False

    def flower(self) -> FlowerApp | None:
        """Give the Flower app that trains, if one is named."""
        if not self.flower_app:
            return None
        return FlowerApp(
            directory=self.flower_app,
            python=self.flower_python,
            digest=self.flower_digest,
            data=self.flower_data,
            node=read_pairs(self.flower_node_config, "flower_node_config"),
            config=read_pairs(self.flower_run_config, "flower_run_config"),
            seconds=self.flower_seconds,
            gigabytes=self.flower_memory,
            insecure_network=self.insecure_flower_network,
        )

    @property
    def names_aggregators(self) -> bool:
        """Whether members of committees must have certain names, which headers do not tell."""
        return bool(self.allowed_aggregators or self.required_aggregators)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Name what cannot be used."""
        if self.owner and (len(self.owner) < 16 or not set(self.owner.lower()) <= set("0123456789abcdef")):
            yield "owner", "must be at least 16 hexadecimal digits"
        if self.ledger and not Path(self.ledger).is_absolute():
            yield "ledger", "must be an absolute path"
        if self.flower_app and self.trainer:
            yield "trainer", "is a function or a Flower app, not both"
        if self.flower_app and not (self.flower_python and self.flower_digest):
            yield "flower_app", "needs flower_python and flower_digest beside it"


@dataclass(frozen=True, kw_only=True)
class _File:
    settings: _Settings


def init_client(
    path: Path,
    unlock: Unlock,
    *,
    board: str | Sequence[str],
    genesis_hash: GenesisHash,
    data: Path,
    schema: Path,
    keys: Path | None,
    settings: Mapping[str, Setting],
    proxy: str = "",
    ca_file: Path | None = None,
    files: Mapping[str, bytes | Secret] | None = None,
    transport: Transport | None = None,
    say: Tell = lambda _sentence: None,
) -> None:
    """Make a client's directory with a new master secret; the data stays where it is.

    Without ``keys`` genesis and the proof keys are fetched from the board, checked, and kept there;
    ``transport`` reaches the board where ``ca_file`` is one of the ``files`` and not there yet.
    """
    if keys is not None:
        open_verified(keys)
    if data.is_dir():
        raise InvalidInput(f"'{data}' is a directory, and a certifier reads one file; save it as .parquet.")
    dataset = load_file(data, load_schema(schema))
    if not len(dataset):
        raise InvalidInput(f"'{data}' has no rows.")
    own: dict[str, Setting] = {"data": str(data.absolute()), **settings}
    if keys is not None:
        own["keys"] = str(keys.absolute())
    config = RoleConfig(role=ROLE, board=board_setting(board), genesis=genesis_hash.hex(), settings=own)
    checked = ClientSettings.of(config)
    if isinstance(checked.trainer, FlowerApp):
        checked.trainer.manifest()
    elif checked.trainer:
        import_trainer(checked.trainer)
    if refused := app_refused(dataset.schema.app, checked.trainer):
        raise InvalidInput(f"{schema}: {refused}")
    if checked.ledger is not None:
        open_ledger(path, checked, is_new=True)
    config.check()
    files = {**(files or {}), SCHEMA: read_small_file(schema)}
    if keys is None:
        if transport is None:
            transport = Transport(board, proxy or None, ca_file, on_wait=lambda words, _seconds: say(words))
        files |= _fetch_keys(transport, genesis_hash, say)
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
        files=files,
    )


def _fetch_keys(transport: Transport, genesis_hash: GenesisHash, say: Tell) -> dict[str, bytes]:
    """Fetch genesis and all proof keys, check every point and make the tables; return them as files.

    Where the keys come from is judged first. Raises ``UnverifiedCeremony``, ``InvalidCeremony``.
    """
    say("Fetching the proof keys from the board.")
    genesis = remote_genesis(transport, genesis_hash)
    require_trusted_keys(genesis)
    with tempfile.TemporaryDirectory(prefix="anofel-") as scratch:
        directory = Path(scratch)
        for name in STATEMENTS:
            for role in ROLES:
                data = remote_key(transport, genesis, name, role)
                (directory / key_file_name(name, role)).write_bytes(data)
        say("Checking the proof keys and making their tables, once.")
        KeyDirectory.pinned(directory, genesis.key_pins, say).check_proving_keys()
        found = {file.name: file.read_bytes() for file in directory.iterdir()}
    return {f"{BOARD}/{name}": data for name, data in {GENESIS: genesis.to_bytes(), **found}.items()}


def open_ledger(path: Path, settings: ClientSettings, *, is_new: bool) -> Ledger:
    """Open the ledger. Raises ``InvalidInput`` if it is gone: a new one would forget what was spent.

    A client that has taken no turn yet makes its own.
    """
    ledger = settings.ledger or path / LEDGER
    if not ledger.exists() and (settings.ledger is not None or not is_new):
        raise InvalidInput(f"The ledger {ledger} is not there, and without it nobody knows what was spent.")
    return Ledger(ledger)


def load_data(path: Path, settings: ClientSettings) -> Dataset:
    """Load the client's rows by its schema."""
    return load_file(settings.data, load_schema(path / SCHEMA))


def load_certified(path: Path, settings: ClientSettings, d: DatasetDigest) -> CertifiedDataset:
    """Load the client's rows; refuses what was not certified."""
    return CertifiedDataset(load_data(path, settings), d)


def own_keys(path: Path, settings: ClientSettings, say: Tell = lambda _sentence: None) -> KeyDirectory:
    """Open the proof keys without asking the board. Raises ``InvalidKeyFile``, ``UnverifiedCeremony``."""
    if settings.keys is not None:
        keys = KeyDirectory.open(settings.keys, say)
        keys.require_verified()
        return keys
    genesis = read_genesis(path / BOARD / GENESIS)
    require_trusted_keys(genesis)
    return KeyDirectory.pinned(path / BOARD, genesis.key_pins, say)


def read_keys(
    settings: ClientSettings, board: BoardClient, say: Tell = lambda _sentence: None
) -> KeyDirectory:
    """Open the proof keys, which must be the board's. Raises ``InvalidInput``, ``PeerUnreachable``."""
    if settings.keys is None:
        return board.proof_keys(say)
    keys = KeyDirectory.open(settings.keys, say)
    keys.require_verified()
    check_pins(keys, board.genesis)
    return keys


def check_pins(keys: KeyDirectory, genesis: Genesis) -> None:
    """Refuse proof keys that are not the board's. Raises ``InvalidInput``."""
    for name, key_id in keys.pins().items():
        if getattr(genesis, name) != key_id:
            what = name.replace("_", " ")
            raise InvalidInput(f"The {what} in {keys.path} is not the one that the board pins.")


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
    if any(not turn.skipped for turn in Journal(directory.path / JOURNAL).unfinished()):
        raise InvalidInput("An iteration is under way; accept the certificate when it is over.")
    document.verify()
    keep_certificate(directory.secrets, document)


def _aggregators(lines: str) -> tuple[Aggregators, ...]:
    """Read names of aggregators, one a line."""
    return tuple(Aggregators.parse(line.strip()) for line in lines.splitlines() if line.strip())
