"""A script that profiles itself keeps its profile whole, and the run takes its operators from there."""

from collections import Counter

import pytest

pytestmark = pytest.mark.mindspore

KINDS = ["schedule", "class", "late", "environment"]


def executions(folder):
    """Executions per operator in all FRAMEWORK folders below."""
    counts = Counter()
    for path in sorted(folder.rglob("cpu_op_execute_timestamp_*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, times = line.split(";")
            counts[name] += len(times.split())
    return counts


def sizes(folder):
    return sorted((path.name, len(path.read_text().splitlines())) for path in folder.rglob("cpu_op_*.*"))


@pytest.fixture(scope="module")
def pairs(pipeprof_in):
    known = {}

    def pair(kind):
        if kind not in known:
            pipeprof = pipeprof_in("profiler-" + kind)
            folders = {name: pipeprof.folder / name for name in ("plain", "recorded")}
            options = '{"start":true,"activities":["CPU"],"output_path":"%s"}'
            how = {
                name: {"env": pipeprof.environment(MS_PROFILER_OPTIONS=options % folder)}
                if kind == "environment"
                else {}
                for name, folder in folders.items()
            }
            commands = {name: pipeprof.script("own_profiler.py", kind, str(folder)) for name, folder in folders.items()}
            plain = pipeprof.plain(commands["plain"], cwd=pipeprof.folder, **how["plain"])
            recording = pipeprof.collect(commands["recorded"], **how["recorded"])
            assert plain.returncode == 0, plain.stderr
            assert recording.done.returncode == 0, recording.done.stderr
            known[kind] = folders, recording
        return known[kind]

    return pair


@pytest.mark.parametrize("kind", KINDS)
def test_profile_of_the_script_is_whole(pairs, kind):
    folders, _ = pairs(kind)
    expected = executions(folders["plain"])
    assert expected
    assert executions(folders["recorded"]) == expected
    assert sizes(folders["recorded"]) == sizes(folders["plain"])


@pytest.mark.parametrize("kind", KINDS)
def test_run_says_that_windows_were_left_to_the_script(pairs, kind):
    _, recording = pairs(kind)
    assert "ops_left_to_user" in recording.warned()
    assert len(recording.training()) == 12


@pytest.mark.parametrize("kind", KINDS)
def test_run_holds_the_executions_of_the_scripts_profile(pairs, kind):
    folders, recording = pairs(kind)
    found = Counter(
        {row["name"]: row["n"] for row in recording.sql(
            "SELECT op_info.name, count(*) AS n FROM op JOIN op_info USING (rep, rank, op_id) GROUP BY op_info.name"
        )}
    )  # fmt: skip
    expected = executions(folders["recorded"])
    if kind == "late":  # and those of our own window before it
        assert not {name: n for name, n in expected.items() if found[name] < n}
    else:
        assert found == expected


COVERED = [("schedule", {4, 5, 6}), ("class", set(range(12))), ("environment", set(range(12)))]


@pytest.mark.parametrize(("kind", "steps"), COVERED)
def test_executions_of_the_scripts_profile_lie_in_the_steps_that_it_covers(pairs, kind, steps):
    _, recording = pairs(kind)
    assert {row["step"] for row in recording.rows("op")} == steps


@pytest.mark.parametrize(("kind", "steps"), COVERED)
def test_steps_that_the_script_profiled_are_not_taken_for_undisturbed(pairs, kind, steps):
    _, recording = pairs(kind)
    assert {row["step"] for row in recording.training() if row["in_window"]} >= steps
