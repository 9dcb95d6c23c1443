"""What a run knows: in public, and what one member keeps."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, SupportsInt

from anofel.committee.context import CommitteeShape
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import KeyGenerationRun, KeyProgress, Report, RoundMessage
from anofel.committee.kept import Kept
from anofel.committee.paillier.key_rounds.sizes import Sizes
from anofel.committee.ristretto.run import read_run, write_run
from anofel.disk.state_files import decode_state, encode_state
from anofel.framing import Reader, Writer


@dataclass
class PublicState:
    """Everything that follows from the posted messages; the same at everybody."""

    phase: str = "hello"
    opening: bool = False
    """A committed phase takes two rounds; this is the second."""
    round: int = 0
    batch: int = 0
    sealing_keys: list[str] = field(default_factory=list)
    """Every member's one-time key for this run, in hex."""
    seed_commitments: list[str] = field(default_factory=list)
    commitments: list[str] = field(default_factory=list)
    sieved: list[int] = field(default_factory=list)
    """The opened products x·r of the sieve, one per sample."""
    num_candidates: int = 0
    """How many candidates the sieve's good samples allow."""
    survivors: list[tuple[int, int]] = field(default_factory=list)
    """(candidate, N) after trial division."""
    passed: list[tuple[int, int]] = field(default_factory=list)
    """(candidate, N) after the first biprimality test."""
    theta: int = 0
    verification_keys: list[int] = field(default_factory=list)
    generation: str = ""
    transcript: str = ""
    """Running hash over all rounds."""
    fault: str = ""
    """Why the run is being opened, once it is."""


class RunStopped(Exception):
    """The run cannot go on. Without culprits, every seed must be opened to find them."""

    def __init__(self, reason: str, culprits: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.culprits = tuple(culprits)


@dataclass(frozen=True)
class RunSetting:
    """What is the same for a whole run at one member."""

    run: KeyGenerationRun
    sizes: Sizes
    report: Report | None = None
    seconds: float = 0.0

    @property
    def shape(self) -> CommitteeShape:
        """Members and threshold."""
        return self.run.shape

    def progress(self, phase: str, done: int, total: int) -> None:
        """Report now and then."""
        if self.report and (done % 64 == 0 or done == total):
            self.report(KeyProgress(phase, done, total, self.seconds))


@dataclass
class SecretPaillierState(Kept):
    """What one member keeps between two rounds (kept)."""

    setting: RunSetting
    member: int
    seed: bytes = field(repr=False)
    public: PublicState
    stash: dict[str, str] = field(default_factory=dict, repr=False)
    """Hex by name: sums of received private parts, and what was committed but not yet shown."""
    history: list[tuple[bytes, ...]] | None = field(default_factory=list, repr=False)
    """All rounds so far, for judging; None in a long run (``observe`` judges from the board)."""
    body: bytes = field(default=b"", repr=False)
    """What this member sends in ``round``; kept, so that it can be sent again."""
    cache: dict[str, object] = field(default_factory=dict, repr=False)
    """What can be computed again; not stored."""
    count: bytes = field(default=b"", repr=False)
    """The state of the count key's generation."""

    @property
    def run(self) -> KeyGenerationRun:
        """The run it belongs to."""
        return self.setting.run

    @property
    def round(self) -> int:
        """The round whose messages ``advance`` needs next."""
        return self.public.round

    @property
    def message(self) -> RoundMessage:
        """The message of ``round``."""
        return RoundMessage(run_id=self.run.run_id, round=self.round, sender=self.member, body=self.body)

    def copy(self) -> "SecretPaillierState":
        """Return a state that can change without changing this one."""
        history = None if self.history is None else list(self.history)
        return replace(self, public=replace(self.public), stash=dict(self.stash), history=history)

    def __repr__(self) -> str:
        return f"SecretPaillierState(member={self.member}, round={self.round}, <redacted>)"

    def to_bytes(self) -> bytes:
        """Return the secret bytes, for the key store only."""
        content = _StoredContent(
            public=_to_json(asdict(self.public)),
            stash=self.stash,
            seed=self.seed.hex(),
            count=self.count.hex(),
            body=self.body.hex(),
        )
        writer = Writer().raw(write_run(self.run)).number(self.setting.sizes.modulus_bits, 4)
        writer.number(self.member, 2).framed(encode_state(content))
        return _write_history(writer, self.history).done()


@dataclass(frozen=True, repr=False)
class _StoredContent:
    public: dict[str, Any]
    stash: dict[str, str]
    seed: str
    count: str
    body: str


def read_state(
    data: bytes, make_setting: Callable[[KeyGenerationRun, int], RunSetting]
) -> SecretPaillierState:
    """Read a state that ``to_bytes`` wrote. Raises ``KeyGenerationFailed`` if it is damaged."""
    reader = Reader(data)
    try:
        run, modulus_bits, member = read_run(reader), reader.number(4), reader.number(2)
        content = decode_state(reader.framed(), _StoredContent, "The stored state")
        history = _read_history(reader, run.shape.num_members)
        reader.end()
        public = PublicState(**{f.name: _from_json(content.public[f.name]) for f in fields(PublicState)})
        return SecretPaillierState(
            setting=make_setting(run, modulus_bits),
            member=member,
            seed=bytes.fromhex(content.seed),
            public=public,
            stash=content.stash,
            history=history,
            body=bytes.fromhex(content.body),
            count=bytes.fromhex(content.count),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise KeyGenerationFailed("The stored state is damaged.") from error


def _write_history(writer: Writer, history: Sequence[Sequence[bytes]] | None) -> Writer:
    """Append whether there is a history, how many rounds it has, and every body."""
    writer.number(history is not None, 1).number(len(history or ()), 4)
    for sent in history or ():
        for body in sent:
            writer.framed(body)
    return writer


def _read_history(reader: Reader, num_members: int) -> list[tuple[bytes, ...]] | None:
    kept, rounds = reader.number(1), reader.number(4)
    history = [tuple(reader.framed() for _ in range(num_members)) for _ in range(rounds)]
    return history if kept else None


def _to_json(value: Any) -> Any:
    """Write integers in hex: JSON's decimal numbers are slow and limited at this size."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, dict):
        return {name: _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    assert isinstance(value, SupportsInt)  # nothing else stands in a public state
    return {"hex": f"{int(value):x}"}


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"hex"}:
            return int(value["hex"], 16)
        return {name: _from_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
