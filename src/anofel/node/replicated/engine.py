"""CometBFT as a child process: found, checked, configured anew at each start, watched and restarted."""

import asyncio
import base64
import binascii
import contextlib
import json
import logging
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpcore2

from anofel.board.rules import MAX_POSTING_BYTES
from anofel.comet.commits import address_of, chain_id
from anofel.comet.wire import MalformedWire, read_uvarint
from anofel.disk.files import Secret, replace_file
from anofel.errors import AnofelError
from anofel.messages import EngineBlock, EngineVote, Genesis, Seal, Validator
from anofel.primitives import MessageSecret

VERSION: Final = "v0.38.26"
MODULE: Final = "github.com/cometbft/cometbft"
SUM: Final = "h1:MIPYgOSvyyiN1jo3SZljKy4ZXqs896aQnj3pQFfUmaE="
"""What the Go checksum database says about that version of the module."""
ENGINE: Final = "ANOFEL_COMETBFT"
"""The environment variable that names another place of the engine."""
HOME: Final = "engine"
"""The engine's directory in that of a node."""
LOG: Final = "engine.log"
LAST_VOTE: Final = "data/priv_validator_state.json"
_LAST_VOTE_FILE: Final = b'{"height":"0","round":0,"step":0}'
_KEY_TYPE: Final = {"pub_key": "tendermint/PubKeyEd25519", "priv_key": "tendermint/PrivKeyEd25519"}
MAX_BLOCK_BYTES: Final = 104_857_600
"""What the engine allows."""
_OVERHEAD: Final = 1 << 16
"""What the engine's own parts of a block may take beside the postings."""
_BODY_BYTES: Final = 2 * MAX_POSTING_BYTES
"""A posting in base64 in JSON."""
_MEMPOOL_POSTINGS: Final = 5000
_MEMPOOL_BYTES: Final = 64 << 20
OFFERS: Final = 32
"""Postings that are offered to the engine at a time."""
STOP_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = (0.5, 8.0)
"""Between two starts of the engine: the shortest pause, doubled up to the longest."""
_COMMITTED: Final = 2
_BUILD_INFO: Final = b"\xff Go buildinf:"
_MARKS: Final = 16
"""The bytes around a program's list of modules."""

log = logging.getLogger("anofel.node")


class EngineMissing(AnofelError):
    """There is no engine that this board may run with; the message says how to get it."""

    code = "engine-missing"
    exit_code = 2


class EngineAnswer(AnofelError):
    """The engine refused a request, or gave no answer."""

    code = "engine-answer"


# The program


def find_engine() -> Path:
    """Return the engine's program: the one that ANOFEL_COMETBFT names, else ours, else that in the path.

    Raises ``EngineMissing``.
    """
    named = os.environ.get(ENGINE)
    built = Path(__file__).parents[4] / ".engine" / "cometbft"  # where make engine puts it
    if named:
        found: str | None = named
    else:
        found = str(built) if built.is_file() else shutil.which("cometbft")
    if found is None or not Path(found).is_file():
        raise EngineMissing(
            f"A replicated board needs the engine CometBFT {VERSION}: make engine builds it, or {ENGINE} "
            "names it."
        )
    check_engine(Path(found))
    return Path(found)


def check_engine(path: Path) -> None:
    """Refuse another program or version, by what the Go compiler wrote into it. Raises ``EngineMissing``.

    Not by what the program says of itself: released versions print others' numbers.
    """
    module = _main_module(path.read_bytes())
    if module[:2] != [MODULE, VERSION] or module[2:] != [SUM]:
        found = " ".join(module[:2]) or "no program of Go's module proxy"
        raise EngineMissing(f"{path} is {found}, not {MODULE} {VERSION}; make engine builds the right one.")


def _main_module(program: bytes) -> list[str]:
    """Return path, version and checksum of the module that a Go program was built from."""
    at = program.find(_BUILD_INFO)
    try:
        length, start = read_uvarint(program, at + 32)
        size, begin = read_uvarint(program, start + length)
    except (IndexError, MalformedWire):
        return []
    listed = program[begin + _MARKS : begin + size - _MARKS] if at >= 0 else b""
    for line in listed.decode(errors="replace").splitlines():
        kind, *values = line.split("\t")
        if kind == "mod":
            return values
    return []


# Its files


@dataclass(frozen=True, slots=True)
class EngineKeys:
    """What the engine signs with."""

    validator: MessageSecret
    transport: MessageSecret


def new_home() -> dict[str, bytes | Secret]:
    """Return what a new engine must find: that it has voted for nothing yet."""
    return {f"{HOME}/{LAST_VOTE}": Secret(_LAST_VOTE_FILE)}


