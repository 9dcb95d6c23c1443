"""A plan is whole, holds no secret, and refuses what cannot work before anybody starts."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from anofel.board.size_classes import NoSizeClass
from anofel.cli import app
from anofel.deploy.containers import USER
from anofel.deploy.health import NotWell, check_health
from anofel.deploy.parties import read_parties
from anofel.deploy.plan import make_plan
from anofel.disk.files import FileExists
from anofel.disk.sections import InvalidDocument
from anofel.errors import InvalidInput
from anofel.tasks.confirmations import CONFIRM, Unconfirmed
from tests.node.certificate import write_tls_files

ROOT = Path(__file__).parents[2]
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the authority is openssl")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copyfile(ROOT / "examples" / "parties.toml", tmp_path / "parties.toml")
    (tmp_path / "wards").mkdir()
    shutil.copyfile(
        ROOT / "src" / "anofel" / "tasks" / "examples" / "small.toml", tmp_path / "wards" / "task.toml"
    )
    (tmp_path / "tls-root.pem").write_text("a root\n")
    return tmp_path


def plan(home: Path) -> Path:
    make_plan(read_parties(home / "parties.toml"), home, home / "plan")
    return home / "plan"


def change(home: Path, old: str, new: str) -> None:
    path = home / "parties.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_every_machine_gets_its_own_and_nothing_else(home: Path) -> None:
    made = plan(home)
    common, roots = {"go.sh", "CHECKLIST.txt", "in", "out"}, {"tls-root.pem"}
    expected = {
        "authority": set(),
        "board": {"anofel-node.service"},
        "clinic": {"anofel-certifier.service", "policy.toml", "task.toml"} | roots,
        "owner": {"anofel-owner.service", "task.toml"} | roots,
    } | {name: {"anofel-aggregator.service"} | roots for name in "abc"}
    found = {path.name: {file.name for file in path.iterdir()} for path in made.iterdir() if path.is_dir()}
    for_clients = found.pop("client")
    assert for_clients == {"anofel-client.service", "CHECKLIST.txt"}
    assert found == {name: files | common for name, files in expected.items()}


def test_scripts_are_shell_and_units_are_private(home: Path) -> None:
    made = plan(home)
    for path in made.glob("*/go.sh"):
        subprocess.run(["sh", "-n", path], check=True)
        last = path.read_text().splitlines()[-1]
        assert last.startswith("start anofel-") or path.parent.name == "authority", "nothing follows it"
    for path in made.glob("*/*.service"):
        text = path.read_text()
        assert "@" not in text, "no place of the template is left"
        for line in (
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "LimitCORE=0",
            "MemorySwapMax=0",
            "User=anofel",
        ):
            assert f"\n{line}\n" in text
        assert "\nRestartPreventExitStatus=1 2\n" in text
        assert re.findall(r"^ExecStart=/opt/anofel/bin/anofel \w+ run ", text, re.M)


def test_a_user_without_sudo_is_told_what_root_types(home: Path) -> None:
    header = (plan(home) / "owner" / "go.sh").read_text().partition("\n[ -d x509 ]")[0]
    script = home / "plan" / "owner" / "start.sh"
    script.write_text(f"{header}\nstart anofel-owner\n")
    tools = home / "tools"
    tools.mkdir()
    (tools / "sudo").write_text("#!/bin/sh\necho 'anofel is not in the sudoers file.' >&2; exit 1\n")
    (tools / "sudo").chmod(0o755)
    where = {"PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(["sh", script], env=where, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    unit = script.parent / "anofel-owner.service"
    assert (
        f"  install -m 644 {unit} /etc/systemd/system/\n  systemctl enable --now anofel-owner\n"
        in ended.stdout
    )


MORE = """
[[certifier]]
machine = "clinic2"
name = "Second Clinic"
address = "https://clinic2.example"
tasks = ["wards/task.toml"]

[[committee]]
name = "bone-1"
threshold = 2
members = [{ machine = "d", name = "University D" }, { machine = "e", name = "University E" }]

