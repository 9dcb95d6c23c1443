"""A private Tor network on loopback: authorities, a relay, a client with its control port, an onion service.

The parts are Debian's ``tor`` with the options for networks of test; nothing leaves this machine.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

AUTHORITIES = 3
RELAYS = 1
SECONDS = 900
"""The most that it takes on a busy machine."""
_COMMON = """\
TestingTorNetwork 1
PathsNeededToBuildCircuits 0.67
TestingDirAuthVoteExit *
TestingDirAuthVoteHSDir *
TestingDirAuthVoteGuard *
TestingMinExitFlagThreshold 0
V3AuthNIntervalsValid 20
ShutdownWaitLength 1
SafeLogging 0
Address 127.0.0.1
RunAsDaemon 0
"""
_RELAY = """\
SocksPort 0
ExitRelay 1
ExitPolicy accept *:*
ExitPolicyRejectPrivate 0
AssumeReachable 1
ServerDNSDetectHijacking 0
ServerDNSTestAddresses
ServerDNSResolvConfFile /dev/null
ServerDNSAllowBrokenConfig 1
"""
_AUTHORITY = """\
AuthoritativeDirectory 1
V3AuthoritativeDirectory 1
ContactInfo nobody@test.invalid
TestingV3AuthInitialVotingInterval 5
TestingV3AuthInitialVoteDelay 2
TestingV3AuthInitialDistDelay 2
V3AuthVotingInterval 20
V3AuthVoteDelay 4
V3AuthDistDelay 4
"""


def why_not() -> str:
    """Say what is missing; nothing if a network can be made."""
    missing = [program for program in ("tor", "tor-gencert") if shutil.which(program) is None]
    return f"{' and '.join(missing)} of Debian's tor is not installed" if missing else ""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class _Relay:
    place: Path
    name: str
    is_authority: bool
    onion_port: int = field(default_factory=free_port)
    directory_port: int = field(default_factory=free_port)


@dataclass(frozen=True)
class Stream:
    """One message as the control port of the client saw it leave."""

    number: str
    circuit: str
    user: str
    """The SOCKS user name, which is what keeps circuits apart."""


class TorNetwork:
    """Use it as a context manager; ``service`` is the local port to which the onion address leads."""

    def __init__(self, place: Path, service: int) -> None:
        self.place, self._service = place, service
        self.socks, self.control = free_port(), free_port()
        self.onion = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._events: list[str] = []
        self._watcher: socket.socket | None = None

    @property
    def proxy(self) -> str:
        return f"socks5h://127.0.0.1:{self.socks}"

    @property
    def client(self) -> subprocess.Popen[bytes]:
        """The process through which everything goes."""
        return self._processes[-2]

    def __enter__(self) -> Self:
        relays = [
            _Relay(self._directory(f"relay{number}"), f"relay{number}", number < AUTHORITIES)
            for number in range(AUTHORITIES + RELAYS)
        ]
        authorities = "".join(self._make_authority(relay) for relay in relays if relay.is_authority)
        try:
            for relay in relays:
                ports = f"ORPort 127.0.0.1:{relay.onion_port}\nDirPort 127.0.0.1:{relay.directory_port}\n"
                extra = _AUTHORITY if relay.is_authority else ""
                self._start(relay.place, relay.name, _RELAY + ports + extra + authorities)
            ports = f"SocksPort 127.0.0.1:{self.socks}\nControlPort 127.0.0.1:{self.control}\n"
            self._start(self._directory("client"), "client", ports + authorities)
            hidden = self._directory("hidden")
            service = (
                f"SocksPort 0\nHiddenServiceDir {hidden}\nHiddenServicePort 80 127.0.0.1:{self._service}\n"
            )
            self._start(self._directory("service"), "service", service + authorities)
            self._wait_for_bootstrap()
            self.onion = (hidden / "hostname").read_text().strip()
            self._watch()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._watcher is not None:
            self._watcher.close()
        for process in self._processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()

    # What the control port shows

    def streams(self) -> list[Stream]:
        """Every message of a user that went out so far, in order; what Tor fetches for itself is none."""
        lines = list(self._events)
        users = {}
        for line in lines:
            match = re.match(r"650 STREAM (\d+) NEW .*PURPOSE=USER", line)
            if match:
                name = re.search(r'SOCKS_USERNAME="([^"]*)"', line)
                users[match.group(1)] = "" if name is None else name.group(1)
        found = [re.match(r"650 STREAM (\d+) SUCCEEDED (\d+) ", line) for line in lines]
        return [
            Stream(match.group(1), match.group(2), users[match.group(1)])
            for match in found
            if match and match.group(1) in users
        ]

    def _watch(self) -> None:
        self._watcher = socket.create_connection(("127.0.0.1", self.control))
        self._watcher.sendall(b'AUTHENTICATE ""\r\nSETEVENTS STREAM\r\n')
        threading.Thread(target=self._listen, args=(self._watcher,), daemon=True).start()

    def _listen(self, watcher: socket.socket) -> None:
        rest = b""
        while True:
            try:
                piece = watcher.recv(1 << 16)
            except OSError:
                return
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\r\n")
            self._events += [line.decode() for line in lines]

    # Making it

    def _directory(self, name: str) -> Path:
        made = self.place / name
        made.mkdir(mode=0o700, parents=True)
        os.chmod(made, 0o700)
        return made

    def _make_authority(self, relay: _Relay) -> str:
        """Make the keys of an authority; return the line by which all others know it."""
        keys = relay.place / "keys"
        keys.mkdir(mode=0o700)
        address = f"127.0.0.1:{relay.directory_port}"
        subprocess.run(
            ["tor-gencert", "--create-identity-key", "--passphrase-fd", "0", "-m", "12", "-a", address,
             "-i", keys / "authority_identity_key", "-s", keys / "authority_signing_key",
             "-c", keys / "authority_certificate"],
            input=b"passphrase\n", check=True, capture_output=True, timeout=SECONDS,
        )  # fmt: skip
        (identity,) = re.findall(
            r"^fingerprint ([0-9A-F]{40})$", (keys / "authority_certificate").read_text(), re.M
        )
        nobody = f"x orport=1 no-v2 v3ident={identity} 127.0.0.1:1 {'F' * 40}"
        listed = subprocess.run(
            ["tor", "--quiet", "--list-fingerprint", "--ignore-missing-torrc", "-f", "/nonexistent",
             "--DataDirectory", relay.place, "--ORPort", str(relay.onion_port), "--Nickname", relay.name,
             "--DirAuthority", nobody, "--TestingTorNetwork", "1"],
            check=True, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        (fingerprint,) = re.findall(r"^\S+ ((?:[0-9A-F]{4} ?){10})$", listed.stdout, re.M)
        return (
            f"DirAuthority {relay.name} orport={relay.onion_port} no-v2 v3ident={identity} {address} "
            f"{fingerprint.replace(' ', '')}\n"
        )

    def _start(self, place: Path, name: str, options: str) -> None:
        own = f"DataDirectory {place}\nNickname {name}\nLog notice file {place}/notice.log\n"
        (place / "torrc").write_text(_COMMON + own + options)
        command = ["tor", "--quiet", "-f", place / "torrc", "--defaults-torrc", "/dev/null"]
        self._processes.append(subprocess.Popen(command))

    def _wait_for_bootstrap(self) -> None:
        waiting = {self.place / name / "notice.log" for name in ("client", "service")}
        end = time.monotonic() + SECONDS
        while waiting:
            assert time.monotonic() < end, "The private Tor network did not come up."
            assert all(process.poll() is None for process in self._processes), "A tor process ended."
            waiting = {
                log for log in waiting if not log.exists() or "Bootstrapped 100%" not in log.read_text()
            }
            time.sleep(0.2)
