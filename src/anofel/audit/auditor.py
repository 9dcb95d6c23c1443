"""Replays a board block by block and checks what lies behind the rules.

Keys are checked in ``runs``, sums and outcomes in ``sums``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from anofel.audit.report import AuditReport, Finding, TaskRecord, about_task
from anofel.audit.runs import LenientKeys, RunAudit
from anofel.audit.sums import SumAudit
from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.board.cache import BoundedCache
from anofel.board.chain import Chain, InvalidBlock
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.genesis import TEST_MATERIAL, flaws_of
from anofel.board.openings import Openings
from anofel.board.rule import Rejected
from anofel.board.state import (
    State,
    TaskState,
)
from anofel.board.verification import Verifier
from anofel.committee import schemes
from anofel.errors import AnofelError, VerificationError
from anofel.ids import BlobHash, TaskId
from anofel.light_client.trust import require_trusted_keys
from anofel.messages import (
    Block,
    Genesis,
    Posting,
    PrivacyLedger,
    RejectModel,
)
from anofel.privacy.accounting import verify_micro_epsilon
from anofel.privacy.mechanisms import is_known
from anofel.privacy.plan import Plan
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.blobs.retention import kept_for_ever
from anofel.tasks.task import Task

_KNOWN_BLOBS = 1 << 14
"""How many names of blobs are remembered, so that one that is named again is not read again."""
PROVEN, PROVEN_ZERO, INSECURE_UNPROVEN = "proven", "proven-zero", "insecure-unproven"


class AuditFailed(VerificationError):
    """The board broke a rule; names the height, the posting where it is one, the rule and the reason."""

    code = "audit-failed"

    def __init__(self, message: str, *, height: int, posting: int | None = None, rule: str = "") -> None:
        super().__init__(message)
        self.height = height
        self.posting = posting
        self.rule = rule

    @classmethod
    def of(cls, finding: Finding) -> "AuditFailed":
        """Make a failure of a finding."""
        return cls(finding.reason, height=finding.height, posting=finding.posting, rule=finding.rule)


class UnreadableBlock(VerificationError):
    """A block is not there, or its bytes are not those of a block."""

    code = "unreadable-block"

    def __init__(self, height: int, message: str) -> None:
        super().__init__(message)
        self.height = height


class Auditor:
    """Audits one board: ``follow`` its blocks, then ``finish``.

    What is wrong with one posting, run, sum or blob is a finding, and the audit goes on. Only a block that
    does not follow from the blocks before it ends it, since nothing after it means anything.
    """

    def __init__(
        self,
        genesis: Genesis,
        *,
        registration: RegistrationVerifier,
        submission: SubmissionVerifier,
        attachments: Attachments,
        seen: tuple[int, bytes] | None = None,
    ) -> None:
        """Begin at genesis; ``seen`` is the height and the hash of a block that was seen before."""
        if switched_off := [flaw for flaw in flaws_of(genesis) if flaw not in TEST_MATERIAL]:
            raise AuditFailed(
                f"Genesis switches protections off ({', '.join(switched_off)}), so there is nothing to "
                "vouch for.",
                height=0,
                rule="genesis",
            )
        for name, checker, pinned in (
            ("registration", registration, genesis.registration_key),
            ("submission", submission, genesis.submission_key),
        ):
            if checker.key_id != pinned:
                raise AuditFailed(
                    f"The {name} key is not the one that genesis pins.", height=0, rule="genesis"
                )
        require_trusted_keys(genesis)
        self.attachments = attachments
        self._keys = LenientKeys(attachments)
        verifier = Verifier(genesis.hash, registration, submission, attachments, self._keys)
        self.chain = Chain(State.at_genesis(genesis), verifier)
        self._report = AuditReport(
            board=genesis.name, genesis=genesis.hash.hex(), height=0, tip=genesis.hash.hex()
        )
        self._runs = RunAudit(self, self._keys, self._report)
        self._sums = SumAudit(self, self._report)
        self._seen = seen
        self._kinds: Counter[str] = Counter()
        self._blobs: BoundedCache[BlobHash, None] = BoundedCache(_KNOWN_BLOBS)
        self._ended_early = False
        self._rejected: dict[TaskId, list[int]] = {}
        self._report.notes += [TEST_MATERIAL[flaw] for flaw in flaws_of(genesis)]
        self._check_seen()

    # What the phases read (``BoardView``)

    @property
    def genesis(self) -> Genesis:
        """How the board began."""
        return self.state.genesis

    @property
    def state(self) -> State:
        """The state after the last block that was checked."""
        return self.chain.state

    @property
    def keys(self) -> CommitteeKeys:
        """The keys of committees."""
        return self._keys

    @property
    def openings(self) -> Openings:
        """What committees opened."""
        return self.chain.verifier.openings

    # Blocks

    def follow(
        self, blocks: Iterable[Block], *, on_block: Callable[[int], None] = lambda _height: None
    ) -> None:
        """Check every block as far as they go.

        Raises what keeps the rest from being read, such as ``PeerUnreachable``, if nothing was found so far.
        """
        try:
            for block in blocks:
                self.take(block)
                on_block(self._report.height)
        except AuditFailed:
            return  # written down already
        except UnreadableBlock as error:
            self._end(error.height, str(error), "store")
        except AnofelError as error:
            if self._report.ok:
                raise
            self._ended_early = True
            self._report.notes.append(f"The audit ended after block {self._report.height}: {error}")

    def take(self, block: Block) -> None:
        """Check one block. Raises ``AuditFailed`` if it cannot follow; then only ``finish`` is left."""
        height = self.state.height + 1
        postings: list[Posting] = []

        def on_posting(posting: Posting) -> None:
            postings.append(posting)
            self._runs.take(posting)

        try:
            self.chain.follow(block, on_posting=on_posting)
        except InvalidBlock as error:
            rule = error.rejected.rule.number if isinstance(error.rejected, Rejected) else "block"
            raise self._end(height, str(error), rule, posting=error.posting) from None
        except (AttachmentMissing, DamagedBlob) as error:
            raise self._end(height, f"Block {height}: {error}", "blob") from None
        self._report.height, self._report.time = height, self.state.time
        self._report.tip = self.state.tip.hex()
        for place, posting in enumerate(postings):
            self._kinds[type(posting.body).__name__] += 1
            self._check_blobs(height, place, posting)
            self._check_posting(height, place, posting)
        self._runs.end_block(height, postings)
        self._sums.check_positions(height)
        self._sums.forget_pruned(height)
        self._check_seen()

    def add_finding(
        self, height: int, reason: str, rule: str, about: str, posting: int | None = None
    ) -> None:
        """Write down what is wrong; also for what was found beside the blocks."""
        self._report.add(height, reason, rule, about, posting)

    def _end(self, height: int, reason: str, rule: str, posting: int | None = None) -> AuditFailed:
        finding = Finding(height, posting, rule, f"block {height}", reason)
        self._ended_early = True
        self._report.add_finding(finding)
        self._report.notes.append(f"The audit ended at block {height}: what comes after it was not checked.")
        return AuditFailed.of(finding)

    def _check_seen(self) -> None:
        """Compare the block that was seen before when its turn has come."""
        state = self.state
        if self._seen is not None and self._seen[0] == state.height and self._seen[1] != state.tip:
            self.add_finding(
                state.height,
                f"Block {state.height} is not the one that was seen before: the history was rewritten.",
                "checkpoint",
                f"block {state.height}",
            )

    def finish(self, height: int = 0) -> AuditReport:
        """Return what was found.

        ``height``: of a signed header when the blobs had been read, if that is more than the blocks that
        were followed; the board may have pruned payloads in the meantime.
        """
        state, report = self.state, self._report
        if pruned := self._sums.forget_pruned(height):
            report.notes.append(
                f"By a signed header the board stands at block {height} by now, past the time of the "
                f"payloads of {pruned} sums; the blocks after {report.height} were not checked."
            )
        self._sums.report_missing()
        report.findings.sort(key=lambda finding: finding.height)
        if self._seen is not None and self._seen[0] > report.height and not self._ended_early:
            self.add_finding(
                report.height,
                f"The history ends at block {report.height}, but block {self._seen[0]} was seen before: "
                "it is truncated.",
                "checkpoint",
                f"block {self._seen[0]}",
            )
        report.postings = dict(sorted(self._kinds.items()))
        report.clients, report.epochs = len(state.clients), state.epoch + 1
        report.tasks = [
            _task_record(state, task, self._rejected.get(task.task_id, [])) for task in state.tasks.values()
        ]
        report.notes += self._remarks()
        return report

    def _remarks(self) -> Iterator[str]:
        report = self._report
        for record in report.tasks:
            if record.rule == "owner":
                yield f"{record.name}: sums verified; the model is the owner's claim."
            if record.rejected:
                numbers = ", ".join(map(str, record.rejected))
                yield (
                    f"{record.name}: its owner rejected the models of the iterations {numbers}; the former "
                    "ones stayed, and the releases count."
                )
            if record.contributions == INSECURE_UNPROVEN:
                yield (
                    f"{record.name}: INSECURE, contributions are unproven; one client can spoil or poison "
                    "its sums."
                )
            elif record.contributions == PROVEN_ZERO:
                yield (
                    f"{record.name}: contributions are proven zero where they do not count; nothing bounds "
                    "the others."
                )
        if report.sums_pruned:
            yield (
                f"{report.sums_pruned} sums can no longer be recomputed, because their payloads were pruned; "
                "t members of each committee stated them equally."
            )
        if report.iterations_left_out:
            yield f"{report.iterations_left_out} older iterations were checked and are not listed."
        if report.findings_left_out:
            yield f"{report.findings_left_out} more findings are not listed."

    # Postings

    def _check_blobs(self, height: int, place: int, posting: Posting) -> None:
        """Check that what must be kept for ever is there; payloads are looked for where they are added."""
        for blob in kept_for_ever(posting.body):
            if blob.sha256 in self._blobs:
                continue
            self._blobs[blob.sha256] = None
            try:
                self.attachments.read(blob.sha256)
                self._report.blobs_checked += 1
            except (AttachmentMissing, DamagedBlob) as error:
                where = f"Posting {place} of block {height}"
                self.add_finding(height, f"{where}: {error}", "blob", f"blob {blob.sha256.hex()}", place)

    def _check_posting(self, height: int, place: int, posting: Posting) -> None:
        """Check what the board does not: ε. Everything else of a task follows from its document."""
        if isinstance(posting.body, RejectModel):
            task_id, iteration = posting.body.task, posting.body.iteration
            self._rejected.setdefault(task_id, []).append(iteration)
            self._report.mark_rejected(self.state.tasks[task_id].facts.name, iteration)
        if not isinstance(posting.body, PrivacyLedger):
            return
        task = self.state.tasks[posting.body.task]
        document, about = Task.from_bytes(task.announcement.document), about_task(task.facts.name)
        if not is_known(document.privacy.mechanism):
            note = f"ε of {about} was not checked: this audit does not know its mechanism."
            if note not in self._report.notes:
                self._report.notes.append(note)
            return
        try:
            _check_epsilon(document, posting.body)
        except (AnofelError, ArithmeticError, ValueError) as error:
            reason = f"Posting {place} of block {height}: {error}"
            self.add_finding(height, reason, "ledger", about, place)


def _check_epsilon(document: Task, body: PrivacyLedger) -> None:
    plan = Plan.of(document)
    verify_micro_epsilon(body.zero_out, plan.epsilon(body.releases, "zero-out"))
    verify_micro_epsilon(body.replace, plan.epsilon(body.releases, "replace"))


def _contributions(state: State, task: TaskState) -> str:
    if not task.facts.limits.proven:
        return INSECURE_UNPROVEN
    return PROVEN if schemes.by_number(state.committee_of(task).scheme).proves_norm else PROVEN_ZERO


def _task_record(state: State, task: TaskState, rejected: list[int]) -> TaskRecord:
    return TaskRecord(
        name=task.facts.name,
        task_id=task.task_id.hex(),
        rule=task.facts.rule,
        contributions=_contributions(state, task),
        releases=task.releases,
        ended=task.ended,
        epsilon=task.ledger[-1].zero_out / 1_000_000 if task.ledger else None,
        rejected=rejected,
    )
