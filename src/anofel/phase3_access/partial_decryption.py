"""Step 8 — an aggregator's shares: of the count first, then of the sum (AnoFel §4.3.3; D-08, D-09)."""

from anofel.board.rules.common import agreed_set, counted_bits
from anofel.board.shares import ShareDesk
from anofel.board.state import Bundle, State, TaskState
from anofel.committee import count
from anofel.committee.interface import CommitteeKey, Scheme, SecretKeyShare
from anofel.errors import InvalidInput
from anofel.messages import Blob, CountShare, SumShare


def share_of_count(
    state: State, bundle: Bundle, task: TaskState, key: CommitteeKey, share: SecretKeyShare
) -> CountShare:
    """Make a member's share of the count of the agreed set."""
    if bundle.current is None:
        raise InvalidInput("The bundle has no iteration yet.")
    agreed = agreed_set(state, bundle, task)
    tally = count.add(dict(counted_bits(bundle.current, task.position)))
    content = count.partial_decrypt(key, share.count_share, tally, agreed)
    return CountShare(
        task=task.task_id,
        iteration=bundle.current.number,
        member=share.member,
        agreed=agreed.digest,
        share=content,
    )


def share_of_sum(
    state: State,
    bundle: Bundle,
    task: TaskState,
    desk: ShareDesk,
    scheme: Scheme,
    key: CommitteeKey,
    share: SecretKeyShare,
) -> bytes:
    """Make a member's share of the sum; only for the set whose count was opened and is large enough.

    Raises ``TooFewClients`` and ``NotAgreed``.
    """
    if bundle.current is None:
        raise InvalidInput("The bundle has no iteration yet.")
    position = bundle.current.positions[task.position]
    permit = desk.permit(state, bundle, position)
    return scheme.partial_decrypt(key, share, desk.total(state, bundle, position), permit)


def post_sum_share(state: State, bundle: Bundle, task: TaskState, member: int, blob: Blob) -> SumShare:
    """Post a share of the sum."""
    if bundle.current is None:
        raise InvalidInput("The bundle has no iteration yet.")
    return SumShare(
        task=task.task_id,
        iteration=bundle.current.number,
        member=member,
        agreed=agreed_set(state, bundle, task).digest,
        share=blob,
    )
