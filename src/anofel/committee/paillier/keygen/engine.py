"""One round after another: parse, unseal, receive, publish, make the next message.

A member's messages are a function of its seed and of what was posted before. So there are three
ways a run ends: with the same key at everybody; with a culprit that everybody sees at once (a
malformed message, a complaint that opens a sealed part, a wrong proof); or with all seeds opened
and every member's messages replayed, which finds whoever deviated, wherever.
"""

import hashlib
from collections.abc import Sequence

from anofel.committee.errors import KeyGenerationFailed
from anofel.committee.interface import RoundMessage
from anofel.committee.paillier.keygen.biprimality import FinalTests, FirstTest, GcdOpen
from anofel.committee.paillier.keygen.channel import channel_public, channel_secret, seal, unseal
from anofel.committee.paillier.keygen.confirmation import Confirm, SelfTest
from anofel.committee.paillier.keygen.derivation import KeyDeal, KeyOpen, KeyReshare
from anofel.committee.paillier.keygen.hello import Hello, seed_commitment
from anofel.committee.paillier.keygen.messages import Body, Kind, in_order, parse
from anofel.committee.paillier.keygen.modulus import ModulusDeal, ModulusOpen
from anofel.committee.paillier.keygen.phase import Phase
from anofel.committee.paillier.keygen.sieve import SieveDeal, SieveOpen
from anofel.committee.paillier.keygen.state import Fault, PublicState, SecretState, Setting
from anofel.committee.paillier.randomness import SEED_BYTES, SeededRandomness
from anofel.committee.paillier.wire import Malformed

PHASES: dict[str, Phase] = {
    "hello": Hello(),
    "sieve-deal": SieveDeal(),
    "sieve-open": SieveOpen(),
    "modulus-deal": ModulusDeal(),
    "modulus-open": ModulusOpen(),
    "first-test": FirstTest(),
    "final-tests": FinalTests(),
    "gcd": GcdOpen(),
    "key-deal": KeyDeal(),
    "key-reshare": KeyReshare(),
    "key-open": KeyOpen(),
    "self-test": SelfTest(),
    "confirm": Confirm(),
}

NONCE_BYTES = 32


def first_body(state: SecretState) -> Body:
    """Return the message of round 0."""
    return _make(state)


def advance(state: SecretState, messages: Sequence[RoundMessage]) -> Body | None:
    """Absorb a round; return the next body, or None when the run is done. Changes ``state``.

    Raises ``KeyGenerationFailed``.
    """
    public, setting = state.public, state.setting
    ordered = in_order(setting.run, public.round, messages)
    bodies = parse(ordered, setting.shape.num_members)
    rounds = None if state.history is None else [*state.history, tuple(ordered)]
    judge(setting, public, bodies, rounds)
    complaint = _receive(state, bodies)
    absorb(setting, public, ordered, bodies)
    state.history = rounds
    if public.phase == "done":
        return None
    if complaint is not None:
        secret = channel_secret(state.seed, complaint)
        return Body(Kind.COMPLAINT, bytes([complaint]) + secret)
    if public.phase == "opening":
        return Body(Kind.OPENING, state.seed)
    return _make(state)


def absorb(
    setting: Setting, public: PublicState, ordered: Sequence[RoundMessage], bodies: Sequence[Body]
) -> None:
    """Learn what everybody learns from a round of ordinary messages."""
    _extend_transcript(setting, public, ordered)
    phase, parts = PHASES[public.phase], [body.public for body in bodies]
    _check_sealed(public, bodies)
    public.round += 1
    try:
        if phase.committed and not public.opening:
            wrong = [i for i, part in enumerate(parts, 1) if len(part) != 32]
            if wrong:
                raise Fault("A commitment has the wrong length.", wrong)
            public.commitments, public.opening = [part.hex() for part in parts], True
            return
        if phase.committed:
            parts = _opened(setting, public, parts)
        public.opening = False
        public.phase = phase.publish(setting, public, parts)
    except Fault as fault:
        if fault.culprits:
            raise KeyGenerationFailed(str(fault), fault.culprits) from fault
        public.fault, public.phase, public.opening = str(fault), "opening", False


def judge(
    setting: Setting,
    public: PublicState,
    bodies: Sequence[Body],
    rounds: Sequence[Sequence[RoundMessage]] | None,
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
    setting: Setting,
    public: PublicState,
    openings: Sequence[Body],
    rounds: Sequence[Sequence[RoundMessage]],
) -> list[int]:
    """Return the members whose messages are not those of their seed; none if chance failed the run."""
    culprits = []
    for member, body in enumerate(openings, 1):
        committed = bytes.fromhex(public.seed_commitments[member - 1])
        bound = len(body.public) == SEED_BYTES and not body.sealed and body.kind is Kind.OPENING
        if not bound or seed_commitment(setting, member, body.public) != committed:
            culprits.append(member)
        elif not _follows_seed(setting, member, body.public, rounds):
            culprits.append(member)
    return culprits


def _follows_seed(
    setting: Setting, member: int, seed: bytes, rounds: Sequence[Sequence[RoundMessage]]
) -> bool:
    state = SecretState(setting=setting, member=member, seed=seed, public=PublicState(), history=None)
    body: Body | None = first_body(state)
    for messages in rounds[:-1]:
        if body is None or body.to_bytes() != messages[member - 1].body:
            return False
        body = advance(state, messages)
    return True


