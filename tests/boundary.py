"""A pytest plugin: no test writes outside its temporary folder, installs anything, or asks another machine.

In the process of the tests an audit hook refuses such a call, and the test fails even if something catches that. Child
processes get an empty home folder, and in front of PATH stand-ins for installers and for what a machine need not have.
A test after which something was called, or lies in the home folder, fails. At the end of the session, so do new files
in the source tree.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Installers, and programs that a machine need not have and that Python does the work of.
STAND_INS = ("apt", "apt-get", "conda", "curl", "npm", "npx", "patch", "pip", "pip3", "tar", "unzip", "wget", "xz")
# Notes its call with the test's name, which pytest puts into the environment.
STAND_IN = """#!/bin/sh
echo "${{PYTEST_CURRENT_TEST:-a test}} called {name} $*" >> '{calls}'
echo "{name}: no test may call it" >&2
exit 97
"""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
# Event -> places among its arguments of a path that it changes, and of the folder (a file descriptor) that the path is in.
CHANGES = {
    "os.chmod": ((0, 2),), "os.link": ((1, 3),), "os.mkdir": ((0, 2),), "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)), "os.rmdir": ((0, 1),), "os.symlink": ((1, 2),), "os.truncate": ((0, None),),
}  # fmt: skip
DEVICES = ("/dev/", "/proc/", "/sys/")  # the kernel's: no file comes to be
# What tools keep in the source tree, and what other targets of the Makefile write there at the same time.
KEPT_BY_TOOLS = {
    ".benchmarks", ".git", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv",
    ".venv-history", "__pycache__", "build", "dist", "node_modules", "sbom", "site",
}  # fmt: skip
# Variables that name a folder or file which a test writes because somebody asked for it.
ASKED_FOR = ("PIPEPROF_SCREENSHOTS", "PIPEPROF_REAL_FILES")


_OPEN, _WRITE, _CLOSE, _READLINK, _STAT = os.open, os.write, os.close, os.readlink, os.stat  # tests replace them


class OutsideError(RuntimeError):
    """A test did what no test may do."""


class Boundary:
    """What the tests of this process may touch, and what they did besides."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.home, self.calls, self.pip_log = folder / "home", folder / "calls", folder / "pip.log"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.home.mkdir()
        (self.home / ".cache").symlink_to(cache)
        for name in STAND_INS:
            stand_in = self.bin / name
            stand_in.write_text(STAND_IN.format(name=name, calls=self.calls))
            stand_in.chmod(0o755)
        temporary = {tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir())}
        asked = [str(Path(os.environ[name]).absolute()) for name in ASKED_FOR if os.environ.get(name)]
        if os.environ.get("PIPEPROF_UPDATE_GOLDEN"):
            asked.append(str(ROOT / "tests" / "golden"))
        self.allowed = (*DEVICES, *(f"{path}/" for path in (*temporary, *asked)))
        self.asked = tuple(f"{path}/" for path in asked)
        self.active = False
        self.seen = [0, 0]

    def enter(self) -> None:
        """Give this process and its children the home folder and the stand-ins; refuse what comes from now on."""
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            os.environ.pop(name, None)
        os.environ["HOME"] = str(self.home)
        os.environ["PATH"] = f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        os.environ["PIP_LOG"] = str(self.pip_log)  # pip notes each call there, however it was started
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple) -> None:
        """The audit hook: refuses and notes a change outside, and a connection to another machine."""
        if not self.active:
            return
        if event == "open":
            path, mode, flags = arguments
            if isinstance(flags, int) and flags & WRITES and not isinstance(path, int):
                self.check(path, None if mode is None else -1)
        elif event in CHANGES:
            for place, folder in CHANGES[event]:
                self.check(arguments[place], -1 if folder is None else arguments[folder])
        elif event == "socket.connect":
            self.check_address(*arguments)

    def check(self, path, folder) -> None:
        """Refuse the change of a path in a folder: its descriptor, -1 for the working folder, None where nobody tells."""
        if isinstance(path, int):
            return
        text = os.fsdecode(path)
        if not text.startswith("/"):
            if folder is None:
                return  # of `os.open`, for which the look at the source tree is left
            text = f"{_READLINK('/proc/self/cwd' if folder == -1 else f'/proc/self/fd/{folder}')}/{text}"
        text = os.path.normpath(text)
        if not self.inside(text) and not self.inside(_true_path(text)) and _has_folder(text):
            self.refuse(f"changed {text}")

    def inside(self, text: str) -> bool:
        if text.startswith(f"{ROOT}/") and not text.startswith(self.asked):
            return bool(KEPT_BY_TOOLS.intersection(text[len(str(ROOT)) :].split("/")))
        return f"{text}/".startswith(self.allowed) or "/__pycache__/" in text

    def check_address(self, made, address) -> None:
        if made.family.name not in ("AF_INET", "AF_INET6") or made.type.name == "SOCK_DGRAM":
            return
        try:
            here = ipaddress.ip_address(address[0].partition("%")[0]).is_loopback or _is_own(address[0])
        except ValueError:
            here = address[0] in ("localhost", "")
        if not here:
            self.refuse(f"connected to {address[0]}")

    def refuse(self, what: str) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "a test")
        file = _OPEN(self.calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        _WRITE(file, f"{test} {what}\n".encode("utf-8", "backslashreplace"))
        _CLOSE(file)
        raise OutsideError(f"a test {what}")

    def news(self) -> str:
        """What was done outside since the last call; "" for nothing."""
        found = []
        for number, path in enumerate((self.calls, self.pip_log)):
            size = path.stat().st_size if path.exists() else 0
            if size > self.seen[number]:
                with path.open("rb") as file:
                    file.seek(self.seen[number])
                    found.append(file.read().decode("utf-8", "replace"))
                self.seen[number] = size
        for path in self.home.iterdir():
            if path.name != ".cache":
                found.append(f"there is a new {path.name} in the home folder")
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return "\n".join(found)


def _true_path(text: str) -> str:
    """Where links lead, as far as a test lets us look."""
    try:
        return os.path.realpath(text)
    except OSError:
        return text


def _has_folder(text: str) -> bool:
    """Whether there is a folder in which the path could come to be."""
    try:
        _STAT(text.rpartition("/")[0] or "/")
    except OSError:
        return False
    return True


def _is_own(address: str) -> bool:
    import psutil

    return any(entry.address == address for entries in psutil.net_if_addrs().values() for entry in entries)


def files(root: Path) -> set[str]:
    """The paths of a source tree, without what tools keep there."""
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in KEPT_BY_TOOLS and not name.endswith(".egg-info")]
        found |= {f"{folder}/{name}" for name in (*folders, *names)}
    return found


