"""An independent, simple model of one bundle of two tasks: who may post what, and when phases move.

It knows nothing of encodings, hashes or claims. Numbers stand for nullifiers, tags and members.
"""

from dataclasses import dataclass, field

from tests.board.oracle import CLASS, GARBAGE, VALID, target_of

THRESHOLD = 2
MIN_CLIENTS = 2
MAX_RELEASES = 2
LATE = ("summed", "undecodable", "too-few", "failed", "absent")


@dataclass
class TaskModel:
    ended: bool = False
    releases: int = 0
    model: str | None = None
    """The model in use: its name."""
    due: str | None = None
    """What the rule makes of the last sum."""
    posted_for: int = 0
    entered: set[int] = field(default_factory=set)


@dataclass
class Committee:
    progress: str
    aggregates: dict[int, bool] = field(default_factory=dict)
    """Member → whether it leaves out the smallest nullifier."""
    agreed: bool | None = None
    count_shares: list[int] = field(default_factory=list)
    sum_shares: list[int] = field(default_factory=list)


class BoardModel:
    """What the board should say."""

    def __init__(self, height: int, model_by: int) -> None:
        self.height = height
        self.phase = "waiting"
        self.iteration = 0
        self.deadline = model_by
        self.aggregate_by = self.count_by = self.sum_by = 0
        self.tasks = [TaskModel(), TaskModel()]
        self.committees: list[Committee] = []
        self.posts: dict[int, int] = {}
        self.end_votes: set[int] = set()
        self.registered: set[int] = set()
        self.members = 0
        """The clients that were registered when the iteration opened."""
        self.nullifiers = 0

    # Postings: each answers whether it is admitted, and remembers it

    def register(self, nullifier: int, epoch: int, known_root: bool, proof: int) -> bool:
        fine = epoch == 0 and known_root and nullifier not in self.registered and proof == VALID
        if fine:
            self.registered.add(nullifier)
            self.nullifiers += 1
        return fine

    def submit(self, nullifier: int, tag: int, iteration: int, proof: int, lines: int) -> bool:
        is_open = self.phase == "open" and iteration == self.iteration
        fresh = nullifier not in self.posts and tag not in self.posts.values()
        fine = is_open and fresh and lines == 2 and len(self.posts) < CLASS.max_posts and proof == VALID
        if fine:
            self.posts[nullifier] = tag
            self.nullifiers += 1
        return fine

    def expected_model(self, task: int) -> str | None:
        """The one model that is admitted; None while the owner is free."""
        known = self.tasks[task]
        return known.due or known.model

    def post_model(self, task: int, iteration: int, name: str, well_formed: bool) -> bool:
        known = self.tasks[task]
        due = self.phase == "waiting" and not known.ended and iteration == self.iteration + 1
        expected = self.expected_model(task)
        right = well_formed if expected is None else name == expected
        fine = due and known.posted_for < iteration and right
        if fine:
            known.model, known.posted_for = name, iteration
        return fine

    def reject_model(self, task: int, iteration: int) -> bool:
        known = self.tasks[task]
        due = self.phase == "waiting" and not known.ended and iteration == self.iteration
        fine = due and known.due is not None and known.posted_for <= iteration
        if fine:
            known.posted_for = iteration + 1
        return fine

    def aggregate(self, task: int, member: int, iteration: int, leaves_out: bool, honest_rest: bool) -> bool:
        if self.phase != "closed" or iteration != self.iteration:
            return False
        committee = self.committees[task]
        waiting = committee.progress not in ("failed", "too-few", "absent")
        fine = waiting and self.height <= self.aggregate_by and member not in committee.aggregates
        fine = fine and honest_rest
        if fine:
            committee.aggregates[member] = leaves_out
        return fine

    def count_share(self, task: int, member: int, iteration: int, right: bool) -> bool:
        if self.phase != "closed" or iteration != self.iteration:
            return False
        committee = self.committees[task]
        enough = committee.agreed is not None and len(self.kept(committee.agreed)) >= MIN_CLIENTS
        due = enough and committee.progress != "failed" and self.height <= self.count_by
        fine = due and member not in committee.count_shares and right
        if fine:
            committee.count_shares.append(member)
        return fine

    def sum_share(self, task: int, member: int, iteration: int, right: bool) -> bool:
        if self.phase != "closed" or iteration != self.iteration:
            return False
        committee = self.committees[task]
        due = committee.progress in ("counted", "summed", "undecodable") and self.height <= self.sum_by
        fine = due and member not in committee.sum_shares and right
        if fine:
            committee.sum_shares.append(member)
        return fine

    def end_iteration(self, task: int, iteration: int) -> bool:
        fine = self.phase == "open" and iteration == self.iteration and task not in self.end_votes
        if fine:
            self.end_votes.add(task)
        return fine

    def end_task(self, task: int) -> bool:
        fine = not self.tasks[task].ended
        self.tasks[task].ended = True
        return fine

    def enter(self, task: int, releases: int) -> bool:
        known = self.tasks[task]
        fine = releases > 0 and releases == known.releases and releases not in known.entered
        if fine:
            known.entered.add(releases)
        return fine

    # The end of a block

    def next_block(self) -> None:
        if self.phase == "open":
            live = {number for number, task in enumerate(self.tasks) if not task.ended}
            begun = self.height >= self.deadline - CLASS.train + CLASS.post_from
            full = len(self.posts) >= min(self.members, CLASS.max_posts)
            settled = full if self.posts else begun
            if self.height >= self.deadline or (settled and live and live <= self.end_votes):
                self._close()
        elif self.phase == "closed":
            for number, committee in enumerate(self.committees):
                self._move(number, committee)
            self._finish()
        if self.phase == "waiting":
            self._open()
        self.height += 1

    def _close(self) -> None:
        self.phase = "closed"
        self.aggregate_by = self.height + CLASS.aggregate
        self.count_by = self.aggregate_by + CLASS.count
        self.sum_by = self.count_by + CLASS.sum
        for committee in self.committees:
            if committee.progress == "collecting":
                committee.progress = "closed" if len(self.posts) >= MIN_CLIENTS else "too-few"
        self._finish()

    def kept(self, leaves_out: bool) -> list[int]:
        """The tags of the agreed set."""
        return [self.posts[nullifier] for nullifier in sorted(self.posts)][1 if leaves_out else 0 :]

    def _move(self, number: int, committee: Committee) -> None:
        if committee.progress == "closed":
            stated = list(committee.aggregates.values())
            for choice in (False, True):
                if stated.count(choice) >= THRESHOLD:
                    enough = len(self.kept(choice)) >= MIN_CLIENTS
                    committee.agreed, committee.progress = choice, "aggregated" if enough else "too-few"
            if committee.agreed is None and self.height >= self.aggregate_by:
                committee.progress = "failed"
        elif committee.progress == "aggregated":
            if len(committee.count_shares) >= THRESHOLD:
                real = [tag for tag in self.kept(bool(committee.agreed)) if target_of(tag) == number]
                committee.progress = "counted" if len(real) >= MIN_CLIENTS else "too-few"
                self.tasks[number].releases += len(real) >= MIN_CLIENTS
            elif self.height >= self.count_by:
                committee.progress = "failed"
        elif committee.progress == "counted":
            if len(committee.sum_shares) >= THRESHOLD:
                self._open_sum(number, committee)
            elif self.height >= self.sum_by:
                committee.progress = "failed"
        task = self.tasks[number]
        task.ended = task.ended or (committee.progress in LATE and task.releases >= MAX_RELEASES)

    def _open_sum(self, number: int, committee: Committee) -> None:
        task = self.tasks[number]
        if any(tag >= GARBAGE for tag in self.kept(bool(committee.agreed))):
            committee.progress = "undecodable"
        else:
            committee.progress, task.due = "summed", f"rule {number} {self.iteration}"

    def _finish(self) -> None:
        if all(committee.progress in LATE for committee in self.committees):
            self.deadline = self.height + CLASS.model
            self.phase = "ended" if all(task.ended for task in self.tasks) else "waiting"

    def _open(self) -> None:
        following = self.iteration + 1
        live = [task for task in self.tasks if not task.ended]
        if any(task.posted_for != following for task in live) and self.height < self.deadline:
            return
        for task in live:
            task.ended = task.model is None
        if all(task.ended for task in self.tasks):
            self.phase = "ended"
            return
        self.phase, self.iteration, self.deadline = "open", following, self.height + CLASS.train
        self.posts, self.end_votes, self.members = {}, set(), len(self.registered)
        self.committees = [Committee("absent" if task.ended else "collecting") for task in self.tasks]
        for task in self.tasks:
            task.due = None
