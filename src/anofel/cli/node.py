"""``anofel node``: the board of one process."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anofel.cli import node_change
from anofel.cli.output import (
    JsonOption,
    note,
    print_json,
    print_table,
    progress_bar,
    warn_insecure,
    warn_test_authority,
)
from anofel.cli.role_options import (
    BoardOption,
    CaFileOption,
    CertificateOption,
    GenesisOption,
    KeyOption,
    ProxyOption,
    WaitOption,
    board_addresses,
    genesis_hash,
    in_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anofel.messages import Genesis
    from anofel.node.init import BoardNumbers
    from anofel.primitives import CertifierKey
    from anofel.proofs.keys import KeyDirectory

app = typer.Typer(no_args_is_help=True, help="The bulletin board: make one, run it, look at it.")

app.command()(node_change.change)
app.command()(node_change.sign)

_BOARD = "The board, for ever"
_NODE = "This node, in node.toml"
_TOGETHER = "Several validators"
Directory = Annotated[Path, typer.Argument(help="The node's directory.", show_default=False)]


KeysOption = Annotated[Path, typer.Option(help="A directory of proof keys.", show_default=False)]


def _number(text: str, most: int | None = None, least: int = 1, panel: str = _BOARD) -> Any:
    """Describe an option that is a whole number within bounds."""
    return typer.Option(help=text, min=least, max=most, rich_help_panel=panel)


def _blocks(text: str) -> Any:
    return _number(text, 2**32 - 1)


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="A new directory for the node.", show_default=False)],
    name: Annotated[str, typer.Option(help="The board's name, for people.", show_default=False)],
    keys: KeysOption,
    root: Annotated[
        list[Path] | None, typer.Option(help="A certificate root in PEM; may be repeated.")
    ] = None,
    storage_certificate: Annotated[
        Path | None, typer.Option(help="The node's storage certificate, a chain in PEM, leaf first.")
    ] = None,
    storage_key: Annotated[Path | None, typer.Option(help="Its key in PEM, which only you may read.")] = None,
    insecure_test_ca: Annotated[
        Path | None,
        typer.Option(help="INSECURE: a TEST authority, made if it is not there, for what is missing above."),
    ] = None,
    insecure_development_keys: Annotated[
        bool, typer.Option("--insecure-development-keys", help="INSECURE: take keys of anofel setup dev.")
    ] = False,
    interval: Annotated[
        float, typer.Option(help="Seconds per block.", min=0.05, max=86400, rich_help_panel=_BOARD)
    ] = 1.0,
    bundle_size: Annotated[int, _number("Tasks per bundle.", 16)] = 2,
    bundle_wait: Annotated[int, _blocks("Blocks after which a task no longer waits for others.")] = 60,
    size_classes: Annotated[
        list[str] | None,
        typer.Option(
            "--size-class",
            help="LENGTH:POSTS, a class of tasks by vector length and clients per iteration; "
            "may be repeated.",
            rich_help_panel=_BOARD,
            show_default="100000:64, 100000:1024, 100000:8192, 1000000:1024",
        ),
    ] = None,
    post_from: Annotated[
        int,
        _number("Blocks before clients begin to post.", least=0),
    ] = 60,
    train: Annotated[int, _blocks("Blocks that an iteration is open.")] = 300,
    aggregate: Annotated[int, _blocks("Blocks for the sums.")] = 120,
    count: Annotated[int, _blocks("Blocks for the shares of the count.")] = 120,
    sum_: Annotated[
        int, typer.Option("--sum", help="Blocks for the shares of the sum.", min=1, rich_help_panel=_BOARD)
    ] = 120,
    model: Annotated[int, _blocks("Blocks for the next model.")] = 120,
    grace: Annotated[int, _blocks("Blocks that payloads are kept after an outcome.")] = 600,
    root_window: Annotated[
        int,
        _number("Blocks whose certifier root may be used.", 65535),
    ] = 600,
    max_postings: Annotated[int, _number("Postings per block.", 65_535)] = 10_000,
    max_block_bytes: Annotated[int, _blocks("Bytes of postings per block.")] = 16 << 20,
    max_runs: Annotated[
        int,
        _number("Key generations per aggregator at a time.", 65535),
    ] = 4,
    max_tasks: Annotated[int, _number("Unended tasks per owner.", 65535)] = 16,
    max_key_bytes: Annotated[
        int,
        _number("Bytes of a committee key or a key generation message."),
    ] = 64 << 20,
    max_model_bytes: Annotated[int, _number("Bytes of a model, payload, sum or share.")] = 256 << 20,
    max_blob_bytes: Annotated[int, _number("Bytes of all blobs on the disk.", panel=_NODE)] = 100 << 30,
    max_pending_bytes: Annotated[int, _number("Bytes of blobs that no posting names yet.", panel=_NODE)] = 10
    << 30,
    validators: Annotated[
        int,
        _number(
            "For a test: make the directories of so many validators on this machine, under CometBFT; "
            "0 is one node.",
            16,
            least=0,
            panel=_TOGETHER,
        ),
    ] = 0,
    port: Annotated[
        int,
        _number("With --validators: the first of their HTTP ports.", 65_000, panel=_TOGETHER),
    ] = 8470,
    peer_port: Annotated[
        int,
        _number("With --validators: the first of their engines' ports.", 65_000, panel=_TOGETHER),
    ] = 26_656,
    request: Annotated[
        list[Path] | None,
        typer.Option(
            help="A validator's request.json; repeat it for each. Makes their genesis and addresses.",
            rich_help_panel=_TOGETHER,
        ),
    ] = None,
    nonce: Annotated[
        str,
        typer.Option(
            help="With --request: the 64 digits that the requests were made for.",
            rich_help_panel=_TOGETHER,
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Make a board and the directory of its node. What genesis fixes never changes.

    Example: anofel node init board --name "Lung study" --keys keys --root ca-root.pem
    --storage-certificate storage/certificate.pem --storage-key storage/key.pem

    For a test: anofel node init board --name test --keys keys --insecure-test-ca ca
    --insecure-development-keys
    """
    from anofel.board.engines import fault_tolerance
    from anofel.board.size_classes import default_classes, size_class
    from anofel.disk.files import FileExists
    from anofel.messages import Limits
    from anofel.node.files import NodeConfig
    from anofel.node.init import BoardNumbers, insecure_trust, make_node, real_trust, receipts_until
    from anofel.proofs.ceremony.finished import open_verified

    if directory.exists():
        raise FileExists(f"{directory} exists already; it is not overwritten.")
    with progress_bar("Reading the keys") as progress:
        opened = open_verified(keys, on_progress=progress)
    deadlines = {"post_from": post_from, "train": train, "aggregate": aggregate}
    deadlines |= {"count": count, "sum": sum_, "model": model}
    classes = tuple(size_class(text, deadlines) for text in size_classes or [])
    classes = classes or default_classes(deadlines)
    limits = Limits(
        root_window=root_window,
        max_postings=max_postings,
        max_block_bytes=max_block_bytes,
        grace=grace,
        max_runs=max_runs,
        max_tasks=max_tasks,
        max_key_bytes=max_key_bytes,
        max_model_bytes=max_model_bytes,
    )
    if request:
        _begin_together(
            directory,
            request,
            name=name,
            nonce=nonce,
            roots=root or [],
            keys=opened,
            numbers=BoardNumbers(round(interval * 1000), bundle_size, bundle_wait, classes, limits),
            allow_insecure_keys=insecure_development_keys,
            as_json=as_json,
        )
        return
    if insecure_test_ca is None:
        trust = real_trust(root or [], storage_certificate, storage_key)
    else:
        trust = insecure_trust(root or [], storage_certificate, storage_key, insecure_test_ca)
        warn_test_authority()
    numbers = BoardNumbers(round(interval * 1000), bundle_size, bundle_wait, classes, limits)
    config = NodeConfig(max_blob_bytes=max_blob_bytes, max_pending_bytes=max_pending_bytes)
    if validators:
        from anofel.node.replicated.init import make_test_validators
        from anofel.pki.testing_ca import TestAuthority

        if insecure_test_ca is None:
            raise typer.BadParameter(
                "Validators of one machine are a test; they need --insecure-test-ca.",
                param_hint="--validators",
            )
        genesis = make_test_validators(
            directory,
            number=validators,
            name=name,
            authority=TestAuthority.open(insecure_test_ca),
            trust=trust,
            keys=opened,
            clock=numbers,
            config=config,
            ports=(port, peer_port),
            allow_insecure_keys=insecure_development_keys,
        )
    else:
        genesis = make_node(
            directory,
            name=name,
            trust=trust,
            keys=opened,
            clock=numbers,
            config=config,
            allow_insecure_keys=insecure_development_keys,
        )
    _warn_of(genesis)
    made = {
        "directory": str(directory),
        "name": genesis.name,
        "genesis": genesis.hash.hex(),
        "interval_ms": genesis.interval_ms,
        "receipts_until": receipts_until(genesis),
        "insecure": genesis.insecure,
    }
    if validators:
        made |= {"validators": validators, "may_be_faulty": fault_tolerance(genesis)}
    _show(f"Board in {directory}", made, as_json=as_json)
    if not as_json:
        first = directory / "node0" if validators else directory
        note(f"Run it with: anofel node run {first}" + (" and so on, each by itself" if validators else ""))


