"""One iteration of a bundle of two, role by role, with real proofs and ciphertexts and random vectors.

Committees are made once. A client's proof, masks, ciphertexts, ballot and posting are those of step 5;
aggregators and the owner do steps 6 to 8′ on what the clients made.
"""

import dataclasses
import hashlib
import secrets
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from anofel.board.statements import ballot_statement, registration_statement
from anofel.committee import count, schemes
from anofel.committee.context import AgreedSet, CommitteeShape, IterationContext, PostContext, TaskLimits
from anofel.committee.count import CIPHERTEXT_LENGTH, BallotStatement, TypeOpening
from anofel.committee.interface import (
    CommitteeKey,
    Envelope,
    GeneratedKey,
    KeyGenerationRun,
    RoundResult,
    Scheme,
    SecretKeyShare,
)
from anofel.messages import Blob, KeyAuthor, Posting, Receipt, Registration
from anofel.models.integer_model import IntegerMean, IntegerModel
from anofel.models.parameters import Layout
from anofel.phase1_setup.step1b_certification import Credential
from anofel.phase1_setup.step1b_registration import make_registration
from anofel.phase2_training.step5_submission import (
    Membership,
    PreparedSubmission,
    SealedSubmission,
    post_submission,
    prove_membership,
    seal_submission,
)
from anofel.primitives import (
    CertifierSecret,
    CertifierTree,
    ClientTree,
    Commitment,
    DatasetDigest,
    DatasetType,
    MasterSecret,
    MessageSecret,
    Salt,
    Scope,
    TypeBlinding,
)
from anofel.proofs.keys import KeyDirectory
from anofel.proofs.statements import (
    RegistrationProof,
    RegistrationStatement,
    SubmissionProof,
    SubmissionStatement,
)

BOUND = 32_767
GENESIS = hashlib.sha256(b"bench").digest()
BUNDLE, ITERATION = 0, 1
DT = 7


def digest(*parts: object) -> bytes:
    """32 bytes that stand for something."""
    return hashlib.sha256(repr(parts).encode()).digest()


@dataclass(frozen=True)
class Committee:
    """A committee whose members are all here."""

    scheme: Scheme
    key: CommitteeKey
    shares: dict[int, SecretKeyShare]

    @classmethod
    def generate(cls, name: str, members: int = 3, threshold: int = 2) -> "Committee":
        """Make a key without a dealer, as on the board."""
        scheme = schemes.by_name(name)
        shape = CommitteeShape(num_members=members, threshold=threshold)
        run = KeyGenerationRun(
            genesis=GENESIS,
            run_id=secrets.token_bytes(32),
            shape=shape,
            members=tuple(digest("member", number) for number in shape.members),
        )
        generation = scheme.key_generation()
        results: dict[int, RoundResult | GeneratedKey] = {
            number: generation.begin(run, number) for number in shape.members
        }
        while isinstance(results[1], RoundResult):
            rounds = {n: result for n, result in results.items() if isinstance(result, RoundResult)}
            messages = [result.message for result in rounds.values()]
            results = {n: generation.advance(result.state, messages) for n, result in rounds.items()}
        ends = {n: end for n, end in results.items() if isinstance(end, GeneratedKey)}
        return cls(scheme, ends[1].key, {n: end.share for n, end in ends.items()})


@dataclass(frozen=True)
class Proven:
    """A proof of membership with the secrets that belong to it."""

    membership: Membership
    rho: TypeBlinding


class Crowd:
    """A tree of so many clients, some of whom are ours; of the others there are only leaves."""

    def __init__(self, num_clients: int, num_ours: int, keys: KeyDirectory) -> None:
        """Certify our clients; every other leaf is that of somebody else."""
        self.registration_prover = keys.registration_prover()
        self.submission_prover = keys.submission_prover()
        certifier, dt = CertifierSecret.generate(), DatasetType(DT)
        self.certifiers, self.clients = CertifierTree(), ClientTree()
        self.certifiers.append([certifier.public_key()])
        self.ours: list[tuple[Credential, Salt]] = []
        leaves = []
        for number in range(num_clients):
            d, msk, salt = DatasetDigest.of_chunks([b"%d" % number]), MasterSecret.generate(), Salt.generate()
            leaves.append(Commitment(d, msk, dt, salt))
            if number < num_ours:
                certificate = certifier.certify(d, msk.public_key(), dt)
                self.ours.append((Credential(msk, d, dt, certifier.public_key(), certificate), salt))
        self.clients.append(leaves)
        self.scope = Scope(GENESIS, BUNDLE, ITERATION)

    def register(self) -> Posting:
        """Make a registration with its proof (step 1.b)."""
        credential, salt = self.ours[0]
        return make_registration(
            credential,
            salt=salt,
            certifiers=self.certifiers,
            genesis=GENESIS,
            epoch=0,
            message_secret=MessageSecret.generate(),
            prover=self.registration_prover,
        )

    @staticmethod
    def proven_registration(posting: Posting) -> tuple[RegistrationStatement, RegistrationProof]:
        """Return what a board verifies of a registration."""
        body, author = posting.body, posting.author
        assert isinstance(body, Registration)
        assert isinstance(author, KeyAuthor)
        shown = {name: value for name, value in dataclasses.asdict(body).items() if name != "proof"}
        statement = registration_statement(genesis=GENESIS, message_key=author.message_key, **shown)
        return statement, RegistrationProof.from_bytes(body.proof)

    def prove(self, number: int = 0) -> Proven:
        """Prove membership for one submission of one of our clients (step 5)."""
        credential, salt = self.ours[number]
        rho = TypeBlinding.generate()
        membership = prove_membership(
            credential,
            salt=salt,
            rho=rho,
            clients=self.clients,
            genesis=GENESIS,
            bundle=BUNDLE,
            iteration=ITERATION,
            prover=self.submission_prover,
        )
        return Proven(membership, rho)

    def proven_submission(self, membership: Membership) -> tuple[SubmissionStatement, SubmissionProof]:
        """Return what a board verifies of a submission's membership."""
        statement = membership.statement(self.clients.root().to_bytes(), GENESIS)
        return statement, SubmissionProof.from_bytes(membership.proof)


