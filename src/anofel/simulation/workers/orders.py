"""Everything that crosses between a simulation and its workers.

What goes in: the tasks, what stands on the board, a client's rows, its certificate, models. What comes out:
requests for certificates, postings, sealed payloads and reasons for failures. No layout has a place for a
secret of a client: its key, its salt, the key of a posting, its masks or its update.
"""

from typing import Final, TypeVar

import msgspec

from anofel.learning.build import OwnTrainerName
from anofel.studies.sent_rows import SentRows

VERSION: Final = 1
"""Of these layouts; a worker of another version is not used."""


class Start(msgspec.Struct, tag="start", array_like=True, frozen=True):
    """Which board and which tasks; the first order."""

    version: int
    genesis: bytes
    tasks: tuple[tuple[bytes, OwnTrainerName, bool], ...]
    """The document of each task, the name of a trainer of one's own, and whether what fails becomes zero."""
    keys: str | dict[str, bytes]
    """The directory of the proof keys on this machine, or the files."""
    path: tuple[str, ...]
    """Where modules are looked for, on this machine."""


class Ask(msgspec.Struct, tag="ask", array_like=True, frozen=True):
    """Make a client of these rows, and a request for its certificate."""

    client: int
    task: int
    place: int
    """The place of the client among those of its task, of so many."""
    of: int
    rows: SentRows
    certifier: bytes
    nonce: bytes


class Register(msgspec.Struct, tag="register", array_like=True, frozen=True):
    """Take the certificate and make the registration."""

    client: int
    certificate: bytes


class Look(msgspec.Struct, tag="look", array_like=True, frozen=True):
    """See the board after a block."""

    header: bytes
    state: bytes
    """A snapshot of the state after it."""
    keys: tuple[bytes, ...]
    """The committee keys that were not sent yet."""


class Models(msgspec.Struct, tag="models", array_like=True, frozen=True):
    """The models that the open iteration trains, by the places of their tasks."""

    models: dict[int, bytes]


class TrainAndSeal(msgspec.Struct, tag="train-and-seal", array_like=True, frozen=True):
    """Train and encrypt."""

    client: int
    target: int
    position: int


class Sign(msgspec.Struct, tag="sign", array_like=True, frozen=True):
    """Sign the posting, with the receipts of the sealed payloads."""

    client: int
    blobs: tuple[bytes, ...]


class Done(msgspec.Struct, tag="done", array_like=True, frozen=True):
    """It is done, and there is nothing to say."""


class Asked(msgspec.Struct, tag="asked", array_like=True, frozen=True):
    """A request for a certificate."""

    mpk: bytes
    d: bytes
    dt: int
    ownership: bytes


class Sealed(msgspec.Struct, tag="sealed", array_like=True, frozen=True):
    """The payloads of a sealed submission."""

    payloads: tuple[bytes, ...]
    failure: str
    """Why the update is zero; empty if it is not."""


class Posted(msgspec.Struct, tag="posted", array_like=True, frozen=True):
    """A posting, whole and signed."""

    data: bytes


class Failed(msgspec.Struct, tag="failed", array_like=True, frozen=True):
    """An error that ends the simulation, as it would in one process."""

    code: str
    reason: str


Order = Start | Ask | Register | Look | Models | TrainAndSeal | Sign
Reply = Done | Asked | Sealed | Posted | Failed

A = TypeVar("A", Done, Asked, Sealed, Posted)

encode = msgspec.msgpack.Encoder().encode
read_order = msgspec.msgpack.Decoder(Order).decode
read_answer = msgspec.msgpack.Decoder(Reply).decode
