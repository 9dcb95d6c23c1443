"""Step 1.c for ``paillier``: key generation without a dealer behind the committee's interface.

The committee's count key is made in the first three rounds, by the same messages.
"""

import secrets
import time
from collections.abc import Sequence

from anofel._core import committee as core
from anofel.committee import count_key
from anofel.committee.context import CommitteeShape
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import (
    ESTIMATE,
    CommitteeKey,
    GeneratedKey,
    KeyGenerationRun,
    ObservedKey,
    PostedRounds,
    Report,
    RoundMessage,
    RoundResult,
    SecretRoundState,
)
from anofel.committee.paillier.arithmetic.modular import power, power_secret
from anofel.committee.paillier.arithmetic.randomness import SEED_BYTES
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.paillier.key import COUNT_KEYS, own, read_count_keys
from anofel.committee.paillier.key_rounds import confirmation, engine
from anofel.committee.paillier.key_rounds.confirmation import draft_key, own_share
from anofel.committee.paillier.key_rounds.messages import SecretDraft, parse
from anofel.committee.paillier.key_rounds.sizes import FINAL_TESTS, Sizes
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    SecretPaillierState,
    read_state,
)
from anofel.committee.ristretto.key_generation import NUM_ROUNDS as COUNT_ROUNDS
from anofel.committee.ristretto.key_generation import RistrettoKeyGeneration, RistrettoKeys
from anofel.committee.ristretto.run import RistrettoObserved, collect
from anofel.framing import Reader, Writer

MIN_ROUNDS = sum(2 if phase.committed else 1 for phase in engine.PHASES.values())
"""Messages of a run whose first batch holds the modulus."""

BATCH_ROUNDS = 7
"""Messages of a further batch."""

DROPPED_ROUNDS = 4
"""Messages spent on a candidate that fails its final tests or the gcd check; one in a batch is plenty."""

OPENING_ROUNDS = 1
"""A run that fails ends with everybody's seeds."""

COUNT_PURPOSE = "paillier/count"

WORK_PER_TEST = 1.6
"""Measured: the whole computation of a member over its first tests alone."""


