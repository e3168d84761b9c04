"""Writes ci/constraints/ anew: versions, with the hashes of their files, for every Python that is supported.

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

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("ci", "constraints")
DEV = str(FOLDER / "dev.txt")
EXTRAS = ("mindspore", "dev", "docs")
OLDEST = "3.10"
HEADER = "# Made by `make constraints`.\n"


def main() -> int:
    """Write the files; the later ones take the versions of the first."""
    extras = [word for name in EXTRAS for word in ("--extra", name)]
    lock("dev.txt", "pyproject.toml", str(FOLDER / "build.in"), *extras)
    lock("gate.txt", "pyproject.toml", "--constraints", DEV)
    for name in ("build", "release", "audit"):
        lock(f"{name}.txt", str(FOLDER / f"{name}.in"), "--constraints", DEV)
    return 0


def lock(name: str, *words: str) -> None:
    """Resolve what is named by `words`, a part of uv's command line, into a file of ci/constraints."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST]
    options = ["--generate-hashes", "--no-header", "--upgrade", *words]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, env=os.environ | index(), stdout=subprocess.PIPE, text=True, check=True
    )
    if "://" in done.stdout:
        sys.exit(f"error: {name} would say where packages come from; nothing was written")
    (ROOT / FOLDER / name).write_text(HEADER + done.stdout, encoding="utf-8")
    print(f"{FOLDER / name}: {len(re.findall('^[^ #].*==', done.stdout, re.MULTILINE))} packages")


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
