"""What a page tells people to type: the lines of its console blocks that begin with a dollar sign."""

import re
from pathlib import Path


def commands_of(page: Path) -> list[str]:
    """Give the commands of a page in order; a line that ends with a backslash goes on."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S)
    return [
        re.sub(r"\s+#\s.*$", "", line.removeprefix("$ ")).strip()
        for block in blocks
        for line in re.sub(r"\\\n\s*", "", block).splitlines()
        if line.startswith("$ ")
    ]
