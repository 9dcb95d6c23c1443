"""Steps 6 and 7 — an aggregator collects the accepted submissions and adds them (AnoFel §4.3.3; D-18).

A payload that the scheme refuses is excluded; the exclusion stands in the ``Aggregate``, so that anybody
who has the payload can check it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anofel.board.rules.common import addressee_of, iteration_context
from anofel.board.rules.sums import Reason
from anofel.board.state import Accepted, Bundle, State, TaskState
from anofel.committee.context import IterationContext, PostContext
from anofel.committee.errors import PayloadRefused
from anofel.committee.interface import CheckedPayload, CommitteeKey, EncryptedSum, Envelope, Scheme
from anofel.errors import InvalidInput
from anofel.messages import Aggregate, Blob, Exclusion


@dataclass(frozen=True, slots=True)
class CollectedSum:
    """What an aggregator added, and what it left out."""

    total: EncryptedSum
    excluded: tuple[Exclusion, ...]


def post_context(iteration: IterationContext, post: Accepted) -> PostContext:
    """Return what the ciphertexts of an accepted submission are bound to."""
    return PostContext(iteration=iteration, nullifier=post.nullifier, tag=post.tag, pk_sig=post.message_key)


def check_payload(
    state: State,
    bundle: Bundle,
    task: TaskState,
    scheme: Scheme,
    key: CommitteeKey,
    post: Accepted,
    payload: bytes,
) -> CheckedPayload:
    """Check and parse one payload (step 6). Raises ``PayloadRefused``; the verdict is deterministic."""
    name = post.payloads[task.position]
    envelope = Envelope(proof=name.envelope, payload_length=name.length, payload_sha256=name.sha256)
    context = post_context(iteration_context(state, bundle, task), post)
    return scheme.verify_payload(key, context, addressee_of(state, task).limits, envelope, payload)


class Collector:
    """Checks and adds the submissions of one iteration as they arrive; the board's order does not matter."""

    def __init__(
        self, state: State, bundle: Bundle, task: TaskState, scheme: Scheme, key: CommitteeKey
    ) -> None:
        self._scheme, self._key = scheme, key
        self._accumulator = scheme.accumulator(
            key, iteration_context(state, bundle, task), addressee_of(state, task).limits
        )
        self._taken: set[bytes] = set()
        self._excluded: list[Exclusion] = []

    def take(self, state: State, bundle: Bundle, task: TaskState, read: Callable[[bytes], bytes]) -> int:
        """Take what was accepted since the last time, and return how many; ``read`` gives payloads."""
        before = len(self._taken)
        for post in accepted(bundle):
            if post.nullifier not in self._taken:
                payload = read(post.payloads[task.position].sha256)
                self._add(state, bundle, task, post, payload)
                self._taken.add(post.nullifier)
        return len(self._taken) - before

    def _add(self, state: State, bundle: Bundle, task: TaskState, post: Accepted, payload: bytes) -> None:
        try:
            checked = check_payload(state, bundle, task, self._scheme, self._key, post, payload)
            self._accumulator.add(checked)
        except PayloadRefused:
            self._excluded.append(Exclusion(nullifier=post.nullifier, reason=Reason.PAYLOAD_REFUSED))

    def finish(self) -> CollectedSum:
        """Return the sum of what was taken; nothing can be taken afterwards."""
        excluded = sorted(self._excluded, key=lambda entry: entry.nullifier)
        return CollectedSum(self._accumulator.finish(), tuple(excluded))


def collect(
    state: State,
    bundle: Bundle,
    task: TaskState,
    scheme: Scheme,
    key: CommitteeKey,
    read: Callable[[bytes], bytes],
) -> CollectedSum:
    """Add every accepted submission of the closed iteration (step 7); ``read`` gives a payload by hash."""
    collector = Collector(state, bundle, task, scheme, key)
    collector.take(state, bundle, task, read)
    return collector.finish()


def accepted(bundle: Bundle) -> Iterator[Accepted]:
    """Return the accepted submissions of the current iteration, in board order."""
    if bundle.current is None:
        raise InvalidInput("The bundle has no iteration yet.")
    yield from bundle.current.submissions.values()


def post_aggregate(
    task_id: bytes, bundle: Bundle, member: int, collected: CollectedSum, blob: Blob
) -> Aggregate:
    """State what was added, before any share (D-18)."""
    if bundle.current is None:
        raise InvalidInput("The bundle has no iteration yet.")
    return Aggregate(
        task=task_id,
        iteration=bundle.current.number,
        member=member,
        close_hash=bundle.current.close_hash,
        excluded=collected.excluded,
        set_digest=collected.total.set_digest,
        num_posts=collected.total.num_posts,
        sum=blob,
    )
