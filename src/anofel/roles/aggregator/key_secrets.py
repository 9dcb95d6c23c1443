"""The secrets of a committee's member in its key store, and when they are deleted.

1. ``share/<shares>`` is deleted as soon as the committee's current shares are of a later generation.
   They become current only when no iteration is between opening and outcome, and from then on the
   board takes nothing that was made with older ones.
2. ``run/<run>`` is deleted when the run's share is kept, or when the committee went past the run.
"""

from anofel.board.state import Committee, KeyRun, State
from anofel.disk.keystore import Keystore
from anofel.ids import RunId, SharesId, Subject
from anofel.phase1_setup.step1c_committee_key import established_by

_SHARE = "share/"
_RUN = "run/"


def share_name(shares_id: SharesId) -> str:
    """Return the name of a share in the key store."""
    return f"{_SHARE}{shares_id.hex()}"


def run_name(run_id: RunId) -> str:
    """Return the name of the secret state of a run in the key store."""
    return f"{_RUN}{run_id.hex()}"


def forget_stale(state: State, secrets: Keystore, subject: Subject) -> list[str]:
    """Delete what the member will never need again; return the names of what was deleted."""
    known = _stale_shares(state) | _stale_runs(state, secrets, subject)
    stale = [name for name in secrets if name in known]
    for name in stale:
        del secrets[name]
    if stale:
        secrets.save()
    return stale


def _stale_shares(state: State) -> set[str]:
    """The shares with which handovers began whose generation, or a later one, is in force (1)."""
    return {
        share_name(run.base)
        for run in state.runs.values()
        if run.base
        and (committee := _committee_of(state, run)) is not None
        and committee.current.share_epoch >= run.share_epoch
        and committee.current.shares_id != run.base
    }


def _stale_runs(state: State, secrets: Keystore, subject: Subject) -> set[str]:
    """The runs that are over for us (2)."""
    stale = set()
    for run in state.runs.values():
        committee = _committee_of(state, run)
        if committee is None or committee.current.share_epoch < run.share_epoch:
            continue
        current = committee.current
        needed = current.run_id == run.run_id and subject in current.members
        if not needed or share_name(current.shares_id) in secrets:
            stale.add(run_name(run.run_id))
    return stale


def _committee_of(state: State, run: KeyRun) -> Committee | None:
    if run.run.handover is not None:
        return state.committees.get(run.run.handover.key_id)
    vote = established_by(run)
    return None if vote is None else state.committees.get(vote.key_id)