def _begin_together(
    directory: Path,
    requests: list[Path],
    *,
    name: str,
    nonce: str,
    roots: list[Path],
    keys: "KeyDirectory",
    numbers: "BoardNumbers",
    allow_insecure_keys: bool,
    as_json: bool,
) -> None:
    """Put the requests of several institutions into a genesis."""
    from anofel.board.engines import fault_tolerance
    from anofel.disk.files import read_each
    from anofel.node.init import roots_alone
    from anofel.node.replicated.requests import make_genesis, read_nonce, read_request

    trust = roots_alone(roots)
    if trust.insecure:
        warn_test_authority()
    genesis = make_genesis(
        directory,
        read_each(requests, read_request),
        name=name,
        nonce=read_nonce(nonce),
        trust=trust,
        keys=keys,
        clock=numbers,
        allow_insecure_keys=allow_insecure_keys,
    )
    _warn_of(genesis)
    made = {
        "directory": str(directory),
        "genesis": genesis.hash.hex(),
        "validators": len(genesis.validators),
        "may_be_faulty": fault_tolerance(genesis),
        "insecure": genesis.insecure,
    }
    _show(f"Genesis in {directory}", made, as_json=as_json)
    if not as_json:
        note("Send both files to every validator, who joins with: anofel node join")


def _warn_of(genesis: "Genesis") -> None:
    if genesis.insecure:
        warn_insecure(f"this board is INSECURE: {genesis.insecure}; every audit says so")


