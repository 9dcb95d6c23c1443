"""TEST ONLY: what has ended on a board, put there by hand as the rules and the clock leave it."""

import hashlib

from anofel.board.announcement import facts_of
from anofel.board.state import (
    Agreement,
    Bundle,
    Committee,
    CommitteeShares,
    GroupTotal,
    Iteration,
    KeyRun,
    Phase,
    Position,
    Progress,
    State,
    TaskState,
)
from anofel.messages import Run
from anofel.phase1_setup.step1d_announcement import announce
from tests.board.world import a_task


def name_of(what: str, number: int) -> bytes:
    return hashlib.sha256(f"{what} {number}".encode()).digest()


def add_ended(state: State, num_bundles: int, *, num_tasks: int = 2, num_members: int = 3) -> None:
    """Add bundles whose tasks all ended after an iteration, with their committees and runs."""
    posted, facts = announce(a_task(), key_id=bytes(32)), facts_of(a_task(), state.genesis.classes[0])
    members = tuple(name_of("member", number) for number in range(num_members))
    for _ in range(num_bundles):
        number = len(state.bundles)
        places = range(number * num_tasks, (number + 1) * num_tasks)
        for place in places:
            run_id, key_id, task_id = (name_of(what, place) for what in ("run", "key", "task"))
            run = Run(scheme=0, members=members, threshold=2, handover=None, nonce=run_id)
            state.runs[run_id] = KeyRun(run_id, run, members[0], 0, done=True, history=run_id)
            shares = CommitteeShares(run_id, key_id, members, 2, 0)
            state.committees[key_id] = Committee(key_id, 0, shares)
            task = TaskState(task_id, name_of("owner", place), posted, facts, 0, 0, bundle=number, ended=True)
            task.position, task.model, task.releases, task.history = place - places[0], key_id, 1, task_id
            state.tasks[task_id] = task
        state.bundles[number] = Bundle(
            number=number,
            tasks=tuple(name_of("task", place) for place in places),
            size_class=0,
            early_end=False,
            phase=Phase.ENDED,
            iterations=1,
            current=_iteration([name_of("task", place) for place in places], members),
            ended_at=0,
        )


def _iteration(tasks: list[bytes], members: tuple[bytes, ...]) -> Iteration:
    agreed = Agreement(excluded=(), groups=(GroupTotal(bytes(32), 9, bytes(32)),))
    positions = [
        Position(
            task_id=task,
            progress=Progress.SUMMED,
            shares=CommitteeShares(task, task, members, 2, 0),
            agreed=agreed,
            counts=(9,),
            total=task,
            history=task,
        )
        for task in tasks
    ]
    return Iteration(1, 1, 2, 0, 9, bytes(32), closed_at=2, positions=positions)
