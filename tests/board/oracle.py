"""TEST ONLY: a board on which an oracle says which proofs are valid.

Encoding, signatures, certificates and receipts are the real ones, and so are all rules about the state.
Proofs, ballots, keys and shares are valid exactly if they begin with the byte ``VALID`` (blobs: if their
name does not stand in ``bad_blobs``), so that thousands of steps run in seconds.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

from anofel.board import snapshot
from anofel.board.attachments import MemoryAttachments
from anofel.board.block_end import SumResult
from anofel.board.cache import BoundedCache
from anofel.board.chain import Chain
from anofel.board.claims import (
    CountShareClaim,
    KeyClaim,
    ModelClaim,
    RegistrationClaim,
    SubmissionClaim,
    SumClaim,
    SumShareClaim,
)
from anofel.board.rule import Rejected
from anofel.board.rules import committees, registrations, submissions, sums, tasks
from anofel.board.seat import Seat
from anofel.board.state import Bundle, Committee, CommitteeShares, State
from anofel.board.verification import Candidate, Verifier
from anofel.messages import (
    Blob,
    Block,
    Body,
    ChainAuthor,
    Class,
    Genesis,
    KeyAuthor,
    Limits,
    Posting,
    Receipt,
    Registration,
    Submission,
    SubmittedPart,
    Validator,
    Vote,
    make_posting,
    receipt_bytes,
)
from anofel.phase1_setup.step1d_announcement import announce
from anofel.pki.certificates import Purpose, RoleKey
from anofel.primitives import DatasetType, MessageSecret, TypeBlinding, TypeCommitment
from tests.board.prepared import copy_state
from tests.board.world import TIME, Authority, a_task

VALID, BAD_ENVELOPE, BAD_BALLOT = 1, 2, 3
GARBAGE = 1000
"""Tags from here on stand for clients whose payload makes a sum undecodable."""
CLASS = Class(max_length=1000, max_posts=4, post_from=0, train=3, aggregate=2, count=2, sum=2, model=2)
NEVER = 1 << 40
GENERATIONS = 8
"""How often both owners can announce a task with committees of its own."""
TYPE_COMMITMENT = TypeCommitment(DatasetType(7), TypeBlinding.generate()).to_bytes()


def number_bytes(number: int) -> bytes:
    """A small number as a canonical field element."""
    return number.to_bytes(32, "little")


def number_of(data: bytes) -> int:
    return int.from_bytes(data, "little")


def target_of(tag: int) -> int:
    """Which task a tag's client trains: 0 or 1; 2 is a cover."""
    return tag % 3


def _committee_key(generation: int, number: int) -> bytes:
    return hashlib.sha256(f"key {generation} {number}".encode()).digest()


class OracleOpenings:
    """Opens counts and sums by looking at the tags."""

    @staticmethod
    def _kept(seat: Seat) -> list[int]:
        assert seat.position.agreed is not None
        excluded = {nullifier for nullifier, _ in seat.position.agreed.excluded}
        return [number_of(post.tag) for post in seat.posts() if post.nullifier not in excluded]

    def counts(self, seat: Seat) -> tuple[SimpleNamespace, ...]:
        return (SimpleNamespace(value=sum(1 for tag in self._kept(seat) if target_of(tag) == seat.place)),)

    def open_sum(self, seat: Seat) -> SimpleNamespace | None:
        if any(tag >= GARBAGE for tag in self._kept(seat)):
            return None
        return SimpleNamespace(result=SumResult(bytes(32), next_model(seat.task_id, seat.number)))


def next_model(task_id: bytes, iteration: int) -> bytes:
    return hashlib.sha256(b"model" + task_id + bytes([iteration])).digest()


