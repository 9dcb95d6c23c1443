"""Adversaries who operate the node: requests with their times, sizes and order."""

from anofel.games.adversaries.posts import mean
from anofel.games.adversary import Adversary, Evidence, Linker, Profiler, SameTask, TwoTasks
from anofel.games.oracle import Oracle, Released
from anofel.games.setting import POST_FROM, WINDOW
from anofel.games.sight import IterationSeen


class Addresses(Linker):
    """Where posts come from."""

    name = "address"
    about = "Looks for the address from which a post came."
    weakened = ("no-proxy",)

    def marks(self, seen: IterationSeen, evidence: Evidence) -> set[bytes]:  # noqa: ARG002
        """Return the addresses of posts; through Tor there are none."""
        posts = (request for request in seen.requests if request.method == "POST")
        return {request.source.encode() for request in posts if request.source}


class UploadDelay(Profiler):
    """Between payloads and posting."""

    name = "upload-delay"
    about = "Compares the time between the upload of payloads and the post that names them."
    weakened = ("upload-when-ready",)

    def guess(self, evidence: Evidence) -> int | None:
        """Say cl_0, who has few rows, if something lay there for a block."""
        return 0 if self.measure(evidence.challenge) >= 1 else 1

    def measure(self, seen: IterationSeen) -> float:
        """Return the greatest delay."""
        uploads = seen.uploads()
        delays = [
            post.arrived - uploads[part.payload.sha256.hex()]
            for post in seen.posts
            for part in post.body.contributions
            if part.payload.sha256.hex() in uploads
        ]
        return max(delays, default=0.0)


class ModelRequests(Profiler):
    """Which models are read."""

    name = "model-requests"
    about = "Counts how often each model of the bundle is fetched; cl_0 and cl_1 train different tasks."
    strategy = TwoTasks
    weakened = ("own-model-only",)

    def measure(self, seen: IterationSeen) -> float:
        """Return how much more often the first one is."""
        gets = [request.path for request in seen.requests if request.method == "GET"]
        first, second = (f"/v1/blobs/{name}" for name in seen.model_names())
        return gets.count(first) - gets.count(second)


class RequestsBefore(Profiler):
    """Questions before a post."""

    name = "requests-before-post"
    about = "Counts requests of every kind, and how many come before the first post."
    weakened = ("version-in-requests",)

    def measure(self, seen: IterationSeen) -> float:
        """Return how many bytes were sent before the first post."""
        first = min((post.arrived for post in seen.posts), default=0.0)
        before = [request for request in seen.requests if request.time < first]
        return mean([request.sent for request in before if request.method == "GET"])


class Killing(SameTask):
    """The machine of cl_0 is killed and started again after the opening, whoever trains."""

    helpers = (0, 0)

    def end(self, oracle: Oracle) -> Released:
        """Kill cl_0 once, early: a post that it was about to make is begun, and not yet made."""
        oracle.advance(1)
        oracle.crash(self.pair[0])
        return oracle.pass_by()


class NoPostsArrive(SameTask):
    """No post arrives for the whole window; then the network is there again."""

    helpers = (0, 0)
    learn = 0

    def end(self, oracle: Oracle) -> Released:
        """Lose every post until the window is over."""
        back = oracle.node.height + POST_FROM + WINDOW
        oracle.node.outage = lambda request: request.method == "POST" and request.time < back
        try:
            return oracle.pass_by()
        finally:
            oracle.node.outage = lambda _request: False


class Retries(Adversary):
    """How a client tries again."""

    name = "retries"
    about = "Loses every post for the whole window, and looks whether one is missing after it."
    strategy = NoPostsArrive
    weakened = ("trains-again",)
    decisive = 20

    def guess(self, evidence: Evidence) -> int | None:
        """Say cl_1, who has many rows, if one is."""
        return int(len(evidence.challenge.posts) <= len(NoPostsArrive.helpers))


class LineCut(SameTask):
    """The line of cl_0 is cut for the whole iteration, whoever trains; two honest helpers take part."""

    helpers = (0, 0)
    learn = 0

    def end(self, oracle: Oracle) -> Released:
        """Cut, wait, and mend."""
        oracle.cut(self.pair[0])
        try:
            return oracle.pass_by()
        finally:
            oracle.cut(self.pair[0], is_cut=False)


class LineCutWithCover(LineCut):
    """The same, where both clients run with ``--cover``: who is not told to train posts all the same."""

    def end(self, oracle: Oracle) -> Released:
        """Let both post."""
        for client in self.pair:
            oracle.cover(client)
        return super().end(oracle)


class CutLine(Adversary):
    """Whose post is missing."""

    name = "cut-line"
    about = "Cuts the line of cl_0 for the whole iteration, and looks whether a post is missing."
    strategy = LineCut

    def guess(self, evidence: Evidence) -> int | None:
        """Say cl_0 if nobody posted but the helpers."""
        return int(len(evidence.challenge.posts) > len(LineCut.helpers))


class CutLineWithCover(CutLine):
    """The same against clients who post in every iteration."""

    name = "cut-line-cover"
    about = "The same where both clients run with --cover; looks whether more than one post is missing."
    strategy = LineCutWithCover


class Crash(Profiler):
    """Who is hit by a crash."""

    name = "crash"
    about = "Kills and restarts the machine of cl_0, and looks whether a post is missing."
    strategy = Killing
    weakened = ("no-drafts",)

    def measure(self, seen: IterationSeen) -> float:
        """Return the number of posts."""
        return len(seen.posts)


class Refusals(Profiler):
    """What the board refuses."""

    name = "malformed"
    about = "Counts posts that the board refused, as malformed, full or spent."
    strategy = Killing
    weakened = ("malformed-when-large",)

    def measure(self, seen: IterationSeen) -> float:
        """Return their number, and that of the posts that are missing."""
        return len(seen.refused) - len(seen.posts)
