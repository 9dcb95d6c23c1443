"""A board with everybody on it, for tests: certifiers, two committees, two owners, clients.

All cryptography is the real one. Every role does what its step says; nothing looks inside another.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from anofel.board.key_runs import round_messages
from anofel.board.seat import Seat, Sitting
from anofel.board.state import Bundle, Phase, Position, TaskState
from anofel.committee import schemes
from anofel.committee.interface import (
    CommitteeKey,
    GeneratedKey,
    HandedOverKey,
    Int64Vector,
    RoundResult,
    Scheme,
    SecretKeyShare,
)
from anofel.learning.build import trainer_of
from anofel.learning.certified import dataset_digest
from anofel.messages import (
    ChainAuthor,
    Class,
    Genesis,
    Limits,
    Posting,
    Run,
    Validator,
    make_posting,
)
from anofel.models.integer_model import IntegerModel
from anofel.models.rules import rule_of
from anofel.phase1_setup.step1a_certifier_key import offer_key
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.phase1_setup.step1c_committee_key import generation_run, post_key, post_round
from anofel.phase1_setup.step1d_announcement import announce, post_model
from anofel.phase2_training.step5_submission import (
    SealedSubmission,
    post_submission,
    prepare_submission,
    seal_submission,
)
from anofel.phase3_access.step6_homomorphic_sum import collect, state_aggregate
from anofel.phase3_access.step8_partial_decryption import post_sum_share, share_of_count, share_of_sum
from anofel.phase3_access.step8prime_model import next_model
from anofel.pki.certificates import Purpose, RoleKey, verify_chain
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import CertifierSecret, DatasetType, MasterSecret, MessageSecret, Salt
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard
from anofel.tasks.task import Task
from tests.patients import make_dataset, make_task

TIME = 1_800_000_000
HOUR, DAY = 3600, 86_400
MAX_POSTS = 8
CLASS = Class(
    max_length=1000, max_posts=MAX_POSTS, post_from=0, train=4, aggregate=3, count=3, sum=3, model=3
)
LIMITS = Limits(
    root_window=4,
    max_postings=1000,
    max_block_bytes=4 << 20,
    grace=2,
    max_runs=2,
    max_tasks=2,
    max_key_bytes=4 << 20,
    max_model_bytes=4 << 20,
)


class Authority:
    """The certificate authority of a test."""

    def __init__(self, now: int = TIME, ca: TestAuthority | None = None) -> None:
        self.now = now
        self._ca = ca or TestAuthority.create(not_before=now - DAY, not_after=now + 1000 * DAY)

    @property
    def root(self) -> bytes:
        return self._ca.root

    def issue(self, purpose: Purpose, name: str, organisation: str = "") -> RoleKey:
        """Valid since an hour ago: a block's time lies up to an interval in the past."""
        start, end = self.now - HOUR, self.now + 900 * DAY
        return self._ca.issue(purpose, name, start, end, organisation=organisation)


def make_genesis(
    authority: Authority, keys: KeyDirectory, storage: RoleKey, validator: MessageSecret, **changes: object
) -> Genesis:
    values: dict[str, object] = {
        "version": 1,
        "name": "test",
        "nonce": secrets.token_bytes(32),
        "time": TIME,
        "rules": 1,
        "interval_ms": 1000,
        "roots": (authority.root,),
        **keys.pins(),
        "validators": (Validator(key=validator.public_key().to_bytes(), power=1),),
        "holders": (storage.chain,),
        "quorum": 1,
        "bundle_size": 2,
        "bundle_wait": 10,
        "classes": (CLASS,),
        "limits": LIMITS,
        "insecure": "test certificate authority, development proof keys",
    }
    return Genesis(**(values | changes))  # type: ignore[arg-type]


@dataclass
class Member:
    """An aggregator."""

    role: RoleKey
    subject: bytes
    number: int
    share: SecretKeyShare | None = None


