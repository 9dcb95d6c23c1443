"""The deployment guide is true: its commands and units, run as they stand, train a model."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.node.certificate import write_tls_files
from tests.roles.guide import ROOT, UNITS, Carried, Guide, Typed, sections, unit_command, words
from tests.roles.people import write_policy, write_table
from tests.roles.support import write_task
from tests.transport.servers import SocksServer

WARDS = ("ward1", "ward2", "ward3")
HOSTS = ("board.example", "clinic.example", "localhost")
EVERYBODY = ("board", "clinic", "a", "b", "c", "owner", "authority", *WARDS)
QUICK = "--interval 0.15 --bundle-wait 4 --post-from 20 --train 100 --aggregate 200 --count 200 --sum 200"
"""Deadlines for a machine that does everybody's work at once."""

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the authority is openssl")


def hurry(command: str) -> str:
    """The same with numbers that do not take days."""
    if " node init " in f" {command} ":
        return command.replace("--interval 5", QUICK)
    if " client init " in f" {command} ":
        return f"{command} --first-wait 0"
    if " owner announce " in f" {command} ":
        return f"{command} --early-end"
    if " owner run " in f" {command} ":
        return f"{command} --end-after {len(WARDS)}"
    return command


def furnish(guide: Guide) -> None:
    """What the guide takes as given: TLS certificates, data, a task, a policy."""
    root, key = write_tls_files(guide.path, *HOSTS)
    for name in EVERYBODY:
        shutil.copyfile(root, guide.machine(name) / "tls-root.pem")
    for name in ("board", "clinic"):
        tls = guide.machine(name) / "etc" / "tls"
        tls.mkdir()
        shutil.copyfile(root, tls / "fullchain.pem")
        shutil.copyfile(key, tls / "privkey.pem")
    for seed, name in enumerate(WARDS):
        write_table(guide.machine(name) / "patients.csv", seed=seed)
    owner = guide.machine("owner")
    write_task(
        owner / "task.toml",
        task={"dataset_type": 7},
        privacy={"max_releases": 2, "max_posts": 64},
        metrics={"names": ["accuracy"]},
    )
    write_table(owner / "held-out.csv", rows=60, seed=100)
    write_policy(guide.machine("clinic"), schema="task.toml")


def follow(guide: Guide) -> None:
    """Do what the page says; the section on clients once for each ward."""
    for number, section in enumerate(sections(), start=1):
        if number != 5:
            for step in section:
                printed = guide.do(step)
                if isinstance(step, Typed) and " keygen " in step.command:
                    (name,) = {found for text in printed for found in re.findall(r"[0-9a-f]{64}", text)}
                    guide.variables["COMMITTEE"] = name
            if number == 6:
                guide.wait_for(lambda: guide.services["owner"].poll() is not None, "the task to end", 300)
            continue
        for ward in WARDS:
            guide.crowd["ward"] = (ward,)
            (guide.machine("clinic") / "invitation.json").unlink(missing_ok=True)
            for step in section:
                if isinstance(step, Typed):
                    step = Typed(step.machines, step.command.replace('"Ward"', ward))
                guide.do(step)
        guide.crowd["ward"] = WARDS


def check(guide: Guide) -> None:
    """The task ended with its releases, nobody was refused, and every service stops in good order."""
    assert guide.services["owner"].returncode == 0, guide.log("owner").read_text()
    status = json.loads((guide.machine("owner") / "owner" / "status.json").read_text())
    summed = [entry for entry in status["iterations"] if entry["outcome"] == "summed"]
    assert len(summed) == 2
    assert all(2 <= entry["count"] <= len(WARDS) for entry in summed)  # a slow machine may be late
    assert all(set(entry["metrics"]) == {"loss", "accuracy", "auc"} for entry in summed)
    assert all(set(entry["reported"]) == {"accuracy", "noise"} for entry in summed)
    for machine, service in guide.services.items():
        if service.poll() is None:
            service.terminate()
            assert service.wait(timeout=30) == 0, guide.log(machine).read_text()


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [listener.getsockname()[1] for listener in taken]


class Proxy(SocksServer):
    """Knows one host name."""

    def onward(self, host: bytes, port: int) -> tuple[str, int]:
        assert (host, port) == (b"board.example", 443), "the client lets the proxy find the board"
        return super().onward(host, port)


@needs_openssl
def test_seven_machines_as_processes(tmp_path: Path) -> None:
    ports = dict(zip(("board", "clinic"), free_ports(2), strict=True))
    proxies = {ward: Proxy(ports["board"]) for ward in WARDS}

    def change(machine: str, command: str) -> str:
        command = hurry(command).replace("--host 0.0.0.0", "--host 127.0.0.1")
        if machine in ports:
            command = command.replace("--port 443", f"--port {ports[machine]}")
        if machine in proxies:
            command = command.replace("127.0.0.1:9050", f"127.0.0.1:{proxies[machine].port}")
        else:
            command = command.replace("https://board.example", f"https://localhost:{ports['board']}")
        return command.replace("https://clinic.example", f"https://localhost:{ports['clinic']}")

    guide = Guide(tmp_path, change, crowd={"ward": WARDS})
    furnish(guide)
    with ExitStack() as stack:
        for proxy in proxies.values():
            stack.enter_context(proxy)
        stack.callback(guide.close)
        follow(guide)
        check_words(guide)
        check(guide)
        for proxy in proxies.values():
            assert proxy.connections > 20
            assert len(set(proxy.usernames)) == len(proxy.usernames), "a circuit of its own for every message"


