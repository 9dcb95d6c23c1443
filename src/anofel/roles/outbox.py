"""Postings on their way to the board: stored, then sent; after a crash the same bytes are sent again.

A posting has a name, such as ``aggregate/<task>/<iteration>``. The first posting stored under a name
is the only one that is ever sent under it, with one exception: where a storage receipt in it expired
before the board took it, no board will ever take it, and it is made again. By our own verified height,
not by the node's word, so that a node cannot have two.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import msgspec

from anofel.board.rule import RULES
from anofel.board.rules.common import BLOCK_FULL, EXPIRED
from anofel.disk.files import FileExists, Secret, replace_file, write_new_file
from anofel.errors import AnofelError, InvalidInput
from anofel.light_client.base import BoardClient
from anofel.messages import Blob, Posting
from anofel.messages.view import View
from anofel.network.transport import Refused

RESEND_BLOCKS: Final = 3
"""A posting that the node took is sent again if after so many blocks its role still has reason to send it."""
_POSTING: Final = ".posting"
_ANSWER: Final = ".answer.json"
_NAME: Final = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)*")
_MAX_NAME: Final = 200


class DamagedOutbox(AnofelError):
    """A stored posting cannot be read; nothing is sent in its place."""

    code = "damaged-outbox"


class Answer(msgspec.Struct, frozen=True):
    """What the board said about a posting."""

    height: int
    """Our verified height when the board answered."""
    refused: str = ""
    """The code of the rule that it breaks; empty if the board took it."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored posting and the board's answer; without one it was never answered."""

    name: str
    posting: Posting
    answer: Answer | None

    @property
    def is_refused(self) -> bool:
        """Whether the board refused it for good."""
        return self.answer is not None and bool(self.answer.refused)


class Outbox:
    """The postings of one role in one directory."""

    def __init__(self, directory: Path) -> None:
        """Open an outbox; only one process at a time may."""
        self._directory = directory
        self._answers: dict[str, Answer] = {}
        for path in directory.glob(f"*{_ANSWER}"):
            name = path.name.removesuffix(_ANSWER).replace(".", "/")
            with contextlib.suppress(msgspec.MsgspecError):  # damaged: the board is asked again
                answer = msgspec.json.decode(path.read_bytes(), type=Answer)
                if not answer.refused or answer.refused in RULES:  # otherwise it was not the board's
                    self._answers[name] = answer

    def send(self, board: BoardClient, name: str, make: Callable[[], Posting]) -> Sent:
        """Send the posting of this name; ``make`` makes it if none is stored, and uploads what it names.

        The caller has looked at the verified state: the posting is not on the board. One whose receipts
        expired is made again. A refusal for good is an answer, kept with the code of its rule and never
        asked for again. What may pass (nobody who answers as the board does, a full block) is raised:
        ``PeerUnreachable``, ``Refused``; the posting stays stored.
        """
        sent = self.find(name)
        if sent is not None and is_expired(sent.posting, board.state.height):
            self.forget(name)
            sent = None
        if sent is None:
            sent = self._store(name, make())
        if sent.is_refused or self._is_fresh(sent, board.state.height):
            return sent
        answer = Answer(board.state.height)
        try:
            board.post(sent.posting)
        except Refused as error:
            if may_pass(error):
                raise
            answer = Answer(board.state.height, error.code, error.detail)
        self._write_answer(name, answer)
        return Sent(name, sent.posting, answer)

    def find(self, name: str) -> Sent | None:
        """Return the posting of this name, if one is stored. Raises ``DamagedOutbox``."""
        path = self._path(name, _POSTING)
        if not path.exists():
            return None
        try:
            posting = Posting.from_bytes(path.read_bytes())
        except (OSError, InvalidInput):
            raise DamagedOutbox(f"{path} cannot be read; nothing is sent in its place.") from None
        return Sent(name, posting, self._answers.get(name))

    def forget(self, name: str) -> None:
        """Delete a posting whose time is over, so that nothing here says whose it was.

        Security: only for a name that the caller will never use again.
        """
        self._answers.pop(name, None)
        for suffix in (_ANSWER, _POSTING):
            self._path(name, suffix).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the names of everything stored."""
        paths = sorted(self._directory.glob(f"*{_POSTING}"))
        return [path.name.removesuffix(_POSTING).replace(".", "/") for path in paths]

    def __iter__(self) -> Iterator[Sent]:
        """Go through everything stored, by name."""
        for name in self.names():
            sent = self.find(name)
            if sent is not None:
                yield sent

    def refused(self) -> dict[str, Answer]:
        """Return what the board refused for good, by name."""
        return {name: answer for name, answer in sorted(self._answers.items()) if answer.refused}

    def _store(self, name: str, posting: Posting) -> Sent:
        """Keep a posting durably; a name is taken once."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        path = self._path(name, _POSTING)
        try:
            write_new_file(path, Secret(posting.data))
        except FileExists:
            raise InvalidInput(
                f"A posting named {name} was stored before; it is the one that counts."
            ) from None
        return Sent(name, posting, None)

    @staticmethod
    def _is_fresh(sent: Sent, height: int) -> bool:
        return sent.answer is not None and height < sent.answer.height + RESEND_BLOCKS

    def _write_answer(self, name: str, answer: Answer) -> None:
        replace_file(self._path(name, _ANSWER), Secret(msgspec.json.encode(answer)))
        self._answers[name] = answer

    def _path(self, name: str, suffix: str) -> Path:
        if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
            raise InvalidInput(f"{name!r} is no name for a posting.")
        return self._directory / f"{name.replace('/', '.')}{suffix}"


def may_pass(error: Refused) -> bool:
    """Whether a refusal says "not now" rather than "never"; expired receipts are renewed."""
    if error.code not in RULES or error.code in (EXPIRED.code, BLOCK_FULL.code):
        return True
    return error.is_passing


def is_expired(posting: Posting, height: int) -> bool:
    """Whether a receipt in a posting expired before a verified block, so that no later one takes it."""
    return any(receipt.expires < height for blob in _blobs_in(posting.body) for receipt in blob.receipts)


def _blobs_in(value: object) -> Iterator[Blob]:
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, View):
        for field in fields(value):
            yield from _blobs_in(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _blobs_in(item)
