"""The pytest plugin: profiles a test's training or dataset loop, beside pytest-benchmark's numbers.

`@pytest.mark.pipeprof` profiles the whole test function; the fixture `pipeprof_run` gives the test a profile to enter
where it wants. Either way the run is `.pipeprof/<test>/run` below pytest's root folder (`--pipeprof-dir`: another
one), and pytest-benchmark's figures of the same test are in `.pipeprof/<test>/benchmark/`. `pipeprof compare` takes
each. With `--pipeprof-add` an execution adds a repetition to both; without, it replaces them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from pipeprof.inprocess.profiler import profile as Profile  # noqa: N812 - a class, here

MARK = "pipeprof"
DEFAULT = ".pipeprof"
RUN, NUMBERS = "run", "benchmark"
_LONGEST = 150  # bytes
_ODD = re.compile(r"[^\w.=+-]")


class ProfiledTest:
    """What the fixture `pipeprof_run` gives: call it with the settings of `pipeprof.profile` and enter what it returns.

    `folder` is the test's folder. Every call but the first makes `run-2`, `run-3`, ...
    """

    def __init__(self, folder: Path, *, add: bool = False) -> None:
        self.folder = folder
        self._add = add
        self.profiles: list[Profile] = []

    def __call__(self, **settings: Any) -> Profile:
        """A profile whose run replaces the last execution's, or adds to it. Refuses `out`, `force` and `add`."""
        from pipeprof.inprocess.profiler import profile  # noqa: PLC0415 - only tests that profile pay for it

        name = RUN if not self.profiles else f"{RUN}-{len(self.profiles) + 1}"
        made = profile(out=self.folder / name, force=not self._add, add=self._add, **settings)
        if not self.profiles and not self._add:
            clear(self.folder)
        self.profiles.append(made)
        return made

    @property
    def path(self) -> Path:
        """The newest run. Raises UsageError when nothing was recorded yet."""
        from pipeprof.errors import UsageError  # noqa: PLC0415

        if not self.profiles:
            raise UsageError("nothing has been recorded: enter `with pipeprof_run():` first")
        return self.profiles[-1].path


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--pipeprof-dir`, and the same in the configuration."""
    group = parser.getgroup("pipeprof")
    words = f"Folder for the runs of profiled tests.  [default: {DEFAULT}]"
    group.addoption("--pipeprof-dir", metavar="DIR", help=words)
    group.addoption("--pipeprof-add", action="store_true", help="Add a repetition to the runs that are there.")
    parser.addini("pipeprof_dir", "Folder for the runs of profiled tests.", default=DEFAULT)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(**settings): profile the test with pipeprof.profile(**settings); its run is {DEFAULT}/<test>/run",
    )


@pytest.fixture
def pipeprof_run(request: pytest.FixtureRequest) -> ProfiledTest:
    """What makes profiles of this test; call it with the settings of `pipeprof.profile` and enter the result."""
    profiled: ProfiledTest | None = request.node.stash.get(_KEY, None)
    if profiled is None:
        profiled = request.node.stash[_KEY] = of_test(request.node)
    return profiled


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Profile the call of a marked test, fixtures aside."""
    marker = item.get_closest_marker(MARK)
    if marker is None:
        return (yield)
    if marker.args:
        raise pytest.UsageError(f"@pytest.mark.pipeprof takes settings by name, found {marker.args!r}")
    made = item.stash.setdefault(_KEY, of_test(item))
    with made(**marker.kwargs):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Keep pytest-benchmark's figures of a profiled test beside its run."""
    if _KEY in item.stash and item.stash[_KEY].profiles:
        write_numbers(item)
    return (yield)


def of_test(item: pytest.Item) -> ProfiledTest:
    """What makes the profiles of a test."""
    return ProfiledTest(folder_of(item), add=bool(item.config.getoption("pipeprof_add")))


def folder_of(item: pytest.Item) -> Path:
    """The folder of a test's runs: its node id as one name, below the folder for all.

    Where that loses something (a long name, odd characters in a parameter) a hash of the id keeps tests apart.
    """
    base = item.config.getoption("pipeprof_dir") or item.config.getini("pipeprof_dir") or DEFAULT
    name = re.sub(r"[^\w.=+-]+", "-", item.nodeid.replace("::", "-").replace(".py", "")).strip("-.")
    parameters = item.nodeid.partition("[")[2].removesuffix("]")
    in_bytes = os.fsencode(name)
    if len(in_bytes) > _LONGEST or _ODD.search(parameters):
        name = f"{in_bytes[-_LONGEST:].decode(errors='ignore')}-{hashlib.sha256(item.nodeid.encode()).hexdigest()[:8]}"
    return Path(item.config.rootpath, base, name)


def clear(folder: Path) -> None:
    """Remove what the last execution of the test left, so that nothing of it is taken for new."""
    from pipeprof.record.plain_file import remove  # noqa: PLC0415 - only tests that profile pay for it

    folder.mkdir(parents=True, exist_ok=True)
    remove(folder / NUMBERS)
    for path in folder.glob(f"{RUN}*"):
        if path.joinpath("run.json").is_file() or any(path.glob("cycle-*/run.json")):
            remove(path)


def write_numbers(item: pytest.Item) -> None:
    """Write the test's benchmarks as pytest-benchmark's own JSON; nothing when it measured none."""
    session: Any = getattr(item.config, "_benchmarksession", None)
    mine = [bench for bench in getattr(session, "benchmarks", ()) if bench.fullname == item.nodeid and bench]
    if not mine:
        return
    hook: Any = item.config.hook
    if _ABOUT not in item.config.stash:  # looking at the machine takes a second
        commit = hook.pytest_benchmark_generate_commit_info(config=item.config)
        item.config.stash[_ABOUT] = {"machine_info": session.get_machine_info(), "commit_info": commit}
    content = hook.pytest_benchmark_generate_json(
        config=item.config, benchmarks=mine, include_data=True, **item.config.stash[_ABOUT]
    )
    folder = folder_of(item) / NUMBERS
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.glob("*.json")))
    folder.joinpath(f"{number:04}.json").write_text(json.dumps(content, default=str), encoding="utf-8")


_KEY: pytest.StashKey[ProfiledTest] = pytest.StashKey()
_ABOUT: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