@dataclass
class CommitteeOfTest:
    """A committee whose members are all here; each uses only its own share."""

    scheme: Scheme
    members: list[Member]
    threshold: int
    key: CommitteeKey | None = None


@dataclass(frozen=True)
class FinishedRun:
    """A run whose rounds are all on the board, and what each member made of it."""

    members: list[Member]
    run: Run
    ends: list[GeneratedKey] | list[HandedOverKey]

    @property
    def key(self) -> CommitteeKey:
        return self.ends[0].key

    @property
    def transcript(self) -> bytes:
        return self.ends[0].transcript


@dataclass
class Owner:
    """A model owner with its task."""

    role: RoleKey
    task: Task
    task_id: bytes = b""
    model: IntegerModel | None = None


@dataclass
class ClientOfTest:
    """A certified client."""

    credential: Credential
    salt: Salt = field(default_factory=Salt.generate)


class World:
    """Everybody on one board."""

    def __init__(self, keys: KeyDirectory, authority: Authority | None = None, **changes: object) -> None:
        self.keys = keys
        self.authority = authority or Authority()
        self.storage = self.authority.issue(Purpose.STORAGE, "Storage")
        self.validator = MessageSecret.generate()
        self.genesis = make_genesis(self.authority, keys, self.storage, self.validator, **changes)
        self.board = LocalBoard(
            self.genesis,
            validator=self.validator,
            storage=self.storage,
            registration=keys.registration_verifier(threads=1),
            submission=keys.submission_verifier(threads=1),
        )
        self.certifier_secret = CertifierSecret.generate()
        self.certifier = self.authority.issue(Purpose.CERTIFIER, "Clinic")
        self.operator = self.authority.issue(Purpose.OPERATOR, "Operator")
        self.committees: list[CommitteeOfTest] = []
        self.finished: FinishedRun | None = None
        """The run of the stage ``generated`` or ``handed_over``."""
        self.owners: list[Owner] = []
        self.clients: list[ClientOfTest] = []

    # Phase 1

    def offer_certifier_key(self) -> Posting:
        root, now = self.authority.root, self.authority.now
        holder = verify_chain(self.certifier.chain, [root], Purpose.CERTIFIER, now)
        body = offer_key(self.certifier_secret, holder=holder, genesis=self.board.genesis_hash)
        return self.board.post_as(self.certifier, body)

    def certify(self, dataset_type: int = 7, seed: int = 0) -> ClientOfTest:
        rows = make_dataset(30, seed=seed)
        d, msk, dt = dataset_digest(rows), MasterSecret.generate(), DatasetType(dataset_type)
        certificate = self.certifier_secret.certify(d, msk.public_key(), dt)
        return ClientOfTest(Credential(msk, d, dt, self.certifier_secret.public_key(), certificate))

    def registration(self, client: ClientOfTest, *, message_secret: MessageSecret | None = None) -> Posting:
        state = self.board.state
        return make_registration(
            client.credential,
            salt=client.salt,
            certifiers=state.certifier_tree,
            genesis=state.genesis_hash,
            epoch=state.epoch,
            message_secret=message_secret or MessageSecret.generate(),
            prover=self.registration_prover,
        )

    @property
    def registration_prover(self):  # type: ignore[no-untyped-def]
        if not hasattr(self, "_registration_prover"):
            self._registration_prover = self.keys.registration_prover(threads=1)
        return self._registration_prover

    @property
    def submission_prover(self):  # type: ignore[no-untyped-def]
        if not hasattr(self, "_submission_prover"):
            self._submission_prover = self.keys.submission_prover(threads=1)
        return self._submission_prover

    def add_clients(self, number: int) -> None:
        for _ in range(number):
            client = self.certify(seed=len(self.clients))
            self.board.post(self.registration(client))
            self.clients.append(client)

    def make_members(self, num_members: int, name: str = "Aggregator") -> list[Member]:
        members = []
        for number in range(1, num_members + 1):
            role = self.authority.issue(Purpose.AGGREGATOR, f"{name} {number}")
            members.append(Member(role, role.subject, number))
        return members

    def make_run(self, members: Iterable[Member], threshold: int, scheme: int = 0) -> Run:
        return Run(
            nonce=secrets.token_bytes(32),
            scheme=scheme,
            threshold=threshold,
            members=tuple(member.subject for member in members),
            handover=None,
        )

    def establish(
        self, num_members: int = 3, threshold: int = 2, scheme: int = 0, name: str = "Aggregator"
    ) -> CommitteeOfTest:
        """Key generation over the board, round by round."""
        return self.post_keys(self.generate(num_members, threshold, scheme, name))

    def generate(
        self, num_members: int = 3, threshold: int = 2, scheme: int = 0, name: str = "Aggregator"
    ) -> FinishedRun:
        """All rounds of key generation; nobody has posted the key."""
        members = self.make_members(num_members, name)
        run, genesis = self.make_run(members, threshold, scheme), self.board.genesis_hash
        generation = schemes.by_number(scheme).key_generation()
        results = [generation.begin(generation_run(run, genesis), member.number) for member in members]
        while isinstance(results[0], RoundResult):
            for member, result in zip(members, results, strict=True):
                blob = self.board.upload(result.message.body)
                self.board.post_as(member.role, post_round(run, result.message, blob))
            known, number = self.board.state.runs[run.run_id(genesis)], results[0].message.round
            messages = round_messages(known, number, self.board.attachments.read)
            results = [generation.advance(result.state, messages) for result in results]
        return FinishedRun(members, run, results)

    def key_posting(self, finished: FinishedRun, member: Member) -> Posting:
        """A member's posting of the key that a run made."""
        key, genesis = finished.key, self.board.genesis_hash
        blob = self.board.upload(key.to_bytes())
        body = post_key(finished.run, member.number, key, finished.transcript, blob, genesis=genesis)
        return make_posting(body, ChainAuthor(member.role.chain), genesis, member.role.sign)

    def post_keys(self, finished: FinishedRun) -> CommitteeOfTest:
        """Every member posts the key."""
        scheme = schemes.by_name(finished.key.scheme)
        made = CommitteeOfTest(scheme, finished.members, finished.run.threshold, finished.key)
        for member, end in zip(finished.members, finished.ends, strict=True):
            member.share = end.share
            self.board.post(self.key_posting(finished, member))
        self.committees.append(made)
        return made

    # Phase 2

    def announce(self, committee: CommitteeOfTest, task: Task, *, early_end: bool = False) -> Owner:
        role = self.authority.issue(Purpose.OWNER, f"Owner {len(self.owners)}")
        owner = Owner(role, task)
        assert committee.key is not None
        before = set(self.board.state.tasks)
        self.board.post_as(role, announce(task, key_id=committee.key.key_id, early_end=early_end))
        (owner.task_id,) = set(self.board.state.tasks) - before
        self.owners.append(owner)
        return owner

    def bundle(self, number: int = 0) -> Bundle:
        return self.board.state.bundles[number]

    def task_state(self, owner: Owner) -> TaskState:
        return self.board.state.tasks[owner.task_id]

    def position(self, owner: Owner) -> Position:
        return self.seat(owner).position

    def post_first_model(self, owner: Owner) -> Posting:
        trainer, rule = trainer_of(owner.task), rule_of(owner.task)
        owner.model = rule.initial(trainer.initial(), owner.task.model.scale_bits)
        return self.post_model(owner)

    def post_model(self, owner: Owner) -> Posting:
        assert owner.model is not None
        iteration = self.bundle(self.task_state(owner).bundle or 0).iterations + 1
        blob = self.board.upload(owner.model.to_bytes())
        return self.board.post_as(owner.role, post_model(owner.task_id, iteration, blob))

    def sealed(
        self, client: ClientOfTest, target: int | None, update: Int64Vector | None, bundle: int = 0
    ) -> SealedSubmission:
        prepared = prepare_submission(
            self.board,
            Sitting.of(self.board.state, bundle),
            client.credential,
            salt=client.salt,
            target=target,
            prover=self.submission_prover,
        )
        return seal_submission(prepared, update)

    def submission(
        self, client: ClientOfTest, target: int | None, update: Int64Vector | None, bundle: int = 0
    ) -> Posting:
        return post_submission(self.board, self.sealed(client, target, update, bundle))

    # Phase 3

    def seat(self, owner: Owner) -> Seat:
        return Seat.of(self.board.state, owner.task_id)

    def aggregate(self, owner: Owner, _committee: CommitteeOfTest, member: Member) -> Posting:
        seat = self.seat(owner)
        body = state_aggregate(self.board, seat, member.number, collect(self.board, seat))
        return self.board.post_as(member.role, body)

    def count_share(self, owner: Owner, _committee: CommitteeOfTest, member: Member) -> Posting:
        assert member.share is not None
        return self.board.post_as(member.role, share_of_count(self.board, self.seat(owner), member.share))

    def sum_share(self, owner: Owner, _committee: CommitteeOfTest, member: Member) -> Posting:
        assert member.share is not None
        seat = self.seat(owner)
        share = share_of_sum(self.board, seat, member.share)
        return self.board.post_as(member.role, post_sum_share(self.board, seat, member.number, share))

    def recover(self, owner: Owner) -> IntegerModel:
        owner.model = next_model(self.board, self.seat(owner))
        return owner.model

    # Whole stretches

    def set_up(
        self,
        num_clients: int = 5,
        *,
        committees: Iterable[tuple[int, int, int]] = ((3, 2, 0), (3, 2, 0)),
        early_end: bool = False,
        **task_changes: dict[str, object],
    ) -> None:
        """Certifier, two committees (members, threshold, scheme), two tasks, clients.

        Ends when the first iteration is open. One task of a bundle may have groups: the first.
        """
        self.offer_certifier_key()
        for committee in committees:
            self.establish(*committee)
        self.board.next_block()
        for number, made in enumerate(self.committees):
            self.announce(made, a_task(f"study {number}", **task_changes), early_end=early_end)
            task_changes.pop("groups", None)
        self.add_clients(num_clients)
        self.board.next_block()
        for owner in self.owners:
            self.post_first_model(owner)
        self.board.next_block()
        assert self.bundle().phase is Phase.OPEN

    def blocks_until(self, phase: Phase, bundle: int = 0) -> None:
        for _ in range(50):
            if self.bundle(bundle).phase is phase:
                return
            self.board.next_block()
        raise AssertionError(f"The bundle never reached {phase}.")

    def run_phase3(self, owners: Iterable[Owner] | None = None) -> None:
        """Aggregates, counts and sums of every committee, each in its block."""
        chosen = list(owners if owners is not None else self.owners)
        for step in (self.aggregate, self.count_share, self.sum_share):
            for owner in chosen:
                committee = self.committees[self.owners.index(owner)]
                if not self.position(owner).progress.is_outcome:
                    for member in committee.members[: committee.threshold]:
                        step(owner, committee, member)
            self.board.next_block()


def a_task(name: str = "test", **sections: dict[str, object]) -> Task:
    privacy = {"min_clients": 2, "max_colluders": 0, "max_posts": MAX_POSTS, "max_releases": 3}
    changes: dict[str, dict[str, object]] = {"task": {"name": name}, "privacy": privacy}
    for section, values in sections.items():
        changes[section] = changes.get(section, {}) | values
    return make_task(**changes)


def a_vector(task: Task, seed: int) -> Int64Vector:
    generator = np.random.default_rng(seed)
    return generator.integers(-1000, 1000, task.length, dtype=np.int64)
