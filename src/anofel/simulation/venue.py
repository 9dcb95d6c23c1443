"""Step 0 for a simulation: a board in this process, with a test authority and made for its tasks."""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from anofel.board.chain import RULE_VERSION
from anofel.board.engines import Engine
from anofel.board.genesis import INSECURE_CA, INSECURE_KEYS, VERSION, check_genesis
from anofel.messages import Class, Genesis, Limits, Validator
from anofel.pki.certificates import Identity, Purpose, RoleKey, verify_chain
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory
from anofel.simulation.local_board import LocalBoard, LocalDirectory
from anofel.simulation.parts import SimulatedTask

POSTS_PER_BLOCK = 64
"""How many clients act between two blocks; it bounds what is in memory at once."""
_LIMITS = Limits(
    root_window=4,
    max_postings=4096,
    max_block_bytes=64 << 20,
    grace=2,
    max_runs=2,
    max_tasks=2,
    max_key_bytes=64 << 20,
    max_model_bytes=64 << 20,
)


class Venue:
    """A board and the authority that certifies its role-holders."""

    def __init__(
        self, tasks: Sequence[SimulatedTask], keys: KeyDirectory, directory: Path | None = None
    ) -> None:
        """Make the board; in a directory everything is kept, in memory payloads go when their time is over.

        Its blocks all have the time of genesis, and so do certificates begin.
        """
        self._time, self.keys = int(time.time()), keys
        self._authority = TestAuthority.create(not_before=self._time)
        validator, storage = MessageSecret.generate(), self._issue(Purpose.STORAGE, "Storage")
        self.genesis = self._genesis(tasks, validator, storage)
        verification = {name: keys.verification[name].read() for name in ("registration", "submission")}
        place = None if directory is None else LocalDirectory(directory, self.genesis, verification)
        self.board = LocalBoard(
            self.genesis,
            validator=validator,
            storage=storage,
            registration=keys.registration_verifier(),
            submission=keys.submission_verifier(),
            directory=place,
            prune=directory is None,
        )

    def appoint(self, purpose: Purpose, name: str) -> tuple[RoleKey, Identity]:
        """Certify somebody for a role."""
        role = self._issue(purpose, name)
        return role, verify_chain(role.chain, [self._authority.root], purpose, self._time)

    def _issue(self, purpose: Purpose, name: str) -> RoleKey:
        return self._authority.issue(purpose, name, not_before=self._time)

    def size_class(self, tasks: Sequence[SimulatedTask]) -> Class:
        """Give the sizes and deadlines of an iteration: as many blocks as it takes for all to post."""
        num_clients = sum(len(part.clients) for part in tasks)
        return Class(
            max_length=max(part.plan.dimension for part in tasks),
            max_posts=max(part.task.privacy.max_posts for part in tasks),
            post_from=0,
            train=num_clients // POSTS_PER_BLOCK + 3,
            aggregate=2,
            count=2,
            sum=2,
            model=3,
        )

    def _genesis(self, tasks: Sequence[SimulatedTask], validator: MessageSecret, storage: RoleKey) -> Genesis:
        flaws = [INSECURE_CA]
        if self.keys.is_insecure:
            flaws.append(INSECURE_KEYS)
        genesis = Genesis(
            version=VERSION,
            name="simulation",
            nonce=secrets.token_bytes(32),
            time=self._time,
            rules=RULE_VERSION,
            interval_ms=1000,
            roots=(self._authority.root,),
            engine=Engine.EMBEDDED,
            **self.keys.pins(),
            validators=(Validator(key=validator.public_key().to_bytes(), power=1),),
            holders=(storage.chain,),
            quorum=1,
            bundle_size=len(tasks),
            bundle_wait=1,
            classes=(self.size_class(tasks),),
            limits=_LIMITS,
            insecure=", ".join(flaws),
        )
        check_genesis(genesis)
        return genesis
