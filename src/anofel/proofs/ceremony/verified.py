"""What this machine verified itself, so that it verifies a ceremony once and not at every start.

A verdict is a file under the user's own state directory, named by the transcript's digest; it holds the ids
that were derived from the powers of tau and the final files. It is as good as the program itself: whoever
can write there as this user can replace the program too. Nothing that comes with keys is ever one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from anofel.disk.files import Secret, replace_file
from anofel.disk.sections import InvalidDocument, canonical_json, parse_json
from anofel.errors import AnofelError, InvalidCeremony, InvalidInput

_Id = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits")]


class UnverifiedCeremony(AnofelError):
    """Keys say that they come from a ceremony, and this machine has not verified it."""

    code = "unverified-ceremony"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A ceremony that was verified here."""

    anofel: Literal["ceremony-verdict"] = "ceremony-verdict"
    version: Literal[1] = 1
    transcript: _Id
    powers: Annotated[str, Meta(pattern="^[0-9a-f]{128}$")]
    people: int
    pins: dict[str, str]
    """The ids of the keys, by the names of genesis's fields."""


def _place(transcript: bytes) -> Path:
    from platformdirs import user_state_path

    return user_state_path("anofel") / "ceremonies" / f"{transcript.hex()}.json"


def remember(verdict: Verdict) -> Path:
    """Keep a verdict that this program has just reached."""
    path = _place(bytes.fromhex(verdict.transcript))
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidInput(f"{path.parent} cannot be made: {error.strerror or error}.") from error
    values = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
    replace_file(path, Secret(canonical_json(values) + b"\n"))
    return path


def recall(transcript: bytes) -> Verdict | None:
    """Return the verdict of this machine, if it has one."""
    path = _place(transcript)
    try:
        made = parse_json(path.read_bytes(), Verdict, str(path))
    except (OSError, InvalidDocument):
        return None
    return made if made.transcript == transcript.hex() else None


def require_verified(transcript: bytes, pins: dict[str, bytes], where: str) -> Verdict:
    """Refuse keys whose ceremony was not verified here, or whose ids it did not yield.

    Raises ``UnverifiedCeremony``, ``InvalidCeremony``.
    """
    verdict = recall(transcript)
    if verdict is None:
        raise UnverifiedCeremony(
            f"{where} claim to come from the ceremony {transcript.hex()[:16]}…, which was not verified here; "
            "get its files and run anofel setup ceremony verify on them."
        )
    for name, key_id in pins.items():
        if verdict.pins.get(name) != key_id.hex():
            what = name.replace("_", " ")
            raise InvalidCeremony(
                f"{where} name a {what} that the verified ceremony {transcript.hex()[:16]}… did not yield."
            )
    return verdict