@app.command()
def request(
    out: Annotated[Path, typer.Argument(help="A new directory for the validator.", show_default=False)],
    name: Annotated[str, typer.Option(help="The validator's name, for people.", show_default=False)],
    nonce: Annotated[
        str, typer.Option(help="The organiser's 64 digits (openssl rand -hex 32).", show_default=False)
    ],
    certificate: Annotated[
        Path, typer.Option(help="The validator's certificate, a chain in PEM.", show_default=False)
    ],
    key: Annotated[Path, typer.Option(help="Its key in PEM, which only you may read.", show_default=False)],
    storage_certificate: Annotated[
        Path, typer.Option(help="Its storage certificate, a chain in PEM.", show_default=False)
    ],
    storage_key: Annotated[Path, typer.Option(help="Its key in PEM.", show_default=False)],
    peer: Annotated[
        str, typer.Option(help="How other validators reach its engine, HOST:PORT.", show_default=False)
    ],
    url: Annotated[str, typer.Option(help="How everybody reaches its node: https://….", show_default=False)],
    listen: Annotated[str, typer.Option(help="Where its engine listens.")] = "0.0.0.0:26656",
    as_json: JsonOption = False,
) -> None:
    """Ask to be a validator of a board that several institutions begin; the keys stay here.

    Example: anofel node request validator --name Clinic --nonce 4f…e1 --certificate validator.pem
    --key validator-key.pem --storage-certificate storage.pem --storage-key storage-key.pem
    --peer clinic.example:26656 --url https://board.clinic.example
    """
    from anofel.node.replicated.requests import REQUEST, make_request, read_nonce
    from anofel.pki.certificates import RoleKey

    make_request(
        out,
        name=name,
        nonce=read_nonce(nonce),
        validator=RoleKey.from_files(certificate, key),
        storage=RoleKey.from_files(storage_certificate, storage_key),
        listen=listen,
        peer=peer,
        url=url,
    )
    _show(f"A validator in {out}", {"send": str(out / REQUEST)}, as_json=as_json)


