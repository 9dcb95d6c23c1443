"""Step 1.c by files: members exchange the messages of a run by hand, and post them when all is done.

A round file is the posting of the message, signed by its author but without a storage receipt, and the
message itself. So it has the author, the encoding and the signature of a posting, and a board refuses it.
Private parts of messages are sealed; files may travel in the open. Rules of a round file:

1. It is a posting of a message of a run, followed by the message that it names by hash and length.
2. Its author is certified as an aggregator under a root of genesis, and signed it for this board.
3. Its author is the member that speaks, and in round 0 it describes the same run.
4. A member gives one message in a round.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import GeneratedKey, RoundMessage, RoundResult
from anofel.disk.files import FileExists, read_small_file, write_new_file
from anofel.errors import AnofelError, InvalidInput, InvalidSignature, MalformedMessage
from anofel.framing import Reader, Writer
from anofel.ids import BlobHash, GenesisHash, KeyId
from anofel.messages import Blob, ChainAuthor, DkgRound, Genesis, Posting, Run, make_posting
from anofel.phase1_setup.step1c_committee_key import generation_run, post_round
from anofel.pki.certificates import CertificateRefused, Purpose, RoleKey, verify_chain
from anofel.roles.aggregator.key_run import KeptRun, Rounds, telling
from anofel.roles.directory import RoleDirectory
from anofel.roles.role import ROLE_KEY, Say

EXCHANGE: Final = "exchange"
"""Where a role keeps the round files that it sent and took."""
SUFFIX: Final = ".round"
_MAX_POSTING_BYTES: Final = 1 << 20


class BadRoundFile(AnofelError):
    """A round file cannot be used; the sentence names the file and, where it is known, the member."""

    code = "bad-round-file"


@dataclass(frozen=True, slots=True)
class RoundFile:
    """A checked message of one member in one round."""

    message: RoundMessage
    data: bytes

    @property
    def sha256(self) -> bytes:
        """The name that the message has on the board."""
        return hashlib.sha256(self.message.body).digest()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an exchange stands after one look at the folder."""

    round: int
    missing: tuple[int, ...]
    """Members whose message of the round is not there yet."""
    key_id: KeyId | None = None
    """The name of the key, once every round is complete."""


def make_round_file(role: RoleKey, genesis: GenesisHash, run: Run, message: RoundMessage) -> bytes:
    """Sign a message as a file."""
    blob = Blob(sha256=BlobHash(hashlib.sha256(message.body).digest()), length=len(message.body), receipts=())
    posting = make_posting(post_round(run, message, blob), ChainAuthor(role.chain), genesis, role.sign)
    return Writer().framed(posting.data).framed(message.body).done()


class Exchange:
    """The round files of one run in a role's directory: the first of a member in a round is the one."""

    def __init__(self, directory: Path, genesis: Genesis, run: Run) -> None:
        self._genesis, self._run = genesis, run
        self._run_id = run.run_id(genesis.hash)
        self._folder = directory / EXCHANGE / self._run_id.hex()

    def message(self, number: int, sender: int) -> RoundMessage | None:
        """Return a member's message of a round, if it went by files."""
        data = self.data(number, sender)
        return None if data is None else self._parse(self._path(number, sender), data).message

    def data(self, number: int, sender: int) -> bytes | None:
        """Return a kept file."""
        path = self._path(number, sender)
        return self.read(path) if path.exists() else None

    def read(self, path: Path) -> bytes:
        """Read a round file from anywhere. Raises ``InvalidInput``."""
        return read_small_file(path, self._genesis.limits.max_key_bytes + _MAX_POSTING_BYTES)

    def messages(self, number: int) -> dict[int, RoundMessage]:
        """Return the messages of a round by sender."""
        found = {sender: self.message(number, sender) for sender in self._members}
        return {sender: message for sender, message in found.items() if message is not None}

    def keep(self, data: bytes, source: Path) -> RoundFile | None:
        """Check a file and keep it; None if it belongs to another run. Raises ``BadRoundFile`` (1–4)."""
        file = self._parse(source, data)
        if file.message.run_id != self._run_id:
            return None
        path = self._path(file.message.round, file.message.sender)
        kept = self.message(file.message.round, file.message.sender)
        if kept is None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new_file(path, data)
        elif kept.body != file.message.body:
            raise BadRoundFile(
                f"{source}: member {file.message.sender} gave two different messages of round "
                f"{file.message.round}; both are signed by it, so keep them as evidence (4)."
            )
        return file

    def check_posted(self, number: int, posted: Mapping[int, bytes]) -> None:
        """Raise ``KeyGenerationFailed`` with whoever posted another message than it gave as a file."""
        for sender, message in self.messages(number).items():
            name = hashlib.sha256(message.body).digest()
            if sender in posted and posted[sender] != name:
                raise KeyGenerationFailed(
                    f"Member {sender} posted another message of round {number} than it gave as a file.",
                    (sender,),
                )

    @property
    def _members(self) -> range:
        return range(1, len(self._run.members) + 1)

    def _path(self, number: int, sender: int) -> Path:
        return self._folder / f"round-{number}-member-{sender}{SUFFIX}"

    def _parse(self, source: Path, data: bytes) -> RoundFile:
        try:  # 1
            reader = Reader(data)
            posting, body = Posting.from_bytes(reader.framed()), reader.framed()
            reader.end()
        except (ValueError, MalformedMessage):
            raise BadRoundFile(f"{source} is not a whole round file; ask for it again (1).") from None
        said, author = posting.body, posting.author
        if not isinstance(said, DkgRound) or not isinstance(author, ChainAuthor):
            raise BadRoundFile(f"{source} holds another posting than a message of a run (1).")
        if (hashlib.sha256(body).digest(), len(body)) != (said.body.sha256, said.body.length):
            raise BadRoundFile(f"{source}: the message of member {said.sender} was changed on its way (1).")
        try:  # 2
            identity = verify_chain(author.chain, self._genesis.roots, Purpose.AGGREGATOR, int(time.time()))
            identity.verify(posting.signed_bytes(self._genesis.hash), posting.signature)
        except (CertificateRefused, InvalidSignature) as error:
            raise BadRoundFile(
                f"{source}, which says that it is of member {said.sender}: {error} (2)"
            ) from None
        message = RoundMessage(run_id=said.run_id, round=said.round, sender=said.sender, body=body)
        if said.run_id == self._run_id:  # 3
            members = dict(enumerate(self._run.members, start=1))
            if members.get(said.sender) != identity.subject:
                raise BadRoundFile(f"{source}: {identity.name} is not member {said.sender} of the run (3).")
            if said.round == 0 and said.run != self._run:
                raise BadRoundFile(f"{source}: member {said.sender} describes another run (3).")
        return RoundFile(message, data)


