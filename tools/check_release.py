"""Checks that a folder holds one release: an sdist and wheels of this version, with all that they must hold.

The wheels are those of the machines that are named, each with the compiled hooks; of none, that of one machine, or the
one for all, without.

python tools/check_release.py DIST [--tag v1.2.3] [--machines x86_64 aarch64]

The version is `__version__` of pipeprof/version.py. A tag must be v and that version, and the changelog must have a
heading for it. Exit code 1, with one line for each thing that is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("Requires-Python", "Description-Content-Type", "License-Expression", "Project-URL")
TAG = "cp310-abi3-manylinux_2_17"  # PyPI takes no wheel of just one Linux
COMPILED = rf"{TAG}_\w+"
HOOKS = "pipeprof/collect/probe/_hooks.abi3.so"


def main() -> int:
    """Print what is wrong; 1 when anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--tag")
    parser.add_argument("--machines", nargs="+", default=())
    asked = parser.parse_args()
    version = version_of(ROOT)
    wrong = [*wrong_files(asked.dist, version, asked.machines), *(wrong_tag(asked.tag, version) if asked.tag else ())]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if not wrong:
        print(f"pipeprof {version}: sdist and wheels are complete")
    return 1 if wrong else 0


def version_of(root: Path) -> str:
    """`__version__`, read as text: importing it would need an installation."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "pipeprof" / "version.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit("error: pipeprof/version.py has no __version__")
    return found[1]


def wrong_tag(tag: str, version: str) -> Iterator[str]:
    """What keeps a tag from being that of a version."""
    if tag != f"v{version}":
        yield f"the tag is {tag}, and __version__ in pipeprof/version.py is {version}"
    if re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE) is None:
        yield f"CHANGELOG.md has no heading `## {version}`"


def wrong_files(dist: Path, version: str, machines: Sequence[str]) -> Iterator[str]:
    """What is missing in a folder, or should not be there."""
    found = {path for path in dist.iterdir() if not path.name.startswith(".")}
    compiled = {path for path in found if re.fullmatch(rf"pipeprof-{re.escape(version)}-{COMPILED}\.whl", path.name)}
    wheels = {dist / f"pipeprof-{version}-{TAG}_{machine}.whl" for machine in machines}
    wheels = wheels or {min(compiled, default=dist / f"pipeprof-{version}-py3-none-any.whl")}
    sdist = dist / f"pipeprof-{version}.tar.gz"
    for path in sorted(found ^ {*wheels, sdist}):
        yield f"{path.name} is {'not expected' if path in found else 'missing'} in {dist}"
    for wheel in sorted(wheels & found):
        yield from _wrong_wheel(wheel, version, is_compiled=wheel in compiled)
    if sdist in found:
        with tarfile.open(sdist) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        yield from (f"{name} is missing in the sdist" for name in sorted(_in_sdist() - names))


def _wrong_wheel(wheel: Path, version: str, *, is_compiled: bool) -> Iterator[str]:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"pipeprof-{version}.dist-info/METADATA").decode()
        names = set(archive.namelist())
    yield from (
        f"{name} is missing in the wheel" for name in sorted(_in_wheel(version, is_compiled=is_compiled) - names)
    )
    if not is_compiled and HOOKS in names:
        yield f"{wheel.name} is for any platform, and holds {HOOKS}"
    yield from _wrong_metadata(metadata, version)


def _wrong_metadata(metadata: str, version: str) -> Iterator[str]:
    headers = HeaderParser().parsestr(metadata)
    if headers["Version"] != version:
        yield f"the wheel says that its version is {headers['Version']}, expected {version}"
    yield from (f"the wheel's metadata has no {name}" for name in NEEDED if name not in headers)


def _files(folder: str) -> Iterator[Path]:
    return (
        path.relative_to(ROOT)
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    )


def _in_wheel(version: str, *, is_compiled: bool) -> set[str]:
    """Every file of the package (also py.typed and what is no Python), the queries, the licence, what was compiled."""
    queries = {Path("pipeprof", "_queries", *path.parts[1:]) for path in _files("queries")}
    return (
        {path.as_posix() for path in {*_files("pipeprof"), *queries}}
        | ({HOOKS} if is_compiled else set())
        | {
            f"pipeprof-{version}.dist-info/licenses/LICENSE",
            f"pipeprof-{version}.dist-info/entry_points.txt",
        }
    )


def _in_sdist() -> set[str]:
    """What a wheel can be built and tested from."""
    folders = ("pipeprof", "queries", "tests", "docs", "lab", "tools", "ci")
    files = {path for folder in folders for path in _files(folder)}
    return {path.as_posix() for path in files} | {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "Makefile"}


if __name__ == "__main__":
    sys.exit(main())
