"""Adversaries who look at posts on the board: what links two of them, and when and where they stand."""

from contextlib import suppress

from anofel.board.statements import submission_statement
from anofel.errors import InvalidProof
from anofel.games.adversary import Adversary, Evidence, Linker, Profiler, SameTask
from anofel.games.oracle import Oracle, Released
from anofel.games.put_back import MODULUS, PEDERSEN, public_a
from anofel.games.setting import POST_FROM, WINDOW
from anofel.games.sight import IterationSeen, SeenPost
from anofel.messages import KeyAuthor
from anofel.primitives import Commitment, Scope
from anofel.proofs.statements import SubmissionProof
from anofel.simulation.local_board import RECEIPT_BLOCKS


def message_key(post: SeenPost) -> bytes:
    """The key that signs a post."""
    assert isinstance(post.posting.author, KeyAuthor)
    return post.posting.author.message_key


class KeyReuse(Linker):
    """Message keys."""

    name = "message-key"
    about = "Looks for the key, tag or type commitment of an earlier post."
    weakened = ("one-key",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return keys, tags and type commitments."""
        return {
            mark
            for post in seen.posts
            for mark in (message_key(post), post.body.tag, post.body.type_commitment)
        }


class NullifierReuse(Linker):
    """Nullifiers."""

    name = "nullifier"
    about = "Looks for the nullifier of an earlier post."
    weakened = ("one-nullifier",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return nullifiers."""
        return {bytes(post.body.nullifier) for post in seen.posts}


class AdditiveTag(Linker):
    """Subtracts a, which is public, from every tag."""

    name = "pedersen-tag"
    about = "Takes the public part out of every tag, which an additive hash allows, and compares the rest."
    weakened = ("pedersen-tag",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return tag · h^−a; ours are no elements of that group, and taken for such they are random."""
        _, h = PEDERSEN
        return {
            (
                int.from_bytes(post.beside or post.body.tag, "little")
                * pow(h, -public_a(post.posting), MODULUS)
                % MODULUS
            ).to_bytes(32, "little")
            for post in seen.posts
        }


class AggregatorSet(Linker):
    """Whom a post addresses."""

    name = "aggregator-set"
    about = "Looks for a set of aggregators that a client chose for itself."
    weakened = ("own-aggregators",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return the sets; ours is always the whole bundle."""
        return {post.beside or bytes([len(post.body.contributions)]) for post in seen.posts}


class AnyBytes(Linker):
    """Every value in a posting."""

    name = "any-bytes"
    about = "Looks for any value of eight bytes or more that two posts share, wherever it stands."
    weakened = ("one-key", "one-nullifier")

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return all windows of eight bytes of everything that is posted, payloads by their names."""
        return {
            post.posting.data[start : start + 8]
            for post in seen.posts
            for start in range(len(post.posting.data) - 7)
        }


class PostTime(Profiler):
    """When posts come."""

    name = "post-time"
    about = "Compares when posts come, in blocks since the opening."
    weakened = ("post-when-ready",)

    def measure(self, seen: IterationSeen) -> float:
        """Return the mean time of the posts."""
        return mean([post.height - seen.opened_at for post in seen.posts])


class EndsEarly(SameTask):
    """S asks for the end of each iteration in the middle of the window; four helpers take part."""

    helpers = (0, 0, 0, 0)

    def end(self, oracle: Oracle) -> Released:
        """Ask for it when some have posted."""
        oracle.advance(POST_FROM + WINDOW // 2)
        oracle.end_early()
        return oracle.pass_by()


class EarlyEnd(Profiler):
    """Who had posted when the iteration ended."""

    name = "early-end"
    about = "S asks for the end of each iteration in the middle of the window; counts the posts until then."
    strategy = EndsEarly
    weakened = ("end-at-once",)

    def measure(self, seen: IterationSeen) -> float:
        """Return the number of posts."""
        return len(seen.posts)


class RegistrationOrder(Adversary):
    """Expects a client's time to follow from its place among the registered."""

    name = "registration-order"
    about = "Expects the time of a first post to follow from the place of a registration on the board."
    weakened = ("post-in-order",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say whose expected time is met by a post."""
        seen, clients = evidence.challenge, evidence.oracle.node.followed.state.clients
        expected = [clients.position(Commitment.from_bytes(client)) % WINDOW for client in evidence.pair]
        found = {post.height - seen.opened_at - POST_FROM - 1 for post in seen.posts}
        met = [time in found for time in expected]
        return None if met[0] == met[1] else int(met[1])


class BlockDelay(Profiler):
    """How long a post waits for its block."""

    name = "inclusion-delay"
    about = "Compares the part of a block between the arrival of a post and the block that holds it."
    weakened = ("own-moment",)

    def measure(self, seen: IterationSeen) -> float:
        """Return the mean wait."""
        return mean([post.height - post.arrived for post in seen.posts])


class PostPlace(Linker):
    """Where posts stand in a block."""

    name = "post-order"
    about = "Looks for the moment within a block at which an earlier post came: posts are ordered by it."
    weakened = ("own-moment",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return the moments, in 256ths of a block."""
        return {bytes([int(post.arrived % 1 * 256)]) for post in seen.posts}


class ReceiptAge(Profiler):
    """How old receipts are."""

    name = "receipts"
    about = "Reads from the receipts in a post when its payloads were stored, on the board alone."
    weakened = ("upload-when-ready",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say cl_0, who has few rows, if something was stored a block before its post."""
        oldest = self.measure(evidence.challenge)
        return 0 if oldest > 1 - RECEIPT_BLOCKS else 1

    def measure(self, seen: IterationSeen) -> float:
        """Return the greatest age, in blocks, up to a constant."""
        ages = [
            post.height - receipt.expires
            for post in seen.posts
            for part in post.body.contributions
            for receipt in part.payload.receipts
        ]
        return max(ages, default=0)


class Lengths(Linker):
    """How long posts are."""

    name = "post-size"
    about = "Compares the sizes of everything in a post: posting, ballot, envelopes, payloads."
    weakened = ("version-in-requests",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return the lengths, and those of the messages that carried them."""
        sizes = {len(post.posting.data) for post in seen.posts}
        sizes |= {part.payload.length for post in seen.posts for part in post.body.contributions}
        sent = {request.sent for request in seen.requests if request.method != "GET"}
        return {size.to_bytes(8, "little") for size in sizes | sent}


class ClientRoot(Linker):
    """Under which state of the board a proof was made."""

    name = "client-root"
    about = "Tries under which of the board's roots each membership proof is valid."
    weakened = ("own-root",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:
        """Return the number of clients under the root of each proof; ours all have the iteration's."""
        return {self._size(post, seen, evidence).to_bytes(8, "little") for post in seen.posts}

    def _size(self, post: SeenPost, seen: IterationSeen, evidence: Evidence) -> int:
        board, body = evidence.oracle.node.board, post.body
        proof = SubmissionProof.from_bytes(body.proof)
        tree = board.state.client_trees[board.state.epoch]
        roots = ((size, tree.at_size(size).root().to_bytes()) for size in range(1, len(tree) + 1))
        for size, root in ((0, seen.client_root), *roots):
            statement = submission_statement(
                client_root=root,
                scope=Scope(board.genesis_hash, body.bundle, body.iteration),
                nullifier=body.nullifier,
                tag=body.tag,
                type_commitment=body.type_commitment,
                message_key=message_key(post),
            )
            with suppress(InvalidProof):
                board.chain.verifier.submission.verify(statement, proof)
                return size
        return -1


def mean(values: list[float] | list[int]) -> float:
    """Return the mean; zero of nothing."""
    return sum(values) / len(values) if values else 0.0
