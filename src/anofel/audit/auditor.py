"""Replays a board block by block and checks what lies behind the rules."""

from collections import Counter

from anofel.audit.report import AuditReport, CommitteeRecord, IterationRecord, TaskRecord
from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.board.blobs.retention import kept_for_ever
from anofel.board.chain import Chain, InvalidBlock
from anofel.board.genesis import TEST_MATERIAL, flaws_of
from anofel.board.rule import Rejected
from anofel.board.rules.committees import complete_rounds
from anofel.board.rules.common import addressee_of, scheme_name
from anofel.board.rules.sums import Reason
from anofel.board.rules.tasks import OWNER_RULE
from anofel.board.state import Bundle, KeyRun, Position, Progress, State, TaskState
from anofel.board.verification import Verifier
from anofel.certificates import subject_and_name
from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import RoundMessage
from anofel.errors import AnofelError, VerificationError
from anofel.messages import Block, ChainAuthor, Genesis, Posting, PrivacyLedger, Task
from anofel.phase1_setup.committee_keys import generation_run, handover_run
from anofel.phase3_access.homomorphic_sum import collect
from anofel.phase3_access.recover_model import metrics_of_sum
from anofel.privacy.accounting import EpsilonMismatch, verify_micro_epsilon
from anofel.privacy.plan import Plan
from anofel.proofs import RegistrationVerifier, SubmissionVerifier
from anofel.task import Task as TaskFile

_REASONS = {Reason.PAYLOAD_REFUSED: "the payload is malformed"}


class AuditFailed(VerificationError):
    """The board broke a rule; names the height, the posting where it is one, the rule and the reason."""

    code = "audit-failed"

    def __init__(self, message: str, *, height: int, posting: int | None = None, rule: str = "") -> None:
        super().__init__(message)
        self.height = height
        self.posting = posting
        self.rule = rule


