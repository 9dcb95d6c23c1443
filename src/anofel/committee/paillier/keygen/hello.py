"""Round 0 - every member posts its channel keys and commits to the seed of the whole run."""

import hashlib
from collections.abc import Sequence

from anofel.committee.paillier.keygen.channel import KEY_BYTES, channel_public, channel_secret
from anofel.committee.paillier.keygen.phase import PublicOnly
from anofel.committee.paillier.keygen.state import Fault, PublicState, SecretState, Setting


def seed_commitment(setting: Setting, member: int, seed: bytes) -> bytes:
    """Return the hash that binds a member to its seed."""
    prefix = b"anofel/v1/paillier/seed" + setting.run.run_id + bytes([member])
    return hashlib.sha256(prefix + seed).digest()


class Hello(PublicOnly):
    """Post channel keys and the commitment to the seed."""

    def make(self, state: SecretState) -> tuple[bytes, list[bytes]]:
        """Derive one channel key per member from the seed."""
        keys = [channel_public(channel_secret(state.seed, other)) for other in state.run.shape.members]
        return seed_commitment(state.setting, state.member, state.seed) + b"".join(keys), []

    def publish(self, setting: Setting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Keep everybody's keys."""
        expected = KEY_BYTES * (1 + setting.shape.num_members)
        wrong = [i for i, part in enumerate(parts, 1) if len(part) != expected]
        if wrong:
            raise Fault("A first message has the wrong length.", wrong)
        rows = [[part[k : k + KEY_BYTES].hex() for k in range(0, expected, KEY_BYTES)] for part in parts]
        public.seed_commitments = [row[0] for row in rows]
        public.channel_keys = [row[1:] for row in rows]
        if len(set(public.seed_commitments)) != len(rows):
            raise Fault("Two members posted the same commitment.", _repeated(public.seed_commitments))
        return "sieve-deal"


def _repeated(values: Sequence[str]) -> list[int]:
    return [i for i, value in enumerate(values, 1) if values.count(value) > 1]