class OracleVerifier(Verifier):
    """Asks the oracle instead of verifying proofs."""

    def __init__(self, genesis_hash: bytes, bad_blobs: set[bytes], genesis: Genesis | None = None) -> None:
        """``genesis``: whose proof keys it stands in for; by default those of a board without any."""
        self._genesis_hash = genesis_hash
        pins = (bytes(32),) * 2 if genesis is None else (genesis.registration_key, genesis.submission_key)
        self.registration, self.submission = (SimpleNamespace(key_id=pin, origin="an oracle") for pin in pins)
        self._attachments = MemoryAttachments()
        self._verdicts = BoundedCache(1 << 10)
        self._receipts = BoundedCache(1 << 10)
        self._chains = BoundedCache(1 << 10)
        self._bad_blobs = bad_blobs
        self.openings = OracleOpenings()  # type: ignore[assignment]

    def is_slow(self, candidate: Candidate) -> bool:
        """The oracle answers at once."""
        return False

    def _confirm_proofs(self, candidates: Sequence[Candidate]) -> dict[bytes, Rejected | None]:
        return {candidate.key: self._ask(candidate) for candidate in candidates}

    def _ask(self, candidate: Candidate) -> Rejected | None:
        proof = candidate.claim.proof
        rule, valid = None, True
        if isinstance(proof, RegistrationClaim):
            rule, valid = registrations.PROOF, proof.body.proof[0] == VALID
        elif isinstance(proof, SubmissionClaim):
            first = proof.body.proof[0]
            other = {BAD_ENVELOPE: submissions.ENVELOPE, BAD_BALLOT: submissions.BALLOT}
            rule, valid = other.get(first, submissions.PROOF), first == VALID
        elif isinstance(proof, CountShareClaim):
            rule, valid = sums.COUNT_SHARE, proof.shares[0][:1] == bytes([VALID])
        elif isinstance(proof, SumShareClaim):
            rule, valid = sums.SUM_SHARE, proof.shares[0] not in self._bad_blobs
        elif isinstance(proof, SumClaim):
            rule, valid = sums.SUM, proof.groups[0].sum_digest not in self._bad_blobs
        elif isinstance(proof, ModelClaim):
            rule, valid = tasks.SHAPE, proof.sha256 not in self._bad_blobs
        elif isinstance(proof, KeyClaim):
            rule, valid = committees.KEY, proof.shares_id not in self._bad_blobs
        if valid:
            return None
        assert rule is not None
        return Rejected(rule)


@dataclass
class Member:
    role: RoleKey
    subject: bytes
    number: int


