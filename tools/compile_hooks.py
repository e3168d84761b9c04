"""Compiles `pipeprof/collect/probe/_hooks.c` for a wheel, or for an editable installation: a build hook of hatchling.

One file serves every Python from 3.10 on (`abi3`). Where no compiler is, or no header of Python, or the file cannot be
loaded, one line says so, and the wheel is the same without it: the hooks are the Python ones then.
PIPEPROF_NO_COMPILED=1 asks for that.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("pipeprof", "collect", "probe")
NAME = "_hooks.abi3.so"
FLAGS = ("-O2", "-shared", "-fPIC", "-fno-plt", "-fvisibility=hidden")
OLDEST = (2, 17)  # of glibc: manylinux2014, which every Linux with Python 3.10 has
TIMEOUT_S = 120


class CannotError(Exception):
    """Why nothing is compiled."""


class CompiledHooks(BuildHookInterface):  # type: ignore[misc]
    """Adds the compiled file to a wheel, and names the platforms that the wheel is for."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before anything is packed; `version`: standard or editable."""
        folder = Path(self.root, FOLDER)
        self.made = tempfile.TemporaryDirectory()
        file = Path(self.made.name, NAME) if version != "editable" else folder / NAME
        try:
            build(folder / "_hooks.c", file)
            if version == "editable":
                return
            tag = f"cp310-abi3-{platform(file.read_bytes())}"
        except CannotError as error:
            self.app.display_warning(f"the hooks are not compiled, those in Python are used: {error}")
            return
        build_data["force_include"][str(file)] = str(FOLDER / NAME)
        build_data.update(pure_python=False, tag=tag)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's
        """The wheel is packed: remove what was compiled for it."""
        self.made.cleanup()


def build(source: Path, file: Path) -> None:
    """Compile the source and try the file; raises CannotError, and then there is no file."""
    file.unlink(missing_ok=True)
    if os.environ.get("PIPEPROF_NO_COMPILED", "0") not in ("", "0"):
        raise CannotError("PIPEPROF_NO_COMPILED is set")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        raise CannotError(f"{sys.implementation.name} on {sys.platform}")
    if not header.is_file():
        raise CannotError(f"{header} is missing, a Python for developers has it")
    load = f"import sys; sys.path.insert(0, {str(file.parent)!r}); import _hooks"
    try:
        run([*compiler(), *FLAGS, "-I", str(header.parent), str(source), "-o", str(file)], "the compiler failed")
        run([sys.executable, "-I", "-c", load], "it cannot be loaded")
    except CannotError:
        file.unlink(missing_ok=True)
        raise


def compiler() -> list[str]:
    """The command of a C compiler: that of the variable CC, or the first that is found."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        raise CannotError("there is no C compiler (cc, gcc or clang)")
    return [found]


def run(command: list[str], what: str) -> None:
    """Run a command to its end; raises CannotError with the last line that it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotError(f"{what}: {error}") from error
    if done.returncode:
        raise CannotError(f"{what}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")


def platform(content: bytes) -> str:
    """The platform of a wheel with this file: manylinux where it needs no newer glibc than that has."""
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    needed = [(int(major), int(minor)) for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", content)]
    if not needed or max(needed) > OLDEST:
        return machine
    return machine.replace("linux_", f"manylinux_{OLDEST[0]}_{OLDEST[1]}_", 1)
