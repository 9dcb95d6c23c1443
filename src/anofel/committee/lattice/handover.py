"""Refresh and change of members for ``lattice``: all 2049 keys in one run of three rounds."""

import hashlib

from anofel._core import committee as core
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.handover import Dealings, HandoverRounds, Received, write_run
from anofel.committee.interface import CommitteeKey, HandoverRun, ObservedKey, SecretKeyShare
from anofel.committee.lattice.key import NUM_KEYS, LatticeKey, LatticeShare, own, read_key, read_share
from anofel.committee.refusal import refusing
from anofel.committee.ristretto import handover as rounds
from anofel.committee.ristretto.run import Bodies
from anofel.committee.ristretto.verdict import Complaint
from anofel.committee.sealing import DealerKeys


class LatticeHandover(HandoverRounds[LatticeShare]):
    """Implements ``Handover``."""

    def read_key(self, data: bytes) -> LatticeKey:
        """Parse and validate a key."""
        return read_key(data)

    def read_share(self, key: CommitteeKey, data: bytes) -> LatticeShare:
        """Read a stored secret share."""
        return read_share(own(key), data)

    def check(self, run: HandoverRun, share: SecretKeyShare | None) -> LatticeShare | None:
        """Refuse a key or share of another scheme."""
        own(run.old_key)
        if share is not None and not isinstance(share, LatticeShare):
            raise InvalidCommittee("The share belongs to another scheme.")
        return share

    def deal(self, run: HandoverRun, share: LatticeShare, sealing_keys: Bodies) -> bytes:
        """Make a dealer's message."""
        return rounds.deal(plan_of(run), share.secrets, sealing_keys)

    def check_dealings(self, run: HandoverRun, dealt: Dealings) -> None:
        """Check every dealer's message."""
        rounds.new_keys(plan_of(run), dealt[1])

    def receive(self, run: HandoverRun, member: int, sealing: DealerKeys, dealt: Dealings) -> Received:
        """Return the new secret shares and the confirmation, or a complaint."""
        plan = plan_of(run)
        keys = rounds.new_keys(plan, dealt[1])
        secrets = rounds.receive(plan, member, sealing, dealt, keys)
        if isinstance(secrets, Complaint):
            return Received(b"", secrets.to_bytes())
        return Received(secrets.to_secret_bytes(), rounds.confirmation(plan, dealt, keys).to_bytes())

    def finish(self, run: HandoverRun, dealt: Dealings, verdicts: Bodies) -> ObservedKey:
        """Settle the run."""
        plan = plan_of(run)
        keys = rounds.new_keys(plan, dealt[1])
        transcript = rounds.finish(plan, dealt, keys, verdicts)
        key = LatticeKey(run.shape, run.old_key.share_epoch + 1, run.old_key.run, keys)
        return ObservedKey(key, transcript)

    def new_share(self, key: CommitteeKey, member: int, received: bytes) -> LatticeShare:
        """Read what was received."""
        with refusing(KeyGenerationFailed):
            return LatticeShare(key.shares_id, core.Secrets.read(own(key).keys, member, received))


def plan_of(run: HandoverRun) -> rounds.RistrettoPlan:
    """Return the plan for all keys."""
    return rounds.RistrettoPlan(
        digest=hashlib.sha256(b"anofel/1/committee/handover" + write_run(run)).digest(),
        old_keys=own(run.old_key).keys,
        num_keys=NUM_KEYS,
        dealers=run.dealers,
        shape=run.shape,
    )