@dataclass
class OracleBoard:
    """A board with two tasks of two owners, each with a committee of three of whom two decrypt."""

    genesis: Genesis
    chain: Chain
    storage: RoleKey
    validator: MessageSecret
    owners: list[RoleKey]
    members: list[list[Member]]
    bad_blobs: set[bytes]
    task_ids: list[bytes] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    snapshots: list[bytes] = field(default_factory=list)
    """The state after each block."""
    postings: list[bytes] = field(default_factory=list)

    @classmethod
    def make(
        cls,
        authority: Authority | None = None,
        changes: Mapping[str, object] | None = None,
        **limits: int,
    ) -> "OracleBoard":
        """``changes``: of the genesis."""
        authority, validator = authority or Authority(), MessageSecret.generate()
        storage = authority.issue(Purpose.STORAGE, "Storage")
        genesis = Genesis(
            version=1,
            name="oracle",
            nonce=bytes(32),
            time=TIME,
            rules=1,
            interval_ms=1000,
            roots=(authority.root,),
            ownership_key=bytes(32),
            registration_key=bytes(32),
            submission_key=bytes(32),
            ownership_proving_key=bytes(32),
            registration_proving_key=bytes(32),
            submission_proving_key=bytes(32),
            transcript=bytes(32),
            validators=(Validator(key=validator.public_key().to_bytes(), power=1),),
            holders=(storage.chain,),
            quorum=1,
            bundle_size=2,
            bundle_wait=10,
            classes=(CLASS,),
            limits=Limits(
                **{
                    "root_window": 4,
                    "max_postings": 1000,
                    "max_block_bytes": 4 << 20,
                    "grace": 2,
                    "max_runs": 2,
                    "max_tasks": 2,
                    "max_key_bytes": 4 << 20,
                    "max_model_bytes": 4 << 20,
                    **limits,
                }
            ),
            insecure="development proof keys",
        )
        genesis = replace(genesis, **(changes or {}))  # type: ignore[arg-type]
        owners = [authority.issue(Purpose.OWNER, f"Owner {number}") for number in range(2)]
        members = [
            [Member(role, role.subject, place) for place, role in enumerate(roles, start=1)]
            for roles in (
                [authority.issue(Purpose.AGGREGATOR, f"{name} {place}") for place in range(3)]
                for name in "AB"
            )
        ]
        bad: set[bytes] = set()
        chain = Chain(State.at_genesis(genesis), OracleVerifier(genesis.hash, bad, genesis))
        chain.begin(genesis.time)
        made = cls(genesis, chain, storage, validator, owners, members, bad)
        made._put_committees()
        made.announce()
        made.next_block()
        return made

    def _put_committees(self) -> None:
        """The committees are put there by hand, so a replay starts after the first block."""
        for generation in range(GENERATIONS):
            for number in range(len(self.owners)):
                key = _committee_key(generation, number)
                subjects = tuple(member.subject for member in self.members[number])
                self.state.committees[key] = Committee(key, 0, CommitteeShares(key, key, subjects, 2, 0))

    def announce(self) -> None:
        """Both owners announce a task, with the next committees."""
        generation, before = len(self.state.bundles), set(self.state.tasks)
        for number, owner in enumerate(self.owners):
            name = f"study {number}" + (f" {generation}" if generation else "")
            task = a_task(name, privacy={"max_posts": CLASS.max_posts, "max_releases": 2})
            key_id = _committee_key(generation, number)
            self.post(self.signed(owner, announce(task, key_id=key_id, early_end=True)))
        self.task_ids = [name for name in self.state.tasks if name not in before]

    @property
    def bundle(self) -> Bundle:
        """The newest bundle."""
        return self.state.bundles[len(self.state.bundles) - 1]

    def copy(self) -> "OracleBoard":
        """A board of its own that goes on from here."""
        chain = Chain(copy_state(self.state), self.chain.verifier)
        return replace(
            self, chain=chain, blocks=list(self.blocks), snapshots=list(self.snapshots), postings=[]
        )

    @property
    def state(self) -> State:
        return self.chain.state

    def blob(self, sha256: bytes, length: int = 8) -> Blob:
        signature = self.storage.sign(receipt_bytes(self.genesis.hash, sha256, length, NEVER))
        return Blob(
            sha256=sha256, length=length, receipts=(Receipt(holder=0, expires=NEVER, signature=signature),)
        )

    def signed(self, role: RoleKey, body: Body) -> Posting:
        return make_posting(body, ChainAuthor(role.chain), self.genesis.hash, role.sign)

    def signed_by_client(self, body: Body) -> Posting:
        secret = MessageSecret.generate()
        return make_posting(body, KeyAuthor(secret.public_key().to_bytes()), self.genesis.hash, secret.sign)

    def registration(
        self, nullifier: int, *, epoch: int = 0, root: bytes = b"", proof: int = VALID
    ) -> Posting:
        return self.signed_by_client(
            Registration(
                certifier_root=root or self.state.certifier_roots[-1],
                commitment=number_bytes(nullifier + 1),
                nullifier=number_bytes(nullifier),
                epoch=epoch,
                tag=number_bytes(nullifier),
                proof=bytes([proof]) + bytes(127),
            )
        )

    def submission(
        self, nullifier: int, tag: int, iteration: int, *, proof: int = VALID, lines: int = 2, bundle: int = 0
    ) -> Posting:
        payload = self.blob(hashlib.sha256(f"{nullifier} {tag}".encode()).digest())
        return self.signed_by_client(
            Submission(
                bundle=bundle,
                iteration=iteration,
                nullifier=number_bytes(nullifier),
                tag=number_bytes(tag),
                type_commitment=TYPE_COMMITMENT,
                proof=bytes([proof]) + bytes(127),
                ballot=b"ballot" * 40,
                contributions=(SubmittedPart(envelope=b"envelope", payload=payload),) * lines,
            )
        )

    def post(self, posting: Posting) -> None:
        self.chain.offer(posting.data)
        self.postings.append(posting.data)

    def next_block(self) -> Block:
        header = self.chain.seal()
        vote = Vote(validator=0, signature=self.validator.sign(header.vote_bytes(self.genesis.hash)))
        block = Block(header=header, commit=(vote,), postings=tuple(self.postings))
        self.blocks.append(block)
        self.snapshots.append(snapshot.encode(self.state))
        self.postings = []
        self.chain.begin(self.state.time)
        return block