def _make(state: SecretState) -> Body:
    public, phase = state.public, PHASES[state.public.phase]
    if public.opening:
        return Body(Kind.ORDINARY, bytes.fromhex(state.stash.pop("pending")))
    shown, private = phase.make(state)
    if phase.committed:
        nonce = SeededRandomness(state.seed, f"nonce/{public.round}").bits(8 * NONCE_BYTES)
        pending = nonce.to_bytes(NONCE_BYTES, "big") + shown
        state.stash["pending"] = pending.hex()
        shown = _commitment(state.setting, public.round, state.member, pending)
    return Body(Kind.ORDINARY, shown, _seal_all(state, private))


def _commitment(setting: Setting, number: int, member: int, pending: bytes) -> bytes:
    prefix = (
        b"anofel/v1/paillier/commitment" + setting.run.run_id + number.to_bytes(4, "big") + bytes([member])
    )
    return hashlib.sha256(prefix + pending).digest()


def _opened(setting: Setting, public: PublicState, parts: Sequence[bytes]) -> list[bytes]:
    for member, part in enumerate(parts, 1):
        # absorb() has counted the opening round already; the commitment was one round before it.
        expected = _commitment(setting, public.round - 2, member, part)
        if expected.hex() != public.commitments[member - 1]:
            raise Fault("A shown value is not the committed one.", [member])
    return [part[NONCE_BYTES:] for part in parts]


def _seal_all(state: SecretState, private: Sequence[bytes]) -> tuple[bytes, ...]:
    if not private:
        return ()
    sealed = []
    for receiver, part in enumerate(private, 1):
        if receiver == state.member:
            state.stash["self"] = part.hex()
            sealed.append(b"")
            continue
        where = _where(state.setting, state.public.round, state.member, receiver)
        peer = bytes.fromhex(state.public.channel_keys[receiver - 1][state.member - 1])
        try:
            sealed.append(seal(channel_secret(state.seed, receiver), peer, where, part))
        except (
            Malformed
        ):  # a peer's unusable key: it gets nothing it could read, and is named when it complains
            sealed.append(b"")
    return tuple(sealed)


def _where(setting: Setting, number: int, sender: int, receiver: int) -> bytes:
    return setting.run.run_id + number.to_bytes(4, "big") + bytes([sender, receiver])


def _check_sealed(public: PublicState, bodies: Sequence[Body]) -> None:
    """Sealed parts stand in every message of a round or in none, and none is for the sender."""
    expected = _has_private(public)
    wrong = [i for i, body in enumerate(bodies, 1) if bool(body.sealed) != expected]
    wrong += [i for i, body in enumerate(bodies, 1) if body.sealed and body.sealed[i - 1]]
    if wrong:
        raise KeyGenerationFailed(
            "A message has sealed parts that its round does not have, or lacks them.", wrong
        )


def _has_private(public: PublicState) -> bool:
    return public.phase in ("sieve-deal", "modulus-deal", "key-deal", "key-reshare") or (
        public.phase == "final-tests" and not public.opening
    )


def _receive(state: SecretState, bodies: Sequence[Body]) -> int | None:
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
                secret = channel_secret(state.seed, sender)
                part = _unseal(setting, public, secret, sender, state.member, body)
            phase.check_private(setting, public, sender, part)
        except Malformed:
            return sender
        parts.append(part)
    phase.receive(state, parts)
    return None


def _unseal(
    setting: Setting, public: PublicState, secret: bytes, sender: int, receiver: int, body: Body
) -> bytes:
    if len(body.sealed) < receiver:
        raise Malformed("The message has no sealed part for the receiver.")
    peer = bytes.fromhex(public.channel_keys[sender - 1][receiver - 1])
    where = _where(setting, public.round, sender, receiver)
    return unseal(secret, peer, where, body.sealed[receiver - 1])


def _judge_complaint(
    setting: Setting, plaintiff: int, body: Body, rounds: Sequence[Sequence[RoundMessage]]
) -> int:
    """Return who is wrong: the accused if the opened channel shows a bad part, else the plaintiff."""
    accused, secret = body.public[0] if body.public else 0, body.public[1:]
    if accused not in setting.shape.members or accused == plaintiff or len(secret) != 32:
        return plaintiff
    public = PublicState()
    for messages in rounds[:-2]:
        absorb(setting, public, messages, parse(messages, setting.shape.num_members))
    keys = public.channel_keys
    if (
        not keys
        or channel_public(secret).hex() != keys[plaintiff - 1][accused - 1]
        or not _has_private(public)
    ):
        return plaintiff
    sent = parse(rounds[-2], setting.shape.num_members)[accused - 1]
    try:
        part = _unseal(setting, public, secret, accused, plaintiff, sent)
        PHASES[public.phase].check_private(setting, public, accused, part)
    except Malformed:
        return accused
    return plaintiff


def _extend_transcript(setting: Setting, public: PublicState, ordered: Sequence[RoundMessage]) -> None:
    hasher = hashlib.sha256(b"anofel/v1/paillier/transcript")
    if public.transcript:
        hasher.update(bytes.fromhex(public.transcript))
    else:
        run = setting.run
        hasher.update(run.genesis + run.run_id + bytes([run.shape.num_members, run.shape.threshold]))
        hasher.update(setting.sizes.modulus_bits.to_bytes(4, "big") + b"".join(run.members))
    for message in ordered:
        hasher.update(len(message.body).to_bytes(8, "big") + message.body)
    public.transcript = hasher.hexdigest()
