"""A plan for several validators: every institution makes its keys where they stay, and a board begins."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from anofel.board.engines import fault_tolerance
from anofel.deploy.machine import Machine
from anofel.deploy.parties import read_parties
from anofel.deploy.plan import make_plan
from anofel.disk.sections import InvalidDocument
from anofel.storage.blocks import read_genesis
from tests.node.support import NodeProcess, wait_until
from tests.replicated.support import free_ports, needs_engine
from tests.replicated.test_engine import height_at

ROOT = Path(__file__).parents[2]
NAMES = ("north", "south", "east", "west")
OF_ONE = 'holder = "Registry"\naddress = "https://board.example"\n'


def validators(peers: dict[str, str] | None = None) -> str:
    """The sections of four validators."""
    text = ""
    for name in NAMES:
        text += f'\n[[validator]]\nmachine = "{name}"\nname = "Clinic {name}"\n'
        text += f'address = "https://board.{name}.example"\n'
        text += f'peer = "{peers[name]}"\n' if peers else ""
    return text


@pytest.fixture
def home(tmp_path: Path) -> Path:
    text = (ROOT / "examples" / "parties.toml").read_text()
    assert OF_ONE in text
    (tmp_path / "parties.toml").write_text(text.replace(OF_ONE, "") + validators())
    (tmp_path / "wards").mkdir()
    small = ROOT / "src" / "anofel" / "tasks" / "examples" / "small.toml"
    shutil.copyfile(small, tmp_path / "wards" / "task.toml")
    (tmp_path / "tls-root.pem").write_text("a root\n")
    return tmp_path


def plan(home: Path) -> tuple[Path, list[Machine]]:
    made = make_plan(read_parties(home / "parties.toml"), home, home / "plan")
    return home / "plan", made


def test_every_validator_gets_a_machine_and_every_role_knows_them_all(home: Path) -> None:
    made, machines = plan(home)
    assert {path.name for path in made.iterdir() if path.is_dir()} == {
        *NAMES,
        *("authority", "clinic", "a", "b", "c", "owner", "client"),
    }
    for name in ("clinic", "a", "b", "c", "owner"):
        script = (made / name / "go.sh").read_text()
        boards = re.findall(r"--board (https\S+)", script)
        assert boards == [f"https://board.{place}.example" for place in NAMES], (
            "no one node is believed alone"
        )
        assert "need genesis.bin 'Clinic north, the first validator'" in script
    nonces = set()
    for machine in machines[1:5]:
        script, checklist = machine.contents()["go.sh"].decode(), machine.contents()["CHECKLIST.txt"].decode()
        (nonce,) = re.findall(r"node request validator .*--nonce ([0-9a-f]{64})", script)
        nonces.add(nonce)
        assert script.splitlines()[-1] == "start anofel-node"
        assert ("node init board" in script) == (machine.name == "north")
        assert f"--peer board.{machine.name}.example:26656" in script
        assert "NTP" in checklist
        assert "/opt/anofel/bin/cometbft" in checklist
        unit = machine.files["anofel-node.service"].decode()
        assert "ANOFEL_COMETBFT=/opt/anofel/bin/cometbft\n" in unit
        assert "ExecStart=/opt/anofel/bin/anofel node run validator --host 0.0.0.0 --port 443" in unit
    assert len(nonces) == 1
    for path in made.glob("*/go.sh"):
        subprocess.run(["sh", "-n", path], check=True)


def test_containers_of_validators_have_the_engine_and_its_port(home: Path) -> None:
    made, _ = plan(home)
    services = yaml.safe_load((made / "compose.yaml").read_text())["services"]
    assert services["south"]["ports"] == ["443:443", "26656:26656"]
    assert services["south"]["healthcheck"]["test"] == ["CMD", "anofel", "deploy", "health", "validator"]
    assert services["clinic"]["ports"] == ["443:443"]
    assert "COPY --chmod=755 cometbft /opt/anofel/bin/cometbft" in (made / "Containerfile").read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('machine = "south"', 'machine = "north-storage"', "'north-storage' holds one role"),
        ('machine = "south"', 'machine = "owner"', "'owner' holds one role"),
        ('name = "Clinic south"', 'name = "Clinic north"', "each is another organisation"),
        (
            'name = "Lung registry"',
            f'name = "Lung registry"\n{OF_ONE}',
            "has no holder or address of its own",
        ),
        (
            'address = "https://board.west.example"',
            'address = "https://board.west.example"\npeer = "x y"',
            "no HOST:PORT",
        ),
    ],
)
def test_what_does_not_fit_is_named(home: Path, old: str, new: str, words: str) -> None:
    path = home / "parties.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidDocument, match=re.escape(words)):
        plan(home)


def test_too_few_validators_bear_nothing_and_none_is_no_board(home: Path) -> None:
    path = home / "parties.toml"
    whole = path.read_text()
    path.write_text(whole.replace(validators(), validators().rpartition("\n[[validator]]")[0]))
    with pytest.raises(InvalidDocument, match="there are 3; a board of validators has 4 to 16"):
        plan(home)
    path.write_text(whole.replace(validators(), ""))
    with pytest.raises(InvalidDocument, match=r"needs holder and address, or several \[\[validator\]\]"):
        plan(home)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="the authority is openssl")
def test_four_institutions_begin_a_board_by_their_scripts_alone(home: Path) -> None:
    """Their scripts, the authority's, the files that the checklists name, and four real engines."""
    needs_engine()
    ports = dict(zip(NAMES, range(free_ports(4), 1 << 16), strict=False))
    path = home / "parties.toml"
    peers = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    path.write_text(path.read_text().replace(validators(), validators(peers)))
    made, _ = plan(home)
    where = os.environ | {
        "ANOFEL_ETC": str(home),
        "ANOFEL_START": "echo start",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def script(machine: str, code: int) -> None:
        ended = subprocess.run(
            ["sh", "go.sh"], cwd=made / machine, env=where, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code, f"{machine}: {ended.stdout}{ended.stderr}"

    def carry(name: str, source: str, *targets: str) -> None:
        for target in targets:
            there = made / target / "in" / name
            if (made / source / "out" / name).is_dir():
                shutil.copytree(made / source / "out" / name, there)
            else:
                shutil.copyfile(made / source / "out" / name, there)

    for name in NAMES:
        script(name, 75)
        for request in (name, f"{name}-storage"):
            carry(f"{request}.request", name, "authority")
    script("authority", 75)  # the other roles have not asked
    for name in NAMES:
        for request in (name, f"{name}-storage"):
            carry(f"{request}.answer", "authority", name)
        script(name, 75)
    for name in NAMES[1:]:
        carry(f"{name}.json", name, "north")
    script("north", 0)
    for file in ("genesis.bin", "network.toml", "keys"):
        carry(file, "north", *NAMES[1:])
    for name in NAMES[1:]:
        script(name, 0)
    script("north", 0)  # again: what is done is skipped
    shown = {read_genesis(made / name / "validator" / "genesis.bin").hash for name in NAMES}
    assert len(shown) == 1
    assert fault_tolerance(read_genesis(made / "north" / "validator" / "genesis.bin")) == 1
    nodes = [NodeProcess(made / name / "validator") for name in NAMES]
    try:
        wait_until(lambda: min(height_at(node.url) for node in nodes) >= 3)
    finally:
        for node in nodes:
            node.stop()
