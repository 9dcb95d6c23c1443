"""Start-up is a feature: the base package and every command group import nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("scipy", "sklearn", "matplotlib", "torch", "dp_accounting", "pyarrow", "PIL", "pandas", "obstore")
LIGHT = (
    "anofel",
    "anofel.cli",
    "anofel.tasks.task",
    "anofel.learning.federated",
    "anofel.models.integer_model",
    "anofel.learning.build",
    "anofel.learning.evaluate",
    "anofel.models.exchange",
    "anofel.models.schedules",
    "anofel.cli.model",
    "anofel.privacy.protect",
    "anofel.privacy.ledger",
    "anofel.privacy.explain",
    "anofel.studies.load",
    "anofel.studies.fetch",
    "anofel.pki.certificates",
    "anofel.storage.blobs.store",
    "anofel.node.serve",
    "anofel.node.init",
    "anofel.cli.node",
    "anofel.cli.demo",
    "anofel.demo.play",
    "anofel.demo.misbehave",
    "anofel.network.transport",
    "anofel.roles.aggregator.role",
    "anofel.roles.owner",
    "anofel.roles.aggregator.key_ceremony",
    "anofel.roles.aggregator.key_files",
    "anofel.roles.aggregator.key_handover",
    "anofel.roles.operator",
    "anofel.roles.certifier.service",
    "anofel.roles.client.role",
    "anofel.roles.client.request",
    "anofel.simulation",
)


@pytest.mark.parametrize("module", LIGHT)
def test_module_imports_without_heavy_packages(module):
    script = f"import sys, {module}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_check_itself_sees_heavy_packages():
    script = f"import sys, dp_accounting; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "scipy" in result.stdout


def test_training_and_protecting_need_no_heavy_package():
    script = f"""
import sys
from tests.patients import make_dataset, make_task
from anofel.learning.splits import iid
from tests.plain_path import iterate
for _ in iterate(make_task(), iid(make_dataset(80), 8, 0), 1):
    pass
print(sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