class HashingBoard:
    """What a client needs of a board to sign: payloads are hashed, as for an upload, and stored nowhere."""

    genesis = SimpleNamespace(hash=GENESIS)

    @staticmethod
    def upload(data: bytes) -> Blob:
        """Hash the payload."""
        receipt = Receipt(holder=0, expires=1, signature=bytes(64))
        return Blob(sha256=hashlib.sha256(data).digest(), length=len(data), receipts=(receipt,))


@dataclass(frozen=True)
class Post:
    """A client's post, with what an aggregator needs to check its first payload."""

    context: PostContext
    sealed: SealedSubmission
    ballot: bytes

    def envelope(self, position: int = 0) -> Envelope:
        """Return the envelope of one payload, as the board gives it to an aggregator."""
        payload = self.sealed.payloads[position]
        return Envelope(
            proof=self.sealed.envelopes[position],
            payload_length=len(payload),
            payload_sha256=hashlib.sha256(payload).digest(),
            bit=self.ballot[position * CIPHERTEXT_LENGTH : (position + 1) * CIPHERTEXT_LENGTH],
        )


class Iteration:
    """A bundle of two committees that add vectors of one length for so many clients."""

    def __init__(
        self, committees: tuple[Committee, ...], crowd: Crowd, length: int, num_clients: int
    ) -> None:
        self.committees, self.crowd, self.length = committees, crowd, length
        self.limits = TaskLimits(
            length=length, bound=BOUND, max_posts=num_clients, min_clients=2, norm_bound=BOUND
        )
        direction = np.random.default_rng(length).normal(size=length)
        self.vector = (direction * (BOUND / np.linalg.norm(direction))).astype(np.int64)

    def context(self, position: int) -> IterationContext:
        """Return what the ciphertexts for one committee are bound to."""
        return IterationContext(
            genesis=GENESIS,
            task=digest("task", position),
            iteration=ITERATION,
            scope=self.crowd.scope.to_bytes(),
            position=position,
        )

    # Client

    def prepare(self, proven: Proven) -> PreparedSubmission:
        """Make masks and ballot (step 5, before the update is known)."""
        membership = proven.membership
        contexts = [self.post_context(membership, position) for position in range(len(self.committees))]
        cast = self.statement(contexts[0], membership).cast(
            0, TypeOpening(dataset_type=DT, blinding=proven.rho.to_secret_bytes())
        )
        masks = [
            committee.scheme.prepare(committee.key, context, self.limits, bit)
            for committee, context, bit in zip(self.committees, contexts, cast.bits, strict=True)
        ]
        zeros = np.zeros(self.length, dtype=np.int64)
        decoys = tuple(mask.encrypt(zeros) if place else None for place, mask in enumerate(masks))
        return PreparedSubmission(membership, cast.ballot, decoys, masks[0], 0)

    def post_context(self, membership: Membership, position: int) -> PostContext:
        """Return what one ciphertext is bound to."""
        return PostContext(
            iteration=self.context(position),
            nullifier=membership.nullifier,
            tag=membership.tag,
            pk_sig=membership.message_key,
        )

    def statement(self, context: PostContext, membership: Membership) -> BallotStatement:
        """Return what the ballot is about."""
        lines = [(committee.key, (DT,)) for committee in self.committees]
        return ballot_statement(context, membership.type_commitment, lines)

    def seal(self, prepared: PreparedSubmission) -> SealedSubmission:
        """Encrypt the update and zeros (step 5)."""
        return seal_submission(prepared, self.vector)

    def sign(self, sealed: SealedSubmission) -> int:
        """Hash the payloads and sign the posting; returns its length."""
        return len(post_submission(HashingBoard(), sealed).data)  # type: ignore[arg-type]

    def post(self, number: int) -> Post:
        """Do all of step 5 for one of our clients."""
        prepared = self.prepare(self.crowd.prove(number))
        context = self.post_context(prepared.membership, 0)
        return Post(context, self.seal(prepared), prepared.ballot)


