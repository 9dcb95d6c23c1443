"""Step 0 — what a genesis must fulfil before anybody uses it."""

from anofel.board.engines import Engine, fault_tolerance
from anofel.committee.context import MAX_LENGTH, MAX_POSTS
from anofel.errors import InvalidInput, InvalidSignature
from anofel.messages import Class, Genesis, binding_bytes
from anofel.pki.certificates import CertificateRefused, Purpose, parse_roots, verify_chain
from anofel.proofs.keys import INSECURE_ORIGIN
from anofel.proofs.statements import RegistrationVerifier, SubmissionVerifier

VERSION = 1
INSECURE_CA = "test certificate authority"
INSECURE_KEYS = "development proof keys"
TEST_MATERIAL = {
    INSECURE_CA: "This is a TEST board: its certificates vouch for nobody.",
    INSECURE_KEYS: "This is a TEST board: whoever made its proof keys could forge proofs.",
}
"""What demos and tests are made of. Audits accept such a board and say what it is; they refuse one whose
genesis switches anything else off."""
MAX_BUNDLE = 16
MAX_POWER = 1 << 40
"""Far below what CometBFT refuses."""
MAX_POSTINGS = 65_535
"""What the layout of a block has room for (``docs/messages.md``)."""


class InvalidGenesis(InvalidInput):
    """A genesis cannot start a board; the message says what is wrong."""

    code = "invalid-genesis"


def check_genesis(genesis: Genesis) -> None:
    """Refuse a genesis that no board can run with. Raises ``InvalidGenesis``.

    1. Its version is known.
    2. Its certificate roots can be read.
    3. Every storage holder is certified at the board's first moment, and the quorum can be reached.
    4. There are validators, all different, and each has power.
    5. A bundle has 1 to 16 tasks, and leftovers wait at least one block.
    6. There are size classes, each with sizes a committee can add and with time for every phase.
    7. The limits leave room for at least one posting, and for no more than a block can encode.
    8. It pins the transcript of a ceremony, or says that its keys are development keys.
    9. Its engine is known. One node makes blocks without certificates or bindings of validators.
    10. Under CometBFT every validator is certified at the board's first moment, has signed its Ed25519 key
        for this genesis, and is another one than the others.
    11. Under CometBFT a blob has receipts of more storage holders than validators may be faulty.
    12. Under CometBFT each validator runs one storage holder, which stands in its place.
    """
    _require(genesis.version == VERSION, f"its version is {genesis.version} instead of {VERSION}")
    try:
        parse_roots(genesis.roots)
    except InvalidInput as error:
        raise InvalidGenesis(f"The genesis cannot be used: {error}") from None
    for chain in genesis.holders:
        try:
            verify_chain(chain, genesis.roots, Purpose.STORAGE, genesis.time)
        except CertificateRefused as error:
            raise InvalidGenesis(f"The genesis cannot be used: a storage holder is not: {error}") from None
    _require(1 <= genesis.quorum <= len(genesis.holders), "its quorum of storage holders cannot be reached")
    _require(
        len(genesis.validators) > 0 and all(validator.power > 0 for validator in genesis.validators),
        "it needs validators, each with power",
    )
    _require(
        len({validator.key for validator in genesis.validators}) == len(genesis.validators),
        "a validator stands in it twice",
    )
    _require(
        1 <= genesis.bundle_size <= MAX_BUNDLE and genesis.bundle_wait >= 1,
        f"a bundle has 1 to {MAX_BUNDLE} tasks, and leftovers wait at least one block",
    )
    _require(len(genesis.classes) > 0, "it needs a size class")
    for size in genesis.classes:
        _check_class(size)
    limits = genesis.limits
    numbers = (limits.root_window, limits.max_postings, limits.max_block_bytes, limits.max_runs)
    more = (limits.max_tasks, limits.max_key_bytes, limits.max_model_bytes)
    _require(min(*numbers, *more) >= 1, "its limits leave no room")
    _require(limits.max_postings <= MAX_POSTINGS, f"a block can encode at most {MAX_POSTINGS} postings")
    _require(
        (genesis.transcript == bytes(32)) == (INSECURE_KEYS in flaws_of(genesis)),
        "it pins the transcript of a ceremony or says that its keys are development keys, one of the two",
    )
    _require(genesis.engine in set(Engine), f"its engine {genesis.engine} is not known")
    if genesis.engine == Engine.COMETBFT:
        _check_validators(genesis)
    else:
        _require(
            all(not validator.chain and validator.binding is None for validator in genesis.validators),
            "certificates of validators go with the engine CometBFT",
        )


def _check_validators(genesis: Genesis) -> None:
    """Check what CometBFT's validators show of themselves (rules 10 to 12)."""
    subjects = set()
    for number, validator in enumerate(genesis.validators):
        try:
            identity = verify_chain(validator.chain, genesis.roots, Purpose.VALIDATOR, genesis.time)
            identity.verify(binding_bytes(genesis.nonce, validator.key), validator.binding or b"")
        except (CertificateRefused, InvalidSignature, InvalidInput) as error:
            raise InvalidGenesis(f"The genesis cannot be used: validator {number} is not: {error}") from None
        subjects.add(identity.subject)
    _require(len(subjects) == len(genesis.validators), "two of its validators are the same")
    _require(
        len(genesis.holders) == len(genesis.validators),
        "each validator runs one storage holder, in its place",
    )
    most = sum(validator.power for validator in genesis.validators)
    _require(most <= MAX_POWER, f"its validators have more power than {MAX_POWER}")
    faulty = fault_tolerance(genesis)
    _require(
        genesis.quorum > faulty,
        f"a blob needs receipts of more than {faulty} holders, since so many validators may be faulty",
    )


def check_keys(genesis: Genesis, registration: RegistrationVerifier, submission: SubmissionVerifier) -> None:
    """Refuse proof keys that are not those of genesis, or not what it says. Raises ``InvalidGenesis``.

    1. Their ids are pinned in genesis; an id covers how the key was made.
    2. Development keys stand in genesis as such.
    """
    for name, key, pinned in (
        ("registration", registration, genesis.registration_key),
        ("submission", submission, genesis.submission_key),
    ):
        _require(key.key_id == pinned, f"the {name} key is not the one that it pins")
        _require(
            key.origin != INSECURE_ORIGIN or INSECURE_KEYS in flaws_of(genesis),
            f"its {name} key comes from an {INSECURE_ORIGIN}, and it does not say so",
        )


def flaws_of(genesis: Genesis) -> list[str]:
    """Return what genesis says is insecure about the board."""
    return [flaw for flaw in genesis.insecure.split(", ") if flaw]


def _check_class(size: Class) -> None:
    _require(
        1 <= size.max_length <= MAX_LENGTH and 2 <= size.max_posts <= MAX_POSTS,
        f"a size class has 1 to {MAX_LENGTH} parameters and 2 to {MAX_POSTS} posts",
    )
    phases = (size.train, size.aggregate, size.count, size.sum, size.model)
    _require(
        min(phases) >= 1 and size.post_from < size.train,
        "every phase of a size class takes at least one block, and posting begins before the end",
    )


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise InvalidGenesis(f"The genesis cannot be used: {reason}.")
