"""A sealed submission on disk until its time comes, so that a crash costs no iteration and no second update.

The payloads are files; the rest, with the secret of the message key, is in the key store, whose save is
the moment from which the draft exists. A draft is deleted when its iteration is over.
"""

import os
from pathlib import Path

from anofel.disk.files import Secret, write_new_file
from anofel.disk.keystore import Keystore
from anofel.phase2_training.step5_submission import SealedSubmission


class Drafts:
    """The drafts of one client."""

    def __init__(self, directory: Path, secrets: Keystore) -> None:
        self._directory = directory
        self._secrets = secrets

    def keep(self, sealed: SealedSubmission) -> None:
        """Keep a sealed submission."""
        shown = sealed.membership
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for number, payload in enumerate(sealed.payloads):
            path = self._payload(shown.bundle, shown.iteration, number)
            path.unlink(missing_ok=True)  # of a draft that never came to be
            write_new_file(path, Secret(payload))
        self._secrets[_name(shown.bundle, shown.iteration)] = sealed.to_secret_bytes()
        self._secrets.save()

    def has(self, bundle: int, iteration: int) -> bool:
        """Whether an iteration has a draft."""
        return _name(bundle, iteration) in self._secrets

    def read(self, bundle: int, iteration: int) -> SealedSubmission:
        """Return the draft of an iteration that has one; it is deleted when the iteration is over."""
        return SealedSubmission.from_secret_bytes(
            self._secrets[_name(bundle, iteration)].reveal(),
            lambda number: self._payload(bundle, iteration, number).read_bytes(),
        )

    def _payload(self, bundle: int, iteration: int, number: int) -> Path:
        return self._directory / f"{bundle}-{iteration}-{number}"

    def drop(self, bundle: int, iteration: int) -> None:
        """Delete a draft."""
        name = _name(bundle, iteration)
        if name in self._secrets:
            del self._secrets[name]
            self._secrets.save()
        for pattern in (
            f"{bundle}-{iteration}-*",
            f".{bundle}-{iteration}-*",
        ):  # the hidden ones were cut short
            for path in self._directory.glob(pattern):
                path.unlink(missing_ok=True)

    def drop_all(self) -> None:
        """Delete every draft."""
        for name in [name for name in self._secrets if name.startswith("draft/")]:
            del self._secrets[name]
        self._secrets.save()
        if self._directory.is_dir():
            for entry in os.scandir(self._directory):
                os.unlink(entry.path)


def _name(bundle: int, iteration: int) -> str:
    return f"draft/{bundle}/{iteration}"
