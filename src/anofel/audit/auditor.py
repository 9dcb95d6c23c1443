"""Replays a board block by block and checks what lies behind the rules."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from anofel.audit.report import AuditReport, CommitteeRecord, Finding, IterationRecord, TaskRecord
from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.board.cache import BoundedCache
from anofel.board.chain import Chain, InvalidBlock
from anofel.board.claims import KeyClaim
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.genesis import TEST_MATERIAL, flaws_of
from anofel.board.key_runs import complete_rounds, round_messages, vote_of
from anofel.board.openings import Openings
from anofel.board.rule import Rejected
from anofel.board.rules.committees import MADE
from anofel.board.seat import Seat, Sitting
from anofel.board.state import (
    AcceptedSubmission,
    Bundle,
    Committee,
    KeyRun,
    KeyVote,
    Phase,
    Progress,
    Reason,
    State,
    TaskState,
)
from anofel.board.verification import Verifier
from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed, PayloadRefused
from anofel.errors import AnofelError, InvalidInput, VerificationError
from anofel.ids import RunId, TaskId
from anofel.light_client.trust import require_trusted_keys
from anofel.messages import (
    Block,
    ChainAuthor,
    CommitteeKeyVote,
    DkgRound,
    Genesis,
    Posting,
    PrivacyLedger,
    RejectModel,
)
from anofel.phase1_setup.step1c_committee_key import established_by, generation_run, handover_run
from anofel.phase3_access.step6_homomorphic_sum import check_payload, collect
from anofel.phase3_access.step8prime_model import is_shortened, metrics_of_sum
from anofel.pki.certificates import subject_and_name
from anofel.privacy.accounting import verify_micro_epsilon
from anofel.privacy.mechanisms import is_known
from anofel.privacy.plan import Plan
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier
from anofel.storage.blobs.retention import kept_for_ever, payloads_until
from anofel.tasks.task import Task

_KNOWN_BLOBS = 1 << 14
"""How many names of blobs are remembered, so that one that is named again is not read again."""
PROVEN, PROVEN_ZERO, INSECURE_UNPROVEN = "proven", "proven-zero", "insecure-unproven"
_REASONS = {Reason.PAYLOAD_REFUSED: "the payload is malformed, or its contribution proof does not hold"}


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


@dataclass(frozen=True)
class _MissingPayloads:
    """Payloads of one agreed sum are not there: pruned if the board stands higher than ``until``."""

    until: int
    finding: Finding


class _LenientKeys(CommitteeKeys):
    """Lets a key pass that its run did not make, and says so: a finding of that run, not of the board."""

    def __init__(self, attachments: Attachments) -> None:
        super().__init__(attachments)
        self.false_runs: dict[bytes, str] = {}

    def check_made(self, claim: KeyClaim) -> None:
        try:
            super().check_made(claim)
        except KeyGenerationFailed as error:
            self.false_runs[claim.run.run_id(claim.genesis)] = str(error)
        except (AttachmentMissing, DamagedBlob):
            return  # a finding of the posting that names the blob, and of the run once it is established


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
        self._keys = _LenientKeys(attachments)
        verifier = Verifier(genesis.hash, registration, submission, attachments, self._keys)
        self.chain = Chain(State.at_genesis(genesis), verifier)
        self._report = AuditReport(
            board=genesis.name, genesis=genesis.hash.hex(), height=0, tip=genesis.hash.hex()
        )
        self._seen = seen
        self._kinds: Counter[str] = Counter()
        self._names: dict[bytes, str] = {}
        self._blobs: BoundedCache[bytes, None] = BoundedCache(_KNOWN_BLOBS)
        self._established: set[bytes] = set()
        self._next_bundle = 0
        self._moving: dict[int, list[tuple[Progress, bool]]] = {}
        self._missing: list[_MissingPayloads] = []
        self._ended_early = False
        self._checked_sums: dict[bytes, bool] = {}
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
        runs: list[KeyRun] = []

        def on_posting(posting: Posting) -> None:
            postings.append(posting)
            if isinstance(posting.body, CommitteeKeyVote):
                self._keep_established(posting.body.run_id, runs)

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
            self._learn_name(posting)
            self._check_blobs(height, place, posting)
            self._check_posting(height, place, posting)
        false = self._take_false_runs(height, postings)
        for run in runs:
            self._check_run(height, run, known_false=run.run_id in false)
        self._check_positions(height)
        self._forget_pruned(height)
        self._check_seen()

    def add_finding(
        self, height: int, reason: str, rule: str, about: str, posting: int | None = None
    ) -> None:
        """Write down what is wrong; also for what was found beside the blocks."""
        self._report.add_finding(Finding(height, posting, rule, about, reason))

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
        if pruned := self._forget_pruned(height):
            report.notes.append(
                f"By a signed header the board stands at block {height} by now, past the time of the "
                f"payloads of {pruned} sums; the blocks after {report.height} were not checked."
            )
        for missing in self._missing:
            report.add_finding(missing.finding)
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

    def _learn_name(self, posting: Posting) -> None:
        """Remember the names of those who take part in runs; they may become members."""
        if isinstance(posting.body, DkgRound) and isinstance(posting.author, ChainAuthor):
            subject, name = subject_and_name(posting.author.chain[0])
            self._names[subject] = name

    def _check_posting(self, height: int, place: int, posting: Posting) -> None:
        """Check what the board does not: ε. Everything else of a task follows from its document."""
        if isinstance(posting.body, RejectModel):
            task_id, iteration = posting.body.task, posting.body.iteration
            self._rejected.setdefault(task_id, []).append(iteration)
            self._report.mark_rejected(self.state.tasks[task_id].facts.name, iteration)
        if not isinstance(posting.body, PrivacyLedger):
            return
        task = self.state.tasks[posting.body.task]
        document = Task.from_bytes(task.announcement.document)
        if not is_known(document.privacy.mechanism):
            note = f"ε of {_about(task)} was not checked: this audit does not know its mechanism."
            if note not in self._report.notes:
                self._report.notes.append(note)
            return
        try:
            _check_epsilon(document, posting.body)
        except (AnofelError, ArithmeticError, ValueError) as error:
            reason = f"Posting {place} of block {height}: {error}"
            self.add_finding(height, reason, "ledger", _about(task), place)

    # Committee keys

    def _keep_established(self, run_id: RunId, runs: list[KeyRun]) -> None:
        """Keep a run that t members have just ended, as it is before the end of the block may clear it."""
        run = self.state.runs[run_id]
        if run.done and run_id not in self._established:
            self._established.add(run_id)
            runs.append(replace(run, posted=dict(run.posted), votes=dict(run.votes)))

    def _take_false_runs(self, height: int, postings: list[Posting]) -> set[bytes]:
        """Write down the keys of this block that their runs did not make, and name those runs."""
        found, self._keys.false_runs = self._keys.false_runs, {}
        for run_id, reason in found.items():
            bodies = [posting.body for posting in postings]
            place = next(
                i for i, b in enumerate(bodies) if isinstance(b, CommitteeKeyVote) and b.run_id == run_id
            )
            reason = f"Posting {place} of block {height}: {MADE.sentence} {reason}"
            self.add_finding(height, reason, MADE.number, f"run {run_id.hex()}", place)
        return set(found)

    def _check_run(self, height: int, run: KeyRun, *, known_false: bool) -> None:
        """Recompute the key that a run ended with; a false one is a finding of this run alone."""
        vote, about = established_by(run), f"run {run.run_id.hex()}"
        if vote is None:
            return
        committee = self.state.committees.get(vote.key_id)
        shares = [committee.current, committee.pending] if committee is not None else []
        if committee is None or run.run_id not in [part.run_id for part in shares if part is not None]:
            reason = f"Block {height}: the key of the {about} is that of another run."
            self.add_finding(height, reason, "committee", about)
            return
        try:
            if not known_false and self._observe(run) != vote:
                raise VerificationError("a committee key is not the one that its run made.")
        except (AttachmentMissing, DamagedBlob) as error:
            self.add_finding(height, f"Block {height}: {error}", "blob", about)
        except KeyGenerationFailed as error:
            reason = f"Block {height}: a key was established by a run that failed: {error}"
            self.add_finding(height, reason, "committee", about)
        except VerificationError as error:
            self.add_finding(height, f"Block {height}: {error}", "committee", about)
        self._record_committee(height, committee, run)

    def _observe(self, run: KeyRun) -> KeyVote:
        """Return what the messages of a run make."""
        scheme, read = schemes.by_number(run.run.scheme), self.attachments.read
        genesis = self.state.genesis_hash
        rounds = [round_messages(run, number, read) for number in range(complete_rounds(run))]
        if run.base is None:
            made = scheme.key_generation().observe(generation_run(run.run, genesis), rounds)
        else:
            before = scheme.read_key(read(run.base))
            made = scheme.handover().observe(handover_run(run.run, genesis, before), rounds)
        return vote_of(made)

    def _record_committee(self, height: int, committee: Committee, run: KeyRun) -> None:
        members = [self._names.get(member, member.hex()) for member in run.run.members]
        name = committee.key_id.hex()
        for record in self._report.committees:
            if record.key_id == name:
                record.handovers += 1
                record.members, record.threshold = members, run.run.threshold
                return
        self._report.committees.append(
            CommitteeRecord(
                key_id=name,
                scheme=schemes.NAMES[committee.scheme],
                members=members,
                threshold=run.run.threshold,
                established_at=height,
            )
        )

    # Iterations

    def _check_positions(self, height: int) -> None:
        """Look at the bundles that have not ended, and at those that just did."""
        bundles = self.state.bundles
        while self._next_bundle in bundles:
            self._moving[self._next_bundle] = []
            self._next_bundle += 1
        for number in list(self._moving):
            bundle = bundles[number]
            self._check_bundle(height, bundle, self._moving[number])
            if bundle.phase is Phase.ENDED:
                del self._moving[number]

    def _check_bundle(self, height: int, bundle: Bundle, before: list[tuple[Progress, bool]]) -> None:
        sitting = Sitting.find(self.state, bundle.number)
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
        about, name = _about(seat.task), seat.task.facts.name
        self._checked_sums[seat.task_id] = False
        try:
            self.keys.read(seat.addressee.committee)
        except (AttachmentMissing, DamagedBlob) as error:
            self.add_finding(height, f"Block {height}: {error}", "blob", about)
            return
        try:
            collected = collect(self, seat)
        except (AttachmentMissing, DamagedBlob, PayloadRefused):  # the last: nothing is left to be added
            self._check_payloads(height, seat)
            return
        if collected.agreement != seat.position.agreed:
            self.add_finding(
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
        about, agreed = _about(seat.task), seat.position.agreed
        excluded = set() if agreed is None else {nullifier for nullifier, _reason in agreed.excluded}
        incomplete = False
        for post in seat.posts():
            if incomplete and post.nullifier not in excluded:
                continue
            try:
                payload = self.attachments.read(post.payloads[seat.place].sha256)
            except (AttachmentMissing, DamagedBlob) as error:
                finding = Finding(height, None, "blob", about, f"Block {height}: {error}")
                if isinstance(error, AttachmentMissing) and post.nullifier not in excluded:
                    incomplete = True
                    until = payloads_until(self.state, seat.bundle.number)
                    self._missing.append(_MissingPayloads(until, finding))
                else:
                    self._report.add_finding(finding)
                continue
            refused = self._is_refused(seat, post, payload)
            if refused is not (post.nullifier in excluded):
                what = "added a malformed payload" if refused else "excluded a payload that is well-formed"
                reason = f"Block {height}: the committee of {seat.task.facts.name} {what}"
                self.add_finding(height, f"{reason} ({post.nullifier.hex()}).", "aggregate", about)

    def _is_refused(self, seat: Seat, post: AcceptedSubmission, payload: bytes) -> bool:
        try:
            check_payload(self, seat, post, payload)
        except PayloadRefused:
            return True
        return False

    def _forget_pruned(self, height: int) -> int:
        """Count the sums whose missing payloads the board may have pruned by a height."""
        kept = [missing for missing in self._missing if missing.until >= height]
        pruned, self._missing = len(self._missing) - len(kept), kept
        self._report.sums_pruned += pruned
        return pruned

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
            excluded={nullifier.hex(): _REASONS[Reason(reason)] for nullifier, reason in agreed.excluded}
            if agreed
            else {},
            sum_checked=self._checked_sums.pop(seat.task_id, None),
            aggregates_by=sorted(position.aggregates),
            count_shares_by=[share.member for share in position.count_shares],
            sum_shares_by=[share.member for share in position.sum_shares],
            reported=self._reported(seat),
            shortened=seat.position.progress is Progress.SUMMED and is_shortened(self, seat),
        )

    def _reported(self, seat: Seat) -> dict[str, float] | None:
        if seat.position.progress is not Progress.SUMMED:
            return None
        try:
            return metrics_of_sum(self, seat)
        except InvalidInput:  # a mechanism that this audit does not know, which is a note already
            return None


def _check_epsilon(document: Task, body: PrivacyLedger) -> None:
    plan = Plan.of(document)
    verify_micro_epsilon(body.zero_out, plan.epsilon(body.releases, "zero-out"))
    verify_micro_epsilon(body.replace, plan.epsilon(body.releases, "replace"))


def _about(task: TaskState) -> str:
    return f"task '{task.facts.name}'"


def _contributions(state: State, task: TaskState) -> str:
    if not task.facts.limits.proven:
        return INSECURE_UNPROVEN
    return PROVEN if schemes.by_number(state.committee_of(task).scheme).proves_norm else PROVEN_ZERO


def _task_record(state: State, task: TaskState, rejected: list[int]) -> TaskRecord:
    return TaskRecord(
        name=task.facts.name,
        task_id=task.task_id.hex(),
        rule="owner" if task.facts.own_rule else "integer-mean",
        contributions=_contributions(state, task),
        releases=task.releases,
        ended=task.ended,
        epsilon=task.ledger[-1].zero_out / 1_000_000 if task.ledger else None,
        rejected=rejected,
    )