[[owner]]
machine = "owner2"
name = "Second Institute"
task = "other.toml"
committee = "bone-1"
"""


def test_any_number_of_certifiers_committees_and_owners(home: Path) -> None:
    shutil.copyfile(ROOT / "src" / "anofel" / "tasks" / "examples" / "custom.toml", home / "other.toml")
    path = home / "parties.toml"
    path.write_text(path.read_text() + MORE)
    names = {path.name for path in plan(home).iterdir() if path.is_dir()}
    assert names == {"authority", "board", "clinic", "clinic2", *"abcde", "owner", "owner2", "client"}
    assert "--committee bone-1" in (home / "plan" / "owner2" / "go.sh").read_text()


def test_a_planned_client_outlives_its_training(home: Path) -> None:
    """By default systemd stops a unit when memory runs out in one of its processes, as rows can make it."""
    plan(home)
    planned = (home / "plan" / "client" / "anofel-client.service").read_text()
    assert "OOMPolicy=continue" in planned.splitlines()
    example = (ROOT / "examples" / "systemd" / "anofel-client.service").read_text()
    lines = {line for line in planned.splitlines() if "=" in line and not line.startswith("#")}
    assert {line for line in example.splitlines() if line.startswith(("OOM", "Restart", "Memory"))} <= lines


def test_an_existing_plan_is_not_overwritten(home: Path) -> None:
    plan(home)
    with pytest.raises(FileExists):
        plan(home)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('machine = "b"', 'machine = "owner"', "'owner' holds one role"),
        ('machine = "clinic"', 'machine = "authority"', "not 'authority'"),
        ('name = "University B"', 'name = "University A"', "members of different organisations"),
        ("threshold = 2", "threshold = 1", "threshold above half"),
        ('committee = "lung-1"', 'committee = "lung-2"', "names the committee 'lung-2'; there is lung-1"),
        ('name = "Institute"', 'name = "$(touch x)"', "must be of letters"),
        ("tasks = ", "taks = ", "tasks"),
    ],
)
def test_what_does_not_fit_is_named(home: Path, old: str, new: str, words: str) -> None:
    change(home, old, new)
    with pytest.raises(InvalidDocument, match=re.escape(words)):
        plan(home)
    assert not (home / "plan").exists()


def test_addresses_are_https(home: Path) -> None:
    change(home, "https://clinic.example", "http://clinic.example")
    change(home, "threshold = 2", "threshold = 1")
    with pytest.raises(
        InvalidDocument, match="the address http://clinic.example must begin with https://"
    ) as caught:
        plan(home)
    assert "threshold above half" in str(caught.value), "and everything else is said with it"


def test_a_task_that_the_board_would_refuse_is_refused_now(home: Path) -> None:
    task = home / "wards" / "task.toml"
    task.write_text(task.read_text().replace("min_clients = 6", "min_clients = 6\nmax_posts = 9000"))
    with pytest.raises(InvalidInput, match="task.toml: .*Lower max_posts to 8192 or less") as caught:
        plan(home)
    assert caught.value.code == NoSizeClass.code
    assert not (home / "plan").exists()


def test_a_task_is_held_against_the_size_classes_that_the_plan_names(home: Path) -> None:
    change(home, 'name = "Lung registry"', 'name = "Lung registry"\nnumbers = ["--size-class 4:64"]')
    with pytest.raises(InvalidInput, match="No class is long enough"):
        plan(home)


def test_a_task_with_unconfirmed_values_is_not_planned(home: Path) -> None:
    task = home / "wards" / "task.toml"
    task.write_text(task.read_text().replace("min_clients = 6", f"min_clients = 6   # {CONFIRM}"))
    with pytest.raises(
        InvalidInput, match="1 values of .* Replace each by public knowledge and delete its mark"
    ) as caught:
        plan(home)
    assert caught.value.code == Unconfirmed.code


def test_all_files_that_cannot_be_used_are_named_at_once(home: Path) -> None:
    change(home, 'tasks = ["wards/task.toml"]', 'tasks = ["wards/task.toml", "wards/tsk.toml"]')
    change(home, 'tls_root = "tls-root.pem"', 'tls_root = "root.pem"')
    task = home / "wards" / "task.toml"
    task.write_text(task.read_text().replace("min_clients = 6", f"min_clients = 6   # {CONFIRM}"))
    with pytest.raises(InvalidInput) as caught:
        plan(home)
    for words in ("wards/tsk.toml cannot be read", "root.pem cannot be read", "1 values of"):
        assert words in str(caught.value)


def test_two_tasks_of_one_file_name_stay_two_at_their_certifier(home: Path) -> None:
    """Every draft of anofel new is a task.toml."""
    (home / "hearts").mkdir()
    examples = ROOT / "src" / "anofel" / "tasks" / "examples"
    shutil.copyfile(examples / "custom.toml", home / "hearts" / "task.toml")
    change(home, 'tasks = ["wards/task.toml"]', 'tasks = ["wards/task.toml", "hearts/task.toml"]')
    clinic = plan(home) / "clinic"
    assert (clinic / "wards-task.toml").read_bytes() == (home / "wards" / "task.toml").read_bytes()
    assert (clinic / "hearts-task.toml").read_bytes() == (home / "hearts" / "task.toml").read_bytes()
    assert re.findall(r'^schema = "(.+)"$', (clinic / "policy.toml").read_text(), re.M) == [
        "wards-task.toml",
        "hearts-task.toml",
    ]
    assert not (clinic / "task.toml").exists()


def test_an_owner_needs_its_rows_before_anything_is_announced(home: Path) -> None:
    """Without them the unit would end; rows that do not fit would, after the task was announced for good."""
    owner = plan(home) / "owner"
    where = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    waits = {"cwd": owner, "env": where, "capture_output": True, "text": True, "check": False}
    ended = subprocess.run(["sh", "go.sh"], **waits)  # type: ignore[call-overload]
    assert ended.returncode == 75, ended.stderr
    assert "\n  held-out.csv  your own rows, to measure by\n" in ended.stdout
    (owner / "held-out.csv").write_text("nonsense\n")
    assert "held-out.csv" not in subprocess.run(["sh", "go.sh"], **waits).stdout  # type: ignore[call-overload]
    lines = (owner / "go.sh").read_text().splitlines()
    (announces,) = [number for number, line in enumerate(lines) if line.startswith("once task anofel owner")]
    assert lines.index("anofel study check task.toml held-out.csv") < announces
    assert "--validation held-out.csv " in (owner / "anofel-owner.service").read_text()


@pytest.mark.parametrize(("machine", "program"), [("owner", "anofel"), ("authority", "openssl")])
def test_a_machine_without_the_program_is_told_so(machine: str, program: str, home: Path) -> None:
    tools = home / "tools"
    tools.mkdir()
    for name in ("dirname", "mkdir"):
        (tools / name).symlink_to(str(shutil.which(name)))
    script = plan(home) / machine / "go.sh"
    ended = subprocess.run(
        ["/bin/sh", script], env={"PATH": str(tools)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 127
    assert ended.stderr.startswith(f"{program} is not here: ")


def test_an_answer_that_is_none_is_named(home: Path) -> None:
    owner = plan(home) / "owner"
    header = (owner / "go.sh").read_text().partition("\n[ -d x509 ]")[0]
    (unpack,) = [line for line in (owner / "go.sh").read_text().splitlines() if "tar xf" in line]
    (owner / "try.sh").write_text(f"{header}\n{unpack}\n")
    (owner / "in" / "owner.answer").write_text("a letter\n")
    where = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(["sh", owner / "try.sh"], env=where, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "in/owner.answer is not what the authority made for owner." in ended.stderr


def test_without_development_keys_the_board_waits_for_those_of_a_ceremony(home: Path) -> None:
    change(home, "insecure_development_keys = true", "")
    board = plan(home) / "board"
    assert "[ ] keys from the ceremony of the proof keys" in (board / "CHECKLIST.txt").read_text()
    assert "--insecure" not in (board / "go.sh").read_text()
    where = os.environ | {
        "ANOFEL_ETC": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ended = subprocess.run(["sh", "go.sh"], cwd=board, env=where, capture_output=True, text=True, check=False)
    assert ended.returncode == 75, ended.stderr
    assert "in/keys  from the ceremony of the proof keys" in ended.stdout
    assert (board / "out" / "board.request").exists()
    assert not (board / "keys").exists()


# The authority


def ask(home: Path, purpose: str, name: str, machine: str) -> None:
    words = ["ca", "request", "--purpose", purpose, "--name", name, "--out", str(home / f"x-{machine}")]
    assert CliRunner().invoke(app, words).exit_code == 0
    target = home / "plan" / "authority" / "in" / f"{machine}.request"
    shutil.copyfile(home / f"x-{machine}" / "request.pem", target)


def sign(home: Path) -> subprocess.CompletedProcess[str]:
    script = home / "plan" / "authority" / "go.sh"
    return subprocess.run(["sh", script], capture_output=True, text=True, check=False)


@needs_openssl
def test_the_authority_signs_for_planned_purposes_alone(home: Path) -> None:
    plan(home)
    ask(home, "operator", "Institute", "owner")  # asks for more than it was planned to be
    ended = sign(home)
    assert ended.returncode == 75, ended.stderr
    assert "in/board.request  from Registry (machine board)" in ended.stdout
    answer = home / "plan" / "authority" / "out" / "owner.answer"
    subprocess.run(["tar", "xf", answer, "-C", home], check=True)
    words = ["ca", "check", str(home / "owner.pem"), "--key", str(home / "x-owner" / "key.pem")]
    words += ["--root", str(home / "root.pem")]
    assert CliRunner().invoke(app, [*words, "--name", "Institute", "--purpose", "owner"]).exit_code == 0
    assert CliRunner().invoke(app, [*words, "--name", "Institute", "--purpose", "operator"]).exit_code != 0
    assert CliRunner().invoke(app, [*words, "--name", "Other", "--purpose", "owner"]).exit_code != 0


@needs_openssl
def test_the_authority_refuses_another_name(home: Path) -> None:
    plan(home)
    ask(home, "owner", "Somebody", "owner")
    ended = sign(home)
    assert ended.returncode == 1
    assert "in/owner.request asks for 'subject=CN=Somebody,O=Somebody', not for 'Institute'." in ended.stderr
    assert not (home / "plan" / "authority" / "out" / "owner.answer").exists()


# Containers


def test_containers_hold_every_role_with_a_health_check(home: Path) -> None:
    found = yaml.safe_load((plan(home) / "compose.yaml").read_text())
    assert set(found) == {"services", "volumes"}
    services = found["services"]
    directories = dict.fromkeys(["a", "b", "c"], "aggregator")
    directories |= {"board": "board", "clinic": "certifier", "owner": "owner"}
    assert set(services) == set(directories)
    for name, service in services.items():
        assert service["healthcheck"]["test"] == ["CMD", "anofel", "deploy", "health", directories[name]]
        assert service["volumes"] == [f"./{name}:/var/lib/anofel", f"{name}-etc:/etc/anofel"]
        assert found["volumes"][f"{name}-etc"] == {"name": f"anofel-{name}-etc"}
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        serves = name in ("board", "clinic")
        assert service.get("ports") == (["443:443"] if serves else None), "who serves is reachable, no other"
        assert service.get("cap_add") == (["NET_BIND_SERVICE"] if serves else None)
    assert f"useradd --system --uid {USER} " in (home / "plan" / "Containerfile").read_text()
    lines = (home / "plan" / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    known = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "CMD"}
    assert {line.split()[0] for line in lines if line and not line.startswith("#")} == known


class Engine:
    """A container engine, and a service of a compose file as it runs it."""

    def __init__(self, program: str, plan_: Path) -> None:
        self.program, self.plan = program, plan_
        self.services = yaml.safe_load((plan_ / "compose.yaml").read_text())["services"]
        self.volumes: set[str] = set()

    def do(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [self.program, *words], cwd=self.plan, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout + done.stderr

    def run(self, name: str, *options: str, command: str = "", code: int = 0) -> str:
        """Run a service with everything that the file says of it but its ports."""
        service = self.services[name]
        words = ["run", *options]
        for key, option in (("cap_drop", "--cap-drop"), ("cap_add", "--cap-add"), ("tmpfs", "--tmpfs")):
            words += [word for value in service.get(key, []) for word in (option, value)]
        for value in service["security_opt"]:
            words += ["--security-opt", value.removesuffix(":true")]
        for volume in service["volumes"]:
            source, _, target = volume.partition(":")
            if source.startswith("./"):
                source = str(self.plan / source)
            else:
                source = f"anofel-test-{source}"
                self.volumes.add(source)
            words += ["--volume", f"{source}:{target}"]
        words += ["--read-only"] * service["read_only"]
        return self.do(*words, "anofel-test", *(["sh", "-c", command] if command else []), code=code)

    def close(self) -> None:
        subprocess.run([self.program, "rm", "--force", "anofel-test-board"], capture_output=True, check=False)
        for volume in self.volumes:
            subprocess.run([self.program, "volume", "rm", volume], capture_output=True, check=False)


@needs_openssl
@pytest.mark.slow
def test_the_image_builds_and_the_board_runs_in_it(home: Path) -> None:
    """Every service makes its request and waits; with its answer the board runs as its service says, well."""
    program = shutil.which("podman") or shutil.which("docker")
    if program is None or subprocess.run([program, "info"], capture_output=True, check=False).returncode:
        pytest.skip("No container engine runs here.")
    made = plan(home)
    (base,) = re.findall(r"^FROM (\S+)$", (made / "Containerfile").read_text(), re.M)
    if all(
        subprocess.run([program, *words, base], capture_output=True, check=False).returncode
        for words in (("image", "inspect"), ("pull",))
    ):
        pytest.skip(f"The image {base} is not here and cannot be fetched.")
    build = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(made)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    engine = Engine(program, made)
    try:
        engine.do("build", "--tag", "anofel-test", ".")
        for name in engine.services:
            subprocess.run(["chown", "-R", str(USER), made / name], check=True)
            assert "Waiting for:" in engine.run(name, "--rm", code=75)
            shutil.copy(made / name / "out" / f"{name}.request", made / "authority" / "in")
        assert sign(home).returncode == 0
        shutil.copy(made / "authority" / "out" / "board.answer", made / "board" / "in")
        write_tls_files(made / "board", "localhost")
        certificates = "mkdir /etc/anofel/tls && cp tls.pem /etc/anofel/tls/fullchain.pem && "
        certificates += "cp tls.key /etc/anofel/tls/privkey.pem"
        subprocess.run(["chown", "-R", str(USER), made / "board"], check=True)
        engine.run("board", "--rm", command=certificates)
        engine.run("board", "--detach", "--name", "anofel-test-board")
        check = ("exec", "anofel-test-board", *engine.services["board"]["healthcheck"]["test"][1:])
        end = time.monotonic() + 600
        while subprocess.run([program, *check], capture_output=True, check=False).returncode:
            assert time.monotonic() < end, engine.do("logs", "anofel-test-board")
            time.sleep(1)
        assert "Well: the last block is" in engine.do(*check)
        assert (made / "board" / "out" / "genesis.bin").exists()
        engine.do("stop", "--time", "60", "anofel-test-board")
        assert "stopped in good order" in engine.do("logs", "anofel-test-board")
    finally:
        engine.close()


# Health


def test_a_directory_that_is_no_role_is_not_well(tmp_path: Path) -> None:
    with pytest.raises(NotWell, match="no directory of a role"):
        check_health(tmp_path)


def test_a_role_that_stopped_looking_is_not_well(tmp_path: Path) -> None:
    words = f'role = "owner"\nboard = "https://b"\ngenesis = "{"0" * 64}"\n[settings]\n'
    (tmp_path / "role.toml").write_text(words)
    with pytest.raises(NotWell, match="last looked at the board"):
        check_health(tmp_path)
    status = {"time": int(time.time()), "trouble": ""}
    (tmp_path / "status.json").write_text(json.dumps(status))
    assert "the owner looked at the board" in check_health(tmp_path)
    (tmp_path / "status.json").write_text(json.dumps(status | {"trouble": "It stands still."}))
    with pytest.raises(NotWell, match="It stands still"):
        check_health(tmp_path)
