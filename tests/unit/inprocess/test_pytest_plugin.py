"""The pytest plugin, in a pytest of its own."""

import json
import re
from importlib.metadata import entry_points

import pytest

import pipeprof
from pipeprof.query.side import open_measures
from pipeprof.record.run import load

pytestmark = pytest.mark.slow  # starts a pytest for each test

pytest_plugins = ("pytester",)

PLUGIN = "pipeprof.inprocess.pytest_plugin"
KNOWN = any(point.value == PLUGIN for point in entry_points(group="pytest11"))


@pytest.fixture
def inner(pytester, monkeypatch):
    """`inner(text, *options)` runs a test file in a fresh Python; returns its folder."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # nothing runs beside it: benchmarks count

    def run(text, *options, **outcomes):
        pytester.makepyfile(test_it=text)
        words = [*(() if KNOWN else ("-p", PLUGIN)), "-p", "no:randomly", "-p", "no:cacheprovider", "-W", "error"]
        done = pytester.runpytest_subprocess(*words, *options)
        done.assert_outcomes(**outcomes)
        return pytester.path, done

    return run


def test_marked_and_entered_tests_leave_a_run_each(inner):
    folder, _ = inner(
        """
        import pytest, pipeprof

        @pytest.mark.pipeprof(activities=["host"])
        def test_marked(pipeprof_run):
            with pipeprof.record_function("inside"):
                pass

        @pytest.mark.parametrize("size", [1, "a/b", "a-b"])
        def test_entered(pipeprof_run, size):
            with pipeprof_run() as profile:
                profile.step()
            with pipeprof_run():
                pass
            assert pipeprof_run.path.name == "run-2"

        def test_plain():
            pass
        """,
        passed=5,
    )
    runs = sorted(str(path.parent.relative_to(folder)) for path in folder.glob(".pipeprof/**/run.json"))
    assert [re.sub(r"-[0-9a-f]{8}/", "-HASH/", run) for run in runs] == [
        ".pipeprof/test_it-test_entered-1/run", ".pipeprof/test_it-test_entered-1/run-2",
        ".pipeprof/test_it-test_entered-a-b-HASH/run", ".pipeprof/test_it-test_entered-a-b-HASH/run-2",
        ".pipeprof/test_it-test_entered-a-b/run", ".pipeprof/test_it-test_entered-a-b/run-2",
        ".pipeprof/test_it-test_marked/run",
    ]  # fmt: skip
    assert load(folder / runs[-1]).manifest.state == "complete"


def test_benchmarks_of_a_profiled_test_lie_beside_its_run(inner):
    folder, _ = inner(
        """
        import pytest

        @pytest.mark.pipeprof
        def test_both(benchmark):
            benchmark.pedantic(sum, ([1, 2],), rounds=3)

        def test_numbers_alone(benchmark):
            benchmark.pedantic(sum, ([1, 2],), rounds=3)
        """,
        "--pipeprof-dir",
        "kept",
        passed=2,
    )
    assert sorted(path.name for path in folder.joinpath("kept").iterdir()) == ["test_it-test_both"]
    numbers = folder / "kept" / "test_it-test_both" / "benchmark" / "0000.json"
    assert len(json.loads(numbers.read_text())["benchmarks"][0]["stats"]["data"]) == 3
    assert list(open_measures(numbers).values) == ["benchmark/test_it.py::test_both"]


def test_a_failing_test_keeps_its_run_and_another_execution_replaces_it(inner):
    text = """
        import os, pytest

        @pytest.mark.pipeprof
        def test_fails():
            assert os.environ.get("PASS"), "planted"
        """
    folder, _ = inner(text, failed=1)
    manifest = load(folder / ".pipeprof" / "test_it-test_fails" / "run").manifest
    assert manifest.state == "failed"
    assert manifest.reason.startswith("AssertionError in the profiled block: planted")
    inner(text.replace('"planted"', '"again"'), failed=1)
    assert "again" in load(folder / ".pipeprof" / "test_it-test_fails" / "run").manifest.reason


def test_settings_must_be_named(inner):
    _, done = inner(
        """
        import pytest

        @pytest.mark.pipeprof("here")
        def test_wrong():
            pass
        """,
        failed=1,
    )
    done.stdout.fnmatch_lines(["*takes settings by name, found ('here',)*"])


def test_executions_that_are_added_up_are_repetitions_of_run_and_numbers(inner):
    text = """
        import pytest

        @pytest.mark.pipeprof(activities=["host"])
        def test_again(benchmark):
            benchmark.pedantic(sum, ([1, 2],), rounds=3)
        """
    for _ in range(3):
        folder, _ = inner(text, "--pipeprof-add", passed=1)
    place = folder / ".pipeprof" / "test_it-test_again"
    manifest = load(place / "run").manifest
    assert ([rep.rep for rep in manifest.reps], manifest.state) == ([0, 1, 2], "complete")
    with pipeprof.open(place / "run") as run:
        assert sorted(run.memory.rep.unique()) == [0, 1, 2]
        assert manifest.tables["memory"] == len(run.memory)
    (values,) = open_measures(place / "benchmark").values.values()
    assert len(values) == 3
