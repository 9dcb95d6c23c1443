"""What the commands of all roles share: options, opening a directory, stopping on a signal."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from anofel.cli.option_records import spread
from anofel.cli.output import JsonOption, note, print_json, print_table
from anofel.ids import GenesisHash
from anofel.stopping import Stopped, stoppable

if TYPE_CHECKING:
    from anofel.disk.keystore import Unlock
    from anofel.light_client.base import BoardClient
    from anofel.light_client.following import Follow
    from anofel.roles.directory import RoleDirectory

_LOCK = "The key store"
_BOARD = "The board"
_ID: Final = re.compile(r"[0-9a-f]{32,}")
_HASH: Final = re.compile(r"[0-9a-fA-F]{64}")
_DIGITS: Final = 16

Directory = Annotated[Path, typer.Argument(help="The role's directory.", show_default=False)]
NewDirectory = Annotated[Path, typer.Argument(help="A new directory for the role.", show_default=False)]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        help="A key file that opens the key store; init makes it if it is not there.", rich_help_panel=_LOCK
    ),
]
PassphraseFileOption = Annotated[
    Path | None,
    typer.Option(
        help="A file whose first line is the passphrase; without both options it is asked for.",
        rich_help_panel=_LOCK,
    ),
]
BoardOption = Annotated[
    list[str],
    typer.Option(
        help="An address of the board; repeat it for several nodes, or give a network.toml that lists them.",
        show_default=False,
        rich_help_panel=_BOARD,
    ),
]
FurtherBoardOption = Annotated[
    list[str] | None,
    typer.Option(
        "--board",
        help="A further address of the same board; may be repeated, or a network.toml.",
        rich_help_panel=_BOARD,
    ),
]
GenesisOption = Annotated[
    str,
    typer.Option(
        help="The hash of the board's genesis, or the genesis file.",
        show_default=False,
        rich_help_panel=_BOARD,
    ),
]
ProxyOption = Annotated[
    str, typer.Option(help="socks5h://host:port, for example Tor.", rich_help_panel=_BOARD)
]
CaFileOption = Annotated[
    Path | None, typer.Option(help="For https: the roots to trust, in PEM.", rich_help_panel=_BOARD)
]
CertificateOption = Annotated[
    Path, typer.Option(help="The role's certificate, a chain in PEM, leaf first.", show_default=False)
]
KeyOption = Annotated[Path, typer.Option(help="Its key in PEM, which only you may read.", show_default=False)]
TrainerOption = Annotated[
    str,
    typer.Option(
        help="Your own trainer for a custom task, module:function; code that you trust with your data."
    ),
]
ProofKeysOption = Annotated[
    Path | None,
    typer.Option(help="A directory of proof keys.", show_default="fetched from the board and checked"),
]
WaitOption = Annotated[float, typer.Option(help="Seconds after which to give up.", min=0)]


ForPeople = Callable[[dict[str, Any]], dict[str, Any]]


def say_what_a_trainer_may(trainer: str) -> None:
    """Say what naming a ``--trainer`` means."""
    if trainer:
        note(
            f"'{trainer}' is code that runs here with your rights and sees your data: "
            "name only what you trust."
        )


def genesis_hash(text: str) -> GenesisHash:
    """Read ``--genesis``: 64 hexadecimal digits or a file."""
    from anofel.errors import WrongUsage
    from anofel.storage.blocks import read_genesis

    if _HASH.fullmatch(text):
        return GenesisHash(bytes.fromhex(text))
    if not Path(text).exists():
        raise WrongUsage(f"--genesis is neither the 64 hexadecimal digits of a hash nor a file: '{text}'.")
    return read_genesis(Path(text)).hash


def board_addresses(said: list[str]) -> list[str]:
    """Return the addresses that ``--board`` names: its own, and those of the validators in a network.toml."""
    from anofel.node.replicated.network import addresses_in

    found: list[str] = []
    for text in said:
        found += addresses_in(Path(text)) if Path(text).is_file() else [text]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class NewRole:
    """What every role's ``init`` is told: a new directory, its board, and what opens its key store."""

    directory: NewDirectory
    board: BoardOption
    genesis: GenesisOption
    proxy: ProxyOption = ""
    ca_file: CaFileOption = None
    key_file: KeyFileOption = None
    passphrase_file: PassphraseFileOption = None

    def require_absent(self) -> None:
        """Raise ``FileExists`` if something is at the place of the directory."""
        from anofel.disk.files import FileExists

        if self.directory.exists():
            raise FileExists(f"{self.directory} exists already; it is not overwritten.")

    def unlock(self) -> "Unlock":
        """Return what opens the new key store; a key file is made, a passphrase asked for."""
        from anofel.roles.directory import unlock_with

        return unlock_with(self.key_file, self.passphrase_file, new=True)


def add_init(app: typer.Typer, role: str, what: str) -> None:
    """Give the commands of a role with a certificate their ``init``; ``what`` says what it makes."""

    def init(
        new: NewRole, certificate: CertificateOption, key: KeyOption, as_json: JsonOption = False
    ) -> None:
        _init_certified(new, role, certificate, key, as_json=as_json)

    init.__doc__ = f"""{what}

    Example: anofel {role} init {role} --board https://board.example --genesis genesis.bin
    --certificate certificate.pem --key key.pem --key-file {role}.key
    """
    app.command()(spread(new=NewRole)(init))


