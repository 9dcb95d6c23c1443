"""One round after another: parse, unseal, receive, publish, make the next message.

A member's messages are a function of its seed and of what was posted before. So there are three
ways a run ends: with the same key at everybody; with a culprit that everybody sees at once (a
malformed message, a complaint that opens a sealed part, a wrong proof); or with all seeds opened
and every member's messages replayed, which finds whoever deviated, wherever.
"""

import hashlib
from collections.abc import Mapping, Sequence

from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.paillier.arithmetic.integers import Malformed
from anofel.committee.paillier.arithmetic.randomness import SEED_BYTES, SeededRandomness
from anofel.committee.paillier.key_rounds.biprimality import FinalTests, FirstTest, GcdOpen
from anofel.committee.paillier.key_rounds.confirmation import Confirm, SelfTest
from anofel.committee.paillier.key_rounds.derivation import KeyDeal, KeyOpen, KeyReduce
from anofel.committee.paillier.key_rounds.hello import Hello, sealing_key, seed_commitment
from anofel.committee.paillier.key_rounds.messages import Kind, RoundBody, SecretDraft, parse
from anofel.committee.paillier.key_rounds.modulus import ModulusDeal, ModulusOpen
from anofel.committee.paillier.key_rounds.phase import KeyPhase
from anofel.committee.paillier.key_rounds.sieve import SieveDeal, SieveOpen
from anofel.committee.paillier.key_rounds.state import (
    PublicState,
    RunSetting,
    RunStopped,
    SecretPaillierState,
)
from anofel.committee.ristretto.run import write_run
from anofel.committee.sealing import CannotOpen, SealingKey, binding, seal

PHASES: dict[str, KeyPhase] = {
    "hello": Hello(),
    "sieve-deal": SieveDeal(),
    "sieve-open": SieveOpen(),
    "modulus-deal": ModulusDeal(),
    "modulus-open": ModulusOpen(),
    "first-test": FirstTest(),
    "final-tests": FinalTests(),
    "gcd": GcdOpen(),
    "key-deal": KeyDeal(),
    "key-reduce": KeyReduce(),
    "key-open": KeyOpen(),
    "self-test": SelfTest(),
    "confirm": Confirm(),
}

NONCE_BYTES = 32
MAX_HISTORY_BYTES = 1 << 26
"""Messages that a member keeps, in memory and in its stored state, to judge a failure itself. A quarter of
what a key store holds, which writes them in base64 beside the other secrets of the role."""


def first_draft(state: SecretPaillierState) -> SecretDraft:
    """Return the message of round 0."""
    return _make(state)


def advance(state: SecretPaillierState, sent: Sequence[bytes]) -> SecretDraft | None:
    """Absorb a round, given by member; return the next message, or None when the run is done.

    Changes ``state``.
    Raises ``KeyGenerationFailed``.
    """
    public, setting = state.public, state.setting
    bodies = parse(sent, setting.shape.num_members)
    rounds = None if state.history is None else [*state.history, tuple(sent)]
    judge(setting, public, bodies, rounds)
    complaint = _receive(state, bodies)
    absorb(setting, public, sent, bodies)
    state.history = _bounded(rounds)
    if public.phase == "done":
        return None
    if complaint is not None:
        return SecretDraft(Kind.COMPLAINT, bytes([complaint]) + sealing_key(state.seed).to_bytes())
    if public.phase == "opening":
        return SecretDraft(Kind.OPENING, state.seed)
    return _make(state)


def _bounded(rounds: list[tuple[bytes, ...]] | None) -> list[tuple[bytes, ...]] | None:
    """Drop the history of a long run; its culprits are then named by ``observe`` from the board."""
    if rounds is None or sum(len(body) for sent in rounds for body in sent) > MAX_HISTORY_BYTES:
        return None
    return rounds


def absorb(
    setting: RunSetting, public: PublicState, sent: Sequence[bytes], bodies: Sequence[RoundBody]
) -> None:
    """Learn what everybody learns from a round of ordinary messages."""
    _extend_transcript(setting, public, sent)
    phase, parts = PHASES[public.phase], [body.public for body in bodies]
    _check_sealed(public, bodies)
    public.round += 1
    try:
        if phase.committed and not public.opening:
            wrong = [i for i, part in enumerate(parts, 1) if len(part) != 32]
            if wrong:
                raise RunStopped("A commitment has the wrong length.", wrong)
            public.commitments, public.opening = [part.hex() for part in parts], True
            return
        if phase.committed:
            parts = _opened(setting, public, parts)
        public.opening = False
        public.phase = phase.publish(setting, public, parts)
    except RunStopped as fault:
        if fault.culprits:
            raise KeyGenerationFailed(str(fault), fault.culprits) from fault
        public.fault, public.phase, public.opening = str(fault), "opening", False