class FileCeremony:
    """One member in one run of key generation, by files in a folder; no board is needed."""

    def __init__(
        self,
        directory: RoleDirectory,
        genesis: Genesis,
        run: Run,
        folder: Path,
        say: Say = lambda _text: None,
    ) -> None:
        if genesis.hash != directory.config.genesis_hash:
            raise InvalidInput("The genesis file is not that of this role's board.")
        self._role = RoleKey.from_secret_bytes(directory.secrets[ROLE_KEY].reveal())
        if self._role.subject not in run.members:
            raise InvalidInput("You are not among the members of this run.")
        self.member = run.members.index(self._role.subject) + 1
        self._genesis, self._run, self._folder = genesis, run, folder
        self._run_id = run.run_id(genesis.hash)
        generation = schemes.by_name(schemes.NAMES[run.scheme]).key_generation(telling(say))
        self._rounds: Rounds = generation
        self._exchange = Exchange(directory.path, genesis, run)
        self._kept = KeptRun(
            directory.secrets,
            self._run_id,
            generation,
            lambda: generation.begin(generation_run(run, genesis.hash), self.member),
        )

    def step(self) -> Standing:
        """Take every file that is there, go on as far as they reach, and write our own.

        Raises ``BadRoundFile`` and ``KeyGenerationFailed``, with the culprit.
        """
        for path in self._files():
            self._exchange.keep(self._exchange.read(path), path)
        while True:
            current = self._kept.current()
            assert current.message is not None
            self._write(current.message)
            there = self._exchange.messages(current.round)
            missing = tuple(n for n in range(1, len(self._run.members) + 1) if n not in there)
            if missing:
                return Standing(current.round, missing)
            result = self._rounds.advance(current, [there[sender] for sender in sorted(there)])
            if isinstance(result, GeneratedKey):
                self._kept.keep_share(result.share)
                return Standing(current.round, (), result.key.key_id)
            assert isinstance(result, RoundResult)
            self._kept.keep(result)

    def _files(self) -> Iterator[Path]:
        if not self._folder.is_dir():
            raise InvalidInput(f"{self._folder} is not a folder.")
        yield from sorted(path for path in self._folder.iterdir() if path.suffix == SUFFIX)

    def _write(self, message: RoundMessage) -> None:
        """Keep our own file first; what goes out is always the kept one."""
        kept = self._exchange.data(message.round, message.sender)
        if kept is None:
            kept = make_round_file(self._role, self._genesis.hash, self._run, message)
            self._exchange.keep(kept, Path("our own file"))
        name = f"{self._run_id.hex()[:8]}-round-{message.round}-member-{message.sender}{SUFFIX}"
        with contextlib.suppress(FileExists):
            write_new_file(self._folder / name, kept)
