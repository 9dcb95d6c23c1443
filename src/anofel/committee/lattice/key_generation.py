"""Step 1.c for ``lattice``: all 2049 keys in one run of three rounds."""

from collections.abc import Sequence

from anofel.committee.context import CommitteeShape
from anofel.committee.interface import (
    CommitteeKey,
    GeneratedKey,
    KeyGenerationRun,
    ObservedKey,
    PostedRounds,
    RoundMessage,
    RoundResult,
    SecretRoundState,
    check_made,
)
from anofel.committee.lattice.key import NAME, NUM_KEYS, LatticeKey, LatticeShare
from anofel.committee.ristretto.key_generation import NUM_ROUNDS, RistrettoKeyGeneration


class LatticeKeyGeneration:
    """Dealerless key generation; implements ``KeyGeneration``."""

    def __init__(self) -> None:
        self._rounds = RistrettoKeyGeneration(NUM_KEYS, NAME)

    @property
    def min_rounds(self) -> int:
        """Return the number of rounds."""
        return NUM_ROUNDS

    def max_rounds(self, shape: CommitteeShape) -> int:  # noqa: ARG002 - every run has as many
        """Return the number of rounds."""
        return NUM_ROUNDS

    def begin(self, run: KeyGenerationRun, member: int) -> RoundResult:
        """Start a run as the given member."""
        return self._rounds.begin(run, member)

    def advance(
        self, state: SecretRoundState, messages: Sequence[RoundMessage]
    ) -> RoundResult | GeneratedKey:
        """Go on with every member's message of ``state.round``."""
        result = self._rounds.advance(state, messages)
        if isinstance(result, RoundResult):
            return result
        key = LatticeKey(state.run.shape, 0, state.run.run_id, result.keys)
        return GeneratedKey(key, LatticeShare(key.shares_id, result.secrets), result.transcript)

    def resume(self, data: bytes) -> SecretRoundState:
        """Read a state that ``to_bytes`` wrote."""
        return self._rounds.resume(data)

    def observe(self, run: KeyGenerationRun, rounds: Sequence[Sequence[RoundMessage]]) -> ObservedKey:
        """Recompute key and transcript from public messages alone."""
        made = self._rounds.observe(run, rounds)
        return ObservedKey(LatticeKey(run.shape, 0, run.run_id, made.keys), made.transcript)

    @property
    def recomputed_on_admission(self) -> bool:
        """Its messages are small."""
        return True

    def check_key(
        self, run: KeyGenerationRun, rounds: PostedRounds, key: CommitteeKey, transcript: bytes
    ) -> None:
        """Recompute key and transcript from all messages."""
        check_made(self.observe(run, rounds.all()), key, transcript)
