"""A client stops taking part: what that changes, and what nothing can change."""

from typing import Final

from anofel.errors import AnofelError
from anofel.roles.client.draft import Drafts
from anofel.roles.client.files import CERTIFICATE, MASTER
from anofel.roles.client.journal import Journal
from anofel.roles.directory import RoleDirectory

CONSEQUENCES: Final = (
    "The registration stays on the board; nobody can tell that it is yours, and nobody can remove it.",
    "Updates that were summed stay in the models, and the ε that they cost stays spent.",
    "A post that is on the board already is added to its sum; a post that waits for its time is deleted.",
    "Nobody is told: the board never knew who takes part. Your certifier still knows that it certified you.",
    "A lost master key cannot be restored, and your certifier signs no second key for the same data or for "
    "you. It can only start anew: it has its own key revoked, the operator begins a new epoch in which "
    "everybody registers again, and it certifies you under its new key, in a new directory.",
)


class AlreadyLeft(AnofelError):
    """The client left before."""

    code = "already-left"


def leave_board(directory: RoleDirectory, *, destroy_key: bool) -> None:
    """Delete what waits to be posted, and never post again; with ``destroy_key`` nobody ever can."""
    journal = Journal(directory.path / "journal.sqlite")
    if journal.has_left and not destroy_key:
        raise AlreadyLeft("This client has left already.")
    if not journal.has_left:
        journal.leave()
    Drafts(directory.path / "drafts", directory.secrets).drop_all()
    if destroy_key:
        for name in [
            name for name in directory.secrets if name in (MASTER, CERTIFICATE) or name.startswith("salt/")
        ]:
            del directory.secrets[name]
        directory.secrets.save()
