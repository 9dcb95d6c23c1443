"""``parties.toml`` → one directory for each machine: script, unit, checklist and public files; no secret."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from shlex import join, quote
from typing import Final

from anofel.board.announcement import check_fits
from anofel.board.size_classes import size_class_of
from anofel.deploy import scripts
from anofel.deploy.containers import compose, containerfile
from anofel.deploy.machine import CHECKLIST, HTTPS, Machine
from anofel.deploy.parties import AUTHORITY, CLIENT, CertifierParty, OwnerParty, Parties, storage_of
from anofel.deploy.validators import ValidatorPlanner
from anofel.disk.files import FileExists, read_each, read_small_file, write_new_directory
from anofel.errors import InvalidInput
from anofel.pki.certificates import Purpose
from anofel.tasks.confirmations import check_confirmed
from anofel.tasks.task import Task

_ROOTS: Final = "tls-root.pem"


def make_plan(parties: Parties, base: Path, out: Path) -> list[Machine]:
    """Write the plan into a new directory, whole or not at all; ``base`` is where its files are.

    Raises ``FileExists``, ``InvalidInput``.
    """
    if out.exists():
        raise FileExists(f"{out} exists already; it is not overwritten.")
    machines = Planner(parties, base).machines()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as partial:
        place = Path(partial) / "plan"
        names = [machine.name for machine in machines if machine.name != AUTHORITY]
        checks = {name: _health(parties, name) for name in names}
        serving = {machine.name: machine.ports for machine in machines if machine.ports}
        services = compose(checks, serving)
        shared = {
            "Containerfile": containerfile(engine=bool(parties.validator)).encode(),
            "compose.yaml": services.encode(),
        }
        write_new_directory(place, shared)
        for machine in machines:
            write_new_directory(place / machine.name, machine.contents())
            for name in ("in", "out"):
                (place / machine.name / name).mkdir()
        write_new_directory(place / CLIENT, client_files())
        shutil.move(place, out)
    return machines


class Planner:
    """Says what every machine does."""

    def __init__(self, parties: Parties, base: Path) -> None:
        """Read the tasks and hold them against the board. Raises ``InvalidInput``."""
        self.parties, self._base = parties, base
        names = self._task_names()
        known = [*names, *([parties.tls_root] if parties.tls_root else [])]
        self.tasks = dict(zip(known, read_each([base / name for name in known], self._checked), strict=True))
        roots = self.tasks.pop(parties.tls_root) if parties.tls_root else b""
        self._roots: dict[str, bytes] = {_ROOTS: roots} if roots else {}
        self._ca = ["--ca-file", _ROOTS] if roots else []

    def machines(self) -> list[Machine]:
        """Return all of them, the authority first."""
        parties = self.parties
        owners = [self._owner(party) for party in parties.owner]
        certifiers = [self._certifier(party) for party in parties.certifier]
        aggregators = [self._aggregator(machine, name) for machine, name in parties.aggregators().items()]
        board = ValidatorPlanner(parties).machines() if parties.validator else [self._board()]
        return [self._authority(), *board, *certifiers, *aggregators, *owners]

    # Machines

    def _authority(self) -> Machine:
        holders = self._holders()
        oids = {purpose.value: purpose.oid.dotted_string for purpose in Purpose}
        return Machine(
            AUTHORITY,
            f"The certificate authority '{self.parties.authority}', which checks who asks",
            scripts.authority(self.parties.authority, oids, holders, self._colleagues()),
            {},
            [f"{machine}.request from {name}, who shows who they are" for machine, name, _ in holders],
            [f"{machine}.answer to {machine}" for machine, _, _ in holders],
            ["Judge that the members of a committee are of different organisations: you vouch for it."],
            program="openssl",
        )

    def _board(self) -> Machine:
        board = self.parties.board
        make = [
            "anofel",
            "node",
            "init",
            "board",
            "--name",
            board.name,
            "--keys",
            "keys",
            "--root",
            "answer/root.pem",
        ]
        make += ["--storage-certificate", f"answer/{board.machine}.pem", "--storage-key", "x509/key.pem"]
        insecure = ["--insecure-development-keys"] if board.insecure_development_keys else []
        numbers = " ".join(quote(word) for text in board.numbers for word in text.split())
        brought = [] if insecure else ["need keys 'the ceremony of the proof keys'"]
        make_keys = "anofel setup dev keys" if insecure else "cp -R in/keys keys"
        lines = [
            *scripts.request("storage", board.holder, board.machine),
            *brought,
            f"all_here 'Carry out/{board.machine}.request to the authority.'",
            *scripts.check("storage", board.holder, board.machine),
            f"[ -d keys ] || {make_keys}",
            f"[ -d board ] || {join([*make, *insecure])} {numbers}".rstrip(),
            "put board/genesis.bin genesis.bin",
            "echo 'Carry out/genesis.bin to everybody but clients.'",
            "start anofel-node",
        ]
        run = f"node run board --host 0.0.0.0 --port 443 {scripts.TLS}"
        return Machine(
            board.machine,
            f"The board '{board.name}', run by {board.holder}",
            lines,
            {"anofel-node.service": scripts.unit("The board of anofel", run, serves=True).encode()},
            [f"{board.machine}.answer from the authority"]
            + ([] if insecure else ["keys from the ceremony of the proof keys"]),
            [
                f"{board.machine}.request to the authority",
                "genesis.bin to every other machine (and its hash, by telephone)",
            ],
            [f"The TLS certificate of {board.address} is in /etc/anofel/tls (fullchain.pem, privkey.pem)."],
            ports=(HTTPS,),
        )

    def _certifier(self, party: CertifierParty) -> Machine:
        make = ["anofel", "certifier", "init", "certifier", *self._boards(), *self._ca]
        make += ["--genesis", "in/genesis.bin", "--certificate", f"answer/{party.machine}.pem", "--key"]
        make += ["x509/key.pem", "--policy", "policy.toml", "--address", party.address]
        make += ["--address-ca-file", _ROOTS] if self._roots else []
        lines = [
            *scripts.request("certifier", party.name, party.machine),
            f"need genesis.bin {quote(self._giver)}",
            f"all_here 'Carry out/{party.machine}.request to the authority.'",
            *scripts.check("certifier", party.name, party.machine),
            f'[ -d certifier ] || {join(make)} --key-file "$ETC/role.key"',
            'once enroll anofel certifier enroll certifier --key-file "$ETC/role.key"',
            "echo 'Invite: anofel certifier invite certifier --subject NAME --type TYPE --out NAME.json'",
            "start anofel-certifier",
        ]
        run = f"certifier run certifier --host 0.0.0.0 --port 443 {scripts.TLS} {scripts.KEY}"
        policy = self._read(party.policy) if party.policy else self._draft_policy(party)
        tasks = {file: self.tasks[name] for name, file in _names_at(party).items()}
        service = scripts.unit("A certifier of anofel", run, serves=True).encode()
        return Machine(
            party.machine,
            f"The certifier {party.name}",
            lines,
            {"anofel-certifier.service": service, "policy.toml": policy, **tasks, **self._roots},
            self._carried(party.machine),
            [
                f"{party.machine}.request to the authority",
                "NAME.json, an invitation, to each client; a secret",
            ],
            [
                "Read policy.toml: it says what data you vouch for.",
                f"The TLS certificate of {party.address} is in /etc/anofel/tls (fullchain.pem, privkey.pem).",
            ],
            ports=(HTTPS,),
        )

    def _aggregator(self, machine: str, name: str) -> Machine:
        lines = scripts.request("aggregator", name, machine)
        lines.append(f"need genesis.bin {quote(self._giver)}")
        mine = [c for c in self.parties.committee if machine in {member.machine for member in c.members}]
        others = self._colleagues()[machine]
        lines.append(f"all_here 'Carry out/{machine}.request to the authority.'")
        lines += scripts.check("aggregator", name, machine, others)
        make = [
            "anofel",
            "aggregator",
            "init",
            "aggregator",
            *self._boards(),
            *self._ca,
        ]
        make += [
            "--genesis",
            "in/genesis.bin",
            "--certificate",
            f"answer/{machine}.pem",
            "--key",
            "x509/key.pem",
        ]
        lines.append(f'[ -d aggregator ] || {join(make)} --key-file "$ETC/role.key"')
        for committee in mine:
            words = ["anofel", "aggregator", "keygen", "aggregator", "--name", committee.name, "--threshold"]
            words += [str(committee.threshold), "--scheme", committee.scheme]
            words += [w for member in committee.members for w in ("--member", f"answer/{member.machine}.pem")]
            lines.append(f'once {quote("key-" + committee.name)} {join(words)} --key-file "$ETC/role.key"')
        lines.append("start anofel-aggregator")
        run = f"aggregator run aggregator {scripts.KEY}"
        service = scripts.unit("An aggregator of anofel", run).encode()
        committees = ", ".join(c.name for c in mine)
        return Machine(
            machine,
            f"The aggregator {name} (committee {committees})",
            lines,
            {"anofel-aggregator.service": service, **self._roots},
            self._carried(machine),
            [f"{machine}.request to the authority"],
            [f"Agree with the other members of {committees} on an hour: the scripts make the key together."],
        )

    def _owner(self, party: OwnerParty) -> Machine:
        make = ["anofel", "owner", "init", "owner", *self._boards(), *self._ca]
        make += ["--genesis", "in/genesis.bin", "--certificate", f"answer/{party.machine}.pem", "--key"]
        make += ["x509/key.pem"]
        committee = next(c for c in self.parties.committee if c.name == party.committee)
        task, rows = Path(party.task).name, party.validation
        say = ["anofel", "owner", "announce", "owner", task, "--committee", committee.name, "--wait", "3600"]
        say += [w for member in committee.members for w in ("--member", f"O={member.name}")]
        # Before, iterations would pass with too few posts.
        say += ["--clients", str(Task.load(self._base / party.task).privacy.min_clients)]
        say += [word for text in party.options for word in text.split()]
        lines = [
            *scripts.request("owner", party.name, party.machine),
            f"need genesis.bin {quote(self._giver)}",
            *([f"rows {quote(rows)}"] if rows else []),
            f"all_here 'Carry out/{party.machine}.request to the authority.'",
            *scripts.check("owner", party.name, party.machine),
            f'[ -d owner ] || {join(make)} --key-file "$ETC/role.key"',
            f"anofel privacy {quote(task)} --board in/genesis.bin",
            # A task cannot be changed once it is announced; rows that do not fit would end the unit.
            *([join(["anofel", "study", "check", task, rows])] if rows else []),
            f'once task {join(say)} --key-file "$ETC/role.key"',
            "start anofel-owner",
        ]
        measure = [f"--validation {quote(rows)}"] if rows else []
        run = " ".join(["owner run owner", *measure, *party.run_options, scripts.KEY])
        service = scripts.unit("The owner of a task of anofel", run).encode()
        prepare = ["Read what anofel privacy says: a task cannot be changed once it is announced."]
        if rows:
            prepare.append(f"Put your own rows, to measure by, into {rows}.")
        return Machine(
            party.machine,
            f"The owner {party.name} of the task in {task}",
            lines,
            {"anofel-owner.service": service, task: self.tasks[party.task], **self._roots},
            self._carried(party.machine),
            [f"{party.machine}.request to the authority"],
            prepare,
        )

    # Parts

    def _carried(self, machine: str) -> list[str]:
        return [f"{machine}.answer from the authority", f"genesis.bin from {self._giver}"]

    def _boards(self) -> list[str]:
        """Return the options that name every node of the board: no role has to believe one alone."""
        return [word for address in self.parties.addresses() for word in ("--board", address)]

    @property
    def _giver(self) -> str:
        """Who gives genesis to everybody."""
        first = self.parties.validator[0].name if self.parties.validator else ""
        return f"{first}, the first validator" if first else "the machine of the board"

    def _holders(self) -> list[tuple[str, str, str]]:
        parties = self.parties
        found = [(parties.board.machine, parties.board.holder, "storage")]
        if parties.validator:
            found = [(party.machine, party.name, "validator") for party in parties.validator]
            found += [(storage_of(party.machine), party.name, "storage") for party in parties.validator]
        found += [(party.machine, party.name, "certifier") for party in parties.certifier]
        found += [(machine, name, "aggregator") for machine, name in parties.aggregators().items()]
        return found + [(party.machine, party.name, "owner") for party in parties.owner]

    def _colleagues(self) -> dict[str, list[str]]:
        """Return the machines of the other members of its committees, for each aggregator's."""
        found: dict[str, set[str]] = {machine: set() for machine in self.parties.aggregators()}
        for committee in self.parties.committee:
            machines = {member.machine for member in committee.members}
            for machine in machines:
                found[machine] |= machines - {machine}
        return {machine: sorted(others) for machine, others in found.items()}

    def _task_names(self) -> list[str]:
        names = [party.task for party in self.parties.owner]
        return list(dict.fromkeys(names + [name for party in self.parties.certifier for name in party.tasks]))

    def _read(self, name: str) -> bytes:
        return read_small_file(self._base / name)

    def _checked(self, path: Path) -> bytes:
        """Read a file; of a task, only one that the board takes and an owner may announce."""
        content = read_small_file(path)
        if path in [self._base / name for name in self._task_names()]:
            task, classes = Task.load(path), self.parties.board.classes()
            check_fits(task, classes[size_class_of(classes, task)])
            if path in [self._base / party.task for party in self.parties.owner]:
                check_confirmed(path)
        return content

    def _draft_policy(self, party: CertifierParty) -> bytes:
        lines = ["# Drafted. Confirm every number: you vouch for the data that fits (docs/certifier.md)."]
        for name, file in _names_at(party).items():
            task = Task.load(self._base / name)
            lines += ["", "[[dataset]]", f"type = {task.dataset_type}", f'schema = "{file}"']
            lines += ["min_rows = 10          # confirm", "max_rows = 1000000     # confirm"]
            lines += ["max_duplicates = 10    # confirm"]
        return ("\n".join(lines) + "\n").encode()