class PaillierKeyGeneration:
    """Dealerless key generation; implements ``KeyGeneration``."""

    def __init__(self, modulus_bits: int, report: Report | None = None) -> None:
        self._modulus_bits = modulus_bits
        self._report = report
        self._count = RistrettoKeyGeneration(COUNT_KEYS, COUNT_PURPOSE)

    @property
    def min_rounds(self) -> int:
        """The fewest messages that each member posts in a run that succeeds."""
        return MIN_ROUNDS

    def max_rounds(self, shape: CommitteeShape) -> int:
        """Return the most messages that a run takes. Raises ``InvalidCommittee``."""
        batches = Sizes(self._modulus_bits, shape).max_batches
        return MIN_ROUNDS + OPENING_ROUNDS + (batches - 1) * BATCH_ROUNDS + batches * DROPPED_ROUNDS

    def estimate_seconds(self, run: KeyGenerationRun) -> float:
        """Return the expected time of one member's computation on this machine, by timing one test.

        The time varies as the wait for a lucky number does: one run in twenty takes three times as long.
        """
        sizes = Sizes(self._modulus_bits, run.shape)
        modulus = Transcript("anofel/1/paillier/estimate").residue("modulus", 1 << sizes.modulus_bits) | 1
        once = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            power_secret(3, sizes.window // 4, modulus)
            power(3, modulus >> 2, modulus)
            once = min(once, time.perf_counter() - start)
        return once * (sizes.expected_tests * WORK_PER_TEST + FINAL_TESTS)

    def begin(self, run: KeyGenerationRun, member: int) -> RoundResult:
        """Start a run as the given member."""
        count = self._count.begin(run, member)
        setting = self._setting(run, self._modulus_bits)
        setting.progress(ESTIMATE, 0, 1)
        state = SecretPaillierState(
            setting=setting,
            member=member,
            seed=secrets.token_bytes(SEED_BYTES),
            public=PublicState(),
            count=count.state.to_bytes(),
        )
        return self._result(state, engine.first_draft(state), count.message.body)

    def advance(
        self, state: SecretRoundState, messages: Sequence[RoundMessage]
    ) -> RoundResult | GeneratedKey:
        """Go on with every member's message of ``state.round``. The given state is not changed."""
        if not isinstance(state, SecretPaillierState):
            raise InvalidCommittee("The state belongs to another key generation.")
        ours, count_bodies = _split(state.run, state.round, messages)
        following = state.copy()
        number, count_body = state.round, b""
        if number < COUNT_ROUNDS:
            count_body = self._advance_count(following, number, count_bodies)
        draft = engine.advance(following, ours)
        if draft is None:
            return self._finish(following)
        return self._result(following, draft, count_body)

    def resume(self, data: bytes) -> SecretPaillierState:
        """Read a state that ``to_bytes`` wrote."""
        return read_state(data, self._setting)

    def observe(self, run: KeyGenerationRun, rounds: Sequence[Sequence[RoundMessage]]) -> ObservedKey:
        """Recompute key and transcript from the messages of all rounds; judge a failed run."""
        setting, public = RunSetting(run, Sizes(self._modulus_bits, run.shape)), PublicState()
        split = [_split(run, number, messages) for number, messages in enumerate(rounds)]
        ours, count = [bodies for bodies, _ in split], [bodies for _, bodies in split[:COUNT_ROUNDS]]
        keys = self._observe_count(run, count)
        for number, sent in enumerate(ours):
            if public.phase == "done":
                raise KeyGenerationFailed("There are messages after the end of the run.")
            bodies = parse(sent, run.shape.num_members)
            engine.judge(setting, public, bodies, ours[: number + 1])
            engine.absorb(setting, public, sent, bodies)
        if public.phase != "done" or keys is None:
            raise KeyGenerationFailed("The run is not finished.")
        key = draft_key(setting, public, count_key.from_keys(run.shape, keys.keys, 0))
        return ObservedKey(key, _transcript(public, keys.transcript))

    @property
    def recomputed_on_admission(self) -> bool:
        """All messages together have tens of megabytes."""
        return False

    def check_key(
        self, run: KeyGenerationRun, rounds: PostedRounds, key: CommitteeKey, transcript: bytes
    ) -> None:
        """Check a key against three rounds; all of them together have tens of megabytes (``observe``).

        The transcript is what t members state equally, and what an audit recomputes.

        1. The key names this run, and nobody's first message is that of another run.
        2. The first messages make its count key.
        3. Everybody decrypted the test ciphertexts of this key, which depend on run and transcript.
        4. Everybody confirmed this key at the end.
        """
        del transcript
        ours = own(key)
        if rounds.number < MIN_ROUNDS:
            raise KeyGenerationFailed("The run is not finished.")
        if ours.run != run.run_id or ours.shape != run.shape or ours.share_epoch:  # (1)
            raise KeyGenerationFailed("The key names another run.")
        _, hello = _split(run, 0, rounds.read(0))
        keys = self._count.first_keys(run, _count_messages(run, 0, hello))
        if count_key.from_keys(run.shape, keys, 0) != ours.count_key:  # (2)
            raise KeyGenerationFailed("The first messages of the run make another count key.")
        last = [_split(run, number, rounds.read(number))[0] for number in range(rounds.number)[-2:]]
        confirmation.check_key(ours, *(parse(sent, run.shape.num_members) for sent in last))  # (3), (4)

    def _observe_count(
        self, run: KeyGenerationRun, bodies: Sequence[Sequence[bytes]]
    ) -> RistrettoObserved | None:
        """Return the count key that the first rounds made; None if they are not all there."""
        try:
            return self._count.observe(run, [_count_messages(run, k, sent) for k, sent in enumerate(bodies)])
        except KeyGenerationFailed as error:
            if error.culprits or len(bodies) == COUNT_ROUNDS:
                raise
            return None

    def _setting(self, run: KeyGenerationRun, modulus_bits: int) -> RunSetting:
        seconds = self.estimate_seconds(run) if self._report else 0.0
        return RunSetting(run, Sizes(modulus_bits, run.shape), self._report, seconds)

    def _advance_count(self, state: SecretPaillierState, number: int, bodies: Sequence[bytes]) -> bytes:
        """Take the count key's generation one round further; return its next body."""
        kept = self._count.resume(state.count)
        result = self._count.advance(kept, _count_messages(state.run, number, bodies))
        if isinstance(result, RistrettoKeys):
            writer = Writer().framed(result.keys.to_bytes()).framed(result.secrets.to_secret_bytes())
            state.count = writer.framed(result.transcript).done()
            return b""
        state.count = result.state.to_bytes()
        return result.message.body

    def _result(self, state: SecretPaillierState, draft: SecretDraft, count_body: bytes) -> RoundResult:
        body = engine.sealed_body(state, draft).to_bytes()
        state.body = Writer().framed(count_body).framed(body).done()
        return RoundResult(state, state.message)

    def _finish(self, state: SecretPaillierState) -> GeneratedKey:
        public_count, secret_count, transcript = _read_count(state)
        key = draft_key(state.setting, state.public, public_count)
        return GeneratedKey(key, own_share(state, key, secret_count), _transcript(state.public, transcript))


def _read_count(state: SecretPaillierState) -> tuple[CountKey, SecretCountShare, bytes]:
    reader = Reader(state.count)
    keys = read_count_keys(state.run.shape, reader.framed())
    scalars, transcript = core.Secrets.read(keys, state.member, reader.framed()), reader.framed()
    shape = state.run.shape
    return count_key.from_keys(shape, keys, 0), count_key.from_secrets(scalars, 0), transcript


def _split(
    run: KeyGenerationRun, number: int, messages: Sequence[RoundMessage]
) -> tuple[list[bytes], list[bytes]]:
    """Return everybody's own part and count part of a round, by member."""
    ours, count = [], []
    for sender, body in sorted(collect(run.run_id, number, run.shape.members, messages).items()):
        reader = Reader(body)
        try:
            count.append(reader.framed())
            ours.append(reader.framed())
            reader.end()
        except ValueError:
            raise KeyGenerationFailed(f"Member {sender} sent a malformed message.", [sender]) from None
        if number >= COUNT_ROUNDS and count[-1]:
            raise KeyGenerationFailed(f"Member {sender} sent a count part that has no place.", [sender])
    return ours, count


def _count_messages(run: KeyGenerationRun, number: int, bodies: Sequence[bytes]) -> list[RoundMessage]:
    return [
        RoundMessage(run_id=run.run_id, round=number, sender=sender, body=body)
        for sender, body in enumerate(bodies, 1)
    ]


def _transcript(public: PublicState, count: bytes) -> bytes:
    """Hash both parts of the run."""
    transcript = Transcript("anofel/1/paillier/generation").append(
        "paillier", bytes.fromhex(public.transcript)
    )
    return transcript.append("count", count).digest("transcript")