def judge(
    setting: RunSetting,
    public: PublicState,
    bodies: Sequence[RoundBody],
    rounds: Sequence[Sequence[bytes]] | None,
) -> None:
    """Raise ``KeyGenerationFailed`` if a round holds complaints or opened seeds."""
    complaints = {i: body for i, body in enumerate(bodies, 1) if body.kind is Kind.COMPLAINT}
    if complaints:
        if rounds is None:
            raise KeyGenerationFailed(
                f"Members {sorted(complaints)} complained; observe() over all messages names the culprit."
            )
        culprits = {_judge_complaint(setting, i, body, rounds) for i, body in complaints.items()}
        raise KeyGenerationFailed("A sealed part could not be used, or a complaint is false.", culprits)
    if public.phase == "opening":
        if rounds is None:
            raise KeyGenerationFailed(f"{public.fault} observe() over all messages names the culprit.")
        raise KeyGenerationFailed(public.fault, replay(setting, public, bodies, rounds))
    early = [i for i, body in enumerate(bodies, 1) if body.kind is Kind.OPENING]
    if early:
        raise KeyGenerationFailed("A member opened its seed although the run had not failed.", early)


def replay(
    setting: RunSetting,
    public: PublicState,
    openings: Sequence[RoundBody],
    rounds: Sequence[Sequence[bytes]],
) -> list[int]:
    """Return the members whose messages are not those of their seed; none if chance failed the run."""
    seeds = {
        member: body.public
        for member, body in enumerate(openings, 1)
        if body.kind is Kind.OPENING
        and len(body.public) == SEED_BYTES
        and not body.sealed
        and seed_commitment(setting, member, body.public).hex() == public.seed_commitments[member - 1]
    }
    honest = {member for member in seeds if _follows_seed(setting, member, seeds, rounds)}
    return [member for member in setting.shape.members if member not in honest]


def _follows_seed(
    setting: RunSetting, member: int, seeds: Mapping[int, bytes], rounds: Sequence[Sequence[bytes]]
) -> bool:
    seed = seeds[member]
    state = SecretPaillierState(setting=setting, member=member, seed=seed, public=PublicState(), history=None)
    draft: SecretDraft | None = first_draft(state)
    for sent in rounds[:-1]:
        body = parse(sent, setting.shape.num_members)[member - 1]
        if draft is None or not _same(setting, state.public, member, draft, body, seeds):
            return False
        draft = advance(state, sent)
    return True


def _same(
    setting: RunSetting,
    public: PublicState,
    sender: int,
    draft: SecretDraft,
    body: RoundBody,
    seeds: Mapping[int, bytes],
) -> bool:
    """Compare a posted message with the replayed one; sealed parts are opened with the receivers' seeds."""
    if (draft.kind, draft.public, len(draft.private)) != (body.kind, body.public, len(body.sealed)):
        return False
    for receiver, part in enumerate(draft.private, 1):
        if receiver == sender or receiver not in seeds:
            continue
        try:
            if _unseal(setting, public, sealing_key(seeds[receiver]), sender, receiver, body) != part:
                return False
        except Malformed:
            return False
    return True


def _make(state: SecretPaillierState) -> SecretDraft:
    public, phase = state.public, PHASES[state.public.phase]
    if public.opening:
        return SecretDraft(Kind.ORDINARY, bytes.fromhex(state.stash.pop("pending")))
    shown, private = phase.make(state)
    if phase.committed:
        nonce = SeededRandomness(state.seed, f"nonce/{public.round}").bits(8 * NONCE_BYTES)
        pending = nonce.to_bytes(NONCE_BYTES, "little") + shown
        state.stash["pending"] = pending.hex()
        shown = _commitment(state.setting, public.round, state.member, pending)
    if private:
        state.stash["self"] = private[state.member - 1].hex()
    return SecretDraft(Kind.ORDINARY, shown, tuple(private))


def _commitment(setting: RunSetting, number: int, member: int, pending: bytes) -> bytes:
    prefix = (
        b"anofel/1/paillier/commitment" + setting.run.run_id + number.to_bytes(4, "little") + bytes([member])
    )
    return hashlib.sha256(prefix + pending).digest()