def _names_at(party: CertifierParty) -> dict[str, str]:
    """Name the task files on a certifier's machine; those of one name are told apart by their directories."""
    short = Counter(Path(name).name for name in party.tasks)
    found = {
        name: Path(name).name
        if short[Path(name).name] == 1
        else "-".join(part for part in Path(name).parts if part.strip("/."))
        for name in dict.fromkeys(party.tasks)
    }
    if len(set(found.values())) < len(found):
        raise InvalidInput(f"Two task files of the certifier {party.name} would have one name; rename one.")
    return found


def client_files() -> dict[str, bytes]:
    """Return what every client may take from a plan: a unit, the same for all of them, and no name."""
    run = f"client run client {scripts.KEY}"
    text = """A client, one of any number; this directory is the same for all of them

Once, with the certifier's invitation beside your rows (docs/deployment.md, "The clients"):
  [ ] anofel client join INVITATION --rows FILE --task NAME --max-colluders N …   (without --run)
Then, so that it runs from now on:
  [ ] install -m 644 anofel-client.service /etc/systemd/system/
  [ ] systemctl enable --now anofel-client

Never carried: role.key, the client's directory. They stay on this machine.
"""
    service = scripts.unit("A client of anofel", run, trains=True)
    return {CHECKLIST: text.encode(), "anofel-client.service": service.encode()}


def _health(parties: Parties, machine: str) -> list[str]:
    """The command that says whether a machine's role is well."""
    if machine in {party.machine for party in parties.validator}:
        return ["anofel", "deploy", "health", "validator"]
    if not parties.validator and machine == parties.board.machine:
        return ["anofel", "deploy", "health", "board"]
    for party in parties.certifier:
        if party.machine == machine:
            return ["anofel", "deploy", "health", "certifier"]
    owners = {party.machine for party in parties.owner}
    return ["anofel", "deploy", "health", "owner" if machine in owners else "aggregator"]
