"""Before anybody has a key: decrypt public test ciphertexts with proofs, then confirm the hash."""

import hashlib
from collections.abc import Sequence

from anofel.committee.count_key import CountKey, SecretCountShare
from anofel.committee.errors import KeyRefused, ShareRefused, Undecodable
from anofel.committee.paillier.arithmetic import mpz, power
from anofel.committee.paillier.decryption import open_ciphertexts, partial_decrypt, verify_share
from anofel.committee.paillier.key import (
    Origin,
    PaillierKey,
    SecretPaillierShare,
    check_modulus_value,
    check_verification_keys,
)
from anofel.committee.paillier.keygen.phase import PublicOnly
from anofel.committee.paillier.keygen.sizes import TEST_CIPHERTEXTS
from anofel.committee.paillier.keygen.state import Fault, PublicState, SecretState, Setting
from anofel.committee.paillier.randomness import SeededRandomness
from anofel.committee.paillier.transcript import Transcript

NO_COUNT = bytes(32)


def draft_key(setting: Setting, public: PublicState, count_key: CountKey | None = None) -> PaillierKey:
    """Return the key that the run made so far; the self-test runs before the count key is joined."""
    empty = CountKey(
        shape=setting.shape, public=NO_COUNT, verification_shares=(NO_COUNT,) * setting.shape.num_members
    )
    return PaillierKey(
        modulus=int(public.passed[0][1]),
        theta=int(public.theta),
        shape=setting.shape,
        verification_keys=tuple(int(v) for v in public.verification_keys),
        share_bits=setting.sizes.share_bits,
        share_epoch=0,
        origin=Origin.DISTRIBUTED,
        generation=bytes.fromhex(public.generation),
        count_key=count_key or empty,
    )


def own_share(
    state: SecretState, key: PaillierKey, count: SecretCountShare | None = None
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
        coins = Transcript("self-test").append("shares", key.shares_id).append("index", index)
        m, r = coins.residue("m", key.modulus), coins.residue("r", key.modulus)
        c = (1 + mpz(m) * key.modulus) * power(r, key.modulus, key.square) % key.square
        pairs.append((m if m <= key.modulus // 2 else m - key.modulus, c))
    return pairs


class SelfTest(PublicOnly):
    """Everybody decrypts the test ciphertexts and proves it."""

    def make(self, state: SecretState) -> tuple[bytes, list[bytes]]:
        """Make the share of the test ciphertexts."""
        key = draft_key(state.setting, state.public)
        residues = [c for _, c in _test_ciphertexts(key)]
        source = SeededRandomness(state.seed, f"self-test/{state.public.batch}")
        share = partial_decrypt(key, own_share(state, key), residues, key.generation, source)
        return share.to_bytes(key), []

    def publish(self, setting: Setting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Check the key as a client does, every share, and the plaintexts from two sets of members."""
        key = draft_key(setting, public)
        try:
            check_modulus_value(key.modulus)
            check_verification_keys(key)
        except KeyRefused as error:
            raise Fault(str(error)) from error
        tests, columns = _test_ciphertexts(key), {}
        for member, part in enumerate(parts, 1):
            try:
                share = verify_share(key, member, [c for _, c in tests], key.generation, part)
            except ShareRefused as error:
                raise Fault(str(error), error.culprits) from error
            columns[member] = share.values
        t = setting.shape.threshold
        for members in (list(columns)[:t], list(columns)[-t:]):
            try:
                opened = list(open_ciphertexts(key, {member: columns[member] for member in members}))
            except Undecodable as error:
                raise Fault(str(error)) from error
            if opened != [m for m, _ in tests]:
                raise Fault("The key does not decrypt the test ciphertexts.")
        return "confirm"


class Confirm(PublicOnly):
    """Everybody posts the hash of the key and of the run."""

    def make(self, state: SecretState) -> tuple[bytes, list[bytes]]:
        """Hash what this member has."""
        return self._expected(state.setting, state.public), []

    def _expected(self, setting: Setting, public: PublicState) -> bytes:
        key = draft_key(setting, public)
        return hashlib.sha256(b"anofel/v1/paillier/confirm" + key.shares_id).digest()

    def publish(self, setting: Setting, public: PublicState, parts: Sequence[bytes]) -> str:
        """Everybody must have the same."""
        expected = self._expected(setting, public)
        wrong = [sender for sender, part in enumerate(parts, 1) if part != expected]
        if wrong:
            raise Fault("A member confirmed another key.", wrong)
        return "done"