class Opening:
    """Steps 6 to 8′ of the first committee for the posts of an iteration."""

    def __init__(self, iteration: Iteration, posts: list[Post]) -> None:
        self.iteration, self.posts = iteration, posts
        self.committee = iteration.committees[0]

    def check(self, post: Post) -> object:
        """Check and parse one payload (step 6)."""
        scheme, key = self.committee.scheme, self.committee.key
        payload = post.sealed.payloads[0]
        return scheme.verify_payload(key, post.context, self.iteration.limits, post.envelope(), payload)

    def add_under_many_names(self, num_clients: int) -> tuple[float, float]:
        """Check and add so many payloads; beyond the distinct posts, the same ones under other names.

        Returns the seconds of checking and those of adding.
        """
        accumulator, checking, adding = self._accumulator(), 0.0, 0.0
        for number in range(num_clients):
            start = time.perf_counter()
            checked = self.check(self.posts[number % len(self.posts)])
            middle = time.perf_counter()
            context = dataclasses.replace(self.posts[0].context, nullifier=digest("name", number))
            accumulator.add(dataclasses.replace(checked, context=context))  # type: ignore[type-var]
            checking, adding = checking + middle - start, adding + time.perf_counter() - middle
        return checking, adding

    def total(self) -> "Opened":
        """Add the distinct posts, and agree on the set (step 7)."""
        accumulator = self._accumulator()
        for post in self.posts:
            accumulator.add(self.check(post))
        start = time.perf_counter()
        total = accumulator.finish()
        total.to_bytes()
        finishing = time.perf_counter() - start
        bits = {post.context.nullifier: post.ballot[: count.CIPHERTEXT_LENGTH] for post in self.posts}
        agreed = AgreedSet(
            iteration=self.iteration.context(0),
            key_id=self.committee.key.key_id,
            close_hash=digest("close"),
            set_digest=total.set_digest,
            sum_digest=total.digest,
            num_posts=total.num_posts,
            min_clients=2,
        )
        return Opened(self, total, count.add(bits), agreed, finishing)

    def _accumulator(self):  # type: ignore[no-untyped-def]
        return self.committee.scheme.accumulator(
            self.committee.key, self.iteration.context(0), self.iteration.limits
        )


@dataclass(frozen=True)
class Opened:
    """A sum and a count that t members open."""

    opening: Opening
    total: object
    tally: count.EncryptedCount
    agreed: AgreedSet
    finishing: float
    """Seconds from the last payload to the bytes of the sum."""

    @property
    def _committee(self) -> Committee:
        return self.opening.committee

    def count_share(self, member: int) -> bytes:
        """Make a member's share of the count (step 8)."""
        key = self._committee.key
        return count.partial_decrypt(key, self._committee.shares[member].count_share, self.tally, self.agreed)

    def open_count(self) -> count.DecryptedCount:
        """Open the count from t shares."""
        key, members = self._committee.key, list(self._committee.shares)
        verified = [
            count.verify_share(key, self.tally, self.agreed, member, self.count_share(member))
            for member in members[: key.shape.threshold]
        ]
        return count.combine(key, self.tally, self.agreed, verified)

    def sum_share(self, member: int, permit: object) -> bytes:
        """Make a member's share of the sum (step 8)."""
        committee = self._committee
        return committee.scheme.partial_decrypt(
            committee.key,
            committee.shares[member],
            self.total,
            permit,  # type: ignore[arg-type]
        )

    def verified(self, shares: dict[int, bytes], permit: object) -> list[object]:
        """Check shares of the sum, as the board and the owner do."""
        committee = self._committee
        return [
            committee.scheme.verify_share(committee.key, self.total, permit, member, share)  # type: ignore[arg-type]
            for member, share in shares.items()
        ]

    def combine(self, verified: list[object], permit: object) -> np.ndarray:
        """Open the sum (step 8′)."""
        committee = self._committee
        return committee.scheme.combine(committee.key, self.total, permit, verified)  # type: ignore[arg-type]


def next_model(length: int, total: np.ndarray, num_clients: int) -> IntegerModel:
    """Apply a rule to a model of this length (step 8′)."""
    model = IntegerModel(Layout(("all",), ((length,),)), 16, np.zeros(length, np.int64))
    return IntegerMean(lr_num=1, lr_den=1).apply(model, total, num_clients, 1)
