"""Fiat-Shamir transcripts: domain-separated, every item with its label and length."""

import hashlib
from typing import Self

from anofel.committee.context import IterationContext, PostContext
from anofel.committee.paillier.arithmetic.parameters import CHALLENGE_BITS


class Transcript:
    """A running hash; a challenge depends on everything appended before it, in order."""

    def __init__(self, tag: str) -> None:
        self._state = hashlib.shake_256()
        self.append("protocol", tag.encode())

    def append(self, label: str, value: bytes | int) -> Self:
        """Absorb one labelled item; integers are non-negative."""
        data = value if isinstance(value, bytes) else int_bytes(value)
        name = label.encode()
        self._state.update(len(name).to_bytes(2, "little") + name + len(data).to_bytes(8, "little"))
        self._state.update(data)
        return self

    def fork(self) -> "Transcript":
        """Return a copy that can go on without changing this one."""
        fork = Transcript.__new__(Transcript)
        fork._state = self._state.copy()
        return fork

    def _squeeze(self, label: str, length: int) -> bytes:
        return self.fork().append("challenge", label.encode())._state.digest(length)

    def challenge(self, label: str) -> int:
        """Return CHALLENGE_BITS bits."""
        return int.from_bytes(self._squeeze(label, CHALLENGE_BITS // 8), "little")

    def challenges(self, label: str, count: int) -> list[int]:
        """Return ``count`` non-zero challenges for folding a vector."""
        width = CHALLENGE_BITS // 8
        data = self._squeeze(label, width * count)
        return [int.from_bytes(data[i : i + width], "little") or 1 for i in range(0, len(data), width)]

    def digest(self, label: str) -> bytes:
        """Return 32 bytes."""
        return self._squeeze(label, 32)

    def residue(self, label: str, modulus: int) -> int:
        """Return an element that is uniform modulo ``modulus`` up to 2^-128."""
        length = (modulus.bit_length() + 7) // 8 + 16
        return int.from_bytes(self._squeeze(label, length), "little") % modulus


def int_bytes(value: int) -> bytes:
    """Encode a non-negative integer in as few bytes as it needs."""
    return int(value).to_bytes((int(value).bit_length() + 7) // 8, "little")


def append_iteration(transcript: Transcript, where: IterationContext) -> None:
    """Bind an iteration: every field on its own."""
    transcript.append("genesis", where.genesis).append("task", where.task)
    transcript.append("iteration", where.iteration).append("scope", where.scope)
    transcript.append("position", where.position)


def append_post(transcript: Transcript, context: PostContext) -> None:
    """Bind a post: every field on its own."""
    append_iteration(transcript, context.iteration)
    transcript.append("nullifier", context.nullifier).append("tag", context.tag)
    transcript.append("pk_sig", context.pk_sig)
