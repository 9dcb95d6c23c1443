"""Step 1.b at the client from one file: its directory and its certificate by a certifier's invitation.

A certifier vouches for people and data. It is not trusted with the client's privacy, and a file can be
changed on its way. So:

1. An invitation holds what it must and nothing else: no floor, no ε, no task, no aggregator, no proxy.
2. Everything that it says about the board is checked against the hash of its genesis.
3. A board of test material is joined only by a client that says so.
4. Rows are shown over TLS, or to this machine.
5. A client that knows a genesis or a fingerprint refuses an invitation with another.
6. Proof keys are those that genesis pins.
7. A directory goes on with the invitation's board alone, and with the settings that it was made with.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anofel.board.genesis import flaws_of
from anofel.disk.files import write_new_file
from anofel.disk.keystore import Unlock
from anofel.disk.sections import InvalidDocument, json_values
from anofel.errors import InvalidInput
from anofel.ids import GenesisHash
from anofel.light_client.remote import remote_genesis
from anofel.messages import Genesis
from anofel.network.transport import Transport
from anofel.proofs.keys import KeyDirectory, Tell
from anofel.roles.certificate_files import JoinDocument
from anofel.roles.certifier.role import check_certifier_address
from anofel.roles.client.files import CERTIFICATE, ROLE, SCHEMA, check_pins, init_client
from anofel.roles.client.request import request_by_http
from anofel.roles.directory import RoleDirectory, Setting, read_config

BOARD_CA: Final = "board-ca.pem"
CERTIFIER_CA: Final = "certifier-ca.pem"


class InvitationRefused(InvalidInput):
    """A client does not follow an invitation; the message says why."""

    code = "invitation-refused"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the client knows by itself, whatever the invitation says."""

    genesis: GenesisHash | None = None
    fingerprint: str = ""
    insecure: bool = False
    """Whether it joins a board of test material."""

    def check(self, invitation: JoinDocument) -> None:
        """Refuse another invitation than the one that was meant (4, 5). Raises ``InvitationRefused``."""
        said = self.fingerprint.replace("-", "").lower()
        if said and said != invitation.fingerprint.replace("-", ""):
            raise InvitationRefused(
                f"The invitation's fingerprint is {invitation.fingerprint}, not {self.fingerprint}: it is "
                "not the file that your certifier made. Ask for it again."
            )
        if self.genesis is not None and self.genesis != invitation.invited().genesis:
            raise InvitationRefused("The invitation is for another board than the one that you named.")
        check_certifier_address(invitation.address)

    def check_board(self, genesis: Genesis) -> None:
        """Refuse a board of test material, unless it was asked for (3). Raises ``InvitationRefused``."""
        flaws = flaws_of(genesis)
        if flaws and not self.insecure:
            raise InvitationRefused(
                f"The board '{genesis.name}' is INSECURE ({', '.join(flaws)}): it protects nobody. To take "
                "part in a rehearsal say --insecure-test-board."
            )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the client brings along: its rows, and whom it trusts."""

    rows: Path
    keys: Path | None
    """A directory of proof keys; None for those that the board hands out."""
    settings: Mapping[str, Setting]
    proxy: str = ""


def join(
    path: Path,
    unlock: Unlock,
    invitation: JoinDocument,
    known: Known,
    choice: Choice,
    say: Tell = lambda _sentence: None,
) -> None:
    """Make the client's directory and get its certificate. Safe to repeat.

    Raises ``InvitationRefused``, ``InvalidInput``, ``Refused``, ``PeerUnreachable``.
    """
    known.check(invitation)
    if not path.exists():
        _make(path, unlock, invitation, known, choice, say)
    _check_same(path, invitation)
    with RoleDirectory.open(path, unlock, role=ROLE) as found:
        if CERTIFICATE in found.secrets:
            return
        roots = path / CERTIFIER_CA
        transport = Transport(invitation.address, ca_file=roots if roots.exists() else None)
        request_by_http(found, transport, invitation.invited())


def _make(
    path: Path, unlock: Unlock, invitation: JoinDocument, known: Known, choice: Choice, say: Tell
) -> None:
    invited = invitation.invited()
    with tempfile.TemporaryDirectory(prefix="anofel-") as name:
        place = Path(name)
        transport = _transport(place, invitation, choice.proxy)
        genesis = remote_genesis(transport, invited.genesis)  # (2)
        known.check_board(genesis)
        if choice.keys is not None:
            keys = KeyDirectory.open(choice.keys, say)
            check_pins(keys, genesis)  # (6)
            keys.check_proving_keys()
        schema = place / SCHEMA
        write_new_file(schema, _schema_text(invitation.schema))
        roots = {BOARD_CA: invitation.board_ca, CERTIFIER_CA: invitation.address_ca}
        init_client(
            path,
            unlock,
            board=invitation.board,
            genesis_hash=invited.genesis,
            data=choice.rows,
            schema=schema,
            keys=choice.keys,
            settings={**choice.settings, "dataset_type": invited.dt},
            proxy=choice.proxy,
            ca_file=path / BOARD_CA if invitation.board_ca else None,
            files={file: text.encode() for file, text in roots.items() if text},
            transport=transport,
            say=say,
        )


def _transport(place: Path, invitation: JoinDocument, proxy: str) -> Transport:
    """Reach the board by the roots of the invitation."""
    roots = None
    if invitation.board_ca:
        roots = place / BOARD_CA
        write_new_file(roots, invitation.board_ca.encode())
    return Transport(invitation.board, proxy or None, roots)


def _check_same(path: Path, invitation: JoinDocument) -> None:
    """Refuse to go on in a directory of another board (7)."""
    config, invited = read_config(path, role=ROLE), invitation.invited()
    if config.genesis_hash != invited.genesis or config.settings.get("dataset_type") != invited.dt:
        raise InvitationRefused(
            f"{path} was made for another board or dataset type; join in a new directory (--directory)."
        )


def _schema_text(schema: str) -> bytes:
    """Write the canonical schema as a file that people can read."""
    try:
        values = json_values(schema, "The invitation's schema")
    except InvalidDocument as error:
        raise InvitationRefused(str(error)) from None
    return f"# From the certifier's invitation.\nschema = {_toml(values)}\n".encode()


def _toml(value: Any) -> str:
    """Write a value of JSON as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value, ensure_ascii=False)
