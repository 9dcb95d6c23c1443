"""What bench/attacks.py plays with the real cryptography: posts that are not what the protocol asks for."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from anofel.board.rule import Rejected  # noqa: E402
from anofel.board.state import Phase  # noqa: E402
from anofel.committee import schemes  # noqa: E402
from anofel.committee.errors import PayloadRefused, Undecodable  # noqa: E402
from anofel.committee.interface import SubmittedPayload  # noqa: E402
from anofel.phase2_training.step5_submission import post_submission  # noqa: E402
from anofel.proofs.keys import KeyDirectory, make_insecure_development_keys  # noqa: E402
from tests.board.world import World, a_vector  # noqa: E402
from tests.committee import plain_ristretto as group  # noqa: E402
from tests.committee.test_contribution_proof import LIMITS, contribute, lies, resent, update  # noqa: E402
from tests.committee.world import ITERATION, Committee, a_post, assume_counted, open_sum  # noqa: E402

Row = dict[str, Any]


def lies_to_a_committee() -> list[Row]:
    """Every lie in a payload, before a ``lattice`` committee, among three honest clients."""
    committee = Committee.generate(schemes.by_name("lattice"), 3, 2)
    honest = {number: contribute(committee, number, update(number)) for number in (2, 3, 4)}
    expected = sum(update(number) for number in honest)
    rows = []
    for lie, made in lies(committee).items():
        items = [SubmittedPayload(a_post(1), made.envelope, made.payload)]
        items += [
            SubmittedPayload(a_post(number), one.envelope, one.payload) for number, one in honest.items()
        ]
        verdicts = committee.scheme.check_payloads(committee.key, LIMITS, items)
        accumulator = committee.scheme.accumulator(committee.key, ITERATION, LIMITS)
        for verdict in verdicts:
            if not isinstance(verdict, PayloadRefused):
                accumulator.add(verdict)
        total = accumulator.finish()
        opened = open_sum(committee, total, assume_counted(committee, total).permit_sum(), (1, 3))
        refused = verdicts[0]
        assert isinstance(refused, PayloadRefused)
        rows.append(
            {
                "lie": lie,
                "where": "every member, as the payload arrives",
                "refused": refused.code,
                "reason": str(refused),
                "sum is right": bool((opened == expected).all()),
                "without proofs": _without_proofs(committee, lie),
            }
        )
    return rows


def _without_proofs(committee: Committee, lie: str) -> str:
    """What the same words do to a sum whose task switches the proofs off."""
    limits = replace(LIMITS, norm_bound=None)
    scheme, key = committee.scheme, committee.key
    if lie not in ("garbage words", "a long secret", "four times the norm"):
        return ""
    made = contribute(committee, 1, update(1), limits=limits)
    if lie == "four times the norm":
        made = contribute(committee, 1, 4 * update(1), limits=limits)
    length = len(made.payload) - 2048 * 32
    words, wrapped = made.payload[:length], made.payload[length:]
    if lie == "garbage words":
        words = np.random.default_rng(5).bytes(length)
    elif lie == "a long secret":
        moved = group.add(group.decode(wrapped[:32]), group.multiply(10_000, group.BASE))
        wrapped = group.encode(moved) + wrapped[32:]
    made = resent(made, words + wrapped)
    accumulator = scheme.accumulator(key, ITERATION, limits)
    honest = {number: contribute(committee, number, update(number), limits=limits) for number in (2, 3, 4)}
    for number, one in {1: made, **honest}.items():
        accumulator.add(scheme.verify_payload(key, a_post(number), limits, one.envelope, one.payload))
    total = accumulator.finish()
    try:
        opened = open_sum(committee, total, assume_counted(committee, total).permit_sum(), (1, 3))
    except Undecodable as error:
        return error.code
    return f"adds up to {np.abs(opened - sum(update(number) for number in honest)).max():,} to an entry"


def lies_over_a_board() -> list[Row]:
    """Four honest clients and one liar in an iteration of a board; one lie after the other."""
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        make_insecure_development_keys(Path(directory) / "keys")
        keys = KeyDirectory.open(Path(directory) / "keys")
        for lie in ("garbage words", "a ballot that was changed", "a second post", "the zero vector"):
            rows.append(_over_a_board(keys, lie))
    return rows


def _over_a_board(keys: KeyDirectory, lie: str) -> Row:
    world = World(keys)
    world.set_up(num_clients=5)
    owner, (*honest, liar) = world.owners[0], world.clients
    for number, client in enumerate(honest):
        world.board.post(world.submission(client, 0, a_vector(owner.task, number)))
    where, refused = "the board, at admission", "nothing"
    try:
        if lie == "a second post":
            world.board.post(world.submission(honest[0], 0, a_vector(owner.task, 9)))
        elif lie == "the zero vector":
            world.board.post(world.submission(liar, 0, np.zeros(owner.task.length, dtype=np.int64)))
            where = "nowhere: it counts"
        else:
            sealed = world.sealed(liar, 0, a_vector(owner.task, 9))
            if lie == "garbage words":
                sealed = _with_garbage(sealed)
            else:
                ballot = sealed.ballot[:-1] + bytes([sealed.ballot[-1] ^ 1])
                sealed = replace(sealed, ballot=ballot)
            world.board.post(post_submission(world.board, sealed))
    except Rejected as error:
        refused = error.code
    world.blocks_until(Phase.CLOSED)
    world.run_phase3()
    seat = world.seat(owner)
    agreed, opened = seat.position.agreed, world.board.openings.open_sum(seat)
    assert agreed is not None
    assert opened is not None
    if agreed.excluded:
        where, refused = "every member, as the payload arrives", "payload-refused"
    total = sum(a_vector(owner.task, number) for number in range(len(honest)))
    return {
        "lie": lie,
        "where": where,
        "refused": refused,
        "reason": f"count {seat.position.count}, {len(agreed.excluded)} excluded",
        "sum is right": bool((opened.vector == total).all()),
        "without proofs": "",
    }


def _with_garbage(sealed: Any) -> Any:
    first = sealed.payloads[0]
    garbage = np.random.default_rng(5).bytes(1024) + first[1024:]
    return replace(sealed, payloads=(garbage, *sealed.payloads[1:]))
