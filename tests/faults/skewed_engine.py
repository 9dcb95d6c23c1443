"""An engine whose clock goes wrong: CometBFT with the one function changed by which it reads the time.

A Go program reads the clock without the C library, so nothing that is loaded before it reaches it, and a time
namespace has no time of day. The pinned module is copied, changed and built; ``ENGINE_SKEW_SECONDS`` says how
far its clock is ahead. A node refuses this engine, so ``faulty_validator skew`` leaves that check out.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from anofel.node.replicated.engine import MODULE, VERSION

ROOT: Final = Path(__file__).parents[2]
SKEW: Final = "ENGINE_SKEW_SECONDS"
_FILE: Final = "types/time/time.go"
_NOW: Final = "return Canonical(time.Now())"
_SKEWED: Final = f"""seconds, _ := strconv.Atoi(os.Getenv("{SKEW}"))
\treturn Canonical(time.Now().Add(time.Duration(seconds) * time.Second))"""


def build() -> Path | None:
    """Build it beside the real one, once; None without Go."""
    target = ROOT / ".engine" / "skewed" / "cometbft"
    if target.exists():
        return target
    if shutil.which("go") is None:
        return None
    module = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], capture_output=True, check=True
    )
    source = target.parent / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(json.loads(module.stdout)["Dir"], source, copy_function=shutil.copyfile)
    for directory in (source, *(path for path in source.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    file = source / _FILE
    text = file.read_text()
    assert _NOW in text
    file.write_text(text.replace(_NOW, _SKEWED).replace("import (\n", 'import (\n\t"os"\n\t"strconv"\n'))
    command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(target), "./cmd/cometbft"]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    subprocess.run(command, cwd=source, env=environment, check=True)
    shutil.rmtree(source)
    return target


if __name__ == "__main__":
    print(build())