def _opened(setting: RunSetting, public: PublicState, parts: Sequence[bytes]) -> list[bytes]:
    for member, part in enumerate(parts, 1):
        # absorb() has counted the opening round already; the commitment was one round before it.
        expected = _commitment(setting, public.round - 2, member, part)
        if expected.hex() != public.commitments[member - 1]:
            raise RunStopped("A shown value is not the committed one.", [member])
    return [part[NONCE_BYTES:] for part in parts]


def sealed_body(state: SecretPaillierState, draft: SecretDraft) -> RoundBody:
    """Seal the private parts of a message to their receivers."""
    sealed = []
    for receiver, part in enumerate(draft.private, 1):
        key = bytes.fromhex(state.public.sealing_keys[receiver - 1])
        where = _where(state.setting, state.public.round, state.member, receiver)
        sealed.append(b"" if receiver == state.member else seal(key, part, where))
    return RoundBody(draft.kind, draft.public, tuple(sealed))


def _where(setting: RunSetting, number: int, sender: int, receiver: int) -> bytes:
    run = hashlib.sha256(b"anofel/1/paillier/round" + setting.run.run_id + number.to_bytes(4, "little"))
    return binding(run.digest(), sender, receiver)


def _check_sealed(public: PublicState, bodies: Sequence[RoundBody]) -> None:
    """Sealed parts stand in every message of a round or in none, and none is for the sender."""
    expected = _has_private(public)
    wrong = [i for i, body in enumerate(bodies, 1) if bool(body.sealed) != expected]
    wrong += [i for i, body in enumerate(bodies, 1) if body.sealed and body.sealed[i - 1]]
    if wrong:
        raise KeyGenerationFailed(
            "A message has sealed parts that its round does not have, or lacks them.", wrong
        )


def _has_private(public: PublicState) -> bool:
    return public.phase in ("sieve-deal", "modulus-deal", "key-deal", "key-reduce") or (
        public.phase == "final-tests" and not public.opening
    )


def _receive(state: SecretPaillierState, bodies: Sequence[RoundBody]) -> int | None:
    """Take in the private parts; return the sender of a bad one, to complain about."""
    public, setting = state.public, state.setting
    if not _has_private(public):
        return None
    phase, parts = PHASES[public.phase], []
    for sender, body in enumerate(bodies, 1):
        try:
            if sender == state.member:
                part = bytes.fromhex(state.stash.pop("self"))
            else:
                part = _unseal(setting, public, sealing_key(state.seed), sender, state.member, body)
            phase.check_private(setting, public, sender, part)
        except Malformed:
            return sender
        parts.append(part)
    phase.receive(state, parts)
    return None


def _unseal(
    setting: RunSetting, public: PublicState, key: SealingKey, sender: int, receiver: int, body: RoundBody
) -> bytes:
    try:
        return key.open(body.sealed[receiver - 1], _where(setting, public.round, sender, receiver))
    except (CannotOpen, IndexError):
        raise Malformed("The sealed part does not open.") from None


def _judge_complaint(
    setting: RunSetting, plaintiff: int, body: RoundBody, rounds: Sequence[Sequence[bytes]]
) -> int:
    """Return who is wrong: the accused if the opened channel shows a bad part, else the plaintiff."""
    accused, secret = body.public[0] if body.public else 0, body.public[1:]
    if accused not in setting.shape.members or accused == plaintiff or len(secret) != 32:
        return plaintiff
    public = PublicState()
    for earlier in rounds[:-2]:
        absorb(setting, public, earlier, parse(earlier, setting.shape.num_members))
    key = SealingKey.from_bytes(secret)
    keys = public.sealing_keys
    if not keys or key.public().hex() != keys[plaintiff - 1] or not _has_private(public):
        return plaintiff
    sent = parse(rounds[-2], setting.shape.num_members)[accused - 1]
    try:
        part = _unseal(setting, public, key, accused, plaintiff, sent)
        PHASES[public.phase].check_private(setting, public, accused, part)
    except Malformed:
        return accused
    return plaintiff


def _extend_transcript(setting: RunSetting, public: PublicState, sent: Sequence[bytes]) -> None:
    hasher = hashlib.sha256(b"anofel/1/paillier/transcript")
    if public.transcript:
        hasher.update(bytes.fromhex(public.transcript))
    else:
        hasher.update(setting.sizes.modulus_bits.to_bytes(4, "little") + write_run(setting.run))
    for body in sent:
        hasher.update(len(body).to_bytes(8, "little") + body)
    public.transcript = hasher.hexdigest()
