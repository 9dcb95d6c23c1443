"""What ends a role and what does not; the role does nothing, the board is played."""

from types import SimpleNamespace
from typing import Any

import pytest

from anofel.board.attachments import AttachmentMissing
from anofel.errors import AnofelError, PeerUnreachable
from anofel.light_client.client import BoardMisbehaved
from anofel.network.transport import Refused
from anofel.roles.role import Role


class Idle(Role):
    """Raises what it is given, one thing in each round, and then is done."""

    def __init__(self, said: list[str], *raised: AnofelError) -> None:
        board: Any = SimpleNamespace(poll_seconds=lambda: 0.0, state=None)
        super().__init__(SimpleNamespace(), board, said.append)  # type: ignore[arg-type]
        self._raised = list(raised)

    def work(self) -> None:
        if self._raised:
            raise self._raised.pop(0)

    def step(self) -> str:
        return "nothing"

    @property
    def is_done(self) -> bool:
        return not self._raised


MAY_PASS = [
    PeerUnreachable("Somebody else answers."),
    AttachmentMissing(bytes(32)),
    Refused("blob-too-large", "The blob is too large.", 413),
    Refused("block-full", "The block is full.", 503),
]


def test_what_a_node_says_without_a_signature_does_not_end_a_role() -> None:
    said: list[str] = []
    Idle(said, *MAY_PASS).run()
    assert said == [f"Waiting for the board: {error}" for error in MAY_PASS]


@pytest.mark.parametrize("error", MAY_PASS, ids=lambda error: error.code)
def test_the_end_of_the_patience_has_the_exit_code_that_is_started_again(error: AnofelError) -> None:
    with pytest.raises(PeerUnreachable, match="Waited 0 seconds for the board") as caught:
        Idle([], error).run(patience=0)
    assert caught.value.exit_code == 3
    assert str(error) in str(caught.value)


def test_evidence_ends_a_role(tmp_path: Any) -> None:
    with pytest.raises(BoardMisbehaved) as caught:
        Idle([], BoardMisbehaved("The board forked.", tmp_path)).run()
    assert caught.value.exit_code == 1
