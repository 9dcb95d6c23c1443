"""The machines of several validators: each asks with keys that stay; the first puts the genesis together."""

import secrets
from shlex import join, quote
from typing import Final

from anofel.deploy import scripts
from anofel.deploy.machine import HTTPS, Machine
from anofel.deploy.parties import Parties, ValidatorParty, storage_of
from anofel.node.replicated.engine import VERSION
from anofel.node.replicated.requests import REQUEST

HOME: Final = "validator"
STORAGE_KEYS: Final = "x509-storage"


class ValidatorPlanner:
    """Says what every validator's machine does."""

    def __init__(self, parties: Parties) -> None:
        self._parties = parties
        self._nonce = secrets.token_hex(32)
        """Public; it binds every request to this board."""
        self._first = parties.validator[0]
        self._others = parties.validator[1:]

    def machines(self) -> list[Machine]:
        """Return all of them, the first validator first."""
        return [self._machine(party) for party in self._parties.validator]

    def _machine(self, party: ValidatorParty) -> Machine:
        is_first, machine, storage = party is self._first, party.machine, storage_of(party.machine)
        lines = [
            *scripts.request("validator", party.name, machine),
            *scripts.request("storage", party.name, storage, STORAGE_KEYS),
            f"all_here 'Carry out/{machine}.request and out/{storage}.request to the authority.'",
            *scripts.check("validator", party.name, machine),
            *scripts.check("storage", party.name, storage, (), STORAGE_KEYS),
            f"[ -d {HOME} ] || {join(self._ask(party))}",
            f"put {HOME}/{REQUEST} {machine}.json",
            *(self._begin() if is_first else self._receive(party)),
            f"[ -e {HOME}/genesis.bin ] || {join(self._join(is_first))}",
            "start anofel-node",
        ]
        run = f"node run {HOME} --host 0.0.0.0 --port {HTTPS} {scripts.TLS}"
        title = f"A validator of anofel: {party.name}"
        return Machine(
            machine,
            f"The validator {party.name} of the board '{self._parties.board.name}'",
            lines,
            {"anofel-node.service": scripts.unit(title, run, serves=True, engine=True).encode()},
            [f"{machine}.answer and {storage}.answer from the authority", *self._brought(is_first)],
            [f"{machine}.request and {storage}.request to the authority", *self._passed_on(party)],
            [
                f"The engine CometBFT {VERSION} is {scripts.PROGRAM}: make engine builds it, on any machine "
                "with Go. The node checks which one it is.",
                f"The TLS certificate of {party.address} is in /etc/anofel/tls (fullchain.pem, privkey.pem).",
                f"The other validators reach {party.engine}, and everybody {party.address}.",
                "The clock is right and stays so (NTP).",
            ],
            ports=(HTTPS, party.port),
        )

    def _ask(self, party: ValidatorParty) -> list[str]:
        words = ["anofel", "node", "request", HOME, "--name", party.name, "--nonce", self._nonce]
        words += ["--certificate", f"answer/{party.machine}.pem", "--key", "x509/key.pem"]
        words += ["--storage-certificate", f"answer/{storage_of(party.machine)}.pem"]
        words += ["--storage-key", f"{STORAGE_KEYS}/key.pem", "--peer", party.engine, "--url", party.address]
        return [*words, "--listen", f"0.0.0.0:{party.port}"]

    @property
    def _is_insecure(self) -> bool:
        return self._parties.board.insecure_development_keys

    def _begin(self) -> list[str]:
        """What the first one does when all requests are there."""
        board, first = self._parties.board, self._first.machine
        make = ["anofel", "node", "init", "board", "--name", board.name, "--keys", "keys"]
        make += ["--root", "answer/root.pem", "--nonce", self._nonce, "--request", f"out/{first}.json"]
        make += [word for party in self._others for word in ("--request", f"in/{party.machine}.json")]
        make += ["--insecure-development-keys"] if self._is_insecure else []
        numbers = " ".join(quote(word) for text in board.numbers for word in text.split())
        brought = [] if self._is_insecure else ["need keys 'the ceremony of the proof keys'"]
        make_keys = "anofel setup dev keys" if self._is_insecure else "cp -R in/keys keys"
        return [
            *(f"need {party.machine}.json {quote(party.name)}" for party in self._others),
            *brought,
            f"all_here 'Each of them runs its own script first. Carry out/{first}.json to nobody.'",
            f"[ -d keys ] || {make_keys}",
            f"[ -d board ] || {join(make)} {numbers}".rstrip(),
            "put board/genesis.bin genesis.bin",
            "put board/network.toml network.toml",
            *(["put keys keys"] if self._is_insecure else []),
            "echo 'Carry out/genesis.bin to everybody but clients, and network.toml to the validators.'",
        ]

    def _receive(self, party: ValidatorParty) -> list[str]:
        """What the others do once there is a genesis."""
        first = quote(self._first.name)
        keys = self._first.name if self._is_insecure else "the ceremony of the proof keys"
        return [
            f"need genesis.bin {first}",
            f"need network.toml {first}",
            f"need keys {quote(keys)}",
            f"all_here {quote(f'Carry out/{party.machine}.json to {self._first.name}.')}",
            "[ -d keys ] || cp -R in/keys keys",
        ]

    @staticmethod
    def _join(is_first: bool) -> list[str]:
        given = "board" if is_first else "in"
        words = ["anofel", "node", "join", HOME, "--genesis", f"{given}/genesis.bin"]
        return [*words, "--network", f"{given}/network.toml", "--keys", "keys"]

    def _brought(self, is_first: bool) -> list[str]:
        ceremony = "keys from the ceremony of the proof keys"
        if is_first:
            requests = [f"{party.machine}.json from {party.name}" for party in self._others]
            return requests if self._is_insecure else [*requests, ceremony]
        keys = f"keys (development keys) from {self._first.name}" if self._is_insecure else ceremony
        return [f"genesis.bin and network.toml from {self._first.name}", keys]

    def _passed_on(self, party: ValidatorParty) -> list[str]:
        if party is not self._first:
            return [f"{party.machine}.json to {self._first.name}"]
        keys = ", with keys," if self._is_insecure else ""
        return [
            "genesis.bin to every other machine but the clients' (and its hash, by telephone)",
            f"network.toml{keys} to the other validators",
        ]