@app.command()
def join(
    directory: Annotated[Path, typer.Argument(help="The directory of the request.", show_default=False)],
    genesis: Annotated[Path, typer.Option(help="The genesis.bin of the board.", show_default=False)],
    network: Annotated[Path, typer.Option(help="The network.toml beside it.", show_default=False)],
    keys: KeysOption,
    place: Annotated[
        int | None,
        typer.Option(help="Of who comes after genesis: the place that a change names.", min=0, max=255),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take up the place that a genesis gives to a request, if it is the one that was asked for.

    Who comes later says which place a change of validators names; its node first fetches all blocks.

    Example: anofel node join validator --genesis genesis.bin --network network.toml --keys keys
    """
    from anofel.node.replicated.requests import join as join_board
    from anofel.proofs.ceremony.finished import open_verified

    with progress_bar("Reading the keys") as progress:
        opened = open_verified(keys, on_progress=progress)
    joined, faulty = join_board(directory, genesis, network, opened, place)
    if joined.insecure:
        warn_insecure(f"this board is INSECURE: {joined.insecure}")
    shown = {"genesis": joined.hash.hex(), "validators": len(joined.validators), "may_be_faulty": faulty}
    _show(f"The board of {directory}", shown, as_json=as_json)
    if not as_json:
        note(f"Run it with: anofel node run {directory}")


@app.command()
def run(
    directory: Directory,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            help="The port; 0 takes a free one. By default 8470, or that of network.toml.", min=0, max=65535
        ),
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="For https: the chain in PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="For https: its key in PEM.")] = None,
    today: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help="The date as you know it, to go on when the clock was set or is far from the last block.",
        ),
    ] = None,
    last_signed: Annotated[
        int | None,
        typer.Option(help="The newest block that anybody has, to go on without signed.bin.", min=0),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a board until SIGTERM or Ctrl-C. When it is ready, its address is printed.

    Example: anofel node run board --host 0.0.0.0 --port 443 --tls-certificate fullchain.pem
    --tls-key privkey.pem
    """
    from anofel.node.open import open_service, port_of
    from anofel.node.serve import run as serve
    from anofel.serving.listening import Tls, listen

    if (tls_certificate is None) != (tls_key is None):
        raise typer.BadParameter("--tls-certificate and --tls-key go together.", param_hint="--tls-key")
    tls = Tls(tls_certificate, tls_key) if tls_certificate and tls_key else None
    if tls is not None:
        tls.check()
    with listen(host, port_of(directory) if port is None else port) as taken:
        with progress_bar("Verifying blocks") as progress:
            date = None if today is None else today.date()
            node, make_service = open_service(
                directory, on_replay=progress, today=date, last_signed=last_signed
            )
        if node.genesis.insecure:
            warn_insecure(f"this board is INSECURE: {node.genesis.insecure}")
        shown, number = (f"[{host}]" if ":" in host else host), taken.getsockname()[1]
        ready: dict[str, Any] = {
            "url": f"{'https' if tls else 'http'}://{shown}:{number}",
            "genesis": node.genesis.hash.hex(),
            "height": node.height,
        }

        def announce() -> None:
            if as_json:
                print_json(ready)
            else:
                typer.echo(f"The board {ready['genesis'][:16]}… answers at {ready['url']}/v1/")

        serve(make_service, taken, tls, on_ready=announce)
    note("The node stopped in good order.")


@app.command()
def status(
    board: Annotated[str, typer.Argument(help="A node's address or directory.", show_default=False)],
    proxy: ProxyOption = "",
    ca_file: Annotated[Path | None, typer.Option(help="For https: the roots to trust, in PEM.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say where a board stands. A node's word; it is not verified here.

    Example: anofel node status http://127.0.0.1:8470
    """
    from anofel.cli.node_status import status_of_directory, status_of_url

    is_url = board.startswith(("http://", "https://"))
    found = status_of_url(board, ca_file, proxy) if is_url else status_of_directory(Path(board))
    _show(board, found, as_json=as_json)


@app.command()
def revoke(
    certifier: Annotated[
        str, typer.Argument(help="The certifier's key: 8 of its digits or more.", show_default=False)
    ],
    board: BoardOption,
    genesis: GenesisOption,
    certificate: CertificateOption,
    key: KeyOption,
    new_epoch: Annotated[
        bool, typer.Option("--new-epoch", help="Begin a new epoch: every client registers again.")
    ] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it; it cannot be undone.")] = False,
    proxy: ProxyOption = "",
    ca_file: CaFileOption = None,
    wait: WaitOption = 600,
    as_json: JsonOption = False,
) -> None:
    """Take a certifier's key back as an operator, and begin a new epoch if you say so.

    Example: anofel node revoke 9e1f… --new-epoch --confirm --board https://board.example
    --genesis genesis.bin --certificate operator.pem --key operator-key.pem
    """
    from tempfile import TemporaryDirectory

    from anofel.light_client.client import LightClient
    from anofel.network.transport import Transport
    from anofel.pki.certificates import RoleKey
    from anofel.roles.operator import revoke_certifier

    if not confirm:
        raise typer.BadParameter("A revoked key is never listed again; say so.", param_hint="--confirm")
    role = RoleKey.from_files(certificate, key)
    with TemporaryDirectory(prefix="anofel-") as view:
        transport = Transport(board_addresses(board), proxy or None, ca_file)
        client = LightClient(Path(view), transport, genesis_hash=genesis_hash(genesis))
        try:
            client.sync()
            revoked = _certifier_key(client.state.certifiers, certifier)
            height = revoke_certifier(client, role, revoked, new_epoch=new_epoch, seconds=wait, on_wait=note)
            shown = {"certifier": revoked.to_bytes().hex(), "height": height, "epoch": client.state.epoch}
        finally:
            client.close()
    _show("The key is revoked", shown, as_json=as_json)


def _certifier_key(known: "Iterable[bytes]", text: str) -> "CertifierKey":
    """Find the one certifier's key that begins with some digits."""
    from anofel.primitives import CertifierKey

    if len(text) >= 64:
        try:
            return CertifierKey.from_bytes(bytes.fromhex(text))
        except ValueError:
            raise typer.BadParameter("This is no certifier's key.") from None
    found = [key for key in known if len(text) >= 8 and key.hex().startswith(text.lower())]
    if len(found) != 1:
        raise typer.BadParameter(f"{len(found)} certifiers of this board have a key that begins like this.")
    return CertifierKey.from_bytes(found[0])


def _show(title: str, content: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(content)
        return
    from anofel.cli.node_status import for_people

    shown = {key: value for key, value in for_people(content).items() if value != ""}
    print_table(title, ["", ""], [[key.replace("_", " "), in_words(value)] for key, value in shown.items()])
