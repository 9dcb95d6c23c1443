"""The keys of committees as verification reads them: each is read once, and each run is recomputed once.

What is kept here is a cache: after a restart it is made again from the state and the attachments.
"""

from anofel.board import key_runs
from anofel.board.attachments import Attachments
from anofel.board.cache import BoundedCache
from anofel.board.claims import CommitteeRef, KeyClaim
from anofel.board.state import KeyVote
from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed, KeyRefused
from anofel.committee.interface import CommitteeKey, Scheme

MAX_KEYS = 64


class CommitteeKeys:
    """Reads the keys of one board."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        self._keys: BoundedCache[tuple[bytes, int], CommitteeKey] = BoundedCache(MAX_KEYS)
        self._made: BoundedCache[bytes, KeyVote | str | None] = BoundedCache(MAX_KEYS)
        """What a run made, why it made nothing, or None where the scheme looks at each key."""
        self._looked_at: BoundedCache[tuple[bytes, bytes], str | None] = BoundedCache(MAX_KEYS)

    def read(self, committee: CommitteeRef) -> tuple[Scheme, CommitteeKey]:
        """Return a committee's scheme and key."""
        scheme, name = schemes.by_number(committee.scheme), (committee.shares_id, committee.scheme)
        read = self._attachments.read
        return scheme, self._keys.get_or(name, lambda: scheme.read_key(read(committee.shares_id)))

    def check_key(self, claim: KeyClaim) -> None:
        """Check that a blob is the key that a member posted. Raises ``KeyRefused``."""
        run = claim.run
        _, key = self.read(CommitteeRef(claim.key_id, run.scheme, claim.shares_id))
        shape = (key.shape.num_members, key.shape.threshold)
        if key.key_id != claim.key_id or key.shares_id != claim.shares_id:
            raise KeyRefused("The key has other names than the posting states.")
        if shape != (len(run.members), run.threshold) or key.share_epoch != claim.share_epoch:
            raise KeyRefused("The key is for another committee than the run's.")

    def check_made(self, claim: KeyClaim) -> None:
        """Check that a run made the key. Raises ``KeyGenerationFailed``.

        A run is recomputed once, whatever is claimed of it: claims are compared with what it made.
        """
        _, key = self.read(CommitteeRef(claim.key_id, claim.run.scheme, claim.shares_id))
        made = self._made.get_or(claim.digest, lambda: self._observe(claim))
        refusal = self._look_at(claim, key) if made is None else _difference(claim, made)
        if refusal is not None:
            raise KeyGenerationFailed(refusal)

    def _observe(self, claim: KeyClaim) -> KeyVote | str | None:
        try:
            return key_runs.observe(claim, self._attachments.read)
        except KeyGenerationFailed as error:
            return str(error)

    def _look_at(self, claim: KeyClaim, key: CommitteeKey) -> str | None:
        """Return why a key is not the run's; the transcript takes no part in it."""

        def look() -> str | None:
            try:
                key_runs.check_made(claim, key, self._attachments.read)
            except KeyGenerationFailed as error:
                return str(error)
            return None

        return self._looked_at.get_or((claim.digest, claim.shares_id), look)


def _difference(claim: KeyClaim, made: KeyVote | str) -> str | None:
    if isinstance(made, str):
        return made
    if made.shares_id != claim.shares_id:
        return "The messages of the run make another key."
    return None if made.transcript == claim.transcript else "The messages of the run have another transcript."
