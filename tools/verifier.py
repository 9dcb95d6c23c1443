"""Puts the verifier page together: one HTML file that holds its script, its style and the WebAssembly.

    python tools/verifier.py WASM GLUE OUT       # make verifier does it all

The files under ``verifier/src`` are plain ES modules. Here they are laid one after the other, imports and
exports as ordinary names, so that the page also works when it is opened from a disk, where a browser loads
no modules.
"""

import base64
import gzip
import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "verifier"
NAME = "anofel-verifier.html"
ENGINE = (
    "core", "rules", "errors", "bytes", "der", "signatures", "certificates", "comet", "committee", "fraction",
    "settings", "task", "model", "state", "block_end", "admission", "payloads", "openings", "chain", "audit",
    "receipt", "sources", "worker",
)  # fmt: skip
"""In the order in which they need each other."""
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async function\*?|function|class|const) (\w+))", re.MULTILINE)


def engine(glue: str) -> str:
    """Lay the modules of the check one after the other, each in a function, behind what wasm-bindgen made."""
    return "\n".join([glue, *(_module(name) for name in ENGINE)])


def _module(name: str) -> str:
    text = (SOURCE / "src" / f"{name}.js").read_text("utf-8")
    exported = ", ".join(found.group(2) for found in _EXPORT.finditer(text))
    text = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = $\2;", text))
    return f"const ${name} = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();"


def page(wasm: bytes, glue: str) -> str:
    """Make the page; its policy names its own script and style by their hashes, and nothing else runs."""
    packed = base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode()
    style = (SOURCE / "page.css").read_text("utf-8")
    script = (SOURCE / "page.js").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' 'wasm-unsafe-eval'; style-src '{_hash(style)}'; "
        "worker-src blob:; connect-src http: https:; base-uri 'none'; form-action 'none'"
    )
    text = (SOURCE / "page.html").read_text("utf-8")
    for mark, value in (
        ("POLICY", policy),
        ("STYLE", style),
        ("ENGINE", engine(glue)),
        ("WASM", packed),
        ("SCRIPT", script),
    ):
        assert text.count(f"@{mark}@") == 1, mark
        assert "</script" not in value, mark
        text = text.replace(f"@{mark}@", value)
    return text


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def main() -> None:
    """Write the page and its SHA-256."""
    wasm, glue, out = (Path(argument) for argument in sys.argv[1:])
    data = page(wasm.read_bytes(), glue.read_text("utf-8")).encode()
    out.mkdir(parents=True, exist_ok=True)
    (out / NAME).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    (out / "SHA256SUMS").write_text(f"{digest}  {NAME}\n")
    print(f"{out / NAME}: {len(data):,} bytes, {len(gzip.compress(data, 9)):,} compressed, SHA-256 {digest}")


if __name__ == "__main__":
    main()
