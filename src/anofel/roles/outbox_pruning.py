"""Which stored postings have had their time, so that an outbox does not grow for ever.

A posting is forgotten when its role will never use its name again:

1. one of an iteration, when a later iteration opened or the bundle ended;
2. an entry of the ε ledger, when there were more releases since, or when the task ended with it on the board;
3. a message of a run, when the run is over and its secret state is deleted.
"""

from collections.abc import Callable, Container
from typing import Final

from anofel.board.state import Phase, State
from anofel.ids import RunId, TaskId
from anofel.roles.aggregator.key_secrets import run_name
from anofel.roles.outbox import Outbox

_OF_ITERATIONS: Final = ("aggregate", "count-share", "sum-share", "model", "reject", "end-iteration")
_OF_RUNS: Final = ("key-round", "committee-key")


def forget_old(outbox: Outbox, state: State, secrets: Container[str]) -> list[str]:
    """Forget what has had its time; return the names."""
    forgotten = [name for name in outbox.names() if _is_over(name, state, secrets)]
    for name in forgotten:
        outbox.forget(name)
    return forgotten


def _is_over(name: str, state: State, secrets: Container[str]) -> bool:
    kind, *rest = name.split("/")
    if kind in _OF_RUNS:
        return _run_is_over(RunId(bytes.fromhex(rest[0])), state, secrets)
    rules: dict[str, Callable[[TaskId, int, State], bool]] = {
        **dict.fromkeys(_OF_ITERATIONS, _iteration_is_over),
        "ledger": _entry_is_over,
    }
    return kind in rules and rules[kind](TaskId(bytes.fromhex(rest[0])), int(rest[1]), state)


def _iteration_is_over(task_id: TaskId, number: int, state: State) -> bool:
    task = state.tasks.get(task_id)
    if task is None or task.bundle is None:
        return False
    bundle = state.bundles[task.bundle]
    return bundle.iterations > number or bundle.phase is Phase.ENDED


def _entry_is_over(task_id: TaskId, releases: int, state: State) -> bool:
    task = state.tasks.get(task_id)
    if task is None:
        return False
    entered = releases in {entry.releases for entry in task.ledger}
    return task.releases > releases or (task.ended and entered)


def _run_is_over(run_id: RunId, state: State, secrets: Container[str]) -> bool:
    run = state.runs.get(run_id)
    return run is not None and run.done and run_name(run_id) not in secrets
