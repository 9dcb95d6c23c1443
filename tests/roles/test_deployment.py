"""From a CSV file to a prediction by the pages alone: drafted, simulated, deployed, trained, fetched, used.

"Train on your data" is typed as it stands, then the deployment guide goes on with its task, as it is.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from anofel.proofs.keys import KeyDirectory
from anofel.tasks.task import Task
from tests.node.certificate import write_tls_files
from tests.node.support import SECONDS
from tests.roles.guide import PAGE, ROOT, Guide, Typed, sections
from tests.roles.train_page import check_prediction, make_study, run, type_page
from tests.transport.servers import SocksServer

WARDS = ("ward1", "ward2", "ward3", "ward4")
HOSTS = ("board.example", "clinic.example", "localhost")
EVERYBODY = ("board", "clinic", "a", "b", "c", "owner", "authority", "operator", *WARDS)
CLIENTS = 5
"""The section of the page that is done once for each client; the task begins after it."""
RELEASES = 2
"""So many sums are waited for."""
QUICK = (
    "--interval 0.15 --bundle-wait 4 --post-from 80 --train 160 "
    "--model 4000 --aggregate 4000 --count 4000 --sum 4000"
)
"""Deadlines for a machine that does everybody's work at once."""

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the authority is openssl")


def parties(ports: dict[str, int]) -> str:
    """The page's parties, with addresses on this machine and numbers that do not take hours."""
    text, *_ = re.findall(r"^```toml\n(.+?)^```", PAGE, re.M | re.S)
    assert text.strip() in re.sub(r" +#.*", "", (ROOT / "examples" / "parties.toml").read_text())
    text = text.replace('name = "Lung registry"', f'name = "Lung registry"\nnumbers = ["{QUICK}"]')
    text += f'options = ["--early-end"]\nrun_options = ["--end-after {len(WARDS)}"]\n'
    for machine, port in ports.items():
        text = text.replace(f"https://{machine}.example", f"https://localhost:{port}")
    return text


def furnish(guide: Guide) -> None:
    """What the guide takes as given: TLS certificates, and the files of "Train on your data" in place."""
    root, key = write_tls_files(guide.path, *HOSTS)
    operator, owner = guide.machine("operator"), guide.machine("owner")
    shutil.copyfile(root, operator / "tls-root.pem")
    for name in ("board", "clinic"):
        tls = guide.machine(name) / "etc" / "tls"
        tls.mkdir()
        shutil.copyfile(root, tls / "fullchain.pem")
        shutil.copyfile(key, tls / "privkey.pem")
    for number, name in enumerate(WARDS, start=1):
        shutil.copyfile(operator / f"hospital-{number}.csv", guide.machine(name) / "patients.csv")
        shutil.copyfile(operator / "new.csv", guide.machine(name) / "new.csv")
    shutil.copyfile(operator / "held-out.csv", owner / "held-out.csv")
    (operator / "parties.toml").write_text(parties(guide.ports))


def follow(guide: Guide) -> None:
    """Do what the page says; the section on clients once for each ward."""
    for number, section in enumerate(sections(), start=1):
        if number != CLIENTS:
            if number == CLIENTS + 1:
                guide.wait_for(lambda: all(is_registered(guide, ward) for ward in WARDS), "the clients")
            if number == CLIENTS + 2:
                guide.wait_for(lambda: len(summed(guide)) >= RELEASES, "the sums", 2 * SECONDS)
            before = guide.commands
            for step in section:
                for text in guide.do(step):
                    if isinstance(step, Typed) and "anofel predict" in step.command:
                        check_prediction(text)
            guide.role_commands += guide.commands - before if number <= CLIENTS + 1 else 0
            continue
        for ward in WARDS:
            guide.crowd["ward"] = (ward,)
            (guide.machine("clinic") / "invitation.json").unlink(missing_ok=True)
            for step in section:
                if isinstance(step, Typed):
                    command = step.command.replace('"Ward"', ward).replace(" --run", " --first-wait 0 --run")
                    step = Typed(step.machines, command)
                guide.do(step)
        guide.crowd["ward"] = WARDS


def is_registered(guide: Guide, ward: str) -> bool:
    assert guide.services[ward].poll() is None, guide.log(ward).read_text()
    return "Registered" in guide.log(ward).read_text()


def summed(guide: Guide) -> list[dict[str, Any]]:
    """The iterations that gave a model, as the owner says."""
    path = guide.machine("owner") / "owner" / "status.json"
    found = json.loads(path.read_text())["iterations"] if path.exists() else []
    return [entry for entry in found if entry["outcome"] == "summed"]