class Auditor:
    """Audits one board; give it every block, then ``finish``."""

    def __init__(
        self,
        genesis: Genesis,
        *,
        registration: RegistrationVerifier,
        submission: SubmissionVerifier,
        attachments: Attachments,
    ) -> None:
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
        self._attachments = attachments
        verifier = Verifier(genesis.hash, registration, submission, attachments)
        self.chain = Chain(State.at_genesis(genesis), verifier)
        self._report = AuditReport(
            board=genesis.name, genesis=genesis.hash.hex(), height=0, tip=genesis.hash.hex()
        )
        self._kinds: Counter[str] = Counter()
        self._open: dict[tuple[int, int], Progress] = {}
        self._checked_sums: dict[tuple[int, int, int], bool] = {}
        self._known_shares: dict[bytes, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._blobs: set[bytes] = set()
        self._hashes: dict[int, bytes] = {0: genesis.hash}
        self._report.notes += [TEST_MATERIAL[flaw] for flaw in flaws_of(genesis)]

    # Blocks

    def take(self, block: Block) -> None:
        """Check one block. Raises ``AuditFailed``."""
        height = self.chain.state.height + 1
        postings: list[Posting] = []
        try:
            self.chain.follow(block, on_posting=postings.append)
        except InvalidBlock as error:
            rule = error.rejected.rule.number if isinstance(error.rejected, Rejected) else "block"
            raise AuditFailed(str(error), height=height, posting=error.posting, rule=rule) from None
        except (AttachmentMissing, DamagedBlob) as error:
            raise AuditFailed(f"Block {height}: {error}", height=height, rule="blob") from None
        for place, posting in enumerate(postings):
            self._kinds[type(posting.body).__name__] += 1
            self._learn_name(posting)
            self._check_blob(height, posting)
            self._check_posting(height, place, posting)
        self._check_committees(height)
        self._check_positions(height)
        self._hashes[height] = self.chain.state.tip

    def check_seen(self, height: int, block_hash: bytes) -> None:
        """Check that a block seen before is part of this history. Raises ``AuditFailed``."""
        last = self.chain.state.height
        if height > last:
            raise AuditFailed(
                f"The history ends at block {last}, but block {height} was seen before: it is truncated.",
                height=last,
                rule="checkpoint",
            )
        if self._hashes[height] != block_hash:
            raise AuditFailed(
                f"Block {height} is not the one that was seen before: the history was rewritten.",
                height=height,
                rule="checkpoint",
            )

    def finish(self) -> AuditReport:
        """Return what was found."""
        state, report = self.chain.state, self._report
        report.height, report.tip = state.height, state.tip.hex()
        report.postings = dict(sorted(self._kinds.items()))
        report.blobs_checked = len(self._blobs)
        report.clients, report.epochs = len(state.clients), state.epoch + 1
        report.tasks = [_task_record(task) for task in state.tasks.values()]
        owners = [record.name for record in report.tasks if record.rule == "owner"]
        report.notes += [f"{name}: sums verified; the model is the owner's claim." for name in owners]
        if report.sums_pruned:
            report.notes.append(
                f"{report.sums_pruned} sums can no longer be recomputed, because their payloads were pruned; "
                "t members of each committee stated them equally."
            )
        return report

    # Postings

    def _check_blob(self, height: int, posting: Posting) -> None:
        """Check that what must be kept for ever is there; payloads are looked for where they are added."""
        for blob in kept_for_ever(posting.body):
            if blob.sha256 not in self._blobs:
                self._read(height, blob.sha256)
                self._blobs.add(blob.sha256)

    def _learn_name(self, posting: Posting) -> None:
        if isinstance(posting.author, ChainAuthor):
            subject, name = subject_and_name(posting.author.chain[0])
            self._names[subject] = name

    def _check_posting(self, height: int, place: int, posting: Posting) -> None:
        body = posting.body
        try:
            if isinstance(body, Task):
                plan = Plan.of(TaskFile.from_bytes(body.document))
                if plan.value_bound != body.bound:
                    raise VerificationError(f"its bound is {body.bound} instead of {plan.value_bound}.")
            elif isinstance(body, PrivacyLedger):
                self._check_epsilon(body)
        except AnofelError as error:
            rule = "ledger" if isinstance(error, EpsilonMismatch) else "announcement"
            raise AuditFailed(
                f"Posting {place} of block {height}: {error}", height=height, posting=place, rule=rule
            ) from None

    def _check_epsilon(self, body: PrivacyLedger) -> None:
        task = self.chain.state.tasks[body.task]
        plan = Plan.of(TaskFile.from_bytes(task.task.document))
        verify_micro_epsilon(body.zero_out, plan.epsilon(body.releases, "zero-out"))
        verify_micro_epsilon(body.replace, plan.epsilon(body.releases, "replace"))

    # Committee keys

    def _check_committees(self, height: int) -> None:
        state = self.chain.state
        for committee in state.committees.values():
            shares = committee.pending or committee.current
            if self._known_shares.get(committee.key_id) == shares.shares_id:
                continue
            first = committee.key_id not in self._known_shares
            old = self._known_shares.get(committee.key_id)
            self._known_shares[committee.key_id] = shares.shares_id
            self._observe(height, state.runs[shares.run_id], shares.shares_id, old)
            if first:
                record = CommitteeRecord(
                    key_id=committee.key_id.hex(),
                    scheme=scheme_name(committee.scheme),
                    members=[self._names.get(member, member.hex()) for member in shares.members],
                    threshold=shares.threshold,
                    established_at=height,
                )
                self._report.committees.append(record)
            else:
                for record in self._report.committees:
                    if record.key_id == committee.key_id.hex():
                        record.handovers += 1
                        record.members = [self._names.get(member, member.hex()) for member in shares.members]
                        record.threshold = shares.threshold

    def _observe(self, height: int, run: KeyRun, shares_id: bytes, old: bytes | None) -> None:
        """Recompute a key from the messages of its run."""
        scheme = schemes.by_name(scheme_name(run.run.scheme))
        genesis = self.chain.state.genesis_hash
        rounds = [
            [
                RoundMessage(run_id=run.run_id, round=number, sender=sender, body=self._read(height, sha256))
                for sender, sha256 in sorted(run.posted[number].items())
            ]
            for number in range(complete_rounds(run))
        ]
        try:
            if run.run.handover is None:
                generation = generation_run(run.run, genesis)
                key, transcript = scheme.key_generation().observe(generation, rounds)
            else:
                assert old is not None
                before = scheme.read_key(self._read(height, old))
                handover = handover_run(run.run, genesis, before)
                key, transcript = scheme.resharing().observe(handover, rounds)
        except KeyGenerationFailed as error:
            raise AuditFailed(
                f"Block {height}: a key was established by a run that failed: {error}",
                height=height,
                rule="committee",
            ) from None
        stated = {vote.transcript for vote in run.votes.values() if vote.shares_id == shares_id}
        if key.shares_id != shares_id or stated != {transcript}:
            raise AuditFailed(
                f"Block {height}: a committee key is not the one that its run made.",
                height=height,
                rule="committee",
            )

    # Iterations

    def _check_positions(self, height: int) -> None:
        for bundle in self.chain.state.bundles.values():
            if bundle.current is None:
                continue
            for index, position in enumerate(bundle.current.positions):
                where = (bundle.number, index)
                before, now = self._open.get(where), position.progress
                self._open[where] = now
                if now is before:
                    continue
                if now is Progress.AGGREGATED:
                    self._recompute_sum(height, bundle, position)
                if now.is_outcome and now is not Progress.ABSENT:
                    self._report.iterations.append(self._iteration_record(bundle, index))

    def _recompute_sum(self, height: int, bundle: Bundle, position: Position) -> None:
        state = self.chain.state
        task = state.tasks[position.task_id]
        scheme, key = self.chain.verifier.shares.key_of(addressee_of(state, task).committee)
        assert bundle.current is not None
        assert position.agreed is not None
        where = (bundle.number, task.position, bundle.current.number)
        try:
            collected = collect(state, bundle, task, scheme, key, self._attachments.read)
        except AttachmentMissing:
            self._checked_sums[where] = False
            self._report.sums_pruned += 1
            return
        except DamagedBlob as error:
            raise AuditFailed(f"Block {height}: {error}", height=height, rule="blob") from None
        excluded = tuple((entry.nullifier, entry.reason) for entry in collected.excluded)
        if collected.total.digest != position.agreed.sum_digest or excluded != position.agreed.excluded:
            raise AuditFailed(
                f"Block {height}: the committee of {task_name(task)} agreed on a sum that is not the sum of "
                f"the accepted payloads of iteration {bundle.current.number}.",
                height=height,
                rule="aggregate",
            )
        self._checked_sums[where] = True
        self._report.sums_recomputed += 1

    def _iteration_record(self, bundle: Bundle, index: int) -> IterationRecord:
        current = bundle.current
        assert current is not None
        position = current.positions[index]
        agreed = position.agreed
        return IterationRecord(
            task=task_name(self.chain.state.tasks[position.task_id]),
            bundle=bundle.number,
            iteration=current.number,
            outcome=position.progress.value,
            clients_registered=current.num_clients,
            submissions=len(current.submissions),
            count=position.count,
            excluded={nullifier.hex(): _REASONS[Reason(reason)] for nullifier, reason in agreed.excluded}
            if agreed
            else {},
            sum_checked=self._checked_sums.get((bundle.number, index, current.number)),
            aggregates_by=sorted(position.aggregates),
            count_shares_by=[share.member for share in position.count_shares],
            sum_shares_by=[share.member for share in position.sum_shares],
            reported=self._reported(bundle, position),
        )

    def _reported(self, bundle: Bundle, position: Position) -> dict[str, float] | None:
        if position.progress is not Progress.SUMMED:
            return None
        state, desk = self.chain.state, self.chain.verifier.shares
        task = TaskFile.from_bytes(state.tasks[position.task_id].task.document)
        return metrics_of_sum(state, bundle, position, desk, task)

    def _read(self, height: int, sha256: bytes) -> bytes:
        try:
            return self._attachments.read(sha256)
        except (AttachmentMissing, DamagedBlob) as error:
            raise AuditFailed(f"Block {height}: {error}", height=height, rule="blob") from None


def task_name(task: TaskState) -> str:
    """Return the name in a task's file."""
    return TaskFile.from_bytes(task.task.document).name


def _task_record(task: TaskState) -> TaskRecord:
    return TaskRecord(
        name=task_name(task),
        task_id=task.task_id.hex(),
        rule="owner" if task.task.rule.kind == OWNER_RULE else "integer-mean",
        releases=task.releases,
        ended=task.ended,
        epsilon=task.ledger[-1].zero_out / 1_000_000 if task.ledger else None,
    )
