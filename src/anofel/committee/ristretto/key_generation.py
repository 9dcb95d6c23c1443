"""Step 1.c: key generation without a dealer, from round to round.

``begin`` and ``advance`` are pure but for the randomness they draw. A state can be saved after
every round and resumed; a message is made once and sent as often as needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from anofel._core import committee as core
from anofel.committee.errors import InvalidCommittee, KeyGenerationFailed
from anofel.committee.interface import KeyGenerationRun, RoundMessage, RoundResult, SecretRoundState
from anofel.committee.refusal import refusing
from anofel.committee.ristretto import round0_commit, round1_deal, round2_confirm
from anofel.committee.ristretto.run import (
    RistrettoObserved,
    RoundPart,
    RunPlan,
    SecretDrawn,
    SecretOutcome,
    SecretRistrettoState,
    collect,
)

NUM_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class RistrettoKeys:
    """The end of a successful run."""

    keys: core.Keys
    secrets: core.Secrets
    transcript: bytes


class RistrettoKeyGeneration:
    """Makes a number of keys for one purpose; a scheme wraps it."""

    def __init__(self, num_keys: int, purpose: str) -> None:
        self._num_keys = num_keys
        self._purpose = purpose

    def begin(self, run: KeyGenerationRun, member: int) -> RoundResult:
        """Start a run as the given member."""
        plan = self._plan(run)
        if member not in run.shape.members:
            raise InvalidCommittee(f"There is no member {member} in a committee of {run.shape.num_members}.")
        turn = round0_commit.send(plan, member)
        state = SecretRistrettoState(
            run=run, member=member, round=0, kept=turn.kept, history=(), body=turn.body
        )
        return RoundResult(state, state.message)

    def advance(
        self, state: SecretRoundState, messages: Sequence[RoundMessage]
    ) -> RoundResult | RistrettoKeys:
        """Go on with everybody's messages of ``state.round``. Raises ``KeyGenerationFailed``."""
        if not isinstance(state, SecretRistrettoState):
            raise TypeError("the state belongs to another key generation")
        plan = self._plan(state.run)
        bodies = collect(state.run.run_id, state.round, state.run.shape.members, messages)
        history = (*state.history, bodies)
        turn: RoundPart[SecretDrawn] | RoundPart[SecretOutcome | None]
        if state.round == 0:
            round0_commit.receive(plan, bodies)
            turn = round1_deal.send(plan, state.member, _drawn(state), bodies)
        elif state.round == 1:
            round1_deal.receive(plan, bodies)
            turn = round2_confirm.send(plan, state.member, _drawn(state), (history[0], history[1]))
        else:
            return self._finish(plan, state, bodies)
        following = SecretRistrettoState(
            run=state.run,
            member=state.member,
            round=state.round + 1,
            kept=turn.kept,
            history=history,
            body=turn.body,
        )
        return RoundResult(following, following.message)

    def resume(self, data: bytes) -> SecretRistrettoState:
        """Read a state that ``to_bytes`` wrote."""
        try:
            return SecretRistrettoState.from_bytes(data)
        except ValueError as error:
            raise KeyGenerationFailed(f"The stored state is damaged: {error}.") from None

    def observe(self, run: KeyGenerationRun, rounds: Sequence[Sequence[RoundMessage]]) -> RistrettoObserved:
        """Recompute keys and transcript from public messages alone. Raises ``KeyGenerationFailed``."""
        plan = self._plan(run)
        if len(rounds) > NUM_ROUNDS:
            raise KeyGenerationFailed(f"A run has {NUM_ROUNDS} rounds, not {len(rounds)}.")
        bodies = [
            collect(run.run_id, number, run.shape.members, messages) for number, messages in enumerate(rounds)
        ]
        checked = round0_commit.receive(plan, bodies[0]) if bodies else []
        if len(bodies) > 1:
            round1_deal.receive(plan, bodies[1])
        if len(bodies) < NUM_ROUNDS:
            raise KeyGenerationFailed(
                f"The run is not finished: it has {NUM_ROUNDS} rounds, and {len(bodies)} are there."
            )
        return round2_confirm.receive(plan, (bodies[0], bodies[1]), checked, bodies[2])

    def first_keys(self, run: KeyGenerationRun, messages: Sequence[RoundMessage]) -> core.Keys:
        """Return the keys that a run makes if it succeeds. Raises ``KeyGenerationFailed``."""
        plan = self._plan(run)
        checked = round0_commit.receive(plan, collect(run.run_id, 0, run.shape.members, messages))
        with refusing(KeyGenerationFailed):
            return core.dkg_keys(plan.core_shape, checked)

    def _finish(self, plan: RunPlan, state: SecretRistrettoState, bodies: dict[int, bytes]) -> RistrettoKeys:
        history = (state.history[0], state.history[1])
        checked = round0_commit.receive(plan, history[0])
        made = round2_confirm.receive(plan, history, checked, bodies)
        if not isinstance(state.kept, SecretOutcome):
            raise KeyGenerationFailed("The stored state is damaged: it has no shares.")
        with refusing(KeyGenerationFailed):
            secrets = core.Secrets.read(made.keys, state.member, state.kept.shares)
        return RistrettoKeys(made.keys, secrets, made.transcript)

    def _plan(self, run: KeyGenerationRun) -> RunPlan:
        return RunPlan(run, self._num_keys, self._purpose)


def _drawn(state: SecretRistrettoState) -> SecretDrawn:
    if not isinstance(state.kept, SecretDrawn):
        raise KeyGenerationFailed("The stored state is damaged: it has no secrets of its round.")
    return state.kept
