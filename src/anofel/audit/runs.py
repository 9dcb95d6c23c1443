"""Keys of committees: each is what the messages of its run made (step 1.c; D-09)."""

from dataclasses import replace

from anofel.audit.report import AuditReport, CommitteeRecord
from anofel.board.attachments import AttachmentMissing, Attachments, DamagedBlob
from anofel.board.claims import KeyClaim
from anofel.board.committee_keys import CommitteeKeys
from anofel.board.interface import BoardView
from anofel.board.key_runs import complete_rounds, round_messages, vote_of
from anofel.board.rules.committees import MADE
from anofel.board.state import Committee, KeyRun, KeyVote
from anofel.committee import schemes
from anofel.committee.errors import KeyGenerationFailed
from anofel.errors import VerificationError
from anofel.ids import RunId, Subject
from anofel.messages import ChainAuthor, CommitteeKeyVote, DkgRound, Posting
from anofel.phase1_setup.step1c_committee_key import established_by, generation_run, handover_run
from anofel.pki.certificates import subject_and_name


class LenientKeys(CommitteeKeys):
    """Lets a key pass that its run did not make, and says so: a finding of that run, not of the board."""

    def __init__(self, attachments: Attachments) -> None:
        super().__init__(attachments)
        self.false_runs: dict[RunId, str] = {}

    def check_made(self, claim: KeyClaim) -> None:
        """Remember what is wrong instead of raising it."""
        try:
            super().check_made(claim)
        except KeyGenerationFailed as error:
            self.false_runs[claim.run.run_id(claim.genesis)] = str(error)
        except (AttachmentMissing, DamagedBlob):
            return  # a finding of the posting that names the blob, and of the run once it is established


class RunAudit:
    """Recomputes the key of every run that established one, and says who holds it."""

    def __init__(self, board: BoardView, keys: LenientKeys, report: AuditReport) -> None:
        self._board, self._keys, self._report = board, keys, report
        self._names: dict[Subject, str] = {}
        self._established: set[RunId] = set()
        self._ended: list[KeyRun] = []
        """Runs that ended in this block."""

    def take(self, posting: Posting) -> None:
        """Look at a posting as it is applied: the end of its block may clear what it is about."""
        if isinstance(posting.body, DkgRound) and isinstance(posting.author, ChainAuthor):
            subject, name = subject_and_name(posting.author.chain[0])
            self._names[subject] = name
        if isinstance(posting.body, CommitteeKeyVote):
            run = self._board.state.runs[posting.body.run_id]
            if run.done and run.run_id not in self._established:
                self._established.add(run.run_id)
                self._ended.append(replace(run, posted=dict(run.posted), votes=dict(run.votes)))

    def end_block(self, height: int, postings: list[Posting]) -> None:
        """Check the keys of a block, once all its postings are applied."""
        false = self._take_false_runs(height, postings)
        for run in self._ended:
            self._check_run(height, run, known_false=run.run_id in false)
        self._ended.clear()

    def _take_false_runs(self, height: int, postings: list[Posting]) -> set[RunId]:
        """Write down the keys of this block that their runs did not make, and name those runs."""
        found, self._keys.false_runs = self._keys.false_runs, {}
        for run_id, reason in found.items():
            bodies = [posting.body for posting in postings]
            place = next(
                i for i, b in enumerate(bodies) if isinstance(b, CommitteeKeyVote) and b.run_id == run_id
            )
            reason = f"Posting {place} of block {height}: {MADE.sentence} {reason}"
            self._report.add(height, reason, MADE.number, f"run {run_id.hex()}", place)
        return set(found)

    def _check_run(self, height: int, run: KeyRun, *, known_false: bool) -> None:
        """Recompute the key that a run ended with; a false one is a finding of this run alone."""
        vote, about = established_by(run), f"run {run.run_id.hex()}"
        if vote is None:
            return
        committee = self._board.state.committees.get(vote.key_id)
        shares = [committee.current, committee.pending] if committee is not None else []
        if committee is None or run.run_id not in [part.run_id for part in shares if part is not None]:
            reason = f"Block {height}: the key of the {about} is that of another run."
            self._report.add(height, reason, "committee", about)
            return
        try:
            if not known_false and self._observe(run) != vote:
                raise VerificationError("a committee key is not the one that its run made.")
        except (AttachmentMissing, DamagedBlob) as error:
            self._report.add(height, f"Block {height}: {error}", "blob", about)
        except KeyGenerationFailed as error:
            reason = f"Block {height}: a key was established by a run that failed: {error}"
            self._report.add(height, reason, "committee", about)
        except VerificationError as error:
            self._report.add(height, f"Block {height}: {error}", "committee", about)
        self._record_committee(height, committee, run)

    def _observe(self, run: KeyRun) -> KeyVote:
        """Return what the messages of a run make."""
        scheme, read = schemes.by_number(run.run.scheme), self._board.attachments.read
        genesis = self._board.state.genesis_hash
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