def is_running(pid: int) -> bool:
    """Whether a process that is not our child runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check(guide: Guide) -> None:
    """The models are of the simulated task, nobody was refused, and every service stops in good order."""
    made = summed(guide)
    assert len(made) >= RELEASES
    assert all(3 <= entry["count"] <= len(WARDS) for entry in made)  # a slow machine may be late
    assert all(set(entry["metrics"]) == {"loss", "accuracy", "auc"} for entry in made)
    simulated = guide.machine("operator") / "wards" / "task.toml"
    assert (guide.machine("owner") / "task.toml").read_bytes() == simulated.read_bytes()
    for ward in WARDS:
        fetched = guide.machine(ward) / "wards.task.json"
        assert fetched.read_bytes() == Task.load(simulated).to_bytes(), "announced as it was simulated"
    for machine, service in guide.services.items():
        service.terminate()
        assert service.wait(timeout=SECONDS) == 0, guide.log(machine).read_text()
    # The board goes last: the others would say that it does not answer.
    for machine, pid in sorted(guide.pids().items(), key=lambda found: found[0] == "board"):
        if is_running(pid):
            os.kill(pid, signal.SIGTERM)
            guide.wait_for(lambda pid=pid: not is_running(pid), f"{machine} to stop")  # type: ignore[misc]
        said = (guide.machine(machine) / "unit.log").read_text()
        assert "Traceback" not in said
        assert "The board refused" not in said, f"A healthy role logs no refusals.\n{said}"


def check_secrets(guide: Guide) -> None:
    """No secret left the machine that it belongs to."""
    for machine in EVERYBODY:
        home = guide.machine(machine)
        for name in ("etc/role.key", "x509/key.pem", "authority.key"):
            if not (home / name).exists():
                continue
            secret = (home / name).read_bytes()
            for path in guide.path.rglob("*"):
                if home not in path.parents:
                    assert secret not in small_file(path), f"{path} holds {machine}'s {name}"
    for path in (guide.machine("operator") / "plan").rglob("*"):
        assert not path.is_file() or b"PRIVATE KEY" not in path.read_bytes()


def small_file(path: Path) -> bytes:
    """What stands in a small file; roles replace their files meanwhile, and one that is gone is empty."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 1 << 20 else b""
    except FileNotFoundError:
        return b""


def check_idempotent(guide: Guide) -> None:
    """Every script may be run again: nothing changes and nothing fails."""
    for machine in ("authority", "board", "clinic", "a", "owner"):
        before = sorted(str(path) for path in (guide.machine(machine) / "x509").glob("*"))
        assert guide.again(machine) == 0
        assert sorted(str(path) for path in (guide.machine(machine) / "x509").glob("*")) == before


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [listener.getsockname()[1] for listener in taken]


class Proxy(SocksServer):
    """Passes everything on to the board."""


def go_the_whole_way(path: Path, keys: KeyDirectory, programs: Path) -> None:
    """From an empty directory to a prediction with a model that seven machines and four clients made."""
    ports = dict(zip(("board", "clinic"), free_ports(2), strict=True))
    proxies = {ward: Proxy(ports["board"]) for ward in WARDS}

    def change(machine: str, command: str) -> str:
        if machine in proxies:
            command = command.replace("127.0.0.1:9050", f"127.0.0.1:{proxies[machine].port}")
        return command.replace("https://board.example", f"https://localhost:{ports['board']}")

    guide = Guide(path, change, crowd={"ward": WARDS}, ports=ports, programs=programs)
    type_page(guide.machine("operator"), keys.path, programs)
    furnish(guide)
    with ExitStack() as stack:
        for proxy in proxies.values():
            stack.enter_context(proxy)
        stack.callback(guide.close)
        follow(guide)
        assert guide.role_commands <= 15, "the whole deployment of seven roles"
        assert guide.role_commands == 14
        assert guide.role_files == 17
        check_words(guide)
        check_secrets(guide)
        check_idempotent(guide)
        check(guide)
        for proxy in proxies.values():
            assert proxy.connections > 20
            assert len(set(proxy.usernames)) == len(proxy.usernames), "a circuit of its own for every message"


@needs_openssl
def test_from_a_file_to_a_prediction_on_seven_machines(tmp_path: Path, keys: KeyDirectory) -> None:
    go_the_whole_way(tmp_path, keys, Path(sys.executable).parent)


@needs_openssl
@pytest.mark.slow
def test_the_wheel_alone_goes_the_whole_way(
    tmp_path: Path, keys: KeyDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fresh environment with the wheel, what it asks for, and the one package that the page names."""
    monkeypatch.delenv("PYTHONPATH", raising=False)  # or the sources would be what is tried
    build = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    programs = tmp_path / "env" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", str(wheel), "pandas"], check=True)
    go_the_whole_way(tmp_path / "machines", keys, programs)
    export = "anofel model export trial/models/wards-best.model --task wards/task.toml"
    words = f"{export} --format onnx --out wards.onnx".split()
    said = run(tmp_path / "machines" / "operator", words, programs, code=1)
    assert "pip install 'anofel[onnx]'" in said


def check_words(guide: Guide) -> None:
    """No secret stands in an argument or the environment, and a client's log names nothing on the board."""
    pids = {**guide.pids(), **{ward: guide.services[ward].pid for ward in WARDS}}
    for machine in (*WARDS, "a"):
        key = (guide.machine(machine) / "etc" / "role.key").read_bytes()
        for part in ("cmdline", "environ"):
            seen = Path(f"/proc/{pids[machine]}/{part}").read_bytes()
            assert key not in seen
            assert key.hex().encode() not in seen
    audit = [sys.executable, "-m", "anofel", "audit", str(guide.machine("board") / "board"), "--json"]
    report = subprocess.run(audit, check=True, capture_output=True)
    assert json.loads(report.stdout)["ok"]
    for ward in WARDS:
        text = guide.log(ward).read_text()
        assert text
        assert not re.findall(r"[0-9a-f]{16,}", text), "a log names no tag, nullifier or key"


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
        guide = Guide(tmp_path, inside=inside, crowd={"ward": WARDS})
        make_study(guide.machine("operator"))
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
                process.wait(timeout=SECONDS)
