"""Sums of iterations: each is that of the accepted payloads (steps 6 and 7; D-18)."""

from dataclasses import dataclass

from anofel.audit.report import AuditReport, Finding, IterationRecord, about_task
from anofel.board.attachments import AttachmentMissing, DamagedBlob
from anofel.board.interface import BoardView
from anofel.board.seat import Seat, Sitting
from anofel.board.state import AcceptedSubmission, Bundle, Phase, Position, Progress, Reason
from anofel.committee.errors import PayloadRefused
from anofel.errors import InvalidInput
from anofel.ids import TaskId
from anofel.phase3_access.step6_homomorphic_sum import check_payload, collect
from anofel.phase3_access.step8prime_model import is_shortened, metrics_of_sum
from anofel.storage.blobs.retention import payloads_until

_REASONS = {Reason.PAYLOAD_REFUSED: "the payload is malformed, or its contribution proof does not hold"}


@dataclass(frozen=True)
class _MissingPayloads:
    """Payloads of one agreed sum are not there: pruned if the board stands higher than ``until``."""

    until: int
    finding: Finding


class SumAudit:
    """Recomputes the sum of every committee that agreed on one, and writes down every outcome."""

    def __init__(self, board: BoardView, report: AuditReport) -> None:
        self._board, self._report = board, report
        self._next_bundle = 0
        self._moving: dict[int, list[tuple[Progress, bool]]] = {}
        self._missing: list[_MissingPayloads] = []
        self._checked_sums: dict[TaskId, bool] = {}

    def check_positions(self, height: int) -> None:
        """Look at the bundles that have not ended, and at those that just did."""
        bundles = self._board.state.bundles
        while self._next_bundle in bundles:
            self._moving[self._next_bundle] = []
            self._next_bundle += 1
        for number in list(self._moving):
            bundle = bundles[number]
            self._check_bundle(height, bundle, self._moving[number])
            if bundle.phase is Phase.ENDED:
                del self._moving[number]

    def _check_bundle(self, height: int, bundle: Bundle, before: list[tuple[Progress, bool]]) -> None:
        sitting = Sitting.find(self._board.state, bundle.number)
        seats = sitting.seats if sitting else []
        for index, seat in enumerate(seats):
            now, has_agreed = seat.position.progress, seat.position.agreed is not None
            progress, agreed = before[index] if index < len(before) else (None, False)
            if has_agreed and not agreed:  # also on too few posts: exclusions made them few
                self._recompute_sum(height, seat)
            if now is not progress and now.is_outcome and now is not Progress.ABSENT:
                self._report.add_iteration(self._iteration_record(seat))
        before[:] = [(seat.position.progress, seat.position.agreed is not None) for seat in seats]

    def _recompute_sum(self, height: int, seat: Seat) -> None:
        about, name = about_task(seat.task.facts.name), seat.task.facts.name
        self._checked_sums[seat.task_id] = False
        try:
            self._board.keys.read(seat.addressee.committee)
        except (AttachmentMissing, DamagedBlob) as error:
            self._report.add(height, f"Block {height}: {error}", "blob", about)
            return
        try:
            collected = collect(self._board, seat)
        except (AttachmentMissing, DamagedBlob, PayloadRefused):  # the last: nothing is left to be added
            self._check_payloads(height, seat)
            return
        if collected.agreement != seat.position.agreed:
            self._report.add(
                height,
                f"Block {height}: the committee of {name} agreed on a sum that is not the sum of the "
                f"accepted payloads of iteration {seat.number}.",
                "aggregate",
                about,
            )
            return
        self._checked_sums[seat.task_id] = True
        self._report.sums_recomputed += 1

    def _check_payloads(self, height: int, seat: Seat) -> None:
        """Check what is left of the payloads one by one; those that were excluded are kept for ever.

        After the first of the others that is missing only the excluded ones are looked for: a pruned
        iteration has many.
        """
        about, agreed = about_task(seat.task.facts.name), seat.position.agreed
        excluded = set() if agreed is None else {nullifier for nullifier, _reason in agreed.excluded}
        incomplete = False
        for post in seat.posts():
            if incomplete and post.nullifier not in excluded:
                continue
            try:
                payload = self._board.attachments.read(post.payloads[seat.place].sha256)
            except (AttachmentMissing, DamagedBlob) as error:
                finding = Finding(height, None, "blob", about, f"Block {height}: {error}")
                if isinstance(error, AttachmentMissing) and post.nullifier not in excluded:
                    incomplete = True
                    until = payloads_until(self._board.state, seat.bundle.number)
                    self._missing.append(_MissingPayloads(until, finding))
                else:
                    self._report.add_finding(finding)
                continue
            refused = self._is_refused(seat, post, payload)
            if refused is not (post.nullifier in excluded):
                what = "added a malformed payload" if refused else "excluded a payload that is well-formed"
                reason = f"Block {height}: the committee of {seat.task.facts.name} {what}"
                self._report.add(height, f"{reason} ({post.nullifier.hex()}).", "aggregate", about)

    def _is_refused(self, seat: Seat, post: AcceptedSubmission, payload: bytes) -> bool:
        try:
            check_payload(self._board, seat, post, payload)
        except PayloadRefused:
            return True
        return False

    def forget_pruned(self, height: int) -> int:
        """Count the sums whose missing payloads the board may have pruned by a height."""
        kept = [missing for missing in self._missing if missing.until >= height]
        pruned, self._missing = len(self._missing) - len(kept), kept
        self._report.sums_pruned += pruned
        return pruned

    def report_missing(self) -> None:
        """Write down the payloads that are not there, though the board must still have them."""
        for missing in self._missing:
            self._report.add_finding(missing.finding)

    def _iteration_record(self, seat: Seat) -> IterationRecord:
        position, agreed = seat.position, seat.position.agreed
        return IterationRecord(
            task=seat.task.facts.name,
            bundle=seat.bundle.number,
            iteration=seat.number,
            outcome=position.progress.value,
            clients_registered=seat.iteration.num_clients,
            submissions=len(seat.iteration.submissions),
            count=position.count,
            counts=_counts(position),
            excluded={nullifier.hex(): _REASONS[Reason(reason)] for nullifier, reason in agreed.excluded}
            if agreed
            else {},
            sum_checked=self._checked_sums.pop(seat.task_id, None),
            aggregates_by=sorted(position.aggregates),
            count_shares_by=[share.member for share in position.count_shares],
            sum_shares_by=[share.member for share in position.sum_shares],
            reported=self._reported(seat),
            shortened=seat.position.progress is Progress.SUMMED and is_shortened(self._board, seat),
        )

    def _reported(self, seat: Seat) -> dict[str, float] | None:
        if seat.position.progress is not Progress.SUMMED:
            return None
        try:
            return metrics_of_sum(self._board, seat)
        except InvalidInput:  # a mechanism that this audit does not know, which is a note already
            return None


def _counts(position: Position) -> list[int] | None:
    """Give the counts of several groups."""
    return list(position.counts) if position.counts is not None and len(position.counts) > 1 else None
