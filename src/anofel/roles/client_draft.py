"""A sealed submission on disk until its time comes, so that a crash costs no iteration and no second update.

The payloads are files; the rest, with the secret of the message key, is in the key store, whose save is
the moment from which the draft exists. A draft is deleted when its iteration is over.
"""

import os
from pathlib import Path

import msgspec

from anofel.files import Secret, write_new_file
from anofel.keystore import Keystore
from anofel.phase2_training.submit_update import MembershipContent, PreparedSubmission, SealedSubmission
from anofel.primitives import (
    IterationNullifier,
    MessageKey,
    MessageSecret,
    Root,
    Scope,
    Tag,
    TypeCommitment,
)
from anofel.proofs import SubmissionProof


class _Draft(msgspec.Struct, array_like=True, frozen=True):
    bundle: int
    iteration: int
    client_root: bytes
    nullifier: bytes
    tag: bytes
    scope: bytes
    type_commitment: bytes
    proof: bytes
    message_secret: bytes
    ballot: bytes
    target: int | None
    envelopes: tuple[bytes, ...]
    files: tuple[str, ...]


class Drafts:
    """The drafts of one client."""

    def __init__(self, directory: Path, secrets: Keystore) -> None:
        self._directory = directory
        self._secrets = secrets

    def keep(self, sealed: SealedSubmission) -> None:
        """Keep a sealed submission."""
        prepared, member = sealed.prepared, sealed.prepared.membership
        self._directory.mkdir(mode=0o700, exist_ok=True)
        names = [f"{prepared.bundle}-{prepared.iteration}-{n}" for n in range(len(sealed.payloads))]
        for name, payload in zip(names, sealed.payloads, strict=True):
            (self._directory / name).unlink(missing_ok=True)  # of a draft that never came to be
            write_new_file(self._directory / name, Secret(payload))
        draft = _Draft(
            bundle=prepared.bundle,
            iteration=prepared.iteration,
            client_root=member.client_root.to_bytes(),
            nullifier=member.nullifier.to_bytes(),
            tag=member.tag.to_bytes(),
            scope=member.scope.to_bytes(),
            type_commitment=member.type_commitment.to_bytes(),
            proof=member.proof.to_bytes(),
            message_secret=prepared.message_secret.to_secret_bytes(),
            ballot=prepared.ballot,
            target=prepared.target,
            envelopes=sealed.envelopes,
            files=tuple(names),
        )
        self._secrets[_name(prepared.bundle, prepared.iteration)] = msgspec.msgpack.encode(draft)
        self._secrets.save()

    def has(self, bundle: int, iteration: int) -> bool:
        """Whether an iteration has a draft."""
        return _name(bundle, iteration) in self._secrets

    def find(self, bundle: int, iteration: int) -> SealedSubmission | None:
        """Return the draft of an iteration."""
        name = _name(bundle, iteration)
        if name not in self._secrets:
            return None
        draft = msgspec.msgpack.decode(self._secrets[name].reveal(), type=_Draft)
        message_secret = MessageSecret.from_bytes(draft.message_secret)
        membership = MembershipContent(
            client_root=Root.from_bytes(draft.client_root),
            nullifier=IterationNullifier.from_bytes(draft.nullifier),
            tag=Tag.from_bytes(draft.tag),
            message_key=MessageKey.from_bytes(message_secret.public_key().to_bytes()),
            scope=Scope.from_bytes(draft.scope),
            type_commitment=TypeCommitment.from_bytes(draft.type_commitment),
            proof=SubmissionProof.from_bytes(draft.proof),
        )
        prepared = PreparedSubmission(
            bundle=draft.bundle,
            iteration=draft.iteration,
            membership=membership,
            message_secret=message_secret,
            ballot=draft.ballot,
            schemes=(),  # everything is encrypted already
            prepared=(),
            target=draft.target,
            lengths=(),
        )
        payloads = tuple((self._directory / file).read_bytes() for file in draft.files)
        return SealedSubmission(prepared, draft.envelopes, payloads)

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