HELD = pytest.StashKey[Boundary]()
FOLDER = pytest.StashKey[Path]()
BEFORE = pytest.StashKey[set]()
SHARED = "TESTS_SHARED_FOLDER"  # of the session, for its workers


def pytest_configure(config):
    worker = getattr(config, "workerinput", None)
    if worker is None:
        config.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="pipeprof-tests-"))
        (config.stash[FOLDER] / "cache").mkdir()
        os.environ[SHARED] = str(config.stash[FOLDER])
        config.stash[BEFORE] = files(ROOT)
    shared = Path(os.environ[SHARED])
    boundary = Boundary(shared / (worker["workerid"] if worker else "alone"), shared / "cache")
    boundary.enter()
    config.stash[HELD] = boundary


def pytest_unconfigure(config):
    if FOLDER in config.stash:
        config.stash[HELD].active = False
        shutil.rmtree(config.stash[FOLDER], ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    boundary = item.config.stash[HELD]
    boundary.active = True
    try:
        return (yield)
    finally:
        boundary.active = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What was done outside, by a test or its fixtures, is an error at its end, when nothing is patched any more."""
    report = yield
    if call.when == "teardown":
        boundary = item.config.stash[HELD]
        boundary.active = False
        if news := boundary.news():
            report.outcome = "failed"
            report.longrepr = f"a test touched what is not its own:\n{news}"
    return report


def new_files(config) -> list[str]:
    return sorted(files(ROOT) - config.stash[BEFORE]) if BEFORE in config.stash else []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if exitstatus == pytest.ExitCode.OK and new_files(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if found := new_files(config):
        terminalreporter.section("the tests left files in the source tree", red=True)
        for path in found:
            terminalreporter.write_line(path)
