"""A message to several nodes: in turn, or at once, so that one that lies or keeps silent holds nobody up.

Which nodes are asked, and in which order, is drawn anew for each message. How many follow, and when, depends
on their answers and on the clock alone.
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from anofel.errors import AnofelError, PeerUnreachable
from anofel.network.transport import Believe, Refused, Transport
from anofel.stopping import interruptible

SLOW_SECONDS: Final = 3.0
"""Where the nodes that were asked keep silent for so long, one more is asked."""
PATIENCE_SECONDS: Final = 60.0
"""For so long answers are waited for; a node that answers later has not answered."""

T = TypeVar("T")


def ask_in_turn(transport: Transport, ask: Callable[[Transport], T]) -> T:
    """Ask one node after the other until one answers, for what one and the same node has to say.

    Raises ``PeerUnreachable``, that of the last one, if none does.
    """
    *others, last = transport.nodes()
    for node in others:
        with suppress(PeerUnreachable):
            return ask(node)
    return ask(last)


def ask_some(transport: Transport, ask: Callable[[Transport], T], enough: int, believe: Believe) -> list[T]:
    """Ask different nodes until so many have answered, or all were asked; return the answers.

    A refusal that is not believed is no answer. Raises ``Refused`` for one that is, and ``PeerUnreachable``
    or the refusal that may pass if nobody answered.
    """
    waiting = transport.nodes()
    if len(waiting) == 1:
        return [_ask_only(transport, ask, believe)]
    answers: queue.SimpleQueue[T | AnofelError] = queue.SimpleQueue()
    taken: list[T] = []
    refusals: dict[str, int] = {}
    missing: AnofelError = PeerUnreachable(f"{transport.name} does not answer.")
    out, deadline = 0, time.monotonic() + PATIENCE_SECONDS

    def send(node: Transport) -> None:
        try:
            answers.put(ask(node))
        except AnofelError as error:
            answers.put(error)

    def begin() -> None:
        threading.Thread(target=send, args=(waiting.pop(),), name="anofel-node", daemon=True).start()

    while len(taken) < enough and time.monotonic() < deadline:
        while waiting and out + len(taken) < enough:
            begin()
            out += 1
        if not out:
            break
        try:
            with interruptible():
                got = answers.get(timeout=SLOW_SECONDS)
        except queue.Empty:
            if waiting:
                begin()
                out += 1
            continue
        out -= 1
        if not isinstance(got, AnofelError):
            taken.append(got)
        elif isinstance(got, Refused) and not got.is_passing:
            refusals[got.code] = refusals.get(got.code, 0) + 1
            believed = believe(got, refusals[got.code])
            if believed is not None:
                raise believed
            missing = _not_believed(got)
        else:
            missing = got
    if not taken:
        raise missing
    return taken


def _ask_only(node: Transport, ask: Callable[[Transport], T], believe: Believe) -> T:
    try:
        return ask(node)
    except Refused as refusal:
        if refusal.is_passing:
            raise
        raise believe(refusal, 1) or _not_believed(refusal) from None


def _not_believed(refusal: Refused) -> PeerUnreachable:
    return PeerUnreachable(
        f"A node refused ({refusal.code}: {refusal.detail.rstrip('.')}), and neither the rules as they are "
        "known here nor enough other nodes say so. It is offered again."
    )