def check_words(guide: Guide) -> None:
    """No secret stands in an argument or the environment, and a client's log names nothing on the board."""
    keys = {machine: (guide.machine(machine) / "etc" / "role.key").read_bytes() for machine in (*WARDS, "a")}
    for machine, key in keys.items():
        process = Path(f"/proc/{guide.services[machine].pid}")
        for part in ("cmdline", "environ"):
            seen = (process / part).read_bytes()
            assert key not in seen
            assert key.hex().encode() not in seen
    on_board = set()
    audit = [sys.executable, "-m", "anofel", "audit", str(guide.machine("board") / "board"), "--json"]
    report = subprocess.run(audit, check=True, capture_output=True)
    assert json.loads(report.stdout)["ok"]
    for ward in WARDS:
        text = guide.log(ward).read_text()
        assert text
        on_board |= set(re.findall(r"[0-9a-f]{16,}", text))
    assert not on_board, "a log names no tag, nullifier or key"


# Network namespaces


def address(machine: str) -> str:
    return f"10.77.0.{EVERYBODY.index(machine) + 1}"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def namespaces(prefix: str) -> Iterator[None]:
    """A network namespace for each machine, all on one bridge in a namespace of its own."""
    switch = f"{prefix}-switch"
    names = [f"{prefix}-{machine}" for machine in EVERYBODY]
    hosts = "127.0.0.1 localhost\n" + "".join(
        f"{address(machine)} {machine}.example\n" for machine in ("board", "clinic")
    )
    etc = [Path("/etc/netns") / name for name in names]
    try:
        for name in (switch, *names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for number, (machine, name) in enumerate(zip(EVERYBODY, names, strict=True)):
            ip("-n", switch, "link", "add", f"port{number}", "type", "veth", "peer", "eth0", "netns", name)
            ip("-n", switch, "link", "set", f"port{number}", "master", "bridge", "up")
            ip("-n", name, "address", "add", f"{address(machine)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        for directory in etc:
            directory.mkdir(parents=True)
            (directory / "hosts").write_text(hosts)
        yield
    finally:
        for name in (*names, switch):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        for directory in etc:
            shutil.rmtree(directory, ignore_errors=True)


def may_make_namespaces() -> bool:
    if shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", "anofel-try"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", "anofel-try"], capture_output=True, check=False)
    return made.returncode == 0


@needs_openssl
@pytest.mark.slow
def test_seven_machines_in_network_namespaces(tmp_path: Path) -> None:
    if not may_make_namespaces():
        pytest.skip("This user cannot make network namespaces.")
    prefix = "anofel"

    def inside(machine: str) -> list[str]:
        return ["ip", "netns", "exec", f"{prefix}-{machine}"]

    with namespaces(prefix):
        guide = Guide(tmp_path, lambda _, command: hurry(command), inside, {"ward": WARDS})
        furnish(guide)
        socks = [
            subprocess.Popen(
                [*inside(ward), sys.executable, "-m", "tests.transport.socks_server", "9050"], cwd=ROOT
            )
            for ward in WARDS
        ]
        try:
            follow(guide)
            check(guide)
        finally:
            guide.close()
            for process in socks:
                process.kill()
                process.wait(timeout=10)


# The page and the units


def test_every_unit_is_used_and_every_machine_is_named() -> None:
    steps = [step for section in sections() for step in section]
    started = {
        step.command.split()[-1] for step in steps if isinstance(step, Typed) and "systemctl" in step.command
    }
    assert started == {path.stem for path in UNITS.glob("*.service")}
    machines = {name for step in steps if isinstance(step, Typed) for name in step.machines}
    machines |= {name for step in steps if isinstance(step, Carried) for name, _ in step.targets}
    assert machines == {"board", "clinic", "a", "b", "c", "owner", "ward", "authority"}


@pytest.mark.parametrize("unit", sorted(path.stem for path in UNITS.glob("*.service")))
def test_a_unit_is_private_and_restarts_what_may_pass(unit: str) -> None:
    text = (UNITS / f"{unit}.service").read_text()
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "LimitCORE=0", "User=anofel"):
        assert f"\n{line}\n" in text
    assert "\nRestart=on-failure\n" in text
    assert "\nRestartPreventExitStatus=1 2\n" in text
    assert words(unit_command(unit))[0] == "/opt/anofel/bin/anofel"