def _init_certified(new: NewRole, role: str, certificate: Path, key: Path, *, as_json: bool) -> None:
    """Make the directory of a role that has a certificate, and show who it is."""
    from cryptography import x509

    from anofel.errors import InvalidKeyFile
    from anofel.pki.certificates import Purpose, RoleKey, purposes_of
    from anofel.roles.directory import RoleDirectory
    from anofel.roles.role import ROLE_KEY

    new.require_absent()
    board = board_addresses(new.board)
    made = RoleKey.from_files(certificate, key)
    if purposes_of(x509.load_der_x509_certificate(made.chain[0])) != [Purpose(role)]:
        raise InvalidKeyFile(f"{certificate} is not a certificate for the role {role}.")
    RoleDirectory.create(
        new.directory,
        new.unlock(),
        role=role,
        board=board,
        genesis_hash=genesis_hash(new.genesis),
        proxy=new.proxy,
        ca_file=new.ca_file,
        secrets={ROLE_KEY: made.to_secret_bytes()},
    )
    shown = {"directory": str(new.directory), "subject": made.subject.hex(), "board": board}
    show(f"The {role} in {new.directory}", shown, as_json=as_json)


def open_directory(
    directory: Path,
    role: str,
    key_file: Path | None,
    passphrase_file: Path | None,
    *,
    unlock: "Unlock | None" = None,
) -> "RoleDirectory":
    """Open a role's directory; nobody is asked for the passphrase of what is not there."""
    from anofel.roles.directory import RoleDirectory, read_config, unlock_with

    read_config(directory, role=role)
    return RoleDirectory.open(directory, unlock or unlock_with(key_file, passphrase_file), role=role)


@contextmanager
def opened(
    directory: Path,
    role: str,
    key_file: Path | None,
    passphrase_file: Path | None,
    *,
    unlock: "Unlock | None" = None,
) -> Iterator[tuple["RoleDirectory", "BoardClient"]]:
    """Open a role's directory and its view of the board; both are let go at the end, whatever happens."""
    with open_directory(directory, role, key_file, passphrase_file, unlock=unlock) as found:
        follow: Follow = "all"
        if role == "client":
            from anofel.roles.client.files import ClientSettings

            follow = ClientSettings.of(found.config).follow
        board = found.connect(note, follow=follow)
        if board.transport.warning:
            note(board.transport.warning)
        try:
            yield found, board
        finally:
            board.close()


@contextmanager
def until_stopped() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the work in good order."""
    try:
        with stoppable():
            yield
    except Stopped:
        note("Stopped in good order.")


@contextmanager
def at_work(
    directory: Path, role: str, key_file: Path | None, passphrase_file: Path | None, *, daemon: bool = False
) -> Iterator[tuple["RoleDirectory", "BoardClient"]]:
    """Open a role until its work is done, or until a signal comes.

    A signal before the end means exit code 1, but for a daemon, which ends in no other way.
    """
    done = False
    with until_stopped(), opened(directory, role, key_file, passphrase_file) as found:
        yield found
        done = True
    if not done and not daemon:
        raise typer.Exit(1)


def add_status(app: typer.Typer, role: str, example: str, for_people: ForPeople = dict) -> None:
    """Give the commands of a role their ``status``; ``for_people`` makes tables of it that fit a terminal."""

    def status(directory: Directory, as_json: JsonOption = False) -> None:
        from anofel.roles.directory import read_status

        found = read_status(directory, role=role)
        if not found and not as_json:
            note(f"This {role} has not run yet.")
        show(f"The {role} in {directory}", found if as_json else for_people(found), as_json=as_json)

    status.__doc__ = f"""Say what the {role} saw and did last, also while it runs.

    Example: anofel {role} status {example}
    """
    app.command()(status)


def show(title: str, content: dict[str, Any], *, as_json: bool) -> None:
    """Print a result: names and values, and a table for each list of records."""
    if as_json:
        print_json(content)
        return
    lists = {name: value for name, value in content.items() if isinstance(value, list)}
    print_table(
        title,
        ["", ""],
        [
            [name.replace("_", " "), _moment(value) if name == "time" else in_words(value)]
            for name, value in content.items()
            if name not in lists
        ],
    )
    for name, rows in lists.items():
        if rows and isinstance(rows[0], dict):
            columns = list(rows[0])
            cells = [[_shortened(in_words(row.get(column))) for column in columns] for row in rows]
            print_table(name.replace("_", " "), [column.replace("_", " ") for column in columns], cells)


def _moment(value: Any) -> str:
    """Write when a role last looked at the board."""
    return f"{datetime.fromtimestamp(int(value), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _shortened(text: str) -> str:
    """Cut an id that would fold the table; its beginning is enough to name it by, and ``--json`` has all."""
    return f"{text[:_DIGITS]}…" if _ID.fullmatch(text) else text


def in_words(value: Any) -> str:
    """Write a value for people; programs take ``--json``."""
    if value is None or value == "" or value == {}:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {in_words(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(in_words, value)) or "–"
    return str(value)
