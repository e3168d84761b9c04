"""Writes ci/constraints/ anew: versions, with the hashes of their files.

python tools/lock.py        needs uv and a package index; it asks the one that pip asks

dev.txt: all that CI needs. In the same versions: gate.txt, what pipeprof needs to run; build.txt, what it is built
with; release.txt, what a release is made with; audit.txt, what looks for known vulnerabilities. No file says where the
packages come from: any mirror of PyPI has the same files, so the hashes hold for all.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("ci", "constraints")
OWN = ("build", "release", "audit")
EXTRAS = ("mindspore", "test", "dev", "docs")
OLDEST = "3.11"  # Python; some of our tools need a newer one than pipeprof does
HEADER = "# Made by `make constraints`, for Python 3.11 and 3.12 on Linux.\n"


def main() -> int:
    """Write the files; the later ones take the versions of the first."""
    extras = [word for name in EXTRAS for word in ("--extra", name)]
    lock("dev.txt", ["pyproject.toml", placed("build.in"), *extras])
    for name, source in (("gate", "pyproject.toml"), *((name, placed(f"{name}.in")) for name in OWN)):
        lock(f"{name}.txt", [source, "--constraints", placed("dev.txt")])
    return 0


def placed(name: str) -> str:
    """A file of ci/constraints as seen from the root."""
    return str(FOLDER / name)


def lock(name: str, words: Sequence[str]) -> None:
    """Resolve what `words`, the end of uv's command line, name into a file."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST]
    done = subprocess.run(
        [*command, "--generate-hashes", "--no-header", "--upgrade", *words], cwd=ROOT, env=os.environ | index(),
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    if "://" in done.stdout:
        sys.exit(f"error: {name} would say where packages come from; nothing was written")
    (ROOT / placed(name)).write_text(HEADER + done.stdout, encoding="utf-8")
    print(f"{placed(name)}: {len(re.findall('^[^ #].*==', done.stdout, re.MULTILINE))} packages")


def index() -> dict[str, str]:
    """Where pip looks, and its certificates, under the names that uv knows."""
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}  # no extra index: it may hold less
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    found = {}
    for key, value in re.findall(r"^(?:global|install|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE):
        if key in names:
            found[names[key]] = value
    return found


if __name__ == "__main__":
    sys.exit(main())
