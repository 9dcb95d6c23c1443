"""Before anybody has a key: decrypt public test ciphertexts with proofs, then confirm the hash."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from anofel.committee.context import CommitteeShape
from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.errors import KeyGenerationFailed, KeyRefused, ShareRefused, Undecodable
from anofel.committee.paillier.arithmetic.modular import mpz, power
from anofel.committee.paillier.arithmetic.randomness import SeededRandomness
from anofel.committee.paillier.arithmetic.transcript import Transcript
from anofel.committee.paillier.key import (
    Origin,
    PaillierKey,
    SecretPaillierShare,
    check_modulus_value,
    check_verification_keys,
)
from anofel.committee.paillier.key_rounds.messages import Kind, RoundBody
from anofel.committee.paillier.key_rounds.phase import PublicOnly
from anofel.committee.paillier.key_rounds.sizes import TEST_CIPHERTEXTS
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    RunStopped,
    SecretPaillierState,
)
from anofel.committee.paillier.total import open_ciphertexts, partial_decrypt, verify_share

NO_COUNT = bytes(32)


def draft_key(setting: RunSetting, public: PublicState, count_key: CountKey | None = None) -> PaillierKey:
    """Return the key that the run made so far; the self-test runs before the count key is joined."""
    return PaillierKey(
        modulus=int(public.passed[0][1]),
        theta=int(public.theta),
        shape=setting.shape,
        verification_keys=tuple(int(v) for v in public.verification_keys),
        share_bits=setting.sizes.share_bits,
        share_epoch=0,
        origin=Origin.DISTRIBUTED,
        run=setting.run.run_id,
        generation=bytes.fromhex(public.generation),
        count_key=count_key or _no_count(setting.shape),
    )


def _no_count(shape: CommitteeShape) -> CountKey:
    return CountKey(shape=shape, public=NO_COUNT, verification_shares=(NO_COUNT,) * shape.num_members)


def own_share(
    state: SecretPaillierState, key: PaillierKey, count: SecretCountShare | None = None
) -> SecretPaillierShare:
    """Return this member's share of a key that the run made."""
    return SecretPaillierShare(
        member=state.member,
        shares_id=key.shares_id,
        value=int(state.stash["share"], 16),
        share_bits=key.share_bits,
        count_share=count or SecretCountShare(member=state.member, scalar=NO_COUNT),
    )


def _test_ciphertexts(key: PaillierKey) -> list[tuple[int, int]]:
    """Return (plaintext, ciphertext) pairs from public coins."""
    pairs = []
    for index in range(TEST_CIPHERTEXTS):
        coins = (
            Transcript("anofel/1/paillier/self-test").append("shares", key.shares_id).append("index", index)
        )
        m, r = coins.residue("m", key.modulus), coins.residue("r", key.modulus)
        c = (1 + mpz(m) * key.modulus) * power(r, key.modulus, key.square) % key.square
        pairs.append((m if m <= key.modulus // 2 else m - key.modulus, c))
    return pairs


class SelfTest(PublicOnly):
    """Everybody decrypts the test ciphertexts and proves it."""

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Make the share of the test ciphertexts."""
        key = draft_key(state.setting, state.public)
        residues = [c for _, c in _test_ciphertexts(key)]
        source = SeededRandomness(state.seed, f"self-test/{state.public.batch}")
        share = partial_decrypt(key, own_share(state, key), residues, key.generation, source)
        return share.to_bytes(key), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Check the key as a client does, every share, and the plaintexts from two sets of members."""
        key = draft_key(setting, public)
        try:
            check_modulus_value(key.modulus)
            check_verification_keys(key)
        except KeyRefused as error:
            raise RunStopped(str(error)) from error
        _check_test(key, parts)
        return "confirm"


def _check_test(key: PaillierKey, parts: Sequence[bytes]) -> None:
    """Check everybody's share of the test ciphertexts. Raises ``RunStopped``."""
    tests, columns = _test_ciphertexts(key), {}
    for member, part in enumerate(parts, 1):
        try:
            share = verify_share(key, member, [c for _, c in tests], key.generation, part)
        except ShareRefused as error:
            raise RunStopped(str(error), error.culprits) from error
        columns[member] = share.values
    t = key.shape.threshold
    for members in (list(columns)[:t], list(columns)[-t:]):
        try:
            opened = list(open_ciphertexts(key, {member: columns[member] for member in members}))
        except Undecodable as error:
            raise RunStopped(str(error)) from error
        if opened != [m for m, _ in tests]:
            raise RunStopped("The key does not decrypt the test ciphertexts.")


class Confirm(PublicOnly):
    """Everybody posts the hash of the key and of the run."""

    def make(self, state: SecretPaillierState) -> tuple[bytes, list[bytes]]:
        """Hash what this member has."""
        return _confirmation(draft_key(state.setting, state.public)), []

    def publish(self, setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Everybody must have the same."""
        _check_confirmed(draft_key(setting, public), parts)
        return "done"


def _confirmation(key: PaillierKey) -> bytes:
    return hashlib.sha256(b"anofel/1/paillier/confirm" + key.shares_id).digest()


def _check_confirmed(key: PaillierKey, parts: Sequence[bytes]) -> None:
    wrong = [sender for sender, part in enumerate(parts, 1) if part != _confirmation(key)]
    if wrong:
        raise RunStopped("A member confirmed another key.", wrong)


def check_key(key: PaillierKey, self_test: Sequence[RoundBody], confirmed: Sequence[RoundBody]) -> None:
    """Check a key against the last two rounds of its run alone. Raises ``KeyGenerationFailed``."""
    draft = replace(key, count_key=_no_count(key.shape))
    strange = [
        sender
        for bodies in (self_test, confirmed)
        for sender, body in enumerate(bodies, 1)
        if body.kind is not Kind.ORDINARY or body.sealed
    ]
    if strange:
        raise KeyGenerationFailed("The run did not end with a key.", strange)
    try:
        _check_test(draft, [body.public for body in self_test])
        _check_confirmed(draft, [body.public for body in confirmed])
    except RunStopped as fault:
        raise KeyGenerationFailed(str(fault), fault.culprits) from fault
