"""Round 0 - every member posts a one-time sealing key and commits to the seed of the whole run."""

import hashlib
from collections.abc import Sequence

from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.key_rounds.phase import PublicOnly
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    RunStopped,
    SecretPaillierState,
)
from anofel.committee.sealing import KEY_LENGTH, SealingKey, seal

COMMITMENT_BYTES = 32


def seed_commitment(setting: RunSetting, member: int, seed: bytes) -> bytes:
    """Return the hash that binds a member to its seed."""
    prefix = b"anofel/1/paillier/seed" + setting.run.run_id + bytes([member])
    return hashlib.sha256(prefix + seed).digest()


def sealing_key(seed: bytes) -> SealingKey:
    """Return the one-time key to which others seal a member's private parts."""
    bits = SeededRandomness(seed, "sealing").bits(8 * KEY_LENGTH)
    return SealingKey.from_bytes(bits.to_bytes(KEY_LENGTH, "little"))


class Hello(PublicOnly):
    """Post the sealing key and the commitment to the seed."""

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Derive the sealing key from the seed."""
        commitment = seed_commitment(state.setting, state.member, state.seed)
        return commitment + sealing_key(state.seed).public(), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:  # noqa: ARG002
        """Keep everybody's keys; one that nothing can be sealed to is refused at once."""
        wrong = [i for i, part in enumerate(parts, 1) if not _usable(part)]
        if wrong:
            raise RunStopped("A first message has no usable key.", wrong)
        public.seed_commitments = [part[:COMMITMENT_BYTES].hex() for part in parts]
        public.sealing_keys = [part[COMMITMENT_BYTES:].hex() for part in parts]
        return "sieve-deal"


def _usable(part: bytes) -> bool:
    if len(part) != COMMITMENT_BYTES + KEY_LENGTH:
        return False
    try:
        seal(part[COMMITMENT_BYTES:], b"", b"")
    except ValueError:  # a point of small order
        return False
    return True