def write_home(
    home: Path, genesis: Genesis, listen: str, peers: Sequence[str], keys: EngineKeys, sockets: Path
) -> None:
    """Write the engine's configuration, genesis and keys. ``peers``: the other engines, ID@HOST:PORT.

    Raises ``EngineMissing``, ``DiskFailed``.
    """
    if not (home / LAST_VOTE).exists():
        raise EngineMissing(
            f"{home / LAST_VOTE} is missing, which says what this validator voted for last. Without it the "
            "engine could vote twice and be shown as a liar; bring it back, or replace this validator."
        )
    config = home / "config"
    config.mkdir(parents=True, exist_ok=True)
    validator, transport = keys.validator, keys.transport
    document = _key_pair(validator) | {"address": _hex(address_of(validator.public_key().to_bytes()))}
    replace_file(config / "priv_validator_key.json", Secret(json.dumps(document).encode()))
    node_key = {"priv_key": _key_pair(transport)["priv_key"]}
    replace_file(config / "node_key.json", Secret(json.dumps(node_key).encode()))
    replace_file(config / "genesis.json", json.dumps(engine_genesis(genesis), indent=1).encode())
    replace_file(config / "config.toml", _configuration(genesis, listen, peers, sockets).encode())


def engine_genesis(genesis: Genesis) -> dict[str, Any]:
    """Return the engine's genesis: the same at every validator."""
    size = min(genesis.limits.max_block_bytes + _OVERHEAD, MAX_BLOCK_BYTES)
    return {
        "genesis_time": datetime.fromtimestamp(genesis.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "chain_id": chain_id(genesis),
        "initial_height": "1",
        "consensus_params": {
            "block": {"max_bytes": str(size), "max_gas": "-1"},
            "evidence": {
                "max_age_num_blocks": "100000",
                "max_age_duration": "172800000000000",
                "max_bytes": str(_OVERHEAD // 2),
            },
            "validator": {"pub_key_types": ["ed25519"]},
            "version": {"app": str(genesis.rules)},
            "abci": {"vote_extensions_enable_height": "0"},
        },
        "validators": [
            {
                "address": _hex(address_of(validator.key)),
                "pub_key": {"type": _KEY_TYPE["pub_key"], "value": _base64(validator.key)},
                "power": str(validator.power),
                "name": f"validator{number}",
            }
            for number, validator in enumerate(genesis.validators)
        ],
        "app_hash": "",
        "app_state": {"genesis": _base64(genesis.to_bytes())},
    }


def _key_pair(secret: MessageSecret) -> dict[str, Any]:
    public = secret.public_key().to_bytes()
    values = {"pub_key": public, "priv_key": secret.to_secret_bytes() + public}
    return {name: {"type": _KEY_TYPE[name], "value": _base64(value)} for name, value in values.items()}


def _configuration(genesis: Genesis, listen: str, peers: Sequence[str], sockets: Path) -> str:
    interval = f"{genesis.interval_ms}ms"
    settings: dict[str, dict[str, object]] = {
        "": {
            "proxy_app": f"unix://{sockets / 'abci'}",
            "moniker": "anofel",
            "log_level": "error",
            "db_backend": "goleveldb",
        },
        "rpc": {"laddr": f"unix://{sockets / 'rpc'}", "max_body_bytes": _BODY_BYTES},
        "p2p": {
            "laddr": f"tcp://{listen}",
            "persistent_peers": ",".join(peers),
            "persistent_peers_max_dial_period": "5s",
            "flush_throttle_timeout": "10ms",  # by default a round takes a third of a second longer
            "pex": False,
            "addr_book_strict": False,
            "allow_duplicate_ip": True,
        },
        "mempool": {
            "type": "flood",
            "recheck": True,
            "size": _MEMPOOL_POSTINGS,
            "max_txs_bytes": _MEMPOOL_BYTES,
            "max_tx_bytes": MAX_POSTING_BYTES,
            "cache_size": 2 * _MEMPOOL_POSTINGS,
        },
        "consensus": {
            "timeout_commit": interval,
            "skip_timeout_commit": False,
            "create_empty_blocks": True,
        },
        "storage": {"discard_abci_responses": True},
        "tx_index": {"indexer": "null"},
    }
    lines = ["# Written anew at each start; what may be changed stands in network.toml and node.toml."]
    for table, values in settings.items():
        lines += ["", f"[{table}]"] if table else []
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _hex(data: bytes) -> str:
    return data.hex().upper()


# What it answers


@dataclass(frozen=True, slots=True)
class Taken:
    """What the engine says about a posting that was offered to it."""

    code: int
    data: bytes


class EngineRpc:
    """Questions to the engine over its unix socket; each blocks its thread for ``timeout`` at most."""

    def __init__(self, path: Path, timeout: float = 10.0) -> None:
        self._pool = httpcore2.ConnectionPool(uds=str(path), max_connections=OFFERS + 4)
        self._timeout = timeout

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def offer(self, posting: bytes) -> Taken | None:
        """Offer a posting; None if the engine has it already. Raises ``EngineAnswer``."""
        try:
            found = self._ask("broadcast_tx_sync", tx=_base64(posting))
        except EngineAnswer as error:
            if "already exists in cache" in str(error):
                return None
            raise
        return Taken(int(found["code"]), bytes.fromhex(found["data"] or ""))

    def seal(self, height: int, validators: Mapping[int, Validator]) -> Seal:
        """Return what vouches for a block that the engine decided and they made. Raises ``EngineAnswer``."""
        try:
            return _read_seal(self._ask("commit", height=str(height))["signed_header"], validators)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise EngineAnswer(f"The engine gave no commit that can be read: {error!r}.") from None

    def peers(self) -> int:
        """Return how many other engines are connected. Raises ``EngineAnswer``."""
        return int(self._ask("net_info")["n_peers"])

    def _ask(self, method: str, **parameters: str) -> dict[str, Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode()
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout)
        try:
            answer = self._pool.request(
                "POST",
                "http://engine/",
                headers={"Content-Type": "application/json"},
                content=body,
                extensions={"timeout": timeouts},
            )
            found = json.loads(answer.content)
        except (
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.TimeoutException,
            OSError,
            ValueError,
        ) as error:
            raise EngineAnswer(f"The engine gave no answer: {type(error).__name__}.") from None
        if "error" in found:
            raise EngineAnswer(str(found["error"].get("data") or found["error"].get("message")))
        result: dict[str, Any] = found["result"]
        return result


def _read_seal(signed: dict[str, Any], validators: Mapping[int, Validator]) -> Seal:
    header, commit = signed["header"], signed["commit"]
    places = {_hex(address_of(v.key)): number for number, v in validators.items()}
    _, nanos = _moment(header["time"])
    last = header["last_block_id"]
    votes = []
    for entry in commit["signatures"]:
        if entry["block_id_flag"] == _COMMITTED:
            seconds, fraction = _moment(entry["timestamp"])
            votes.append(
                EngineVote(
                    validator=places[entry["validator_address"]],
                    time=seconds,
                    nanos=fraction,
                    signature=base64.b64decode(entry["signature"]),
                )
            )
    parts = commit["block_id"]["parts"]
    return Seal(
        block_version=int(header["version"]["block"]),
        app_version=int(header["version"].get("app", 0)),
        nanos=nanos,
        last=_block(last) if last["hash"] else None,
        last_commit=bytes.fromhex(header["last_commit_hash"]),
        data=bytes.fromhex(header["data_hash"]),
        next_validators=bytes.fromhex(header["next_validators_hash"]),
        consensus=bytes.fromhex(header["consensus_hash"]),
        results=bytes.fromhex(header["last_results_hash"]),
        evidence=bytes.fromhex(header["evidence_hash"]),
        proposer=places[header["proposer_address"]],
        round=commit["round"],
        parts=parts["total"],
        parts_hash=bytes.fromhex(parts["hash"]),
        votes=tuple(votes),
    )


def _block(named: dict[str, Any]) -> EngineBlock:
    parts = named["parts"]
    return EngineBlock(
        hash=bytes.fromhex(named["hash"]), parts=parts["total"], parts_hash=bytes.fromhex(parts["hash"])
    )


def _moment(text: str) -> tuple[int, int]:
    """Read a moment of RFC 3339 in UTC: seconds since 1970, and nanoseconds."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return int(seconds.timestamp()), int((fraction or "0").ljust(9, "0"))


# Its life


_DIE_WITH: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def _dying_with(parent: int) -> list[str]:
    """Return the words before a command that let the kernel end it with the process that starts it.

    An engine mostly ends by itself when its node is gone, but not always, and one that goes on keeps the next
    from its files. Elsewhere than on Linux there is no such signal.
    """
    return [sys.executable, "-I", "-S", "-c", _DIE_WITH, str(parent)] if sys.platform == "linux" else []


class EngineProcess:
    """Runs the engine and starts it again whenever it ends; its words go to a file."""

    def __init__(self, program: Path, home: Path, socket: Path) -> None:
        """``socket``: where it listens to the node. One that was killed leaves it, in the way of the next."""
        self._socket = socket
        self._command: Sequence[str] = [*_dying_with(os.getpid()), str(program), "start", "--home", str(home)]
        self._log = home / LOG
        self._process: asyncio.subprocess.Process | None = None
        self.restarts = 0

    async def keep_running(self) -> None:
        """Run until cancelled, then stop the engine in good order."""
        pause, longest = PAUSE_SECONDS
        try:
            while True:
                begun = time.monotonic()
                code = await self._run()
                if time.monotonic() - begun > longest:
                    pause = PAUSE_SECONDS[0]
                log.warning("The engine ended (%s) and is started again. %s", code, self.last_words())
                self.restarts += 1
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)
        finally:
            await self._stop()

    async def _run(self) -> int:
        if self._log.exists():
            self._log.replace(self._log.with_suffix(".log.1"))
        self._socket.unlink(missing_ok=True)
        with self._log.open("wb") as words:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=words, stderr=words
            )
        return await self._process.wait()

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def last_words(self) -> str:
        """Return the last line that the engine wrote."""
        try:
            with self._log.open(errors="replace") as file:
                return next(iter(deque(file, 1)), "").strip()
        except OSError:
            return ""
