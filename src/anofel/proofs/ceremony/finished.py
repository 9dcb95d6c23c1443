"""From a ceremony that has ended to its keys, and back."""

import hashlib
from pathlib import Path

from anofel.errors import InvalidCeremony
from anofel.proofs.ceremony.transcript import CeremonyTranscript, OnCeremony, no_progress
from anofel.proofs.ceremony.verified import Verdict, remember
from anofel.proofs.keys import CEREMONY, STATEMENTS, KeyDirectory, MadeKey, StatementName, write_keys

Made = dict[StatementName, MadeKey]


def derive_keys(transcript: CeremonyTranscript, *, on_progress: OnCeremony = no_progress) -> Made:
    """Derive the key files, proving and verification, of a ceremony that has ended.

    Raises ``InvalidCeremony`` if it has not ended, or is only for some statements.
    """
    transcript.check_end()
    missing = [name for name in STATEMENTS if name not in transcript.agreement.statements]
    if missing:
        raise InvalidCeremony(f"The ceremony is a rehearsal: it makes no key for {' and '.join(missing)}.")
    digest, made = transcript.digest, {}
    for place, (name, key) in enumerate(zip(STATEMENTS, transcript.keys, strict=True)):
        on_progress(place, len(STATEMENTS), f"Deriving the {name} key")
        made[name] = MadeKey(key.proving_key(digest), key.verification_key(digest))
    on_progress(len(STATEMENTS), len(STATEMENTS), "Done")
    return made


def finish(
    transcript: CeremonyTranscript, beacon: bytes, out: Path, *, on_progress: OnCeremony = no_progress
) -> tuple[KeyDirectory, CeremonyTranscript]:
    """End a ceremony with its beacon and write the keys, with all that it takes to verify them."""
    ended = transcript.end(beacon)
    made = derive_keys(ended, on_progress=on_progress)
    remember(_verdict(ended, made))
    files = {f"{CEREMONY}/{name}": data for name, data in ended.files.items()}
    return write_keys(out, made, files), ended


def conclude(transcript: CeremonyTranscript, *, on_progress: OnCeremony = no_progress) -> Verdict:
    """Derive the ids of a verified ceremony that has ended, and remember them on this machine."""
    verdict = _verdict(transcript, derive_keys(transcript, on_progress=on_progress))
    remember(verdict)
    return verdict


def verify_keys(
    keys: KeyDirectory, *, other_powers: bytes | None = None, on_progress: OnCeremony = no_progress
) -> Verdict:
    """Verify the ceremony that a directory of keys holds, and that it yields these keys.

    Raises ``InvalidCeremony``.
    """
    transcript = CeremonyTranscript.open(
        keys.path / CEREMONY, other_powers=other_powers, on_progress=on_progress
    )
    verdict = conclude(transcript, on_progress=on_progress)
    for name, key_id in keys.pins().items():
        expected = verdict.transcript if name == "transcript" else verdict.pins[name]
        if key_id.hex() != expected:
            raise InvalidCeremony(
                f"The {name.replace('_', ' ')} in {keys.path} is not the one that its ceremony yields."
            )
    return verdict


def open_verified(path: Path, *, on_progress: OnCeremony = no_progress) -> KeyDirectory:
    """Open keys; if they claim a ceremony that was not verified here, verify it now.

    Development keys are opened as such: who uses them says so elsewhere. Raises ``AnofelError``.
    """
    keys = KeyDirectory.open(path)
    if not keys.is_insecure and not keys.is_verified:
        if (path / CEREMONY).is_dir():
            verify_keys(keys, on_progress=on_progress)
            keys = KeyDirectory.open(path)
        keys.require_verified()
    return keys


def _verdict(transcript: CeremonyTranscript, made: Made) -> Verdict:
    pins = {f"{name}_proving_key": hashlib.sha256(key.proving).hexdigest() for name, key in made.items()}
    pins |= {f"{name}_key": hashlib.sha256(key.verification).hexdigest() for name, key in made.items()}
    return Verdict(
        transcript=transcript.digest.hex(),
        powers=transcript.agreement.powers,
        people=transcript.num_people,
        pins=pins,
    )
