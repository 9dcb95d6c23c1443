"""What a demo is made of: how many of whom, where their files are, and how fast the board's clock runs."""

import math
import os
import time
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Final

from anofel.disk.files import FileExists
from anofel.errors import InvalidInput
from anofel.messages import Class
from anofel.node.replicated.engine import find_engine

DEFAULT_STUDIES: Final = ("support2", "nwtco")
INTERVAL_MS: Final = 700
"""Everybody polls once a block, so a shorter interval costs every process."""
INTERVAL_OF_SEVERAL_MS: Final = 1500
"""Each of several validators and its engine work for every block too."""
MARGIN_BLOCKS: Final = 2
"""What a client leaves between its post and the close."""
WINDOW_BLOCKS: Final = 3
"""The drawn posting times lie in so many blocks."""
PATIENCE_BLOCKS: Final = 120
"""Deadline of committees and owners; they are much faster."""
WORK_PROOFS: Final = 1.2
"""What a client does before its post takes as long as so many proofs."""
NOTICE_SECONDS: Final = 0.8
"""After so long everybody has seen that an iteration is open."""
MAX_LENGTH: Final = 1000
TARGET_EPSILON: Final = 1.0
"""ε of one patient's record after all iterations."""
DELTA: Final = Decimal("0.00001")
CERTIFIERS: Final = ("hospital-north", "hospital-south")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for."""

    directory: Path
    studies: tuple[str, ...] = DEFAULT_STUDIES
    clients: int = 8
    """For each study."""
    iterations: int = 7
    scheme: str = "lattice"
    committee: int = 3
    threshold: int = 2
    validators: int = 0
    """How many make the blocks together under CometBFT; 0 is one node without an engine."""
    seed: int = 0
    """Of the public split of rows; nothing secret comes from it."""

    def check(self) -> None:
        """Refuse what cannot work, before anything is made.

        Raises ``InvalidInput``, ``FileExists``, ``EngineMissing``.
        """
        if self.directory.exists() or self.directory.is_symlink():
            raise FileExists(f"{self.directory} exists already; it is not overwritten.")
        if len(set(self.studies)) != len(self.studies):
            raise InvalidInput("Every study can be given once.")
        if self.clients < 4:
            raise InvalidInput("A study needs at least 4 clients: one joins late, one is killed, two cheat.")
        if not self.committee / 2 < self.threshold <= self.committee:
            raise InvalidInput("The threshold is above half of the committee, and not above its size.")
        if self.validators:
            find_engine()

    @property
    def interval_ms(self) -> int:
        """How long a block takes."""
        return INTERVAL_OF_SEVERAL_MS if self.validators else INTERVAL_MS

    @property
    def late(self) -> int:
        """How many clients of a study join late."""
        return max(1, self.clients // 4)

    @property
    def total_clients(self) -> int:
        """All clients of the bundle."""
        return self.clients * len(self.studies)

    @property
    def min_clients(self) -> int:
        """No sum of fewer is opened."""
        return max(2, self.clients // 2)

    @property
    def max_colluders(self) -> int:
        """How many contributors may add no noise."""
        return 1 if self.min_clients > 2 else 0


def default_directory() -> Path:
    """A new directory for each run, where the user stands."""
    name = time.strftime("anofel-demo-%Y%m%d-%H%M%S")
    for attempt in range(100):
        path = Path(f"{name}-{attempt}" if attempt else name)
        if not path.exists():
            return path
    raise InvalidInput("No new directory could be named here; give one with --dir.")


@dataclass(frozen=True)
class StageLayout:
    """Where everything lies. The directory itself is the board's, so ``anofel audit`` takes it as it is.

    Several validators have a directory each in it.
    """

    root: Path
    validators: int = 0

    @property
    def nodes(self) -> list[Path]:
        """The directory of every node of the board."""
        return [self.root / f"node{place}" for place in range(self.validators)] or [self.root]

    @cached_property
    def keys(self) -> Path:
        """The proof keys."""
        return self.root / "keys"

    @cached_property
    def roles(self) -> Path:
        """A directory and a key file for each role."""
        return self.root / "roles"

    @cached_property
    def data(self) -> Path:
        """Task files and rows."""
        return self.root / "data"

    @cached_property
    def logs(self) -> Path:
        """What every process printed and said."""
        return self.root / "logs"

    def role(self, name: str) -> Path:
        """The directory of a role."""
        return self.roles / name

    def key_file(self, name: str) -> Path:
        """What opens the key store of a role."""
        return self.roles / f"{name}.key"

    def rows(self, name: str) -> Path:
        """The rows of a client, or those that an owner measures by."""
        return self.data / f"{name}.csv"

    def task(self, study: str) -> Path:
        """The task file of a study."""
        return self.data / f"{study}.toml"


def size_class(options: Options, proof_seconds: float) -> Class:
    """Give the deadlines of an iteration: clients post once all of them can be ready on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ready = NOTICE_SECONDS + options.total_clients * WORK_PROOFS * proof_seconds / cores
    post_from = math.ceil(ready * 1000 / options.interval_ms)
    return Class(
        max_length=MAX_LENGTH,
        max_posts=options.total_clients,
        post_from=post_from,
        train=post_from + WINDOW_BLOCKS + MARGIN_BLOCKS,
        aggregate=PATIENCE_BLOCKS,
        count=PATIENCE_BLOCKS,
        sum=PATIENCE_BLOCKS,
        model=PATIENCE_BLOCKS,
    )
